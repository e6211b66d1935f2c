/* llama_plan.h - one sequence of a Llama: the cache of keys and values of its rows so far, and
 * everything that a pass over new rows needs, fixed beforehand.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAMA_PLAN_H
#define RY_LLAMA_PLAN_H

#include "model/common/llama_cuts.h"
#include "model/common/runner.h"
#include "model/llama/llama.h"
#include "renyi/lm.h"

/* Products of a layer, bound to a number of rows. */
typedef struct ry_llama_ops {
    ry_linear_op *qkv, *proj, *gate_up, *down;
} ry_llama_ops;

/* Every layer has its products twice, with the same packed weights. */
typedef enum ry_llama_rows { RY_LLAMA_ONE, RY_LLAMA_MANY, RY_LLAMA_N } ry_llama_rows;

typedef struct ry_llama_plan_options {
    renyi_cpu level;
    uint32_t max_context;
    uint32_t max_rows; /* of a pass */
    unsigned n_threads;
    int half;                  /* keys and values are stored as f16 */
    const ry_llama_cuts *cuts; /* borrowed; NULL = none */
} ry_llama_plan_options;

/* Layers between two cuts. */
typedef struct ry_llama_stage {
    uint32_t first, end; /* layers */
    uint32_t n;          /* rows in their caches */
    uint32_t *rows;      /* [max_context] the numbers of these rows; NULL without cuts: 0, 1, ... */
} ry_llama_stage;

/* What the looks of a cut add up over the passes; NULL without cuts. */
typedef struct ry_llama_sums {
    float *mean;      /* [rows looked at in a pass, max_context] attention of a pass */
    double *sum;      /* [max_context] of each column */
    double *top;      /* [max_context] its largest entry, by which its sum is divided */
    float *score;     /* [max_context] */
    float *key_sizes; /* [max_context] */
} ry_llama_sums;

typedef struct ry_llama_plan {
    const ry_llama *model;
    ry_kernels kernels;
    ry_llama_plan_options opt;
    ry_llama_ops *ops[RY_LLAMA_N]; /* [L] each */
    ry_linear_op *head;            /* one row */
    ry_team team;

    void *arena;
    size_t arena_bytes;
    float *x;         /* [R, C] residual stream */
    float *h;         /* [R, C or q, padded] normalized rows; attention's output */
    float *wide;      /* [R, qkv or 2M, padded] */
    float *act;       /* [R, M padded] gated values */
    float *angles;    /* [max_context, d] rows.h */
    float *attention; /* [threads, attention_each] scratch */
    size_t attention_each;
    ry_cache *caches; /* [L] */

    void *cache; /* memory of all caches; pages are touched when their rows are written */
    size_t cache_bytes;
    uint32_t position;  /* number of rows in the sequence */
    double choice_macs; /* multiply-accumulates that the cuts of the last prefill added */

    uint32_t n_stages; /* 1 + cuts */
    ry_llama_stage *stages;
    /* With cuts, all rows of a feed wait before the next stage: */
    float *stream;   /* [max_context, C] */
    uint32_t *rows;  /* [max_context] their numbers */
    uint32_t *kept;  /* [max_context] */
    uint32_t *place; /* [max_context] */
    uint8_t *raters; /* [max_context] of the rows after the visual ones: 1 = it rates */
    ry_llama_sums sums;
} ry_llama_plan;

renyi_status ry_llama_plan_new(ry_llama_plan **out, const ry_llama *model,
                               const ry_llama_plan_options *opt, const renyi_allocator *al,
                               renyi_error *err) RENYI_CHECK;
void ry_llama_plan_free(ry_llama_plan *p, const renyi_allocator *al);

/* Floats from one row of `width` to the next in h, wide and act. */
static inline size_t ry_llama_row(const ry_llama_plan *p, size_t width)
{
    return ry_linear_row(p->model->layers[0].qkv, width);
}

/* Appends n <= max_rows rows; they must fit into max_context. logits: [vocab] of the last, or NULL.
 */
void ry_llama_forward(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n, float *logits);

static inline const ry_llama_stage *ry_llama_stage_of(const ry_llama_plan *p, uint32_t layer)
{
    uint32_t s = 0;
    while (layer >= p->stages[s].end) s++;
    return &p->stages[s];
}

/* Forgets the rows with these numbers and above. */
void ry_llama_rewind(ry_llama_plan *p, uint32_t position);

/* ---- passes through some layers -------------------------------------------------------------- */

/* What a pass adds to the sums of a cut: column sums of the rows from `first_row` on over the
 * columns of the visual rows, and sizes of keys. Rows are counted from the first of the feed. */
typedef struct ry_llama_look {
    uint32_t layer;
    const ry_llama_cut *cut;
    uint32_t done; /* rows of earlier passes */
    uint32_t first_row, first_visual, n_visual;
    const uint8_t *raters; /* of the rows from first_row on, which count; NULL = all do */
} ry_llama_look;

typedef struct ry_llama_pass {
    const renyi_lm_input *in; /* [n]; NULL = x has the rows */
    float *x;                 /* [n, C] residual stream */
    const uint32_t *rows;     /* [n] their numbers; NULL = from the plan's position on */
    size_t n;
    uint32_t done;                   /* rows of earlier passes that the caches have besides those of
                                        their stage */
    uint32_t first_stage, end_stage; /* layers from the first of one to the last of the other */
    const ry_llama_look *look;       /* or NULL */
    int only_looks;                  /* the layer of the look is not finished, and the last */
    float *logits;                   /* of the last row after all layers, or NULL */
} ry_llama_pass;

/* Changes the caches but not how many rows they have. */
void ry_llama_run_pass(ry_llama_plan *p, const ry_llama_pass *pass);

/* llama_look.c: steps of a pass at the layer of its look, when its keys are in the cache.
 * `queries`: [n, queries and keys of a row]. */
void ry_llama_look_at(ry_runner *run, ry_llama_plan *p, const ry_llama_pass *pass,
                      const float *queries);
void ry_llama_look_begin(ry_llama_plan *p, const ry_llama_look *look);
void ry_llama_look_end(ry_llama_plan *p, const ry_llama_look *look); /* fills p->sums.score */

/* llama_raters.c: sets p->raters for the rows after the visual ones, of which there is at least
 * one. p->stream is scratch. */
void ry_llama_find_raters(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n, uint32_t first,
                          uint32_t n_visual);

/* llama_prefill.c: appends n rows and cuts between the stages. The visual rows are those with an
 * embedding, from the first to the last of them; at least one. progress: rows done, of n; if it
 * returns non-zero, nothing is appended and the result is 1. */
int ry_llama_prefill(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n, float *logits,
                     renyi_progress progress, void *user);

#endif
