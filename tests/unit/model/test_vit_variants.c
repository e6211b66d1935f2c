/* test_vit_variants.c - bad files of models with registers, layer scale, gated MLPs and rotary
 * positions: each fault has a message that names it. Names of architectures, and DeiT-III's own
 * names of layer scale.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/vit_fixture.h"
#include "formats/checkpoint.h"
#include "model/common/arch.h"
#include "model/common/tensor_names.h"

/* A checkpoint of the fixture's tensors with this config. */
static renyi_status configure(ry_vit_config *out, fixture *f, const char *config, renyi_error *err)
{
    const char *path = fix_write(f, "variant.safetensors");
    ry_checkpoint ckpt;
    renyi_status st = ry_checkpoint_open(&ckpt, path, NULL, NULL, err);
    if (st) return st;
    json_decref(ckpt.config);
    ckpt.config = config ? json_loads(config, 0, NULL) : NULL;
    st = ry_vit_configure(out, &ckpt, 0, err);
    ry_checkpoint_close(&ckpt, NULL);
    unlink(path);
    return st;
}

static void must_say(fixture *f, const char *config, renyi_status code, const char *text)
{
    renyi_error error = {0};
    ry_vit_config c;
    const renyi_status st = configure(&c, f, config, &error);
    if (st != code || !strstr(error.message, text))
        fail_msg("status %d: \"%s\" is not in: %s", (int)st, text, error.message);
}

static void set_shape(fixture *f, const char *name, uint32_t axis, uint64_t size)
{
    ry_tensor *t = fix_find(f, name);
    t->shape[axis] = size;
    t->bytes = 4 * ry_tensor_elements(t);
}

/* Tensors that contradict each other. */
static void bad_tensors(void **state)
{
    (void)state;
    fixture f;
    fix_make(&f, "deit3_small_patch8_32");
    fix_remove(&f, "blocks.1.ls2.gamma");
    must_say(&f, NULL, RENYI_ERR_FORMAT, "missing blocks.1.ls2.gamma");
    fix_free(&f);

    fix_make(&f, "deit3_small_patch8_32");
    set_shape(&f, "blocks.0.ls1.gamma", 0, 16);
    must_say(&f, NULL, RENYI_ERR_FORMAT, "blocks.0.ls1.gamma [16] instead of [32]");
    fix_free(&f);

    fix_make(&f, "deit3_small_patch8_32");
    fix_add_zeros(&f, "blocks.0.gamma_1", 32);
    must_say(&f, NULL, RENYI_ERR_UNSUPPORTED, "'ls1.gamma' and 'gamma_1'");
    fix_free(&f);

    fix_make(&f, "vit_small_patch8_reg4_gap_32");
    set_shape(&f, "reg_token", 2, 24);
    must_say(&f, NULL, RENYI_ERR_FORMAT, "reg_token [1, 4, 24] instead of [1, 4, 32]");
    fix_free(&f);

    fix_make(&f, "vit_small_patch8_reg4_gap_32");
    set_shape(&f, "reg_token", 1, 0);
    must_say(&f, NULL, RENYI_ERR_FORMAT, "reg_token [1, 0, 32] instead of [1, ?, 32]");
    fix_free(&f);

    fix_make(&f, "vit_small_patch8_reg4_gap_32");
    fix_remove(&f, "reg_token");
    must_say(&f, "{\"architecture\": \"vit_small_patch8_reg4_gap_32\"}", RENYI_ERR_FORMAT,
             "has 4 registers, but the tensors (reg_token) have 0");
    fix_free(&f);
}

/* Configs of other models. */
static void bad_configs(void **state)
{
    (void)state;
    static const struct {
        const char *config, *text;
    } rows[] = {
        {"{\"model_args\": {\"num_heads\": 4, \"reg_tokens\": 2}}",
         "reg_tokens is 2, but the tensors have 4"},
        {"{\"num_attention_heads\": 4, \"num_register_tokens\": 8}",
         "num_register_tokens is 8, but the tensors have 4"},
        {"{\"num_attention_heads\": 4, \"use_swiglu_ffn\": true}",
         "use_swiglu_ffn is true, but the MLPs of the tensors are not"},
        {"{\"num_attention_heads\": 4, \"hidden_size\": 48}",
         "hidden_size is 48, but the tensors have 32"},
        {"{\"num_attention_heads\": 4, \"num_hidden_layers\": 7}",
         "num_hidden_layers is 7, but the tensors have 2"},
        {"{\"model_args\": {\"num_heads\": 4, \"depth\": 3}}",
         "depth is 3, but the tensors have 2"},
        {"{\"model_args\": {\"num_heads\": 4, \"patch_size\": 16}}",
         "patch_size is 16, but the tensors have 8"},
        {"{\"num_attention_heads\": 4, \"intermediate_size\": 96}",
         "intermediate_size is 96, but the tensors have 48"},
        {"{\"architecture\": \"vit_medium_patch16_reg1_gap_256\"}",
         "'vit_medium_patch16_reg1_gap_256' has 1 registers, but the tensors (reg_token) have 4"},
    };
    fixture f;
    fix_make(&f, "vit_small_patch8_reg4_gap_32");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        must_say(&f, rows[i].config, RENYI_ERR_FORMAT, rows[i].text);
    must_say(&f, "{\"model_args\": {\"num_heads\": 4, \"no_embed_class\": false}}",
             RENYI_ERR_UNSUPPORTED, "do not form a square");
    fix_free(&f);
}

