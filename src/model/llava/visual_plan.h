/* visual_plan.h - turns an image into rows for a language model: the tower's plan, the attention of
 * the block after it, the projector.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_PLAN_H
#define RY_VISUAL_PLAN_H

#include "model/llava/visual.h"
#include "model/vit/vit_plan.h"

/* What was computed since the plan was made. */
typedef struct ry_visual_work {
    double tower_macs, project_macs;
    double choice_seconds; /* of a rule behind the tower: its scores and its choice */
} ry_visual_work;

typedef struct ry_visual_plan {
    const ry_visual *visual;
    ry_kernels kernels;
    size_t max_rows; /* R: the most that the projector may get */
    ry_vit_plan *tower;
    ry_linear_op *qk; /* NULL = the block after the tower is not needed */
    ry_linear_op *project[2];
    ry_team team; /* for the steps after the tower */

    void *arena;
    size_t arena_bytes;
    float *class_token;   /* [C] output of the tower's plan; not used */
    float *h;             /* [N, C padded] LayerNorm of the features, for qk */
    float *qk_rows;       /* [N, 2C or 3C padded] */
    float *class_row;     /* [N] of the block after the tower */
    float *columns;       /* [N] */
    double *column_parts; /* [row blocks, sets, N] */
    float *attention;     /* [threads, attention_each] scratch */
    size_t attention_each;
    float *features; /* [R, C] input of the projector, filled by the caller */
    float *mid;      /* [R, mid_dim padded] */
    float *rows;     /* [R, lm_dim] */

    ry_visual_work work;

    const float *x; /* [n_tokens, C] output of the tower for the last image, class token first */
    uint32_t n_tokens;
} ry_visual_plan;

typedef struct ry_visual_plan_options {
    renyi_cpu level;
    const ry_token_hook *hook; /* of the tower; NULL = dense */
    unsigned n_threads;
    int look;        /* ry_visual_look will be called; needs visual->qk */
    size_t max_rows; /* for the projector; at least patches + 1, which is what 0 means */
} ry_visual_plan_options;

renyi_status ry_visual_plan_new(ry_visual_plan **out, const ry_visual *visual,
                                const ry_visual_plan_options *opt, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;
void ry_visual_plan_free(ry_visual_plan *p, const renyi_allocator *al);
size_t ry_visual_plan_bytes(const ry_visual_plan *p);

/* Floats from one row of qk_rows to the next; queries first, keys C floats later. */
static inline size_t ry_visual_qk_row(const ry_visual_plan *p)
{
    return ry_linear_row(p->visual->qk, ry_linear_out(p->visual->qk));
}

/* Runs the tower; sets x and n_tokens. `in` has one image; its tap is replaced. */
renyi_status ry_visual_tower(ry_visual_plan *p, const ry_vit_input *in) RENYI_CHECK;

/* Attention of the block after the tower as one head of width C (PruMerge): the class row and, with
 * `columns`, a statistic of every column. Only after a tower without cuts. */
void ry_visual_look(ry_visual_plan *p, const ry_column_spec *columns);

/* rows = projector of the first n rows of features. */
void ry_visual_project(ry_visual_plan *p, size_t n);

#endif
