/* test_layouts.c - the same weights under timm's and Hugging Face's names, with and without
 * prefixes, give bit-identical logits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/vit_fixture.h"

#include <math.h>
#include <sys/stat.h>

enum { IMAGES = 2 };

/* Logits of fixed images. The default eps differs between layouts, so configs set it. */
static void run_file(const char *path, uint32_t image_size, float logits[IMAGES * FIX_CLASSES])
{
    const renyi_options opt = {.struct_size = sizeof opt, .image_size = image_size};
    const renyi_session_options sopt = {.struct_size = sizeof sopt, .max_batch = IMAGES};
    renyi_model *m = NULL;
    renyi_session *s = NULL;
    assert_ok(renyi_model_open(&m, path, &opt, err));
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    const size_t n = (size_t)IMAGES * 3 * info.image_size * info.image_size;
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = sinf(0.37f * (float)i);
    assert_ok(renyi_session_new(&s, m, &sopt, err));
    assert_ok(renyi_run_tensor(s, x, IMAGES, logits, err));
    renyi_session_free(s);
    renyi_model_free(m);
    free(x);
    unlink(path);
}

static void run_fixture(const fixture *f, uint32_t image_size, float logits[IMAGES * FIX_CLASSES])
{
    run_file(fix_write(f, "layout.safetensors"), image_size, logits);
}

/* A folder with a config.json that sets eps: Hugging Face's default 1e-12 and timm's 1e-6 would
 * give different bits. */
static void run_hf_directory(const fixture *f, float logits[IMAGES * FIX_CLASSES])
{
    char dir[512], file[600], config[600];
    snprintf(dir, sizeof dir, "%s", fix_path("hf"));
    snprintf(file, sizeof file, "%s/model.safetensors", dir);
    snprintf(config, sizeof config, "%s/config.json", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(rename(fix_write(f, "layout.safetensors"), file), 0);
    FILE *out = fopen(config, "w");
    fprintf(out,
            "{\"layer_norm_eps\": 1e-6, \"num_attention_heads\": %d, \"hidden_act\": \"gelu\"}",
            FIX_HEADS);
    fclose(out);
    run_file(dir, 0, logits);
    unlink(file);
    unlink(config);
    rmdir(dir);
}

static void both_layouts_agree(const char *architecture, const char *hf_prefix)
{
    fixture f;
    float timm[IMAGES * FIX_CLASSES], hf[IMAGES * FIX_CLASSES];
    fix_make(&f, architecture);
    run_fixture(&f, 0, timm);
    fix_to_hf(&f, hf_prefix);
    run_hf_directory(&f, hf);
    assert_memory_equal(timm, hf, sizeof timm);
    for (int i = 0; i < IMAGES * FIX_CLASSES; i++) assert_true(isfinite(timm[i]));
    assert_true(timm[0] != timm[1]); /* not all zero */
    assert_true(timm[0] != timm[FIX_CLASSES]);
    fix_hf_to_5(&f);
    char name[96];
    snprintf(name, sizeof name, "%slayers.0.attention.q_proj.weight", hf_prefix);
    assert_non_null(fix_find(&f, name));
    run_hf_directory(&f, hf);
    assert_memory_equal(timm, hf, sizeof timm);
    fix_free(&f);
}

static void vit(void **state)
{
    (void)state;
    both_layouts_agree("vit_tiny_patch8_32", "vit.");
}

static void distilled(void **state)
{
    (void)state;
    both_layouts_agree("deit_tiny_distilled_patch16_32", "deit.");
}

/* No class token, mean after the final LayerNorm: the form of I-JEPA in Hugging Face. */
static void without_class_token(void **state)
{
    (void)state;
    fixture f;
    float timm[IMAGES * FIX_CLASSES], hf[IMAGES * FIX_CLASSES];
    fix_make(&f, "vit_tiny_patch8_gap_32");
    fix_rename(&f, "fc_norm.weight", "norm.weight");
    fix_rename(&f, "fc_norm.bias", "norm.bias");
    run_fixture(&f, 0, timm);
    fix_to_hf(&f, "ijepa.");
    run_hf_directory(&f, hf);
    assert_memory_equal(timm, hf, sizeof timm);
    fix_free(&f);
}

static void module_prefix(void **state)
{
    (void)state;
    fixture f;
    float timm[IMAGES * FIX_CLASSES], hf[IMAGES * FIX_CLASSES];
    fix_make(&f, "vit_tiny_patch16_32");
    fix_to_hf(&f, "vit.");
    run_hf_directory(&f, timm);
    fix_free(&f);
    fix_make(&f, "vit_tiny_patch16_32");
    fix_to_hf(&f, "module.vit.");
    fix_rename(&f, "classifier.weight", "module.classifier.weight");
    fix_rename(&f, "classifier.bias", "module.classifier.bias");
    run_hf_directory(&f, hf);
    assert_memory_equal(timm, hf, sizeof timm);
    fix_free(&f);
}

/* A bias of zeros equals no bias. */
static void without_qkv_bias(void **state)
{
    (void)state;
    static const char *const names[] = {"blocks.0.attn.qkv.bias", "blocks.1.attn.qkv.bias"};
    fixture f;
    float zeros[IMAGES * FIX_CLASSES], none[IMAGES * FIX_CLASSES];
    fix_make(&f, "vit_tiny_patch16_32");
    for (int i = 0; i < 2; i++) {
        ry_tensor *t = fix_find(&f, names[i]);
        memset((void *)(uintptr_t)t->data, 0, t->bytes);
    }
    run_fixture(&f, 0, zeros);
    for (int i = 0; i < 2; i++) fix_remove(&f, names[i]);
    run_fixture(&f, 0, none);
    assert_memory_equal(zeros, none, sizeof none);
    fix_free(&f);
}

/* A larger or smaller input resamples the positions. */
static void other_sizes(void **state)
{
    (void)state;
    fixture f;
    float a[IMAGES * FIX_CLASSES], b[IMAGES * FIX_CLASSES];
    fix_make(&f, "vit_tiny_patch8_32");
    run_fixture(&f, 48, a);
    run_fixture(&f, 16, b);
    for (int i = 0; i < IMAGES * FIX_CLASSES; i++) assert_true(isfinite(a[i]) && isfinite(b[i]));
    fix_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vit),           cmocka_unit_test(distilled),
        cmocka_unit_test(module_prefix), cmocka_unit_test(without_qkv_bias),
        cmocka_unit_test(other_sizes),   cmocka_unit_test(without_class_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
