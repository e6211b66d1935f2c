/* trace_record.c - records what every cut of a run decided. Several threads may report cuts of
 * different images at the same time, so every (cut, image) has its own record.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/trace_record.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* What one cut did to one image; arrays of n_in or n_out, with the capacity of the plan. */
typedef struct record {
    uint32_t n_in, n_out; /* the plan's, or fewer */
    int32_t *position;
    float *score, *size;
    uint8_t *rescued;
    uint32_t *source, *target;
} record;

typedef struct cut_shape {
    uint32_t block, n_in, n_out; /* of the plan */
} cut_shape;

struct ry_trace {
    ry_token_hook inner, hook;
    uint32_t n_prefix, n_blocks, max_batch;
    size_t n_cuts;
    cut_shape *cuts;      /* [n_cuts] */
    uint32_t *cut_of;     /* [n_blocks] index of the block's cut, or RENYI_NONE */
    record *records;      /* [n_cuts, max_batch] */
    unsigned char *arena; /* the arrays of the records */
    size_t arena_bytes;
};

/* ---- recording ----------------------------------------------------------------------------- */

/* The patch of every token that enters cut c, which are the tokens that left the cut before. */
static void find_positions(const ry_trace *t, size_t c, uint32_t image, record *r)
{
    if (c == 0) {
        for (uint32_t j = 0; j < r->n_in; j++)
            r->position[j] = j < t->n_prefix ? RENYI_PREFIX : (int32_t)(j - t->n_prefix);
        return;
    }
    const record *before = &t->records[(c - 1) * t->max_batch + image];
    for (uint32_t j = 0; j < r->n_in; j++) {
        const uint32_t from = before->source[j];
        r->position[j] = from == RENYI_NONE ? RENYI_FUSED : before->position[from];
    }
}

/* Patches that were joined in each token that leaves; a fused token counts as 1. */
static void count_sizes(const ry_trace *t, size_t c, uint32_t image, record *r)
{
    const record *before = c ? &t->records[(c - 1) * t->max_batch + image] : NULL;
    for (uint32_t i = 0; i < r->n_out; i++) r->size[i] = r->source[i] == RENYI_NONE ? 1.0f : 0.0f;
    for (uint32_t j = 0; j < r->n_in; j++) {
        const uint32_t to = r->target[j];
        if (to != RENYI_NONE && r->source[to] != RENYI_NONE)
            r->size[to] += before ? before->size[j] : 1.0f;
    }
}

static void record_cut(void *self, const ry_block_view *view, const ry_cut *cut)
{
    const ry_trace *t = self;
    const uint32_t c = t->cut_of[view->block];
    if (c == RENYI_NONE) return;
    record *r = &t->records[c * t->max_batch + view->image];
    const uint32_t in = r->n_in = view->n_tokens, out = r->n_out = cut->n_out;

    memcpy(r->score, cut->score, in * sizeof *r->score);
    memcpy(r->rescued, cut->rescued, in * sizeof *r->rescued);
    memcpy(r->target, cut->target, in * sizeof *r->target);
    memcpy(r->source, cut->source, out * sizeof *r->source);
    for (uint32_t j = 0; j < t->n_prefix; j++) r->score[j] = NAN;
    find_positions(t, c, view->image, r);
    count_sizes(t, c, view->image, r);
}

/* ---- the pruner's hook, passed through ------------------------------------------------------ */

static void pass_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const ry_trace *t = self;
    t->inner.needs(t->inner.self, block, n_tokens, out);
}

static uint32_t pass_tiles(const void *self, uint32_t block, uint32_t phase)
{
    const ry_trace *t = self;
    return t->inner.tiles(t->inner.self, block, phase);
}

static void pass_work(void *self, const ry_block_view *view, ry_cut *cut, uint32_t phase,
                      uint32_t tile)
{
    const ry_trace *t = self;
    t->inner.work(t->inner.self, view, cut, phase, tile);
}

/* ---- making -------------------------------------------------------------------------------- */