#define D3(text) "{\"architecture\": \"vit_small_patch16_dinov3\", \"num_classes\": 5" text "}"
#define D3_ARGS(text) D3(", \"model_args\": {\"num_heads\": 4, \"img_size\": 32" text "}")

/* DINOv3, whose input side and angles no tensor tells. */
static void rotary_files(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        renyi_status code;
        const char *text;
    } rows[] = {
        {NULL, RENYI_ERR_UNSUPPORTED, "must contain dinov3"},
        {"{\"architecture\": \"vit_small_patch16_rope_224\"}", RENYI_ERR_UNSUPPORTED,
         "of rotary positions only DINOv3's are supported"},
        {"{\"architecture\": \"vit_small_patch16_lingbot\"}", RENYI_ERR_UNSUPPORTED,
         "of these only DINOv3 is supported"},
        {D3_ARGS(", \"rope_type\": \"mixed\""), RENYI_ERR_UNSUPPORTED, "rope_type 'mixed'"},
        {D3_ARGS(", \"rope_rotate_half\": false"), RENYI_ERR_FORMAT, "rope_rotate_half is false"},
        {D3_ARGS(", \"qkv_bias\": true"), RENYI_ERR_FORMAT, "qkv_bias is true"},
        {D3_ARGS(", \"swiglu_mlp\": true"), RENYI_ERR_FORMAT, "swiglu_mlp is true"},
        {D3_ARGS(", \"num_reg_tokens\": 5"), RENYI_ERR_FORMAT, "num_reg_tokens is 5"},
        {D3_ARGS(", \"patch_size\": 4"), RENYI_ERR_FORMAT,
         "patch_size is 4, but the tensors have 8"},
        {D3_ARGS(", \"rope_temperature\": 0.5"), RENYI_ERR_FORMAT, "rope_theta is 0.5"},
        {D3(", \"rope_theta\": 1e300, \"num_attention_heads\": 4, \"image_size\": 32"),
         RENYI_ERR_FORMAT, "rope_theta is 1e+300"},
        {D3(", \"use_gated_mlp\": true, \"num_attention_heads\": 4, \"image_size\": 32"),
         RENYI_ERR_FORMAT, "use_gated_mlp is true"},
        {D3(", \"key_bias\": true, \"num_attention_heads\": 4, \"image_size\": 32"),
         RENYI_ERR_FORMAT, "key_bias is true"},
        {D3(", \"intermediate_size\": 64, \"num_attention_heads\": 4, \"image_size\": 32"),
         RENYI_ERR_FORMAT, "intermediate_size is 64, but the tensors have 48"},
        {D3(", \"num_attention_heads\": 16, \"image_size\": 32"), RENYI_ERR_FORMAT,
         "16 heads of 2 numbers"},
        {D3(", \"num_attention_heads\": 4, \"image_size\": 30"), RENYI_ERR_ARG,
         "not a multiple of the patch size 8"},
        {D3(", \"num_attention_heads\": 4, \"image_size\": 4096"), RENYI_ERR_LIMIT,
         "at most 256 patches a side"},
        {D3(", \"num_attention_heads\": 4, \"image_size\": 0"), RENYI_ERR_ARG, "input side of 0"},
        {D3(", \"num_attention_heads\": 4, \"image_size\": [32, 32]"), RENYI_ERR_FORMAT,
         "image_size"},
    };
    renyi_error error = {0};
    ry_vit_config c;
    fixture f;
    fix_make(&f, "vit_small_patch8_dinov3_32");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        must_say(&f, rows[i].config, rows[i].code, rows[i].text);
    if (configure(&c, &f, D3_ARGS(""), &error)) fail_msg("%s", error.message);
    assert_string_equal(c.family, "dinov3");
    assert_true(c.n_prefix == 5 && c.n_registers == 4 && !c.n_placed && !c.n_qkv_bias);
    assert_true(c.rope_theta == 100.0 && c.norm_eps == 1e-5 && c.image_size == 32);
    fix_remove(&f, "blocks.1.gamma_2");
    must_say(&f, D3_ARGS(""), RENYI_ERR_FORMAT, "missing blocks.1.gamma_2");
    fix_free(&f);

    fix_make(&f, "vit_small_plus_patch8_dinov3_qkvb_32");
    if (configure(&c, &f, D3_ARGS(""), &error)) fail_msg("%s", error.message);
    assert_true(c.gated && c.n_qkv_bias == 2 && c.mlp_dim == FIX_MLP);
    must_say(&f, D3_ARGS(", \"act_layer\": \"x\", \"qkv_bias\": false"), RENYI_ERR_FORMAT,
             "qkv_bias is false");
    must_say(&f, D3(", \"hidden_act\": \"gelu\", \"num_attention_heads\": 4"),
             RENYI_ERR_UNSUPPORTED, "hidden_act 'gelu' of a gated MLP");
    fix_remove(&f, "blocks.0.attn.v_bias");
    must_say(&f, D3_ARGS(""), RENYI_ERR_FORMAT, "missing blocks.0.attn.v_bias");
    fix_free(&f);
}

