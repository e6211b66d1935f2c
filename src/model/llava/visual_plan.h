/* visual_plan.h - everything that turning a picture into rows of a language model needs, fixed
 * beforehand: the tower's plan, what is asked of the block behind it, the projector.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_PLAN_H
#define RY_VISUAL_PLAN_H

#include "model/llava/visual.h"
#include "model/vit/vit_plan.h"

/* Steps of a look: LayerNorm, product, attention, scores; of projecting: two products, each
 * converted first. */
enum { RY_VISUAL_TICKETS = 4 };

typedef struct ry_visual_plan {
    const ry_visual *visual;
    ry_kernels kernels;
    unsigned n_threads;
    size_t max_rows; /* R: that the projector may get; one more than patches */
    ry_vit_plan *tower;
    ry_linear_op *qk; /* NULL: nobody asks the block behind */
    ry_linear_op *project[2];

    void *arena;
    size_t arena_bytes;
    float *class_token;   /* [C] what the tower's plan answers with; nobody reads it */
    float *h;             /* [N, C padded] LayerNorm of the features, for qk */
    float *qk_rows;       /* [N, 2C or 3C padded] */
    void *low;            /* rows of h in fewer bits */
    float *class_row;     /* [N] of the block behind */
    float *columns;       /* [N] */
    double *column_parts; /* [row blocks, sets, N] */
    float *attention;     /* [threads, attention_each] scratch */
    size_t attention_each;
    float *features;    /* [R, C] rows for the projector, filled by the caller */
    float *mid;         /* [R, mid_dim padded] */
    float *rows;        /* [R, lm_dim] */
    ry_ticket *tickets; /* of a run behind the tower */

    const float *x; /* [n_tokens, C] what the tower left of the last picture, class token first */
    uint32_t n_tokens; /* of it */
} ry_visual_plan;

typedef struct ry_visual_plan_options {
    renyi_cpu level;
    const ry_token_hook *hook; /* of the tower; NULL = dense */
    unsigned n_threads;
    int look; /* ry_visual_look will be called */
} ry_visual_plan_options;

/* options->look needs visual->qk. */
renyi_status ry_visual_plan_new(ry_visual_plan **out, const ry_visual *visual,
                                const ry_visual_plan_options *opt, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;
void ry_visual_plan_free(ry_visual_plan *p, const renyi_allocator *al);
size_t ry_visual_plan_bytes(const ry_visual_plan *p);

/* Floats from one row of qk_rows to the next; queries come first, keys C floats behind them. */
static inline size_t ry_visual_qk_row(const ry_visual_plan *p)
{
    return ry_linear_row(p->visual->qk, ry_linear_out(p->visual->qk));
}

/* Patches to features: fills x and n_tokens. `in` has one image; its tap is taken. */
renyi_status ry_visual_tower(ry_visual_plan *p, const ry_vit_input *in) RENYI_CHECK;

/* Attention of the block behind as one head of width C (PruMerge): the class row and, with
 * `columns`, a statistic of every column. After a tower without cuts. */
void ry_visual_look(ry_visual_plan *p, const ry_column_spec *columns);

/* rows = projector of the first n of features. */
void ry_visual_project(ry_visual_plan *p, size_t n);

#endif
