/* test_golden_clip.c - both towers of CLIP against the reference at every CPU level: embeddings of
 * images and texts, scores of every block, hidden states, and the logits of a zero-shot model made
 * from the reference's texts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/vit_plan.h"
#include "renyi/clip.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"

#ifdef RENYI_SANITIZED
enum { FIRST_LEVEL = RENYI_CPU_AVX2 }; /* plain C is slow with sanitizers; kernel tests cover it */
#else
enum { FIRST_LEVEL = RENYI_CPU_SCALAR };
#endif
enum { IMAGES = 8, EMBED = 64, TEXTS = 12 };

#define MODEL "models/clip_tiny_random"
#define TAPS "golden/clip_tiny.safetensors"

static int open_golden(golden_taps *o, renyi_cpu level)
{
    return golden_taps_open(o, MODEL, TAPS, level);
}

static const void *tap(const golden_taps *o, const char *name) { return golden_tap(o->taps, name); }

static void run_images(const golden_taps *o, const renyi_model *m, uint32_t batch, uint32_t threads,
                       float *out)
{
    renyi_session *s;
    renyi_error err = {0};
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .max_batch = batch, .n_threads = threads};
    const uint8_t *pixels = tap(o, "images.pixels");
    if (renyi_session_new(&s, m, &opt, &err)) fail_msg("%s", err.message);
    for (uint32_t i = 0; i < IMAGES; i += batch)
        if (renyi_run_pixels(s, pixels + (size_t)i * 224 * 224 * 3, batch,
                             out + (size_t)i * renyi_session_outputs(s), &err))
            fail_msg("%s", err.message);
    renyi_session_free(s);
}

/* ---- embeddings ----------------------------------------------------------------------------- */

/* In sessions; test_inside covers plain C. */
static void test_embeddings(void **state)
{
    (void)state;
    static float rows[IMAGES * EMBED], one[IMAGES * EMBED];
    for (int level = RENYI_CPU_AVX2; level <= (int)renyi_cpu_detect(); level++) {
        golden_taps o;
        renyi_model_info info;
        if (!open_golden(&o, (renyi_cpu)level)) return;
        renyi_model_get_info(o.model, &info);
        assert_string_equal(info.family, "clip");
        assert_string_equal(info.activation, "quick_gelu");
        assert_int_equal(info.embed_dim, EMBED);
        assert_int_equal(info.n_classes, 0);
        run_images(&o, o.model, 4, 2, rows);
        const double e = golden_row_error(rows, tap(&o, "image.embed"), IMAGES, EMBED);
        printf("%s: embeddings within %.2g of their length\n", renyi_cpu_name((renyi_cpu)level), e);
        assert_true(e < 1e-4);
        run_images(&o, o.model, 1, 1, one);
        assert_memory_equal(rows, one, sizeof rows);
        golden_taps_close(&o);
    }
}

