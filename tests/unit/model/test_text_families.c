/* test_text_families.c - text towers saved by transformers and open_clip against the embeddings
 * that these libraries give (tests/text_towers, written by tools/ref/text_towers.py): within 1e-5
 * of the largest value, at every CPU level. In bf16 and int8 their directions: cosines.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/vit_fixture.h"
#include "formats/safetensors.h"
#include "renyi/clip.h"

#include <math.h>

#define FOLDER RENYI_SOURCE_DIR "/tests/text_towers/"
/* RENYI_TEXT_TOWERS names another folder with such files, for towers in their real shape. */

static const ry_tensor *expected(const ry_tensors *set, const char *model, const char *what)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", model, what);
    const ry_tensor *t = ry_tensors_find(set, name);
    assert_non_null(t);
    return t;
}

/* Largest difference, relative to the largest value. */
static double error_of(const float *got, const float *want, size_t n)
{
    double worst = 0.0, top = 0.0;
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        top = fmax(top, fabs((double)want[i]));
    }
    return worst / top;
}

/* The smallest cosine between two rows of the same text: [n, width] each. */
static double least_cosine(const float *got, const float *want, size_t n, size_t width)
{
    double least = 1.0;
    for (size_t i = 0; i < n; i++, got += width, want += width) {
        double dot = 0.0, a = 0.0, b = 0.0;
        for (size_t k = 0; k < width; k++) {
            dot += (double)got[k] * (double)want[k];
            a += (double)got[k] * (double)got[k];
            b += (double)want[k] * (double)want[k];
        }
        least = fmin(least, dot / sqrt(a * b));
    }
    return least;
}

typedef struct agreement {
    double error, cosine;
} agreement;

static agreement run_tower(const ry_tensors *set, const char *folder, const char *model,
                           renyi_cpu level, renyi_dtype dtype)
{
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level, .dtype = dtype};
    const ry_tensor *ids = expected(set, model, "ids"), *want = expected(set, model, "embeds");
    renyi_text *t = NULL;
    renyi_text_session *s = NULL;
    renyi_text_info info;
    char path[512];
    snprintf(path, sizeof path, "%stext_%s.safetensors", folder, model);
    assert_ok(renyi_text_open(&t, path, &opt, err));
    renyi_text_get_info(t, &info);
    assert_int_equal(info.context, ids->shape[1]);
    assert_int_equal(info.embed_dim, want->shape[1]);
    assert_ok(renyi_text_session_new(&s, t, NULL, err));
    const size_t n = (size_t)ids->shape[0], E = info.embed_dim;
    float *out = malloc(n * E * sizeof *out);
    assert_ok(renyi_text_run(s, ids->data, NULL, (uint32_t)n, out, err));
    const agreement found = {error_of(out, want->data, n * E), least_cosine(out, want->data, n, E)};
    free(out);
    renyi_text_session_free(s);
    renyi_text_free(t);
    return found;
}

/* Rounded weights change an embedding, but hardly its direction. */
static void check_rounded(const ry_tensors *set, const char *folder, const char *model,
                          renyi_cpu cpu)
{
    static const struct {
        renyi_dtype dtype;
        const char *name;
        double cosine;
    } formats[] = {{RENYI_DTYPE_BF16, "bf16", 0.9999}, {RENYI_DTYPE_INT8, "int8", 0.999}};
    for (size_t i = 0; i < 2; i++) {
        if (renyi_dtype_check(formats[i].dtype, cpu, NULL)) continue;
        const agreement a = run_tower(set, folder, model, cpu, formats[i].dtype);
        print_message("%s, %s, %s: cosine at least %.6f, error %.2g\n", model, renyi_cpu_name(cpu),
                      formats[i].name, a.cosine, a.error);
        assert_true(a.cosine > formats[i].cosine && a.error > 1e-5);
    }
}

