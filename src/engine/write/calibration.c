/* calibration.c - runs a model on images and records the range of the inputs of its products.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/write/calibration.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/model_handle.h"
#include "image/patches.h"
#include "model/vit/vit_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCTS = 4, MAX_TOKENS = 32768, MAX_BATCH = 4096 };

/* The inputs of one product. */
typedef struct input_record {
    float low, high; /* of all tokens */
    uint64_t n_tokens;
    float *lows, *highs; /* [MAX_TOKENS] of each token, or of a uniform sample */
} input_record;

struct renyi_calibration {
    const renyi_model *model; /* borrowed */
    ry_vit_plan *plan;
    uint32_t max_batch, n_threads;
    uint64_t n_images;
    input_record *products; /* [n_blocks, PRODUCTS] */
    float *tokens;          /* [n_blocks, PRODUCTS, 2, MAX_TOKENS] memory of lows and highs */
    float *answers;         /* [max_batch, outputs] not used */
    float lut[3][256];
    ry_rng rng;
    int has_nan;
};

/* ---- recording ----------------------------------------------------------------------------- */

/* The record of a product; NULL for patch embedding and heads. */
static input_record *find_product(const renyi_calibration *c, const ry_linear_op *op)
{
    for (uint32_t i = 0; i < c->model->vit.config.n_blocks; i++) {
        const ry_block_ops *b = &c->plan->ops[i];
        const ry_linear_op *const ops[PRODUCTS] = {b->qkv, b->proj, b->fc1, b->fc2};
        for (uint32_t k = 0; k < PRODUCTS; k++)
            if (ops[k] == op) return &c->products[i * PRODUCTS + k];
    }
    return NULL;
}

/* Reservoir sampling (Vitter's algorithm R): every token has the same probability to be kept. */
static void record_token(renyi_calibration *c, input_record *s, float low, float high)
{
    uint64_t place = s->n_tokens++;
    s->low = low < s->low ? low : s->low;
    s->high = high > s->high ? high : s->high;
    if (place >= MAX_TOKENS) place = ry_rng_next(&c->rng) % s->n_tokens;
    if (place >= MAX_TOKENS) return;
    s->lows[place] = low;
    s->highs[place] = high;
}

static void record_input(void *user, const ry_linear_op *op, ry_extent run, const float *x)
{
    renyi_calibration *c = user;
    input_record *s = find_product(c, op);
    const ry_rows at = ry_linear_op_input(op);
    const size_t n = ry_linear_in(ry_linear_op_of(op));
    for (size_t t = 0; s && t < run.n_images * run.rows; t++) {
        const float *row = x + t / run.rows * at.image + t % run.rows * at.row;
        float low = row[0], high = row[0], probe = 0.0f;
        for (size_t k = 0; k < n; k++) {
            low = row[k] < low ? row[k] : low;
            high = row[k] > high ? row[k] : high;
            probe += row[k] * 0.0f;
        }
        if (isnan(probe))
            c->has_nan = 1;
        else
            record_token(c, s, low, high);
    }
}

renyi_status renyi_calibration_run(renyi_calibration *c, const uint8_t *pixels, uint32_t n,
                                   renyi_error *err)
{
    if (!c || !pixels) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_calibration_run: NULL");
    if (n == 0 || n > c->max_batch)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u images; the calibration takes 1 to %u", n,
                       c->max_batch);
    const ry_vit_input in = {.pixels = pixels,
                             .lut = (const float(*)[256])c->lut,
                             .n = n,
                             .watch = record_input,
                             .watch_user = c};
    RY_TRY(ry_vit_forward(c->plan, &in, c->answers));
    c->n_images += n;
    if (!c->has_nan) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "activations of the model are NaN or infinite, so they have no range");
}

/* ---- ranges -------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Sorts n numbers and returns the one that `percentile` per cent of them do not exceed. */
static float percentile_of(float *numbers, size_t n, double percentile)
{
    const size_t rank = (size_t)ceil(percentile / 100.0 * (double)n);
    qsort(numbers, n, sizeof *numbers, by_size);
    return numbers[rank < 1 ? 0 : rank > n ? n - 1 : rank - 1];
}

/* scratch: [tokens kept] */
static void find_range(renyi_calibrated_range *out, const input_record *s, renyi_range_rule rule,
                       double percentile, float *scratch)
{
    const size_t n = s->n_tokens < MAX_TOKENS ? (size_t)s->n_tokens : MAX_TOKENS;
    for (size_t i = 0; i < n; i++) scratch[i] = s->highs[i] - s->lows[i];
    const float median = percentile_of(scratch, n, 50.0);
    out->low = s->low;
    out->high = s->high;
    if (rule == RENYI_RANGE_PERCENTILE) {
        for (size_t i = 0; i < n; i++) scratch[i] = -s->lows[i];
        out->low = -percentile_of(scratch, n, percentile);
        memcpy(scratch, s->highs, n * sizeof *scratch);
        out->high = percentile_of(scratch, n, percentile);
    }
    if (!(out->low < out->high)) /* an input that never changes still needs a range */
        out->high = out->low + 1e-3f * fmaxf(fabsf(out->low), 1e-6f);
    out->spread = median > 0.0f ? ((double)out->high - out->low) / median : 1.0;
}