/* What is read of good files. */
static void good_files(void **state)
{
    (void)state;
    static const char config[] = "{\"model_args\": {\"num_heads\": 4}}";
    renyi_error error = {0};
    ry_vit_config c;
    fixture f;
    fix_make(&f, "vit_small_patch8_reg4_gap_32");
    if (configure(&c, &f, config, &error)) fail_msg("%s", error.message);
    assert_int_equal(c.n_prefix, 4);
    assert_int_equal(c.n_registers, 4);
    assert_int_equal(c.n_placed, 0);
    assert_int_equal(c.pool, RY_POOL_MEAN);
    assert_true(c.layer_scale && !c.gated && !c.is_distilled);
    fix_free(&f);

    fix_make(&f, "deit3_small_patch8_32"); /* as in DeiT-III's own files */
    for (int b = 0; b < 2; b++)
        for (int k = 1; k <= 2; k++) {
            char timm[64], own[64];
            snprintf(timm, sizeof timm, "blocks.%d.ls%d.gamma", b, k);
            snprintf(own, sizeof own, "blocks.%d.gamma_%d", b, k);
            fix_rename(&f, timm, own);
        }
    if (configure(&c, &f, config, &error)) fail_msg("%s", error.message);
    assert_string_equal(c.family, "deit3");
    assert_true(c.layer_scale && c.n_prefix == 1 && !c.n_placed);
    fix_free(&f);
}

static void names(void **state)
{
    (void)state;
    static const char *const good[] = {
        "vit_small_patch14_dinov2",        "vit_giant_patch14_reg4_dinov2",
        "deit3_medium_patch16_224",        "deit3_huge_patch14_224",
        "vit_medium_patch16_reg1_gap_256", "vit_base_patch16_reg4_gap_256",
        "vit_base_patch16_clip_384",       "vit_large_patch14_clip_quickgelu_224",

        "vit_so400m_patch14_siglip_384",   "siglip_so400m_patch14_384",

        "vit_small_patch16_dinov3",        "vit_small_plus_patch16_dinov3_qkvb",
        "vit_huge_plus_patch16_dinov3",    "vit_large_patch16_dinov3_qkvb_224"};
    static const char *const bad[] = {
        "vit_small_patch16_dinov2",           "vit_small_patch14_reg_dinov2",
        "deit3_small_distilled_patch16_224",  "vit_giant_patch14_224",
        "vit_small_patch16_reg4_224",         "vit_medium_patch16_224",
        "vit_small_patch14_gap_dinov2",       "clip_vit_medium_patch16_224",
        "vit_small_patch14_reg9999_dinov2",   "vit_small_patch14_clip_dinov2",
        "deit_small_patch16_clip_224",        "vit_small_patch16_quickgelu_224",
        "vit_small_plus_patch16_224",         "deit_small_patch16_dinov3",
        "vit_small_patch16_dinov3_250",       "vit_medium_patch16_dinov3",
        "vit_small_patch16_dinov3_qkvb_",     "vit_small_patch16_reg4_dinov3",
        "vit_small_distilled_patch16_dinov3", "vit_so400m_patch14_siglip_385"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ry_arch a;
        char back[128];
        if (!ry_arch_parse(&a, good[i])) fail_msg("%s", good[i]);
        ry_arch_write(back, sizeof back, &a);
        assert_string_equal(back, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ry_arch a;
        if (ry_arch_parse(&a, bad[i])) fail_msg("%s is accepted", bad[i]);
    }
}

/* The heads that timm's models of these names have. */
static void named_heads(void **state)
{
    (void)state;
    assert_int_equal(ry_arch_named_heads("vit_small_patch16_224", 384), 6);
    assert_int_equal(ry_arch_named_heads("vit_small_patch16_224", 768), 0);
    assert_int_equal(ry_arch_named_heads("vit_giant_patch14_dinov2", 1536), 24);
    assert_int_equal(ry_arch_named_heads("vit_giantopt_patch16_siglip_256", 1536), 16);
    assert_int_equal(ry_arch_named_heads("vit_giantopt_patch16_siglip_gap_256", 1536), 16);
    assert_int_equal(ry_arch_named_heads("vit_base_patch16_gap_224", 768), 16);
    assert_int_equal(ry_arch_named_heads("vit_base_patch16_224", 768), 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_tensors),  cmocka_unit_test(bad_configs),
        cmocka_unit_test(rotary_files), cmocka_unit_test(good_files),
        cmocka_unit_test(names),        cmocka_unit_test(named_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