static void lay_out(ry_arena *a, ry_trace *t)
{
    for (size_t c = 0; c < t->n_cuts; c++)
        for (uint32_t i = 0; i < t->max_batch; i++) {
            const uint32_t in = t->cuts[c].n_in, out = t->cuts[c].n_out;
            const record r = {.n_in = in,
                              .n_out = out,
                              .position = RY_TAKE(a, in, int32_t),
                              .score = RY_TAKE(a, in, float),
                              .size = RY_TAKE(a, out, float),
                              .rescued = RY_TAKE(a, in, uint8_t),
                              .source = RY_TAKE(a, out, uint32_t),
                              .target = RY_TAKE(a, in, uint32_t)};
            if (a->base) t->records[c * t->max_batch + i] = r;
        }
}

static void find_cuts(ry_trace *t, const ry_block_rows *rows)
{
    for (uint32_t b = 0; b < t->n_blocks; b++) {
        t->cut_of[b] = RENYI_NONE;
        if (rows[b].needs.place == RY_CUT_NONE) continue;
        t->cut_of[b] = (uint32_t)t->n_cuts;
        t->cuts[t->n_cuts++] = (cut_shape){b, rows[b].in, rows[b].out};
    }
}

static renyi_status take_memory(ry_trace *t, const ry_block_rows *rows, const renyi_allocator *al,
                                renyi_error *err)
{
    const size_t L = t->n_blocks;
    t->cuts = ry_calloc(al, L, sizeof *t->cuts);
    t->cut_of = ry_calloc(al, L, sizeof *t->cut_of);
    if (!t->cuts || !t->cut_of) return ry_fail_nomem(err, L * sizeof *t->cuts);
    find_cuts(t, rows);
    const size_t n = t->n_cuts * t->max_batch;
    t->records = ry_calloc(al, n ? n : 1, sizeof *t->records);
    if (!t->records) return ry_fail_nomem(err, n * sizeof *t->records);
    ry_arena measure = {0};
    lay_out(&measure, t);
    t->arena = ry_alloc(al, measure.used ? measure.used : 1, 1);
    if (measure.overflow || !t->arena) return ry_fail_nomem(err, measure.used);
    t->arena_bytes = measure.used;
    ry_arena bind = {t->arena, 0, measure.used, 0};
    lay_out(&bind, t);
    return RENYI_OK;
}

renyi_status ry_trace_new(ry_trace **out, const ry_token_hook *inner, const ry_vit_config *config,
                          uint32_t n_patches, uint32_t max_batch, const renyi_allocator *al,
                          renyi_error *err)
{
    *out = NULL;
    ry_trace *t = ry_calloc(al, 1, sizeof *t);
    ry_block_rows *rows = ry_calloc(al, config->n_blocks, sizeof *rows);
    renyi_status st = t && rows ? RENYI_OK : ry_fail_nomem(err, sizeof *t);
    if (!st) {
        const ry_rows_options opt = {inner, 0, RENYI_OUTPUT_AUTO};
        t->inner = *inner;
        t->hook = (ry_token_hook){pass_needs, pass_tiles, pass_work, record_cut, t, NULL};
        t->n_prefix = config->n_prefix;
        t->n_blocks = config->n_blocks;
        t->max_batch = max_batch;
        ry_vit_rows(rows, config, n_patches, &opt);
        st = take_memory(t, rows, al, err);
    }
    ry_free(al, rows);
    if (st) {
        ry_trace_free(t, al);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

void ry_trace_free(ry_trace *t, const renyi_allocator *al)
{
    if (!t) return;
    ry_free(al, t->arena);
    ry_free(al, t->records);
    ry_free(al, t->cut_of);
    ry_free(al, t->cuts);
    ry_free(al, t);
}

const ry_token_hook *ry_trace_hook(const ry_trace *t) { return &t->hook; }

size_t ry_trace_bytes(const ry_trace *t) { return t->arena_bytes; }

size_t ry_trace_cuts(const ry_trace *t) { return t->n_cuts; }

void ry_trace_get(const ry_trace *t, uint32_t image, size_t cut, renyi_cut *out)
{
    const record *r = &t->records[cut * t->max_batch + image];
    *out = (renyi_cut){.block = t->cuts[cut].block,
                       .n_prefix = t->n_prefix,
                       .n_in = r->n_in,
                       .n_out = r->n_out,
                       .position = r->position,
                       .score = r->score,
                       .rescued = r->rescued,
                       .source = r->source,
                       .target = r->target,
                       .size = r->size};
}