renyi_status renyi_calibration_range(const renyi_calibration *c, uint32_t block,
                                     renyi_product product, renyi_range_rule rule,
                                     double percentile, renyi_calibrated_range *out,
                                     renyi_error *err)
{
    if (!c || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_calibration_range: NULL");
    if (block >= c->model->vit.config.n_blocks || (unsigned)product >= PRODUCTS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "product %d of block %u; the model has %u blocks",
                       (int)product, block, c->model->vit.config.n_blocks);
    if (percentile == 0.0) percentile = 99.9;
    if ((unsigned)rule > RENYI_RANGE_MAX || !(percentile > 50.0 && percentile <= 100.0))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rule %d, percentile %g; a percentile above 50 and at most 100 is allowed",
                       (int)rule, percentile);
    const input_record *s = &c->products[block * PRODUCTS + (uint32_t)product];
    if (!s->n_tokens) return ry_fail(err, RENYI_ERR_ARG, -1, "no image has been run yet");
    float *scratch = ry_alloc(&c->model->al, MAX_TOKENS, sizeof *scratch);
    if (!scratch) return ry_fail_nomem(err, MAX_TOKENS * sizeof *scratch);
    find_range(out, s, rule, percentile, scratch);
    ry_free(&c->model->al, scratch);
    return RENYI_OK;
}

/* ---- making and freeing -------------------------------------------------------------------- */

static renyi_status read_options(renyi_calibration_options *out,
                                 const renyi_calibration_options *opt, renyi_error *err)
{
    RY_TRY(ry_struct_read(out, sizeof *out, opt, "renyi_calibration_options", err));
    if (!out->max_batch) out->max_batch = 8;
    if (out->max_batch > MAX_BATCH)
        return ry_fail(err, RENYI_ERR_ARG, -1, "batch of %u images; at most %d", out->max_batch,
                       MAX_BATCH);
    return ry_threads_choose(&out->n_threads, err);
}

static renyi_status take_memory(renyi_calibration *c, renyi_error *err)
{
    const renyi_allocator *al = &c->model->al;
    const ry_vit_config *config = &c->model->vit.config;
    const size_t n = (size_t)config->n_blocks * PRODUCTS;
    c->products = ry_alloc(al, n, sizeof *c->products);
    c->tokens = ry_alloc(al, n, 2 * MAX_TOKENS * sizeof *c->tokens);
    c->answers =
        ry_alloc(al, c->max_batch, ry_vit_outputs(config, RENYI_OUTPUT_AUTO) * sizeof *c->answers);
    if (!c->products || !c->tokens || !c->answers)
        return ry_fail_nomem(err, n * 2 * MAX_TOKENS * sizeof *c->tokens);
    for (size_t i = 0; i < n; i++) {
        float *lists = c->tokens + i * 2 * MAX_TOKENS;
        c->products[i] = (input_record){INFINITY, -INFINITY, 0, lists, lists + MAX_TOKENS};
    }
    return RENYI_OK;
}

static renyi_status fill_calibration(renyi_calibration *c, renyi_error *err)
{
    const renyi_model *m = c->model;
    if (m->dtype != RENYI_DTYPE_F32)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the model computes in %s; calibration needs it opened in f32",
                       renyi_dtype_name(m->dtype));
    ry_normalize_lut(c->lut, m->vit.config.preprocess.mean, m->vit.config.preprocess.std);
    RY_TRY(take_memory(c, err));
    const ry_vit_plan_options plan = {
        .level = m->level, .max_batch = c->max_batch, .n_threads = c->n_threads};
    return ry_vit_plan_new(&c->plan, &m->vit, &plan, &m->al, err);
}

renyi_status renyi_calibration_new(renyi_calibration **out, const renyi_model *m,
                                   const renyi_calibration_options *opt, renyi_error *err)
{
    renyi_calibration_options o;
    if (!out || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_calibration_new: NULL");
    *out = NULL;
    RY_TRY(read_options(&o, opt, err));
    renyi_calibration *c = ry_calloc(&m->al, 1, sizeof *c);
    if (!c) return ry_fail_nomem(err, sizeof *c);
    c->model = m;
    c->max_batch = o.max_batch;
    c->n_threads = o.n_threads;
    c->rng = ry_rng_new(1);
    const renyi_status st = fill_calibration(c, err);
    if (st) {
        renyi_calibration_free(c);
        return st;
    }
    *out = c;
    return RENYI_OK;
}

void renyi_calibration_free(renyi_calibration *c)
{
    if (!c) return;
    const renyi_allocator *al = &c->model->al;
    ry_vit_plan_free(c->plan, al);
    ry_free(al, c->products);
    ry_free(al, c->tokens);
    ry_free(al, c->answers);
    ry_free(al, c);
}

uint64_t renyi_calibration_images(const renyi_calibration *c) { return c ? c->n_images : 0; }
const renyi_model *ry_calibration_model(const renyi_calibration *c) { return c->model; }
uint32_t ry_calibration_batch(const renyi_calibration *c) { return c->max_batch; }
uint32_t ry_calibration_threads(const renyi_calibration *c) { return c->n_threads; }

int ry_calibration_fits(const renyi_calibration *c, uint32_t n_blocks, uint32_t dim)
{
    const ry_vit_config *config = &c->model->vit.config;
    return config->n_blocks == n_blocks && config->dim == dim;
}
