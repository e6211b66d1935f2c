/* llama_plan.h - one sequence of a Llama: the cache of keys and values of its rows so far, and
 * everything that a pass over new rows needs, fixed beforehand.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAMA_PLAN_H
#define RY_LLAMA_PLAN_H

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
    int half; /* keys and values are stored as f16 */
} ry_llama_plan_options;

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
    uint32_t position; /* number of rows in the sequence */
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

#endif
