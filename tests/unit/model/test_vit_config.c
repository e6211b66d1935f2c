/* test_vit_config.c - the configuration read from a checkpoint: sizes, heads, family, and one clear
 * message for everything that is not a plain ViT.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/vit_fixture.h"
#include "model/common/arch.h"
#include "model/vit/vit.h"

#include <math.h>

/* Configures a fixture with the text of a config.json (or NULL). */
static renyi_status configure(ry_vit_config *c, const fixture *f, const char *config,
                              uint32_t image_size, renyi_error *err)
{
    ry_checkpoint ckpt = {0};
    const char *path = fix_write(f, "config.safetensors");
    ckpt.tensors_path = (char *)(uintptr_t)path;
    if (config) assert_non_null(ckpt.config = json_loads(config, 0, NULL));
    assert_ok(ry_safetensors_open(&ckpt.tensors, path, NULL, NULL, err));
    const renyi_status st = ry_vit_configure(c, &ckpt, image_size, err);
    ry_tensors_free(ckpt.tensors);
    json_decref(ckpt.config);
    unlink(path);
    return st;
}

#define must_fail(code_, f, config, size, word)                        \
    do {                                                               \
        ry_vit_config c_;                                              \
        renyi_error e_ = {0};                                          \
        assert_int_equal(configure(&c_, f, config, size, &e_), code_); \
        assert_says(&e_, word);                                        \
    } while (0)

static void sizes_from_shapes(void **state)
{
    (void)state;
    fixture f;
    ry_vit_config c;
    fix_make(&f, "vit_tiny_patch8_32");
    assert_ok(configure(&c, &f, NULL, 0, err));
    assert_int_equal(c.layout, RY_LAYOUT_TIMM);
    assert_int_equal(c.dim, FIX_DIM);
    assert_int_equal(c.n_blocks, FIX_BLOCKS);
    assert_int_equal(c.mlp_dim, FIX_MLP);
    assert_int_equal(c.n_classes, FIX_CLASSES);
    assert_int_equal(c.n_heads, FIX_HEADS); /* from __metadata__ */
    assert_int_equal(c.patch_size, 8);
    assert_int_equal(c.image_size, 32);
    assert_int_equal(c.n_prefix, 1);
    assert_string_equal(c.family, "vit");
    assert_string_equal(c.architecture, "vit_d32_l2_patch8_32");
    assert_true(c.norm_eps == 1e-6);
    assert_int_equal(c.activation, RY_EPI_GELU);
    fix_free(&f);

    fix_make(&f, "deit_tiny_distilled_patch16_32");
    assert_ok(configure(&c, &f, NULL, 0, err));
    assert_int_equal(c.n_prefix, 2);
    assert_string_equal(c.family, "deit-distilled");
    fix_to_hf(&f, "deit.");
    assert_ok(configure(&c, &f, "{\"num_attention_heads\": 8, \"layer_norm_eps\": 1e-5}", 0, err));
    assert_int_equal(c.layout, RY_LAYOUT_HF);
    assert_int_equal(c.n_heads, 8);
    assert_true(c.norm_eps == 1e-5);
    assert_int_equal(c.n_prefix, 2);
    fix_free(&f);

    fix_make(&f, "vit_tiny_patch8_32"); /* the encoder of a masked autoencoder is a ViT */
    fix_to_hf(&f, "");
    assert_ok(
        configure(&c, &f, "{\"model_type\": \"vit_mae\", \"num_attention_heads\": 4}", 0, err));
    assert_string_equal(c.family, "vit");
    fix_free(&f);
}

