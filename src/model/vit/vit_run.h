/* vit_run.h - a run of a plan as its threads see it; between vit_forward.c, vit_head.c and
 * vit_cut.c.
 *
 * All threads go through the same steps and share the tiles of each (base/steps.h). Which thread
 * computes a tile does not change its bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_RUN_H
#define RY_VIT_RUN_H

#include "model/vit/vit_plan.h"

typedef struct ry_vit_run {
    ry_vit_plan *p;
    const ry_vit_input *in;
    float *out;           /* [n, n_outputs] */
    uint32_t turn, turns; /* images that run one by one: which, of how many; else 0 of 1 */
    double block_macs;    /* per image, of all turns; written by thread 0 */
    int stop;             /* written by thread 0 inside report() */
} ry_vit_run;

/* One thread. The fields below `thread` take the same values in all threads. */
typedef struct ry_worker {
    ry_vit_run *r;
    unsigned thread;
    size_t ticket;     /* index of the next step's ticket */
    int x_now;         /* which of the plan's two streams holds the tokens */
    int sizes_now;     /* which of the two lists of sizes is theirs */
    ry_block_rows now; /* the block at work: the plan's, with the rows this image really has */
} ry_worker;

static inline ry_step ry_begin(ry_worker *w, size_t tiles)
{
    return (ry_step){&w->r->p->tickets[w->ticket++], tiles, 0};
}

static inline float *ry_tokens(const ry_worker *w) { return w->r->p->x[w->x_now]; }

/* What attention has to hand out for image i of a block; nothing in a dense run. */
ry_attention ry_attention_of(const ry_worker *w, size_t i);

/* Asks the hook for an anchor of this block and puts it behind the tokens. */
void ry_anchor_enter(ry_worker *w, uint32_t block);

/* The decision of a block's cut for every image of the batch, and whoever watches it. With
 * RY_WAY_LISTED attention has not run yet, and only the class row is made here. */
void ry_cut_decide(ry_worker *w, uint32_t block);

/* The rows of the streams after the decision; the other stream is then the current one. With
 * `heads` also the rows of attention's output, from h to wide, for the projection. */
void ry_cut_reduce(ry_worker *w, uint32_t block, int heads);

/* y = op x, rows of each image; in the form that the product wants. */
void ry_run_linear(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x, float *y);

/* h [rows, h_row] = LayerNorm of x [rows, C], some rows at a time; h may be x. `next` reads them:
 * if it wants another form, they get it while they are warm; NULL = nobody asks. */
void ry_run_layernorm(ry_worker *w, float *h, size_t h_row, const float *x, size_t rows,
                      const float *weight, const float *bias, const ry_linear_op *next);

/* pooled_x = the class (and distillation) rows of every image */
void ry_gather_prefix(ry_worker *w, size_t n_tokens);

/* The rows that the head reads, when the last block went through all of them. */
void ry_pool_rows(ry_worker *w, size_t n_tokens);

/* From these rows to the answer. */
void ry_head(ry_worker *w);

/* The mean of the patch rows of every image after the last block: to [B, row] from rows
 * [B, n_tokens, row]. A token counts as often as the patches it stands for; a fused one once. */
void ry_pool_mean(ry_worker *w, float *to, const float *rows, size_t row, size_t n_tokens);

#endif