static void check_all(const char *const *models, const char *folder)
{
    ry_tensors *set = NULL;
    char path[512];
    snprintf(path, sizeof path, "%stext_expected.safetensors", folder);
    assert_ok(ry_safetensors_open(&set, path, NULL, NULL, err));
    for (; *models; models++)
        for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
            const renyi_cpu cpu = (renyi_cpu)level;
            const double error = run_tower(set, folder, *models, cpu, RENYI_DTYPE_F32).error;
            print_message("%s, %s: %.2g\n", *models, renyi_cpu_name(cpu), error);
            assert_true(error < 1e-5);
            check_rounded(set, folder, *models, cpu);
        }
    ry_tensors_free(set);
}

static void test_small(void **state)
{
    static const char *const models[] = {"siglip",           "siglip_whole",     "hf_clip_legacy",
                                         "hf_clip_eos",      "open_clip",        "open_clip_quick",
                                         "open_clip_custom", "open_clip_siglip", NULL};
    (void)state;
    check_all(models, FOLDER);
}

/* logits_per_image of transformers: scale * cosine + bias. */
static void test_logits(void **state)
{
    enum { MAX = 64 };
    ry_tensors *set = NULL;
    renyi_model *tower = NULL, *zero = NULL;
    renyi_session *session = NULL;
    renyi_text *t = NULL;
    renyi_text_session *s = NULL;
    renyi_text_info info;
    renyi_model_info found;
    float rows[8 * MAX], logits[MAX];
    (void)state;
    assert_ok(ry_safetensors_open(&set, FOLDER "text_expected.safetensors", NULL, NULL, err));
    const ry_tensor *ids = expected(set, "siglip_whole", "ids");
    const ry_tensor *pixels = expected(set, "siglip_whole", "pixels");
    const ry_tensor *want = expected(set, "siglip_whole", "logits");
    const uint32_t n_texts = (uint32_t)want->shape[1], n_images = (uint32_t)want->shape[0];
    assert_ok(renyi_text_open(&t, FOLDER "text_siglip_whole.safetensors", NULL, err));
    renyi_text_get_info(t, &info);
    assert_true(info.is_sigmoid && fabs(info.logit_bias + 9.5) < 1e-6);
    assert_ok(renyi_text_session_new(&s, t, NULL, err));
    assert_ok(renyi_text_run(s, ids->data, NULL, n_texts, rows, err));
    renyi_normalise_rows(rows, n_texts, info.embed_dim);
    assert_ok(renyi_model_open(&tower, FOLDER "text_siglip_whole.safetensors", NULL, err));
    assert_ok(renyi_model_zeroshot_sigmoid(&zero, tower, rows, NULL, n_texts, info.logit_scale,
                                           info.logit_bias, err));
    renyi_model_get_info(zero, &found);
    assert_int_equal(found.is_sigmoid, 1);
    const renyi_session_options opt = {.struct_size = sizeof opt, .max_batch = n_images};
    assert_ok(renyi_session_new(&session, zero, &opt, err));
    assert_ok(renyi_run_tensor(session, pixels->data, n_images, logits, err));
    const double error = error_of(logits, want->data, (size_t)n_images * n_texts);
    print_message("logits: %.2g\n", error);
    assert_true(error < 1e-5);
    renyi_session_free(session);
    renyi_model_free(zero);
    renyi_model_free(tower);
    renyi_text_session_free(s);
    renyi_text_free(t);
    ry_tensors_free(set);
}

static void test_real(void **state)
{
    static const char *const models[] = {"siglip_base", "open_clip_b32", NULL};
    const char *folder = getenv("RENYI_TEXT_TOWERS");
    (void)state;
    if (folder) check_all(models, folder);
}

/* The tensors of a file, except `without` (NULL = all), with another config must be refused with
 * these words. */
