/* test_other_families.c - models that are refused say what they are: by the config, and by the
 * names of tensors alone.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/vit_fixture.h"

typedef struct refusal {
    const char *config; /* NULL = none */
    const char *tensors[3];
    const char *words;
} refusal;

static const refusal cases[] = {
    {"{\"model_type\": \"swin\"}", {"x"}, "a Swin Transformer"},
    {"{\"architecture\": \"swin_tiny_patch4_window7_224\"}", {"x"}, "a Swin Transformer"},
    {NULL,
     {"patch_embed.proj.weight", "layers.0.blocks.0.attn.relative_position_bias_table"},
     "a Swin Transformer"},
    {NULL,
     {"swin.encoder.layers.0.blocks.0.attention.self.relative_position_bias_table"},
     "a Swin Transformer"},
    {"{\"model_type\": \"convnextv2\"}", {"x"}, "a ConvNeXt"},
    {NULL, {"visual.trunk.stages.0.blocks.0.conv_dw.weight"}, "a ConvNeXt"},
    {NULL, {"visual.layer1.0.conv1.weight"}, "a ResNet"},
    {"{\"model_type\": \"resnet\"}", {"x"}, "a ResNet"},
    {"{\"architecture\": \"eva02_base_patch14_224\"}", {"x"}, "an EVA with rotary positions"},
    {NULL,
     {"patch_embed.proj.weight", "blocks.0.attn.q_proj.weight", "blocks.0.mlp.fc1_g.weight"},
     "an EVA with rotary positions"},
    {"{\"architecture\": \"vit_small_patch16_rope_ape_224\"}",
     {"x"},
     "a ViT with rotary positions"},
    {NULL, {"blocks.0.attn.qkv.weight", "rope.freqs"}, "a ViT with rotary positions"},
    {"{\"architecture\": \"vit_pe_core_tiny_patch16_384\"}", {"x"}, "a Perception Encoder"},
    {"{\"architecture\": \"vit_base_patch16_rpn_224\"}", {"x"}, "a ViT with LayerNorms behind"},
    {"{\"architecture\": \"cait_xxs24_224\"}", {"x"}, "a CaiT"},
    {"{\"model_type\": \"hiera\"}", {"x"}, "a Hiera"},
    {"{\"architecture\": \"beit3_base_patch16_224\"}", {"x"}, "a BEiT-3"},
    {NULL, {"blocks.0.attn.q_bias", "pos_embed"}, "an EVA with biases of queries"},
    {"{\"model_type\": \"beit\"}", {"x"}, "a BEiT, which renyi does not run: relative"},
    {NULL,
     {"patch_embed.proj.weight", "blocks.0.attn.relative_position_bias_table",
      "blocks.0.attn.q_bias"},
     "a BEiT"},
    {"{\"model_type\": \"sam\"}", {"x"}, "a SAM"},
    {NULL, {"image_encoder.blocks.0.attn.rel_pos_h"}, "a SAM"},
    {"{\"model_type\": \"qwen2_5_vl\"}", {"x"}, "a Qwen-VL"},
    {NULL, {"visual.merger.mlp.0.weight", "visual.blocks.0.attn.qkv.weight"}, "a Qwen-VL"},
    {"{\"model_type\": \"qwen2_vl\"}",
     {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight"},
     "a Qwen-VL"},
    {"{\"model_type\": \"mobilevit\"}", {"x"}, "a MobileViT"},
    {NULL, {"storage_tokens", "rope_embed.periods", "mask_token"}, "a DINOv3 as Meta publishes it"},
    {"{\"vision_config\": {\"model_type\": \"sam2\"}}", {"x"}, "a SAM"},
    {"{\"model_type\": \"vit_mae\"}",
     {"vit.embeddings.cls_token", "decoder.decoder_embed.weight"},
     "a masked autoencoder with its decoder"},
    {NULL, {"cls_token", "decoder_embed.weight"}, "a masked autoencoder with its decoder"},
    {NULL, {"conv_stem.convolution.weight", "encoder.layer.2.conv_projection.x"}, "a MobileViT"},
    {NULL, {"stages.2.1.transformer.0.attn.qkv.weight"}, "a MobileViT"},
    {NULL, {"stages.0.blocks.0.attn_block.attn.qkv.weight"}, "a MaxViT"},
    {"{\"architecture\": \"maxvit_tiny_tf_224\"}", {"x"}, "a MaxViT"},
    {NULL, {"patch_embed.proj.weight", "blocks.0.attn.gating_param"}, "a ConViT"},
    {NULL, {"vision_encoder.backbone.pos_embed_window"}, "a SAM 2"},
    {"{\"model_type\": \"sam2_vision_model\"}", {"x"}, "a SAM 2"},
    {"{\"architecture\": \"vit_intern300m_patch14_448\"}", {"x"}, "an InternViT"},
    {"{\"model_type\": \"internvl_vision\"}", {"x"}, "an InternViT"},
    {NULL, {"encoder.layer.0.attention.projection_layer.weight"}, "an InternViT"},
    {NULL, {"encoder.layers.0.attn.qkv.weight", "encoder.layers.0.ls1"}, "an InternViT"},
    {"{\"model_type\": \"internvl_chat\", "
     "\"vision_config\": {\"model_type\": \"intern_vit_6b\"}}",
     {"x"},
     "an InternVL"},
    {NULL,
     {"language_model.model.embed_tokens.weight", "multi_modal_projector.linear_1.weight",
      "vision_tower.encoder.layer.0.attention.projection_layer.weight"},
     "an InternVL"},
    {NULL, {"mlp1.0.weight", "vision_model.encoder.layers.0.ls1"}, "an InternVL"},
    {"{\"architecture\": \"vit_base_patch16_radio_v3\"}", {"x"}, "a RADIO"},
    {NULL, {"radio_model.summary_idxs"}, "a RADIO"},
    {NULL,
     {"query_tokens", "vision_model.encoder.layers.0.self_attn.qkv.weight"},
     "a BLIP-2, which"},
    {NULL,
     {"vision_model.encoder.layers.0.self_attn.qkv.weight",
      "vision_model.encoder.layers.0.self_attn.projection.weight"},
     "a BLIP, or"},
    {NULL, {"class_pos_emb", "pre_layrnorm.weight"}, "an MLCD"},
    {NULL, {"owlv2.vision_model.pre_layernorm.weight"}, "an OWL-ViT"},
    {NULL, {"vivit.embeddings.cls_token"}, "a ViViT"},
    {NULL,
     {"embeddings.text_embeddings.word_embeddings.weight",
      "embeddings.patch_embeddings.projection.weight"},
     "a ViLT"},
};

static void test_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const refusal *c = &cases[i];
        fixture f = {.n = 0};
        renyi_model *m = NULL;
        renyi_error e = {0};
        for (size_t k = 0; k < 3 && c->tensors[k]; k++)
            fix_add(&f, c->tensors[k], 1, (const uint64_t[]){1}, calloc(1, sizeof(float)));
        if (c->config) f.meta[0] = "config.json", f.meta[1] = c->config;
        const char *path = fix_write(&f, "other.safetensors");
        assert_int_equal(renyi_model_open(&m, path, NULL, &e), RENYI_ERR_UNSUPPORTED);
        assert_says(&e, c->words);
        assert_says(&e, "which renyi does not run");
        unlink(path);
        fix_free(&f);
    }
}

/* "swin" inside another word is no Swin. */
static void test_not_named(void **state)
{
    static const char *const configs[] = {"{\"model_type\": \"win\"}",
                                          "{\"architecture\": \"vit_base_resnet50_224\"}",
                                          "{\"architecture\": \"eva_large_patch14_196\"}"};
    static const char *const said[] = {"win", "vit_base_resnet50_224", "eva_large_patch14_196"};
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        char words[96];
        snprintf(words, sizeof words, "not a Vision Transformer, but '%s' by its config", said[i]);
        fixture f = {.n = 0};
        renyi_model *m = NULL;
        renyi_error e = {0};
        fix_add(&f, "x", 1, (const uint64_t[]){1}, calloc(1, sizeof(float)));
        f.meta[0] = "config.json", f.meta[1] = configs[i];
        const char *path = fix_write(&f, "none.safetensors");
        assert_int_equal(renyi_model_open(&m, path, NULL, &e), RENYI_ERR_UNSUPPORTED);
        assert_says(&e, words);
        unlink(path);
        fix_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_named),
                                       cmocka_unit_test(test_not_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
