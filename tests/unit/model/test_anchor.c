/* test_anchor.c - anchors, tokens added to the attention of a block: compared with a reference in
 * doubles, excluded from scores, same bits without one, costs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/model_handle.h"
#include "fixtures/vit_reference.h"
#include "model/vit/vit_plan.h"

#include "base/rng.h"

enum { IMAGES = 3, SIDE = 32, PATCHES = 16, TOKENS = PATCHES + 1, VALUES = 3 * SIDE * SIDE };

static float images[IMAGES * VALUES];
static float anchors[FIX_BLOCKS][FIX_DIM];

/* A hook that may return an anchor and checks the scores of blocks. */
typedef struct anchor_hook {
    unsigned blocks;  /* bit of each block that has an anchor */
    int look, silent; /* silent: anchor() returns NULL */
    uint32_t calls;
    double class_row, columns; /* worst errors */
} anchor_hook;

static void needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const anchor_hook *g = self;
    *out = (ry_block_needs){.n_after = n_tokens};
    out->anchor = (int)(g->blocks >> block & 1u);
    out->look = g->look;
    if (!g->look) return;
    out->what = RY_NEED_CLASS_ROW | RY_NEED_COLUMNS;
    out->columns = (ry_column_spec){.kind = RY_COLUMN_NORM, .order = 4.0};
}

static const float *anchor(void *self, uint32_t block, const float *x)
{
    anchor_hook *g = self;
    g->calls++;
    assert_true(x != NULL);
    return g->silent ? NULL : anchors[block];
}

/* Compares the scores of a block with those from its queries and keys, the last of which is the
 * anchor's. */
static void compare_scores(void *self, const ry_block_view *v, const ry_cut *cut)
{
    enum { D = FIX_DIM / FIX_HEADS };
    anchor_hook *g = self;
    const uint32_t N = v->n_tokens, keys = N + (g->blocks >> v->block & 1u);
    static double mean[TOKENS][TOKENS + 1];
    (void)cut;
    memset(mean, 0, sizeof mean);
    for (uint32_t h = 0; h < FIX_HEADS; h++)
        for (uint32_t i = 0; i < N; i++) {
            double a[TOKENS + 1], sum = 0.0;
            for (uint32_t j = 0; j < keys; j++) {
                double dot = 0.0;
                for (uint32_t k = h * D; k < (h + 1) * D; k++)
                    dot += (double)v->qkv[i * v->qkv_row + k] *
                           (double)v->qkv[j * v->qkv_row + FIX_DIM + k];
                sum += a[j] = exp(dot / sqrt(D));
            }
            for (uint32_t j = 0; j < keys; j++) mean[i][j] += a[j] / sum / FIX_HEADS;
        }
    for (uint32_t j = 0; j < N; j++) {
        double sum = 0.0;
        for (uint32_t i = 0; i < N; i++) sum += pow(mean[i][j], 4.0);
        g->class_row = fmax(g->class_row, fabs((double)v->class_row[j] / mean[0][j] - 1.0));
        g->columns = fmax(g->columns, fabs((double)v->columns[j] / pow(sum, 0.25) - 1.0));
    }
}

static void reference_run(const reference *r, const float *chw, unsigned blocks, double *logits)
{
    static ref_rows x;
    ref_embed(r, x, chw);
    for (uint32_t b = 0; b < FIX_BLOCKS; b++) {
        const uint32_t n = TOKENS + (blocks >> b & 1u);
        for (int k = 0; k < FIX_DIM; k++) x[TOKENS][k] = (double)anchors[b][k];
        ref_block(r, b, x, n);
    }
    ref_head(r, x, TOKENS, NULL, logits);
}

/* All images, `batch` at a time; returns the MACs of a run. */
static double run_images(const renyi_model *m, anchor_hook *g, uint32_t batch, unsigned threads,
                         float *logits)
{
    ry_vit_plan *plan;
    const ry_token_hook hook = {
        .needs = needs, .watch = g->look ? compare_scores : NULL, .self = g, .anchor = anchor};
    const ry_vit_plan_options opt = {
        .level = m->level, .hook = &hook, .max_batch = batch, .n_threads = threads};
    assert_ok(ry_vit_plan_new(&plan, &m->vit, &opt, NULL, err));
    for (uint32_t i = 0; i < IMAGES; i += batch) {
        const ry_vit_input in = {.chw = images + i * VALUES, .n = batch};
        assert_int_equal(ry_vit_forward(plan, &in, logits + i * FIX_CLASSES), RENYI_OK);
    }
    const double macs = plan->last_macs;
    assert_true(macs <= ry_vit_plan_macs(plan));
    ry_vit_plan_free(plan, NULL);
    return macs;
}

