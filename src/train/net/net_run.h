/* net_run.h - a pass of a net as its threads see it: all go through the same steps and share the
 * tiles of each (base/steps.h). Which thread computes a tile does not change its bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NET_RUN_H
#define RY_NET_RUN_H

#include "train/net/net_state.h"

#include <assert.h>

/* One thread of a pass. */
typedef struct ry_net_worker {
    ry_net *net;
    unsigned thread;
    uint32_t n;    /* images */
    size_t ticket; /* index of the next step's ticket */
    int d_now;     /* backward: which of the two streams of gradients is the current one */
} ry_net_worker;

/* Runs work(w, user) on all threads of the net. */
void ry_net_threads(ry_net *net, uint32_t n, void (*work)(ry_net_worker *w, const void *user),
                    const void *user);

static inline ry_step ry_net_begin(ry_net_worker *w, size_t tiles)
{
    assert(w->ticket < w->net->n_tickets);
    return (ry_step){&w->net->tickets[w->ticket++], tiles, 0};
}

static inline float *ry_net_scratch(const ry_net_worker *w)
{
    return w->net->scratch + w->thread * w->net->scratch_each;
}

/* ---- steps (net_steps.c) -------------------------------------------------------------------- */

enum { RY_NET_CHUNK = RY_CONVERT_ROWS }; /* rows of a tile of what goes row by row */

/* What the branch of a block is multiplied by for image i: 1 without stochastic depth.
 * branch: 2 i for attention's, 2 i + 1 for the MLP's. */
static inline float ry_net_factor(const ry_net_worker *w, uint32_t branch, size_t image)
{
    return w->net->branch ? w->net->branch[branch * (size_t)w->n + image] : 1.0f;
}

/* y = op of `rows` rows of x that lie one after the other */
void ry_net_product(ry_net_worker *w, const ry_linear_op *op, size_t rows, const float *x,
                    float *y);

/* The start of a residual branch, while its rows are normalised: to [rows, C] = x + what the
 * branch's bias lacks, (factor - 1) b. */
typedef struct ry_net_residual {
    float *to; /* NULL: only normalise */
    const ry_param *bias;
    uint32_t branch;
    uint32_t rows; /* of each image */
} ry_net_residual;

/* h [rows, C padded] = LayerNorm of x [rows, C] */
void ry_net_normalise(ry_net_worker *w, const ry_net_norm *norm, size_t rows, const float *x,
                      float *h, const ry_net_residual *residual);

/* h [rows, C padded] = rows of x [rows, C padded] times the factor of their image; returns h, or x
 * itself without stochastic depth. rows: of each image */
const float *ry_net_scaled(ry_net_worker *w, uint32_t branch, uint32_t rows, const float *x,
                           float *h);

/* Gradients of the weights of m: from dy [rows, n_out] and x [rows, n_in]. */
void ry_net_outer(ry_net_worker *w, const ry_net_matrix *m, size_t rows, const float *dy,
                  size_t dy_row, const float *x, size_t x_row);

/* d [rows, C padded] += the gradient of LayerNorm of x [rows, C], from dy [rows, C padded]; those
 * of its weights too. */
void ry_net_norm_grad(ry_net_worker *w, const ry_net_norm *norm, size_t rows, const float *x,
                      const float *dy, float *d);

/* ---- forward -------------------------------------------------------------------------------- */

/* Block i from tokens[i]. `again`: only what the backward pass reads, with the decision of the cut
 * as it was. */
void ry_net_block_forward(ry_net_worker *w, uint32_t i, int again);

/* Rows after the attention residual of block i before its cut (all of them), into `to`. Fills the
 * rows of to that ry_net_residual starts, too. */
void ry_net_project(ry_net_worker *w, uint32_t i, float *to);

/* z = y + MLP(y) of block i; `only_inside`: stop when u is known. */
void ry_net_mlp(ry_net_worker *w, uint32_t i, float *z, int only_inside);

/* ---- cuts (net_cut.c) ------------------------------------------------------------------------ */

ry_attention ry_net_attention_of(const ry_net_worker *w, uint32_t i, size_t image);
ry_cut ry_net_cut_of(const ry_net_worker *w, uint32_t i, size_t image);

/* The hook's decision in block i; x: the rows it may look at. */
void ry_net_decide(ry_net_worker *w, uint32_t i, const float *x);

/* The rows that the cut of block i leaves: `to` [n out, C] from `from` [n in, C]. */
void ry_net_reduce(ry_net_worker *w, uint32_t i, const float *from, float *to);

/* A cut before the projection: y of block i starts as its reduced input and what the bias lacks;
 * the reduced rows of attention's output go to `heads` [n out, C padded], for the product times the
 * factors of stochastic depth (`scaled`). NULL y: only the heads. */
void ry_net_reduce_heads(ry_net_worker *w, uint32_t i, float *y, float *heads, int scaled);

/* ---- taps (net_taps.c) ----------------------------------------------------------------------- */

/* Those after this block: their rows; and the gradient of these into the stream of gradients.
 * dfeatures: as ry_net_backward got it */
void ry_net_taps_forward(ry_net_worker *w, uint32_t block);
void ry_net_force(ry_net_worker *w, uint32_t block); /* rows that enter it = the teacher's */
void ry_net_taps_backward(ry_net_worker *w, uint32_t block, const float *dfeatures);

/* ---- backward ------------------------------------------------------------------------------- */

static inline float *ry_net_d(const ry_net_worker *w) { return w->net->d[w->d_now]; }

/* The stream from the rows after block i to those before it. */
void ry_net_block_backward(ry_net_worker *w, uint32_t i);

/* The stream of gradients through the cut of block i, from the rows it leaves to those that enter;
 * `from` [n in, C] what was cut, where its values matter. Fills dweight if weights pass gradients.
 */
void ry_net_cut_back(ry_net_worker *w, uint32_t i, const float *from);

/* The same for a cut before the projection: dheads[0] (reduced) to dheads[1] too; ds: the stream
 * times the factors. */
void ry_net_cut_back_heads(ry_net_worker *w, uint32_t i, const float *ds);

/* The bias of the projection in fused rows counts as often as their weights sum to: adds what
 * ry_net_outer left out. */
void ry_net_fused_bias_grad(ry_net_worker *w, uint32_t i, const float *ds);

/* From dweight to the gradient of attention's head-mean matrix. Fills dmean of every image, if the
 * statistic is of the head mean. */
void ry_net_weights_back(ry_net_worker *w, uint32_t i);
/* Of one head, for statistics of each head: into a matrix of this thread. */
const float *ry_net_head_matrix(ry_net_worker *w, uint32_t i, const ry_attention_grad *g,
                                size_t image, size_t head);

void ry_net_ends_backward(ry_net_worker *w, const float *dlogits, const float *dlogits_dist,
                          const float *dfeatures);
void ry_net_embed_backward(ry_net_worker *w);

#endif
