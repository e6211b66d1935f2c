/* other_families.c - recognizes models that are no plain Vision Transformer, by their config or by
 * names of tensors, and says what they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/other_families.h"

#include "base/json.h"
#include "base/status.h"

#include <string.h>

#define LLAVA_ONLY "of language models with images, LLaVA (1.5 and 1.6) is supported"

/* A family: how its configs and its tensors are told from others, and why it is refused. */
static const struct family {
    const char *types; /* "model_type" of Hugging Face, with a space on both sides of each */
    const char *start; /* how timm's architectures begin, or with '_' what they contain; or NULL */
    const char *part[2]; /* names of tensors contain the first, and some name the second */
    const char *name, *why;
} families[] = {
    {" swin swinv2 swin2sr maskformer-swin donut-swin ",
     "swin",
     {".blocks.0.attention.self.relative_position_bias_table", NULL},
     "a Swin Transformer",
     "its attention is inside windows, and its stages have different resolutions"},
    {" ",
     "swin",
     {"layers.0.blocks.0.attn.relative_position", NULL},
     "a Swin Transformer",
     "its attention is inside windows, and its stages have different resolutions"},
    {" convnext convnextv2 dinov3_convnext ",
     "convnext",
     {"stages.0.blocks.0.conv_dw.", NULL},
     "a ConvNeXt",
     "it has convolutions, no attention"},
    {" ",
     NULL,
     {"stages.0.layers.0.dwconv.", NULL},
     "a ConvNeXt",
     "it has convolutions, no attention"},
    {" resnet regnet vgg efficientnet mobilenet_v1 mobilenet_v2 ",
     "resnet",
     {"layer1.0.conv1.weight", NULL},
     "a ResNet or another convolutional network",
     "it has convolutions, no tokens to prune"},
    {" ",
     "efficientnet",
     {"blocks.0.0.conv_dw.weight", NULL},
     "an EfficientNet or a MobileNet",
     "it has convolutions, no tokens to prune"},
    {" mobilevit mobilevitv2 ",
     "mobilevit",
     {"conv_stem.convolution.", "conv_projection."},
     "a MobileViT",
     "it mixes convolutions with attention"},
    {" ",
     NULL,
     {"stages.2.1.transformer.0.attn.", NULL},
     "a MobileViT",
     "it mixes convolutions with attention"},
    {" maxvit ",
     "maxvit",
     {"stages.0.blocks.0.attn_block.attn.", NULL},
     "a MaxViT",
     "it mixes convolutions with attention inside windows"},
    {" ",
     "convit_",
     {".attn.gating_param", NULL},
     "a ConViT",
     "its attention adds weights that are made from positions"},
    {" eva02 ",
     "eva02",
     {"blocks.0.attn.q_proj.", "mlp.fc1_g."},
     "an EVA with rotary positions",
     "of rotary positions only DINOv3's are supported"},
    {" ",
     NULL,
     {"blocks.0.attn.rope", NULL},
     "an EVA with rotary positions",
     "of rotary positions only DINOv3's are supported"},
    {" ",
     NULL,
     {"storage_tokens", "rope_embed.periods"},
     "a DINOv3 as Meta publishes it",
     "the files of the same model from Hugging Face and timm are supported"},
    {" ",
     "_rope_", /* some have the tensors of a ViT */
     {"blocks.0.attn.qkv.", "rope.freqs"},
     "a ViT with rotary positions",
     "of rotary positions only DINOv3's are supported"},
    {" ",
     "vit_pe_", /* the tensors of a SigLIP with a class token */
     {NULL, NULL},
     "a Perception Encoder",
     "of rotary positions only DINOv3's are supported"},
    {" ",
     "_rpn_", /* the tensors of a ViT */
     {NULL, NULL},
     "a ViT with LayerNorms behind attention and MLP",
     "only LayerNorms before them are supported"},
    {" ",
     "cait_",
     {"blocks_token_only.", "blocks.0.attn.proj_l."},
     "a CaiT",
     "its attention mixes heads, and its last blocks have attention of the class token alone"},
    {" hiera ", "hiera_", {NULL, NULL}, "a Hiera", "its stages have different resolutions"},
    {" ",
     "beit3_",
     {NULL, NULL},
     "a BEiT-3",
     "LayerNorms inside attention and MLP are not supported"},
    {" beit beitv2 data2vec-vision ",
     "beit",
     {"attn.relative_position_bias_table", "attn.q_bias"},
     "a BEiT",
     "relative positions are not supported"},
    {" ",
     NULL,
     {"attention.attention.relative_position_bias", NULL},
     "a BEiT",
     "relative positions are not supported"},
    {" ",
     "eva_giant",
     {"blocks.0.attn.q_bias", "pos_embed"},
     "an EVA with biases of queries and values alone",
     "attention with a bias of all three, or of none, is supported"},
    {" sam2 sam2_video sam2_vision_model sam2_hiera_det_model ",
     "sam2_",
     {"pos_embed_window", NULL},
     "a SAM 2",
     "its attention has windows, and its stages have different resolutions"},
    {" sam sam_hq sam3 ",
     "samvit",
     {"blocks.0.attn.rel_pos_h", NULL},
     "a SAM",
     "its attention has windows and relative positions"},
    {" ",
     NULL,
     {"vision_encoder.layers.0.attn.rel_pos_h", NULL},
     "a SAM",
     "its attention has windows and relative positions"},
    {" qwen2_vl qwen2_5_vl qwen3_vl qwen2_vl_vision qwen2_5_omni ",
     NULL,
     {"visual.merger.", "visual.blocks.0.attn.qkv."},
     "a Qwen-VL",
     "its images have any shape, with rotary positions; of language models with images, LLaVA "
     "(1.5 and 1.6) is supported"},
    {" ",
     NULL,
     {"decoder_embed.", "cls_token"},
     "a masked autoencoder with its decoder",
     "its encoder alone (ViTMAEModel of transformers) and a classifier made from it are supported"},
    {" internvl internvl_chat ",
     NULL,
     {"vision_tower.encoder.layer.0.attention.projection_layer.", NULL},
     "an InternVL",
     LLAVA_ONLY},
    {" ", NULL, {"mlp1.0.", "vision_model.encoder.layers.0.ls1"}, "an InternVL", LLAVA_ONLY},
    {" internvl_vision intern_vit_6b ",
     "vit_intern",
     {"encoder.layer.0.attention.projection_layer.", NULL},
     "an InternViT",
     "it has no LayerNorm behind its last block, or normalized queries"},
    {" ",
     NULL,
     {"encoder.layers.0.attn.qkv.", "encoder.layers.0.ls1"},
     "an InternViT",
     "it has no LayerNorm behind its last block, or normalized queries"},
    {" radio ",
     "_radio_",
     {"radio_model.", NULL},
     "a RADIO",
     "it has several class tokens, and no LayerNorm behind its last block"},
    {" blip-2 blip_2_vision_model instructblip instructblip_vision_model ",
     NULL,
     {"query_tokens", "vision_model.encoder.layers.0.self_attn.qkv."},
     "a BLIP-2",
     LLAVA_ONLY},
    {" blip blip_vision_model ",
     NULL,
     {"encoder.layers.0.self_attn.qkv.", "encoder.layers.0.self_attn.projection."},
     "a BLIP, or the image tower of a BLIP-2",
     "of models with texts CLIP, SigLIP and LLaVA are supported"},
    {" mlcd mlcd_vision_model ",
     NULL,
     {"class_pos_emb", "pre_layrnorm."},
     "an MLCD",
     "of rotary positions only DINOv3's are supported"},
    {" owlvit owlv2 owlvit_vision_model owlv2_vision_model ",
     NULL,
     {"vision_model.pre_layernorm.", NULL},
     "an OWL-ViT or OWLv2",
     "it finds objects and has other towers than CLIP"},
    {" vivit ", NULL, {"vivit.embeddings.", NULL}, "a ViViT", "it reads videos"},
    {" vilt ",
     NULL,
     {"text_embeddings.word_embeddings.", "patch_embeddings."},
     "a ViLT",
     "texts and patches are tokens of one model"},
    {" levit ",
     "levit",
     {"stages.0.blocks.0.attn.attention_biases", NULL},
     "a LeViT",
     "it has attention biases and stages of different resolutions"},
    {" pvt pvt_v2 segformer cvt ",
     "pvt",
     {"stages.0.blocks.0.attn.sr.", NULL},
     "a pyramid of stages",
     "its stages have different resolutions"},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static int has_type(const char *types, const char *type)
{
    const size_t n = type ? strlen(type) : 0;
    for (const char *at = types; n && (at = strstr(at, type)); at += n)
        if (at > types && at[-1] == ' ' && at[n] == ' ') return 1;
    return 0;
}

static const char *text_of(const json_t *config, const char *key)
{
    return json_string_value(json_object_get(config, key));
}

static int has_config(const struct family *f, const json_t *config)
{
    const char *architecture = text_of(config, "architecture");
    if (has_type(f->types, text_of(config, "model_type")) ||
        has_type(f->types, text_of(ry_json_object(config, "vision_config"), "model_type")))
        return 1;
    if (!f->start || !architecture) return 0;
    const char *at = strstr(architecture, f->start);
    return at && (at == architecture || *f->start == '_');
}

static int has_part(const char *part, const ry_tensors *set)
{
    for (size_t i = 0; i < ry_tensors_count(set); i++)
        if (strstr(ry_tensors_at(set, i)->name, part)) return 1;
    return 0;
}

static int has_tensors(const struct family *f, const ry_tensors *set)
{
    return f->part[0] && has_part(f->part[0], set) && (!f->part[1] || has_part(f->part[1], set));
}

const char *ry_config_family(const ry_checkpoint *ckpt)
{
    const char *type = text_of(ckpt->config, "model_type");
    return type ? type : text_of(ckpt->config, "architecture");
}

renyi_status ry_vit_refuse_others(const ry_checkpoint *ckpt, renyi_error *err)
{
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const struct family *f = &families[i];
        if (!has_config(f, ckpt->config) && !has_tensors(f, ckpt->tensors)) continue;
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s, which renyi does not run: %s. ViT, DeiT, DINOv2, DINOv3, CLIP and "
                       "SigLIP are supported",
                       f->name, f->why);
    }
    return RENYI_OK;
}