static renyi_model *open_model(fixture *f, renyi_cpu level, renyi_dtype dtype)
{
    renyi_model *m = NULL;
    renyi_error err = {0};
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level, .dtype = dtype};
    fix_make(f, "vit_tiny_patch8_32");
    const char *path = fix_write(f, "anchor.safetensors");
    if (renyi_model_open(&m, path, &opt, &err)) assert_int_equal(err.code, RENYI_ERR_UNSUPPORTED);
    unlink(path);
    return m;
}

static void make_inputs(void)
{
    ry_rng r = ry_rng_new(9);
    for (size_t i = 0; i < IMAGES * VALUES; i++) images[i] = (float)ry_rng_normal(&r);
    for (size_t i = 0; i < FIX_BLOCKS * FIX_DIM; i++)
        anchors[i / FIX_DIM][i % FIX_DIM] = (float)ry_rng_normal(&r);
}

/* ---- tests --------------------------------------------------------------------------------- */

/* In each block and in both; the last computes only the class token. */
static void test_reference(void **state)
{
    (void)state;
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++) {
        fixture f;
        renyi_model *m = open_model(&f, (renyi_cpu)level, RENYI_DTYPE_F32);
        const reference r = {&f, &m->vit.config, "norm"};
        for (unsigned blocks = 1; blocks < 4; blocks++) {
            float ours[IMAGES * FIX_CLASSES], looked[IMAGES * FIX_CLASSES];
            double theirs[FIX_CLASSES], without[FIX_CLASSES];
            anchor_hook g = {.blocks = blocks}, eyes = {.blocks = blocks, .look = 1};
            run_images(m, &g, 1, 2, ours);
            run_images(m, &eyes, IMAGES, 1, looked);
            assert_int_equal(g.calls, IMAGES * (blocks == 3 ? 2 : 1));
            for (int i = 0; i < IMAGES; i++) {
                reference_run(&r, images + i * VALUES, blocks, theirs);
                reference_run(&r, images + i * VALUES, 0, without);
                double moved = 0.0;
                for (int k = 0; k < FIX_CLASSES; k++)
                    moved = fmax(moved, fabs(theirs[k] / without[k] - 1.0));
                assert_true(moved > 1e-3);
                for (int k = 0; k < FIX_CLASSES; k++) {
                    const double e = fabs((double)ours[i * FIX_CLASSES + k] - theirs[k]);
                    const double l = fabs((double)looked[i * FIX_CLASSES + k] - theirs[k]);
                    assert_true(fmax(e, l) < 1e-4 * (1.0 + fabs(theirs[k])));
                }
            }
            assert_true(eyes.class_row < 1e-4 && eyes.columns < 1e-4);
        }
        renyi_model_free(m);
        fix_free(&f);
    }
}

/* Same bits for any batch and threads. If no anchor is returned, output is bit-identical to a run
 * without anchors, in every number format. */
static void test_same_bits(void **state)
{
    (void)state;
    for (int dtype = RENYI_DTYPE_F32; dtype <= RENYI_DTYPE_INT8; dtype++) {
        float one[IMAGES * FIX_CLASSES], all[IMAGES * FIX_CLASSES];
        float none[IMAGES * FIX_CLASSES], plain[IMAGES * FIX_CLASSES];
        fixture f;
        renyi_model *m = open_model(&f, RENYI_CPU_AUTO, (renyi_dtype)dtype);
        fix_free(&f);
        if (!m) continue; /* numbers that this machine gains nothing by */
        anchor_hook with = {.blocks = 3}, silent = {.blocks = 3, .silent = 1}, dense = {0};
        const double most = run_images(m, &with, 1, 1, one);
        run_images(m, &with, IMAGES, 2, all);
        assert_memory_equal(one, all, sizeof one);
        const double least = run_images(m, &silent, IMAGES, 2, none);
        assert_true(run_images(m, &dense, IMAGES, 2, plain) == least);
        assert_memory_equal(none, plain, sizeof none);
        assert_memory_not_equal(none, one, sizeof none);
        /* a key, a value and an unused query; the last block has one query */
        const double C = FIX_DIM, each = 3.0 * C * C;
        assert_true(most - least == 2.0 * each + 2.0 * TOKENS * C + 2.0 * C);
        renyi_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_same_bits)};
    make_inputs();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
