/* test_golden_clip.c - CLIP's image tower against the reference: embeddings, scores of every block,
 * hidden states, and the logits of a classifier made of the reference's texts; at every CPU level.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/model.h"
#include "formats/safetensors.h"
#include "image/patches.h"
#include "model/vit_plan.h"
#include "renyi/clip.h"
#include "shared.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#ifdef RENYI_SANITIZED
enum { FIRST_LEVEL = RENYI_CPU_AVX2 }; /* plain C is slow there; kernel tests cover it */
#else
enum { FIRST_LEVEL = RENYI_CPU_SCALAR };
#endif
enum { PHOTOS = 8, EMBED = 64, TEXTS = 12 };

#define MODEL "models/clip_tiny_random"
#define TAPS "golden/clip_tiny.safetensors"

typedef struct opened {
    renyi_model *model;
    ry_tensors *taps;
    float lut[3][256];
} opened;

static int open_golden(opened *o, renyi_cpu level)
{
    renyi_error err = {0};
    const char *model = shared_path(MODEL), *taps = shared_path(TAPS);
    if (!model || !taps) return 0;
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level};
    if (renyi_model_open(&o->model, model, &opt, &err)) fail_msg("%s", err.message);
    if (ry_safetensors_open(&o->taps, taps, NULL, NULL, &err)) fail_msg("%s", err.message);
    ry_normalize_lut(o->lut, o->model->vit.config.preprocess.mean,
                     o->model->vit.config.preprocess.std);
    return 1;
}

static void close_golden(opened *o)
{
    renyi_model_free(o->model);
    ry_tensors_free(o->taps);
}

static const void *tap(const opened *o, const char *name)
{
    const ry_tensor *t = ry_tensors_find(o->taps, name);
    if (!t) fail_msg("golden file has no %s", name);
    return t->data;
}

/* The largest distance of a row from the reference's, relative to the length of that. */
static double row_error(const float *got, const float *want, size_t rows, size_t n)
{
    double worst = 0.0;
    for (size_t r = 0; r < rows; r++) {
        double far = 0.0, length = 0.0;
        for (size_t i = r * n; i < (r + 1) * n; i++) {
            far += pow((double)got[i] - (double)want[i], 2.0);
            length += pow((double)want[i], 2.0);
        }
        worst = fmax(worst, isfinite(far) ? sqrt(far / length) : INFINITY);
    }
    return worst;
}

static void run(const opened *o, const renyi_model *m, uint32_t batch, uint32_t threads, float *out)
{
    renyi_session *s;
    renyi_error err = {0};
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .max_batch = batch, .n_threads = threads};
    const uint8_t *pixels = tap(o, "images.pixels");
    if (renyi_session_new(&s, m, &opt, &err)) fail_msg("%s", err.message);
    for (uint32_t i = 0; i < PHOTOS; i += batch)
        if (renyi_run_pixels(s, pixels + (size_t)i * 224 * 224 * 3, batch,
                             out + (size_t)i * renyi_session_outputs(s), &err))
            fail_msg("%s", err.message);
    renyi_session_free(s);
}

/* ---- embeddings ----------------------------------------------------------------------------- */

/* By sessions; plain C has its turn in test_inside. */
static void test_embeddings(void **state)
{
    (void)state;
    static float rows[PHOTOS * EMBED], one[PHOTOS * EMBED];
    for (int level = RENYI_CPU_AVX2; level <= (int)renyi_cpu_detect(); level++) {
        opened o;
        renyi_model_info info;
        if (!open_golden(&o, (renyi_cpu)level)) return;
        renyi_model_get_info(o.model, &info);
        assert_string_equal(info.family, "clip");
        assert_string_equal(info.activation, "quick_gelu");
        assert_int_equal(info.embed_dim, EMBED);
        assert_int_equal(info.n_classes, 0);
        run(&o, o.model, 4, 2, rows);
        const double e = row_error(rows, tap(&o, "image.embed"), PHOTOS, EMBED);
        printf("%s: embeddings within %.2g of their length\n", renyi_cpu_name((renyi_cpu)level), e);
        assert_true(e < 1e-4);
        run(&o, o.model, 1, 1, one);
        assert_memory_equal(rows, one, sizeof rows);
        close_golden(&o);
    }
}

