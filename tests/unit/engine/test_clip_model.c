/* test_clip_model.c - CLIP's image tower under the names of OpenAI and Hugging Face, its configs,
 * and the errors for files that are almost valid.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "engine/core/model_handle.h"
#include "fixtures/image_tower_fixture.h"
#include "model/common/tensor_names.h"
#include "renyi/clip.h"

#include <math.h>

/* Writes, opens and removes the file; a config.json goes into its metadata. */
static renyi_status open_with(fixture *f, const char *config, renyi_model **m, renyi_error *err)
{
    f->meta[2] = config ? "config.json" : NULL;
    f->meta[3] = config;
    const char *path = fix_write(f, "clip.safetensors");
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = RENYI_CPU_SCALAR};
    const renyi_status st = renyi_model_open(m, path, &opt, err);
    unlink(path);
    return st;
}

static renyi_model *open_fixture(fixture *f, const char *config)
{
    renyi_model *m = NULL;
    assert_ok(open_with(f, config, &m, err));
    return m;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_both_houses(void **state)
{
    (void)state;
    static float want[2 * FIX_DIM], got[2 * FIX_DIM];
    static const char *const layouts[] = {"huggingface", "openai"};
    for (int is_openai = 0; is_openai < 2; is_openai++) {
        fixture f;
        renyi_model_info info;
        clip_make(&f);
        if (is_openai) clip_to_openai(&f);
        renyi_model *m = open_fixture(&f, NULL);
        renyi_model_get_info(m, &info);
        assert_string_equal(info.family, "clip");
        assert_string_equal(info.layout, layouts[is_openai]);
        assert_string_equal(info.architecture, "clip_vit_d32_l2_patch16_64");
        assert_string_equal(info.activation, "quick_gelu");
        assert_true(info.norm_eps == 1e-5);
        assert_int_equal(info.n_classes, 0);
        assert_int_equal(info.embed_dim, FIX_DIM);
        assert_true(info.preprocess.mean[0] == 0.48145466 && info.preprocess.crop_pct == 1.0);
        clip_run(m, NULL, RENYI_OUTPUT_AUTO, 2, is_openai ? got : want);
        renyi_model_free(m);
        fix_free(&f);
    }
    assert_memory_equal(want, got, sizeof want);
    assert_true(fabsf(want[0]) > 1e-3f && want[0] != want[FIX_DIM]);
}

/* A tower without projection (CLIPVisionModel) returns the row that would be projected. */
static void test_without_projection(void **state)
{
    (void)state;
    static float row[FIX_DIM], projected[FIX_DIM];
    fixture f;
    clip_make(&f);
    renyi_model *m = open_fixture(&f, NULL);
    clip_run(m, NULL, RENYI_OUTPUT_AUTO, 1, projected);
    renyi_model_free(m);
    static float w[FIX_DIM * FIX_DIM];
    memcpy(w, fix_find(&f, "visual_projection.weight")->data, sizeof w);
    fix_remove(&f, "visual_projection.weight");
    m = open_fixture(&f, NULL);
    clip_run(m, NULL, RENYI_OUTPUT_EMBEDDING, 1, row);
    for (size_t i = 0; i < FIX_DIM; i++) {
        double sum = 0.0;
        for (size_t k = 0; k < FIX_DIM; k++) sum += (double)w[i * FIX_DIM + k] * (double)row[k];
        assert_true(fabs(sum - (double)projected[i]) < 1e-4);
    }
    renyi_model_free(m);
    fix_free(&f);
}

/* ---- configs --------------------------------------------------------------------------------- */

static void test_configs(void **state)
{
    (void)state;
    static const struct {
        const char *json, *activation;
        uint32_t heads;
        double eps;
    } rows[] = {
        {"{\"vision_config\": {\"num_attention_heads\": 2, \"hidden_act\": \"gelu\"}}", "gelu", 2,
         1e-5},
        {"{\"vision_config\": {\"layer_norm_eps\": 1e-3}, \"hidden_act\": \"gelu\"}", "quick_gelu",
         4, 1e-3},
        {"{\"hidden_size\": 32, \"num_attention_heads\": 8, \"hidden_act\": \"gelu\"}", "gelu", 8,
         1e-5},
    };
    static float first[FIX_DIM], row[FIX_DIM];
    fixture f;
    clip_make(&f);
    renyi_model *m = open_fixture(&f, NULL);
    clip_run(m, NULL, RENYI_OUTPUT_AUTO, 1, first);
    renyi_model_free(m);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        renyi_model_info info;
        m = open_fixture(&f, rows[i].json);
        renyi_model_get_info(m, &info);
        assert_string_equal(info.activation, rows[i].activation);
        assert_int_equal(info.n_heads, rows[i].heads);
        assert_true(info.norm_eps == rows[i].eps);
        clip_run(m, NULL, RENYI_OUTPUT_AUTO, 1, row);
        assert_memory_not_equal(row, first, sizeof row); /* each key changes the output */
        renyi_model_free(m);
    }
    renyi_error e = {0};
    static const char *const sizes[] = {"hidden_size", "num_hidden_layers", "intermediate_size",
                                        "patch_size", "image_size"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char json[128], message[128];
        snprintf(json, sizeof json, "{\"vision_config\": {\"%s\": 768}}", sizes[i]);
        snprintf(message, sizeof message, "%s is 768, but the tensors have ", sizes[i]);
        assert_int_equal(open_with(&f, json, &m, &e), RENYI_ERR_FORMAT);
        assert_says(&e, message);
    }
    assert_int_equal(open_with(&f, "{\"vision_config\": {\"hidden_act\": \"relu\"}}", &m, &e),
                     RENYI_ERR_UNSUPPORTED);
    assert_says(&e, "'relu'; this build runs gelu, quick_gelu and gelu_pytorch_tanh");
    fix_add_zeros(&f, "vision_model.encoder.layers.0.self_attn.k_norm.weight", 4);
    assert_int_equal(open_with(&f, NULL, &m, &e), RENYI_ERR_UNSUPPORTED);
    assert_says(&e, "k_norm.weight' means normalized keys");
    fix_free(&f);
}

