/* test_golden_dense.c - tests the dense forward pass against the reference's logits, block outputs
 * and scores on real images, at every CPU level; also the same bits for any batch and thread count.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/vit_plan.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"

#ifdef RENYI_SANITIZED
enum { FIRST_LEVEL = RENYI_CPU_AVX2 }; /* plain C is minutes there; kernel tests cover it */
enum { FIRST_METRIC = 3, IMAGES = 3 };
#else
enum { FIRST_LEVEL = RENYI_CPU_SCALAR, FIRST_METRIC = 0, IMAGES = 12 };
#endif
enum { CLASSES = 1000 };

typedef struct golden {
    const char *model, *taps; /* below shared/ */
} golden;

static const golden goldens[] = {
    {"models/vit_tiny_patch16_224.augreg_in21k_ft_in1k", "golden/vit_tiny.safetensors"},
    {"models/deit_tiny_patch16_224.fb_in1k", "golden/deit_tiny.safetensors"}};

static int open_golden(golden_taps *o, const golden *g, renyi_cpu level)
{
    return golden_taps_open(o, g->model, g->taps, level);
}

static const void *tap(const golden_taps *o, const char *name) { return golden_tap(o->taps, name); }

/* Largest difference relative to the largest reference value. */
static double relative_error(const float *got, const float *want, size_t n)
{
    double worst = 0.0, top = 0.0;
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        if (isnan(got[i])) return INFINITY;
        top = fmax(top, fabs((double)want[i]));
    }
    return worst / top;
}

/* ---- logits -------------------------------------------------------------------------------- */

static void run_pixels(const golden_taps *o, uint32_t batch, uint32_t threads, float *logits)
{
    renyi_session *s;
    renyi_error err = {0};
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .max_batch = batch, .n_threads = threads};
    const uint8_t *pixels = tap(o, "images.pixels");
    if (renyi_session_new(&s, o->model, &opt, &err)) fail_msg("%s", err.message);
    for (uint32_t i = 0; i < IMAGES; i += batch) {
        const uint32_t n = IMAGES - i < batch ? IMAGES - i : batch;
        if (renyi_run_pixels(s, pixels + (size_t)i * 224 * 224 * 3, n, logits + (size_t)i * CLASSES,
                             &err))
            fail_msg("%s", err.message);
    }
    renyi_session_free(s);
}

static void test_logits(void **state)
{
    (void)state;
    static float logits[IMAGES * CLASSES];
    for (size_t g = 0; g < 2; g++)
        for (int level = FIRST_LEVEL; level <= (int)renyi_cpu_detect(); level++) {
            golden_taps o;
            if (!open_golden(&o, &goldens[g], (renyi_cpu)level)) continue;
            run_pixels(&o, IMAGES < 4 ? 2 : 4, 2,
                       logits); /* sanitized: a batch that is not full too */
            const double e = relative_error(logits, tap(&o, "dense.logits"), IMAGES * CLASSES);
            printf("%s %s: logits within %.2g of the largest\n", goldens[g].taps,
                   renyi_cpu_name((renyi_cpu)level), e);
            assert_true(e < 2e-4);
            golden_taps_close(&o);
        }
}

static void test_same_bits(void **state)
{
    (void)state;
    static float one[IMAGES * CLASSES], other[IMAGES * CLASSES];
#ifdef RENYI_SANITIZED
    static const uint32_t plans[][2] = {{2, 3}, {8, 2}};
#else
    static const uint32_t plans[][2] = {{1, 2}, {8, 1}, {8, 2}, {5, 3}}; /* batch, threads */
#endif
    for (int level = RENYI_CPU_AVX2; level <= (int)renyi_cpu_detect(); level++) {
        golden_taps o;
        if (!open_golden(&o, &goldens[0], (renyi_cpu)level)) return;
        run_pixels(&o, 1, 1, one);
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
            run_pixels(&o, plans[p][0], plans[p][1], other);
            assert_memory_equal(one, other, sizeof one);
        }
        golden_taps_close(&o);
    }
}

/* ---- taps and scores of image 0 ------------------------------------------------------------ */

typedef struct watcher {
    const golden_taps *o;
    const char *columns; /* "col4" */
    double order;
    int replay; /* every block starts from the reference's tokens, not from our own */
    double worst_block, worst_score;
} watcher;