/* The reference's texts as words: its logits are exp(logit_scale) times the cosines. */
static void test_words(void **state)
{
    (void)state;
    static float words[TEXTS * EMBED], logits[PHOTOS * TEXTS], scale;
    static const char *const names[TEXTS] = {"tench", NULL, "church"};
    opened o;
    renyi_model *zero = NULL;
    renyi_error err = {0};
    if (!open_golden(&o, RENYI_CPU_AUTO)) return;
    ry_checkpoint ckpt;
    if (ry_checkpoint_open(&ckpt, shared_path(MODEL), NULL, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(ry_tensor_to_f32(ry_tensors_find(ckpt.tensors, "logit_scale"), &scale, &err),
                     RENYI_OK);
    ry_checkpoint_close(&ckpt, NULL);
    memcpy(words, tap(&o, "text.embed"), sizeof words);
    renyi_normalise_rows(words, TEXTS, EMBED);
    if (renyi_model_zeroshot(&zero, o.model, words, names, TEXTS, exp((double)scale), &err))
        fail_msg("%s", err.message);
    assert_string_equal(renyi_model_label(zero, 2), "church");
    assert_null(renyi_model_label(zero, 1));
    run(&o, zero, 2, 2, logits);
    const double e = row_error(logits, tap(&o, "logits"), PHOTOS, TEXTS);
    printf("logits of words within %.2g\n", e);
    assert_true(e < 1e-4);
    renyi_model_free(zero);
    close_golden(&o);
}

/* ---- inside --------------------------------------------------------------------------------- */

typedef struct watcher {
    const opened *o;
    double scores, hidden; /* the worst */
} watcher;

static void needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
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
            w->scores = fmax(w->scores, fabs((double)got[k][j] / (double)want[j] - 1.0));
    }
}

static void compare_hidden(void *self, uint32_t block, const float *x, uint32_t n_tokens)
{
    watcher *w = self;
    const size_t dim = w->o->model->vit.config.dim;
    char name[32];
    snprintf(name, sizeof name, "hidden.%u", (unsigned)block);
    if (!ry_tensors_find(w->o->taps, name)) return;
    w->hidden = fmax(w->hidden, row_error(x, tap(w->o, name), n_tokens, dim));
}

static void test_inside(void **state)
{
    (void)state;
    for (int level = FIRST_LEVEL; level <= (int)renyi_cpu_detect(); level++) {
        static float rows[PHOTOS * EMBED];
        opened o;
        ry_vit_plan *plan;
        if (!open_golden(&o, (renyi_cpu)level)) return;
        watcher w = {.o = &o};
        const ry_token_hook hook = {.needs = needs, .watch = compare_scores, .self = &w};
        const ry_vit_plan_options opt = {.level = (renyi_cpu)level,
                                         .hook = &hook,
                                         .max_batch = PHOTOS,
                                         .n_threads = 2,
                                         .all_rows = 1};
        const ry_vit_input in = {.pixels = tap(&o, "images.pixels"),
                                 .lut = (const float(*)[256])o.lut,
                                 .n = PHOTOS,
                                 .tap = compare_hidden, /* of photo 0, which lies first */
                                 .tap_user = &w};
        assert_int_equal(ry_vit_plan_new(&plan, &o.model->vit, &opt, NULL, NULL), RENYI_OK);
        assert_int_equal(ry_vit_forward(plan, &in, rows), RENYI_OK);
        ry_vit_plan_free(plan, NULL);
        printf("%s: hidden states within %.2g, scores within %.2g\n",
               renyi_cpu_name((renyi_cpu)level), w.hidden, w.scores);
        assert_true(w.hidden < 1e-4);
        assert_true(w.scores < 1e-3);
        assert_true(row_error(rows, tap(&o, "image.embed"), PHOTOS, EMBED) < 1e-4);
        close_golden(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_embeddings),
                                       cmocka_unit_test(test_words), cmocka_unit_test(test_inside)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