static void config_json(void **state)
{
    (void)state;
    fixture f;
    ry_vit_config c;
    fix_make(&f, "vit_tiny_patch8_32");
    assert_ok(configure(
        &c, &f, "{\"architecture\": \"deit_x\", \"model_args\": {\"num_heads\": 2}}", 0, err));
    assert_string_equal(c.architecture, "deit_x");
    assert_string_equal(c.family, "deit");
    assert_int_equal(c.n_heads, 2);
    assert_ok(configure(&c, &f, "{\"hidden_act\": \"quick_gelu\"}", 0, err));
    assert_int_equal(c.activation, RY_EPI_QUICKGELU);

    must_fail(RENYI_ERR_UNSUPPORTED, &f, "{\"hidden_act\": \"relu\"}", 0, "'relu'");
    static const char *const tanh_forms[] = {"gelu_pytorch_tanh", "gelu_tanh", "gelu_new"};
    for (size_t i = 0; i < 3; i++) {
        char config[64];
        snprintf(config, sizeof config, "{\"hidden_act\": \"%s\"}", tanh_forms[i]);
        assert_ok(configure(&c, &f, config, 0, err));
        assert_int_equal(c.activation, RY_EPI_GELU_TANH);
    }
    must_fail(RENYI_ERR_FORMAT, &f, "{\"num_attention_heads\": 5}", 0,
              "5 heads, from config.json (num_attention_heads), do not divide the width 32; is it "
              "the config of another");
    must_fail(RENYI_ERR_FORMAT, &f, "{\"num_attention_heads\": \"four\"}", 0,
              "num_attention_heads");
    must_fail(RENYI_ERR_FORMAT, &f, "{\"layer_norm_eps\": 2}", 0, "layer_norm_eps");
    must_fail(RENYI_ERR_FORMAT, &f, "{\"hidden_size\": 768}", 0, "hidden_size is 768");
    f.meta[0] = NULL;
    must_fail(RENYI_ERR_FORMAT, &f, NULL, 0,
              "do not divide the width 32; write num_attention_heads into the config.json beside");
    must_fail(RENYI_ERR_FORMAT, &f, "{\"hidden_size\": 32}", 0, "heads is in no config");
    fix_free(&f);
}

/* The threshold is in the metadata only; a model without classes has none. */
static void none_below(void **state)
{
    (void)state;
    fixture f;
    ry_vit_config c;
    fix_make(&f, "vit_tiny_patch8_32");
    assert_ok(configure(&c, &f, "{\"renyi.none_below\": 1}", 0, err));
    assert_true(isnan(c.none_below));
    f.meta[2] = "renyi.none_below";
    f.meta[3] = "-4.25";
    f.meta[4] = NULL;
    assert_ok(configure(&c, &f, NULL, 0, err));
    assert_true(c.none_below == -4.25);
    static const char *const bad[] = {"", "4,5", "nan", "1e3", "four"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        f.meta[3] = bad[i];
        must_fail(RENYI_ERR_FORMAT, &f, NULL, 0, "renyi.none_below");
    }
    fix_free(&f);
}

static void input_sizes(void **state)
{
    (void)state;
    fixture f;
    ry_vit_config c;
    fix_make(&f, "vit_tiny_patch8_32");
    assert_ok(configure(&c, &f, NULL, 48, err));
    assert_int_equal(c.image_size, 48);
    assert_int_equal(c.preprocess.size, 48);
    must_fail(RENYI_ERR_ARG, &f, NULL, 50, "48 or 56 would fit");
    must_fail(RENYI_ERR_ARG, &f, NULL, 3, "8 would fit");
    must_fail(RENYI_ERR_ARG, &f, NULL, 5000, "at most 4096");
    fix_free(&f);
}

/* Tensors of other variants of the ViT: the message names the first. */
static void other_architectures(void **state)
{
    (void)state;
    static const char *const names[] = {
        "blocks.1.attn.q_norm.weight", "blocks.0.mlp.fc1_g.weight",
        "patch_embed.backbone.x",      "pre_logits.fc.weight",
        "blocks.0.attn.rel_pos.table", "layers.0.downsample.norm.weight",
    };
    fixture f;
    fix_make(&f, "vit_tiny_patch8_32");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fix_add_zeros(&f, names[i], 4);
        must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0, names[i]);
        fix_remove(&f, names[i]);
    }
    fix_free(&f);
}

/* The same in a state dict of transformers 5; without blocks the usual names are asked for. */
static void transformers_5(void **state)
{
    (void)state;
    fixture f;
    fix_make(&f, "vit_tiny_patch8_32");
    fix_to_hf(&f, "vit.");
    fix_hf_to_5(&f);
    must_fail(RENYI_ERR_UNSUPPORTED, &f, "{\"hidden_act\": \"relu\"}", 0, "'relu'");
    fix_add_zeros(&f, "vit.layers.0.attention.q_norm.weight", 4);
    must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0, "q_norm.weight' means normalized queries");
    fix_remove(&f, "vit.layers.0.attention.q_norm.weight");
    fix_remove(&f, "vit.layers.1.attention.o_proj.bias");
    must_fail(RENYI_ERR_FORMAT, &f, "{\"num_attention_heads\": 4}", 0,
              "vit.layers.1.attention.o_proj.bias");
    fix_free(&f);
}