static void needs_scores(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    (void)block;
    (void)n_tokens;
    out->what = RY_NEED_CLASS_ROW | RY_NEED_COLUMNS;
    out->look = 1;
    out->columns.order = ((const watcher *)self)->order;
}

static void compare_scores(void *self, const ry_block_view *v, const ry_cut *cut)
{
    (void)cut;
    watcher *w = self;
    char name[32];
    snprintf(name, sizeof name, "tap.%s.%u", w->columns, (unsigned)v->block);
    /* Each score relative to itself: the column of the class token is much larger than the others.
     */
    const float *want = tap(w->o, name);
    for (uint32_t j = 0; j < v->n_tokens; j++)
        w->worst_score =
            golden_worse(w->worst_score, fabs((double)v->columns[j] / (double)want[j] - 1.0));
    snprintf(name, sizeof name, "tap.cls.%u", (unsigned)v->block);
    want = tap(w->o, name);
    for (uint32_t j = 0; j < v->n_tokens; j++)
        w->worst_score =
            golden_worse(w->worst_score, fabs((double)v->class_row[j] / (double)want[j] - 1.0));
}

static void compare_block(void *self, uint32_t block, const float *x, uint32_t n_tokens)
{
    watcher *w = self;
    char name[32];
    if (block == w->o->model->vit.config.n_blocks)
        snprintf(name, sizeof name, "tap.embed");
    else
        snprintf(name, sizeof name, "tap.block.%u", (unsigned)block);
    const double e =
        relative_error(x, tap(w->o, name), (size_t)n_tokens * w->o->model->vit.config.dim);
    w->worst_block = fmax(w->worst_block, e);
    if (w->replay)
        memcpy((float *)(uintptr_t)x, tap(w->o, name),
               (size_t)n_tokens * w->o->model->vit.config.dim * sizeof *x);
}

/* Image 0 with one metric. Every row of the last block is computed; a session skips rows that are
 * not read. */
static void run_taps(watcher *w, renyi_cpu level)
{
    float logits[CLASSES];
    const golden_taps *o = w->o;
    const ry_token_hook hook = {.needs = needs_scores, .watch = compare_scores, .self = w};
    const ry_vit_input in = {.pixels = tap(o, "images.pixels"),
                             .lut = (const float(*)[256])o->lut,
                             .n = 1,
                             .tap = compare_block,
                             .tap_user = w};
    ry_vit_plan *plan;
    const ry_vit_plan_options opt = {
        .level = level, .hook = &hook, .max_batch = 1, .n_threads = 2, .all_rows = 1};
    assert_int_equal(ry_vit_plan_new(&plan, &o->model->vit, &opt, NULL, NULL), RENYI_OK);
    assert_int_equal(ry_vit_forward(plan, &in, logits), RENYI_OK);
    ry_vit_plan_free(plan, NULL);
    assert_true(relative_error(logits, tap(o, "dense.logits"), CLASSES) < 2e-4);
}

/* Given the same tokens, scores agree to 1e-5. On our own tokens, small scores late in the network
 * carry the rounding of all the blocks before. */
static void test_taps(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double n;
    } metrics[] = {{"col1", 1}, {"col2", 2}, {"col3", 3}, {"col4", 4}, {"colinf", INFINITY}};
    for (size_t g = 0; g < 2; g++)
        for (int level = FIRST_LEVEL; level <= (int)renyi_cpu_detect(); level++) {
            golden_taps o;
            double blocks = 0.0, scores = 0.0, replayed = 0.0;
            if (!open_golden(&o, &goldens[g], (renyi_cpu)level)) continue;
            for (size_t m = FIRST_METRIC; m < sizeof metrics / sizeof *metrics; m++) {
                watcher w = {.o = &o, .columns = metrics[m].name, .order = metrics[m].n};
                run_taps(&w, (renyi_cpu)level);
                blocks = fmax(blocks, w.worst_block);
                scores = fmax(scores, w.worst_score);
                w.replay = 1;
                w.worst_score = 0.0;
                run_taps(&w, (renyi_cpu)level);
                replayed = fmax(replayed, w.worst_score);
            }
            printf("%s %s: blocks within %.2g, scores within %.2g, of equal tokens within %.2g\n",
                   goldens[g].taps, renyi_cpu_name((renyi_cpu)level), blocks, scores, replayed);
            assert_true(blocks < 2e-4);
            assert_true(scores < 1e-3);
            assert_true(replayed < 1e-5);
            golden_taps_close(&o);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logits),
                                       cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_taps)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