/* As So400m/14, whose 384 pixels are 27 patches and a rest: the rest is resized and not read. */
static void test_rest_of_the_image(void **state)
{
    (void)state;
    fixture f;
    renyi_model_info info;
    float first[FIX_DIM], row[FIX_DIM];
    clip_make(&f);
    renyi_model *m = open_fixture(&f, NULL);
    renyi_model_get_info(m, &info);
    clip_run(m, NULL, RENYI_OUTPUT_AUTO, 1, first);
    renyi_model_free(m);
    const uint32_t whole = info.image_size, side = whole + info.patch_size - 1;
    char json[64];
    snprintf(json, sizeof json, "{\"vision_config\": {\"image_size\": %u}}", side);
    m = open_fixture(&f, json);
    renyi_model_get_info(m, &info);
    assert_int_equal(info.image_size, side);
    assert_int_equal(info.preprocess.size, side);
    float *image = calloc(3 * (size_t)side * side, sizeof *image);
    for (size_t c = 0; c < 3; c++)
        for (size_t y = 0; y < whole; y++)
            memcpy(image + (c * side + y) * side, clip_images(1) + (c * whole + y) * whole,
                   whole * sizeof *image);
    renyi_session *session = NULL;
    const renyi_session_options opt = {.struct_size = sizeof opt, .max_batch = 1, .n_threads = 1};
    assert_ok(renyi_session_new(&session, m, &opt, err));
    assert_ok(renyi_run_tensor(session, image, 1, row, err));
    assert_memory_equal(row, first, sizeof row);
    free(image);
    renyi_session_free(session);
    renyi_model_free(m);
    fix_free(&f);
}

/* ---- files that are almost valid ----------------------------------------------------------- */

static void refuse(fixture *f, renyi_status code, const char *word)
{
    renyi_model *m = NULL;
    renyi_error e = {0};
    const renyi_status st = open_with(f, NULL, &m, &e);
    if (st != code) fail_msg("status %d instead of %d: %s", st, code, e.message);
    assert_null(m);
    assert_says(&e, word);
    fix_free(f);
}