static void no_class_token(void **state)
{
    (void)state;
    fixture f;
    fix_make(&f, "vit_tiny_patch8_32");
    fix_remove(&f, "cls_token");
    must_fail(RENYI_ERR_FORMAT, &f, NULL, 0, "missing cls_token"); /* 17 positions: damaged */
    ry_tensor *pos = fix_find(&f, "pos_embed");
    pos->shape[1] = 16;
    pos->bytes = 4 * ry_tensor_elements(pos);
    must_fail(RENYI_ERR_UNSUPPORTED, &f, "{\"global_pool\": \"token\"}", 0,
              "0 tokens before its patches this build runs 'avg'");
    ry_vit_config c;
    assert_ok(configure(&c, &f, NULL, 0, err));
    assert_int_equal(c.n_prefix, 0);
    assert_int_equal(c.pool, RY_POOL_NORM_MEAN);
    assert_int_equal(c.image_size, 32);
    assert_string_equal(c.architecture, "vit_d32_l2_patch8_gap_32");
    fix_free(&f);
}

/* Pooling: from the tensors, or from a config if they allow both. */
static void pooling(void **state)
{
    (void)state;
    fixture f;
    ry_vit_config c;
    fix_make(&f, "vit_tiny_patch8_32");
    assert_ok(configure(&c, &f, NULL, 0, err));
    assert_int_equal(c.pool, RY_POOL_TOKEN);
    assert_ok(configure(&c, &f, "{\"global_pool\": \"avg\"}", 0, err));
    assert_int_equal(c.pool, RY_POOL_NORM_MEAN);
    must_fail(RENYI_ERR_UNSUPPORTED, &f, "{\"model_args\": {\"global_pool\": \"max\"}}", 0,
              "global_pool 'max'; of a model with 1 token before its patches this build runs "
              "'token' and 'avg'");
    fix_add_zeros(&f, "fc_norm.bias", FIX_DIM);
    must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0, "both 'norm.' and 'fc_norm.'");
    fix_remove(&f, "norm.bias");
    fix_remove(&f, "norm.weight");
    must_fail(RENYI_ERR_FORMAT, &f, NULL, 0, "missing fc_norm.weight");
    fix_add_zeros(&f, "fc_norm.weight", FIX_DIM);
    assert_ok(configure(&c, &f, NULL, 0, err)); /* a fine-tuned MAE */
    assert_int_equal(c.pool, RY_POOL_MEAN);
    assert_int_equal(c.n_prefix, 1);
    assert_non_null(strstr(c.preprocess_source, "MAE"));
    assert_true(c.preprocess.mean[0] == 0.485);
    assert_ok(configure(&c, &f, "{\"global_pool\": \"token\"}", 0, err));
    assert_int_equal(c.pool, RY_POOL_TOKEN);
    fix_free(&f);

    fix_make(&f, "deit_tiny_distilled_patch8_32");
    must_fail(RENYI_ERR_UNSUPPORTED, &f, "{\"global_pool\": \"avg\"}", 0, "runs 'token'");
    fix_rename(&f, "norm.weight", "fc_norm.weight");
    fix_rename(&f, "norm.bias", "fc_norm.bias");
    must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0, "both 'dist_token' and 'fc_norm.'");
    fix_free(&f);

    fix_make(&f, "vit_tiny_patch8_gap_32");
    assert_ok(configure(&c, &f, NULL, 0, err));
    assert_int_equal(c.pool, RY_POOL_MEAN);
    assert_int_equal(c.n_prefix, 0);
    fix_free(&f);
}

static void not_a_vit(void **state)
{
    (void)state;
    fixture f = {0};
    must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0, "no tensors at all");
    fix_add_zeros(&f, "model.embed_tokens.weight", 4);
    must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0,
              "looked for timm's and Meta's patch_embed.proj.weight");
    must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0, "found 'model.embed_tokens.weight'");
    for (int i = 0; i < 100; i++) {
        char name[64];
        snprintf(name, sizeof name, "model.layers.%d.mlp.gate_proj.weight", i);
        fix_add_zeros(&f, name, 1);
    }
    must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0, " more");
    fix_free(&f);
}

