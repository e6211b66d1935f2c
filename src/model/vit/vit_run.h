/* vit_run.h - the state of one thread during a run of a ViT's plan; shared by vit_forward.c
 * and vit_cut.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_RUN_H
#define RY_VIT_RUN_H

#include "model/vit/vit_plan.h"

#include <stdatomic.h>

typedef struct ry_vit_run {
    ry_vit_plan *p;
    const ry_vit_input *in;
    float *out;           /* [n, n_outputs] */
    uint32_t turn, turns; /* which image of how many, if images run one by one; else 0 of 1 */
    double block_macs;    /* per image, of all turns; written by thread 0 */
    /* The report after which the run stops, counted from 1; 0 = it goes on. Written by thread 0
     * during that report. A slower thread may read it during an earlier one, and goes on. */
    atomic_uint stop;
} ry_vit_run;

/* One thread. The fields after `run` have the same values in all threads. */
typedef struct ry_worker {
    ry_vit_run *r;
    ry_runner *run;
    int x_now;              /* which of the plan's two streams holds the tokens */
    int sizes_now;          /* which of the two lists of sizes is valid */
    const uint32_t *places; /* which of the two lists of places is; NULL = no cut was made yet */
    ry_block_rows now;      /* the current block: the plan's, with the rows that this image has */
} ry_worker;

/* The current rows of the tokens: [n in, C]. */
static inline float *ry_tokens(const ry_worker *w) { return w->r->p->x[w->x_now]; }

/* ---- steps (vit_forward.c) ----------------------------------------------------------------- */

/* y = op x, `rows` rows of each image. */
void ry_run_linear(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x, float *y);

/* y = op(LayerNorm x), with the normalized rows in h. rows: of each image */
void ry_run_norm_linear(ry_worker *w, const ry_linear_op *op, size_t rows, const float *x,
                        const float *weight, const float *bias, float *h, float *y);

/* ---- attention pooling (vit_pool.c) -------------------------------------------------------- */

/* The class row of every image = the head-mean attention of the pooling head's probe to the tokens
 * that enter the block, after the final LayerNorm of the model: what the head would see if this
 * block were behind the last. */
void ry_pool_row(ry_worker *w, uint32_t block);

/* pooled_h = the output of the pooling head for the tokens after the last block */
void ry_pool_attention(ry_worker *w, size_t n_tokens);

/* ---- cuts (vit_cut.c) ---------------------------------------------------------------------- */

ry_block_state ry_run_block_state(const ry_worker *w, uint32_t block);

/* Gets the anchor of this block from the hook and appends it to the tokens. */
void ry_anchor_enter(ry_worker *w, uint32_t block);

/* The decision of a block's cut for every image of the batch, then the hook's watch(). */
void ry_cut_decide(ry_worker *w, uint32_t block);

/* Reduces the stream after the decision; the other stream then becomes the current one. With
 * `heads` attention's output is reduced too, from h to wide, for the projection. */
void ry_cut_reduce(ry_worker *w, uint32_t block, int heads);

#endif