/* Rows from the reference's texts: its logits are exp(logit_scale) times the cosines. */
static void test_zeroshot(void **state)
{
    (void)state;
    static float rows[TEXTS * EMBED], logits[IMAGES * TEXTS], scale;
    static const char *const names[TEXTS] = {"tench", NULL, "church"};
    golden_taps o;
    renyi_model *zero = NULL;
    renyi_error err = {0};
    if (!open_golden(&o, RENYI_CPU_AUTO)) return;
    ry_checkpoint ckpt;
    if (ry_checkpoint_open(&ckpt, shared_path(MODEL), NULL, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(ry_tensor_to_f32(ry_tensors_find(ckpt.tensors, "logit_scale"), &scale, &err),
                     RENYI_OK);
    ry_checkpoint_close(&ckpt, NULL);
    memcpy(rows, tap(&o, "text.embed"), sizeof rows);
    renyi_normalise_rows(rows, TEXTS, EMBED);
    if (renyi_model_zeroshot(&zero, o.model, rows, names, TEXTS, exp((double)scale), &err))
        fail_msg("%s", err.message);
    assert_string_equal(renyi_model_label(zero, 2), "church");
    assert_null(renyi_model_label(zero, 1));
    run_images(&o, zero, 2, 2, logits);
    const double e = golden_row_error(logits, tap(&o, "logits"), IMAGES, TEXTS);
    printf("zero-shot logits within %.2g\n", e);
    assert_true(e < 1e-4);
    renyi_model_free(zero);
    golden_taps_close(&o);
}

/* ---- inside --------------------------------------------------------------------------------- */

typedef struct watcher {
    const golden_taps *o;
    double scores, hidden; /* the worst */
} watcher;

static void score_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    (void)self, (void)block, (void)n_tokens;
    out->what = RY_NEED_CLASS_ROW | RY_NEED_COLUMNS;
    out->look = 1;
    out->columns.order = 4.0;
}

static void compare_scores(void *self, const ry_block_view *v, const ry_cut *cut)
{
    (void)cut;
    watcher *w = self;
    const float *const got[] = {v->class_row, v->columns};
    static const char *const names[] = {"cls.%u", "col4.%u"};
    for (int k = 0; k < 2; k++) {
        char name[32];
        snprintf(name, sizeof name, names[k], (unsigned)v->block);
        const float *want = (const float *)tap(w->o, name) + (size_t)v->image * v->n_tokens;
        for (uint32_t j = 0; j < v->n_tokens; j++)
            w->scores = golden_worse(w->scores, fabs((double)got[k][j] / (double)want[j] - 1.0));
    }
}

static void compare_hidden(void *self, uint32_t block, const float *x, uint32_t n_tokens)
{
    watcher *w = self;
    const size_t dim = w->o->model->vit.config.dim;
    char name[32];
    snprintf(name, sizeof name, "hidden.%u", (unsigned)block);
    if (!ry_tensors_find(w->o->taps, name)) return;
    w->hidden = fmax(w->hidden, golden_row_error(x, tap(w->o, name), n_tokens, dim));
}

static void test_inside(void **state)
{
    (void)state;
    for (int level = FIRST_LEVEL; level <= (int)renyi_cpu_detect(); level++) {
        static float rows[IMAGES * EMBED];
        golden_taps o;
        ry_vit_plan *plan;
        if (!open_golden(&o, (renyi_cpu)level)) return;
        watcher w = {.o = &o};
        const ry_token_hook hook = {.needs = score_needs, .watch = compare_scores, .self = &w};
        const ry_vit_plan_options opt = {.level = (renyi_cpu)level,
                                         .hook = &hook,
                                         .max_batch = IMAGES,
                                         .n_threads = 2,
                                         .all_rows = 1};
        const ry_vit_input in = {.pixels = tap(&o, "images.pixels"),
                                 .lut = (const float(*)[256])o.lut,
                                 .n = IMAGES,
                                 .tap = compare_hidden, /* of image 0, which is first */
                                 .tap_user = &w};
        assert_int_equal(ry_vit_plan_new(&plan, &o.model->vit, &opt, NULL, NULL), RENYI_OK);
        assert_int_equal(ry_vit_forward(plan, &in, rows), RENYI_OK);
        ry_vit_plan_free(plan, NULL);
        printf("%s: hidden states within %.2g, scores within %.2g\n",
               renyi_cpu_name((renyi_cpu)level), w.hidden, w.scores);
        assert_true(w.hidden < 1e-4);
        assert_true(w.scores < 1e-3);
        assert_true(golden_row_error(rows, tap(&o, "image.embed"), IMAGES, EMBED) < 1e-4);
        golden_taps_close(&o);
    }
}

/* ---- texts --------------------------------------------------------------------------------- */

static void make_logits(float *out, const float *text, const ry_tensors *taps, double scale)
{
    float a[IMAGES * EMBED], b[TEXTS * EMBED];
    memcpy(a, golden_tap(taps, "image.embed"), sizeof a);
    memcpy(b, text, sizeof b);
    renyi_normalise_rows(a, IMAGES, EMBED);
    renyi_normalise_rows(b, TEXTS, EMBED);
    for (size_t i = 0; i < IMAGES; i++)
        for (size_t j = 0; j < TEXTS; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < EMBED; k++)
                sum += (double)a[i * EMBED + k] * (double)b[j * EMBED + k];
            out[i * TEXTS + j] = (float)(scale * sum);
        }
}

static void check_text_level(const char *model, const ry_tensors *taps, renyi_cpu level,
                             renyi_dtype dtype)
{
    float out[TEXTS * EMBED], logits[IMAGES * TEXTS];
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level, .dtype = dtype};
    /* 8 bits cost a tower of random weights and 64 channels up to 3 % */
    const double tolerance = dtype == RENYI_DTYPE_F32 ? 1e-5 : 0.05;
    renyi_text *t;
    renyi_text_session *s;
    renyi_text_info info;
    renyi_error err = {0};
    if (renyi_text_open(&t, model, &opt, &err)) fail_msg("%s", err.message);
    renyi_text_get_info(t, &info);
    assert_int_equal(info.embed_dim, EMBED);
    if (renyi_text_session_new(&s, t, NULL, &err)) fail_msg("%s", err.message);
    if (renyi_text_run(s, golden_tap(taps, "text.ids"), NULL, TEXTS, out, &err))
        fail_msg("%s", err.message);
    make_logits(logits, out, taps, info.logit_scale);
    const double e = golden_row_error(out, golden_tap(taps, "text.embed"), TEXTS, EMBED);
    const double l = golden_row_error(logits, golden_tap(taps, "logits"), IMAGES, TEXTS);
    printf("%s %s: embeddings within %.2g, logits within %.2g\n", renyi_cpu_name(level),
           renyi_dtype_name(dtype), e, l);
    assert_true(e < tolerance);
    assert_true(l < 2 * tolerance);
    renyi_text_session_free(s);
    renyi_text_free(t);
}

static void test_text(void **state)
{
    (void)state;
    renyi_error err = {0};
    ry_tensors *taps;
    const char *model = shared_path(MODEL);
    const char *file = shared_path(TAPS);
    if (!model || !file) return;
    if (ry_safetensors_open(&taps, file, NULL, NULL, &err)) fail_msg("%s", err.message);
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        for (int dtype = RENYI_DTYPE_F32; dtype <= RENYI_DTYPE_INT8; dtype++)
            if (!renyi_dtype_check((renyi_dtype)dtype, (renyi_cpu)level, NULL))
                check_text_level(model, taps, (renyi_cpu)level, (renyi_dtype)dtype);
    ry_tensors_free(taps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_embeddings),
                                       cmocka_unit_test(test_zeroshot),
                                       cmocka_unit_test(test_inside), cmocka_unit_test(test_text)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
