/* text_tower_plan.h - everything a run of a text tower needs, fixed beforehand: matrix products
 * bound to the most rows they may get, one arena of activations.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEXT_TOWER_PLAN_H
#define RY_TEXT_TOWER_PLAN_H

#include "base/steps.h"
#include "kernels/kernels.h"
#include "model/clip_text/text_tower.h"
#include "model/clip_text/text_tower_pack.h"
#include "model/vit/vit_plan.h" /* ry_block_ops */

typedef struct ry_text_plan {
    const ry_text *text;
    ry_kernels kernels;
    uint32_t max_tokens; /* R: rows of a pass, and texts */
    unsigned n_threads;
    ry_block_ops *ops; /* [L] */
    ry_linear_op *projection;
    size_t n_tickets;

    void *arena;
    size_t arena_bytes;
    float *x;          /* [R, C] residual stream */
    float *h;          /* [R, C padded] normalised rows; attention's output */
    float *wide;       /* [R, 3C or M padded] qkv, then the MLP's inside */
    void *low;         /* rows of h or wide in fewer bits, for products that do not take floats */
    float *pooled_x;   /* [R, C] the residual stream of the texts' last tokens */
    float *pooled_h;   /* [R, C padded] the same, normalised */
    float *embeddings; /* [R, embed_dim] */
    float *attention;  /* [threads, attention_each] scratch */
    size_t attention_each;
    ry_text_pass pass;  /* what is at work */
    ry_ticket *tickets; /* [n_tickets] */
} ry_text_plan;

typedef struct ry_text_plan_options {
    renyi_cpu level;
    uint32_t max_tokens; /* at least the tower's context */
    unsigned n_threads;
} ry_text_plan_options;

renyi_status ry_text_plan_new(ry_text_plan **out, const ry_text *text,
                              const ry_text_plan_options *opt, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
void ry_text_plan_free(ry_text_plan *p, const renyi_allocator *al);

/* Floats from one row of `width` to the next in h, wide and pooled_h. */
static inline size_t ry_text_row(const ry_text_plan *p, size_t width)
{
    return ry_linear_row(p->text->projection, width);
}

/* Computes the texts of p->pass. out: row `index` of [.., embed_dim] for each of them. */
void ry_text_forward(ry_text_plan *p, float *out);

#endif