static void test_refused(void **state)
{
    (void)state;
    fixture f;
    clip_make(&f);
    fix_remove(&f, "vision_model.pre_layrnorm.bias");
    refuse(&f, RENYI_ERR_FORMAT,
           "as a CLIP in Hugging Face names has them: missing vision_model.pre");
    clip_make(&f);
    fix_remove(&f, "vision_model.embeddings.class_embedding");
    refuse(&f, RENYI_ERR_UNSUPPORTED, "not a Vision Transformer");
    clip_make(&f);
    fix_find(&f, "visual_projection.weight")->shape[1] = FIX_DIM / 2;
    fix_find(&f, "visual_projection.weight")->shape[0] = 2 * FIX_DIM;
    refuse(&f, RENYI_ERR_FORMAT, "visual_projection.weight [64, 16] instead of [64, 32]");
    clip_make(&f);
    fix_add_zeros(&f, "vision_model.embeddings.patch_embedding.bias", FIX_DIM);
    refuse(&f, RENYI_ERR_FORMAT, "unknown vision_model.embeddings.patch_embedding.bias");
    clip_make(&f);
    clip_to_openai(&f);
    fix_remove(&f, "visual.transformer.resblocks.1.attn.in_proj_weight");
    refuse(&f, RENYI_ERR_FORMAT, "as a CLIP in OpenAI names");
    clip_make(&f);
    clip_to_openai(&f);
    fix_add_zeros(&f, "transformer.resblocks.0.ln_1.weight", 8); /* of the text tower: ignored */
    fix_add_zeros(&f, "positional_embedding", 8);
    fix_add_zeros(&f, "input_resolution", 1);
    renyi_model_free(open_fixture(&f, NULL));
    fix_add_zeros(&f, "visual.attnpool.k_proj.weight", 8);
    refuse(&f, RENYI_ERR_FORMAT, "unknown visual.attnpool");
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void test_policies(void **state)
{
    (void)state;
    static const char *const policies[] = {"naive p=2 layers=0-1 metric=cls",
                                           "naive p=2 layers=0-1 metric=col n=4",
                                           "evit keep=0.7 layers=0,1 metric=cls",
                                           "mosaic keep=0.7 layers=0",
                                           "tome r=3",
                                           "ats keep=0.7 layers=0"};
    static float dense[2 * FIX_DIM], row[2 * FIX_DIM];
    fixture f;
    clip_make(&f);
    renyi_model *m = open_fixture(&f, NULL);
    clip_run(m, NULL, RENYI_OUTPUT_AUTO, 2, dense);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        clip_run(m, policies[i], RENYI_OUTPUT_AUTO, 2, row);
        for (size_t k = 0; k < 2 * FIX_DIM; k++) assert_true(isfinite(row[k]));
        assert_memory_not_equal(row, dense, sizeof row);
    }
    renyi_model_free(m);
    fix_free(&f);
}

/* The embedding times the head gives the logits; two heads read one row each. */
static void test_embedding_of_a_vit(void **state)
{
    (void)state;
    static const char *const names[] = {"vit_tiny_patch16_64", "deit_tiny_distilled_patch16_64"};
    for (int distilled = 0; distilled < 2; distilled++) {
        static float row[2 * FIX_DIM];
        float logits[FIX_CLASSES];
        renyi_model_info info;
        fixture f;
        fix_make(&f, names[distilled]);
        renyi_model *m = open_fixture(&f, NULL);
        renyi_model_get_info(m, &info);
        assert_int_equal(info.embed_dim, FIX_DIM * (distilled ? 2u : 1u));
        clip_run(m, NULL, RENYI_OUTPUT_EMBEDDING, 1, row);
        clip_run(m, NULL, RENYI_OUTPUT_AUTO, 1, logits);
        for (size_t c = 0; c < FIX_CLASSES; c++) {
            double sum = 0.0;
            for (int k = 0; k <= distilled; k++) {
                const float *w = fix_find(&f, k ? "head_dist.weight" : "head.weight")->data;
                const float *b = fix_find(&f, k ? "head_dist.bias" : "head.bias")->data;
                sum += (double)b[c];
                for (size_t i = 0; i < FIX_DIM; i++)
                    sum += (double)w[c * FIX_DIM + i] * (double)row[k * FIX_DIM + i];
            }
            assert_true(fabs(sum / (1 + distilled) - (double)logits[c]) < 1e-4);
        }
        renyi_model_free(m);
        fix_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_houses),
        cmocka_unit_test(test_without_projection),
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_rest_of_the_image),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_embedding_of_a_vit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