static void all_faults_at_once(void **state)
{
    (void)state;
    fixture f;
    fix_make(&f, "vit_tiny_patch8_32");
    fix_remove(&f, "norm.weight");
    fix_remove(&f, "blocks.1.attn.qkv.bias"); /* block 0 has one: so this one is missing */
    fix_find(&f, "blocks.0.mlp.fc2.weight")->shape[0] = FIX_MLP;
    fix_find(&f, "blocks.0.mlp.fc2.weight")->shape[1] = FIX_DIM;
    fix_find(&f, "blocks.1.norm2.bias")->dtype = RY_I32;
    fix_add_zeros(&f, "surprise.weight", 3);
    fix_add_zeros(&f, "embeddings.position_ids", 3); /* harmless */
    static const char *const words[] = {"5 tensors", "missing blocks.1.attn.qkv.bias, norm.weight",
                                        "blocks.0.mlp.fc2.weight [48, 32] instead of [32, 48]",
                                        "not a float type blocks.1.norm2.bias I32",
                                        "unknown surprise.weight"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        must_fail(RENYI_ERR_FORMAT, &f, NULL, 0, words[i]);
    fix_free(&f);

    fix_make(&f, "vit_tiny_patch8_32"); /* more than one message holds */
    fix_rename(&f, "blocks.1.norm1.weight", "blocks.9.norm1.weight");
    must_fail(RENYI_ERR_FORMAT, &f, NULL, 0, "96 tensors");
    must_fail(RENYI_ERR_FORMAT, &f, NULL, 0, " more");
    fix_free(&f);
}

static void lying_sizes(void **state)
{
    (void)state;
    fixture f;
    fix_make(&f, "vit_tiny_patch8_32");
    fix_rename(&f, "blocks.1.norm1.weight", "blocks.4000000000.norm1.weight");
    must_fail(RENYI_ERR_LIMIT, &f, NULL, 0, "at most 1024 blocks");
    fix_rename(&f, "blocks.4000000000.norm1.weight", "blocks.99999999999999999999.norm1.weight");
    must_fail(RENYI_ERR_LIMIT, &f, NULL, 0, "at most 1024 blocks");
    fix_rename(&f, "blocks.99999999999999999999.norm1.weight", "blocks.01.norm1.weight");
    must_fail(RENYI_ERR_FORMAT, &f, NULL, 0, "unknown blocks.01.norm1.weight");
    fix_free(&f);

    fix_make(&f, "vit_tiny_patch8_32"); /* 16 patches made 14: no square */
    ry_tensor *pos = fix_find(&f, "pos_embed");
    pos->shape[1] = 15;
    pos->bytes = 4 * ry_tensor_elements(pos);
    must_fail(RENYI_ERR_UNSUPPORTED, &f, NULL, 0, "do not form a square");
    fix_free(&f);
}

/* A file without a head is a model without classes. */
static void without_head(void **state)
{
    (void)state;
    fixture f;
    ry_vit_config c;
    fix_make(&f, "vit_tiny_patch8_32");
    fix_remove(&f, "head.weight");
    must_fail(RENYI_ERR_FORMAT, &f, NULL, 0, "missing head.weight");
    fix_remove(&f, "head.bias");
    assert_ok(configure(&c, &f, NULL, 0, err));
    assert_int_equal(c.n_classes, 0);
    fix_free(&f);
}

static void architecture_names(void **state)
{
    (void)state;
    static const char *const good[] = {"vit_tiny_patch16_224",  "deit_base_distilled_patch16_384",
                                       "vit_huge_patch14_224",  "vit_small_patch8_64",
                                       "vit_large_patch32_384", "vit_tiny_patch16_gap_224"};
    static const char *const bad[] = {"",
                                      "vit_",
                                      "vit_tiny",
                                      "vit_tiny_patch16",
                                      "vit_tiny_patch16_",
                                      "vit_tiny_patch16_224x",
                                      "vit_tiny_patch16_225",
                                      "vit_tiny_patch7_224",
                                      "swin_tiny_patch16_224",
                                      "vit_tiny_patch16_99999999999",
                                      "vit_tiny_patch16_0",
                                      "vit_tiny_gap_patch16_224",
                                      "vit_tiny_patch16_gap",
                                      "deit_tiny_distilled_patch16_gap_224"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ry_arch a;
        char back[128];
        assert_true(ry_arch_parse(&a, good[i]));
        ry_arch_write(back, sizeof back, &a);
        assert_string_equal(back, good[i]);
        assert_int_equal(a.n_heads, ry_arch_heads(a.dim));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ry_arch a;
        assert_false(ry_arch_parse(&a, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_from_shapes),
        cmocka_unit_test(config_json),
        cmocka_unit_test(input_sizes),
        cmocka_unit_test(other_architectures),
        cmocka_unit_test(transformers_5),
        cmocka_unit_test(no_class_token),
        cmocka_unit_test(pooling),
        cmocka_unit_test(not_a_vit),
        cmocka_unit_test(all_faults_at_once),
        cmocka_unit_test(lying_sizes),
        cmocka_unit_test(without_head),
        cmocka_unit_test(architecture_names),
        cmocka_unit_test(none_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
