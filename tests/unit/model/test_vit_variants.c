/* test_vit_variants.c - bad files of models with registers, layer scale and gated MLPs: each fault
 * has a message that names it. Names of architectures, and DeiT-III's own names of layer scale.
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
    };
    fixture f;
    fix_make(&f, "vit_small_patch8_reg4_gap_32");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        must_say(&f, rows[i].config, RENYI_ERR_FORMAT, rows[i].text);
    must_say(&f, "{\"model_args\": {\"num_heads\": 4, \"no_embed_class\": false}}",
             RENYI_ERR_UNSUPPORTED, "do not form a square");
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
        "vit_medium_patch16_reg1_gap_256", "vit_base_patch16_reg4_gap_256"};
    static const char *const bad[] = {
        "vit_small_patch16_dinov2",          "vit_small_patch14_reg_dinov2",
        "deit3_small_distilled_patch16_224", "vit_giant_patch14_224",
        "vit_small_patch16_reg4_224",        "vit_medium_patch16_224",
        "vit_small_patch14_gap_dinov2",      "clip_vit_medium_patch16_224",
        "vit_small_patch14_reg9999_dinov2"};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_tensors),
        cmocka_unit_test(bad_configs),
        cmocka_unit_test(good_files),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