static void refuse(const char *file, const char *key, const char *config, const char *without,
                   const char *words)
{
    enum { MOST = 128 };
    ry_tensor kept[MOST];
    size_t n_kept = 0;
    ry_tensors *set = NULL;
    renyi_text *t = NULL;
    renyi_error e = {0};
    char from[512];
    const char *path = fix_path("refused.safetensors");
    snprintf(from, sizeof from, FOLDER "text_%s.safetensors", file);
    assert_ok(ry_safetensors_open(&set, from, NULL, NULL, err));
    const char *const meta[] = {key, config, NULL};
    assert_true(ry_tensors_count(set) <= MOST);
    for (size_t i = 0; i < ry_tensors_count(set); i++)
        if (!without || strcmp(ry_tensors_at(set, i)->name, without) != 0)
            kept[n_kept++] = *ry_tensors_at(set, i);
    const ry_safetensors_content content = {kept, n_kept, meta, NULL, NULL};
    assert_ok(ry_safetensors_write(path, &content, NULL, err));
    ry_tensors_free(set);
    assert_int_not_equal(renyi_text_open(&t, path, NULL, &e), RENYI_OK);
    assert_null(t);
    assert_says(&e, words);
    unlink(path);
}

#define OPEN_CLIP(text) "{\"model_cfg\": {\"text_cfg\": {" text "}}}"

static void test_contradictions(void **state)
{
    static const struct {
        const char *file, *config, *words;
    } cases[] = {{"siglip", "{\"vocab_size\": 41}", "vocab_size is 41, but the tensors have 40"},
                 {"siglip", "{\"max_position_embeddings\": 9}", "max_position_embeddings is 9"},
                 {"siglip", "{\"num_hidden_layers\": 9}", "num_hidden_layers is 9, but"},
                 {"siglip", "{\"intermediate_size\": 9}", "intermediate_size is 9, but"},
                 {"open_clip", OPEN_CLIP("\"layers\": 9"), "layers is 9, but"},
                 {"siglip", "{\"num_attention_heads\": 7}", "7 heads do not divide the width 24"},
                 {"siglip", "{\"hidden_act\": \"relu\"}", "hidden_act 'relu'"},
                 {"siglip", "{\"layer_norm_eps\": -1}", "layer_norm_eps is -1"},
                 {"hf_clip_eos",
                  "{\"text_config\": {\"eos_token_id\": 99, \"num_attention_heads\": 3}}",
                  "eos_token_id is 99, but there are 40 token ids"},
                 {"open_clip", OPEN_CLIP("\"pool_type\": \"mean\""), "pool_type 'mean'"},
                 {"open_clip", OPEN_CLIP("\"embed_cls\": true"), "embed_cls is set"},
                 {"open_clip", OPEN_CLIP("\"ls_init_value\": 0.1"), "ls_init_value is set"},
                 {"open_clip", OPEN_CLIP("\"width\": 25"), "width is 25"},
                 {"open_clip", OPEN_CLIP("\"hf_model_name\": \"roberta-base\""),
                  "the text tower is roberta-base"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(cases[i].file,
               strncmp(cases[i].file, "open", 4) ? "config.json" : "open_clip_config.json",
               cases[i].config, NULL, cases[i].words);
    static const char heads[] = "{\"text_config\": {\"num_attention_heads\": 3}}";
    refuse("siglip_whole", "config.json", heads, "logit_bias",
           "with logit_scale and without logit_bias");
    refuse("siglip_whole", "config.json", heads, "logit_scale",
           "with logit_bias and without logit_scale");
}

static void test_info(void **state)
{
    renyi_text *t = NULL;
    renyi_text_info info;
    (void)state;
    assert_ok(renyi_text_open(&t, FOLDER "text_open_clip_siglip.safetensors", NULL, err));
    renyi_text_get_info(t, &info);
    assert_string_equal(info.activation, "gelu_pytorch_tanh");
    assert_true(info.is_sigmoid && info.reads_padding);
    assert_true(info.logit_bias != 0.0 && info.n_heads == 2 && info.norm_eps == 1e-6);
    renyi_text_free(t);
    assert_ok(renyi_text_open(&t, FOLDER "text_open_clip.safetensors", NULL, err));
    renyi_text_get_info(t, &info);
    assert_string_equal(info.activation, "gelu");
    assert_true(!info.is_sigmoid && !info.reads_padding && info.logit_bias == 0.0);
    renyi_text_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small), cmocka_unit_test(test_info), cmocka_unit_test(test_logits),
        cmocka_unit_test(test_contradictions), cmocka_unit_test(test_real)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
