/* net_run.h - one thread's view of a pass of a net: the steps that the forward and the backward
 * pass are made of. For the files of this folder only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NET_RUN_H
#define RY_NET_RUN_H

#include "train/net/net_state.h"

/* One thread of a pass. */
typedef struct ry_net_worker {
    ry_net *net;
    ry_runner *run;
    uint32_t n; /* images */
    int d_now;  /* backward: which of the two streams of gradients is current */
} ry_net_worker;

/* Runs work(w, user) on all threads of the net. */
void ry_net_threads(ry_net *net, uint32_t n, void (*work)(ry_net_worker *w, const void *user),
                    const void *user);

static inline float *ry_net_scratch(const ry_net_worker *w)
{
    return w->net->scratch + w->run->thread * w->net->scratch_each;
}

/* ---- steps (net_steps.c) ------------------------------------------------------------------- */

/* Stochastic depth: what a branch of a block is multiplied by for an image; 1 without it.
 * branch: 2 i for attention of block i, 2 i + 1 for its MLP. */
static inline float ry_net_factor(const ry_net_worker *w, uint32_t branch, size_t image)
{
    return w->net->branch ? w->net->branch[branch * (size_t)w->n + image] : 1.0f;
}

/* y = op of `rows` rows of x */
void ry_net_product(ry_net_worker *w, const ry_linear_op *op, size_t rows, const float *x,
                    float *y);

/* Rows that a residual branch is added to, set while its input is normalized: to [rows, C] =
 * x + (factor - 1) b. The product of the branch then adds b once and the rest times the factor. */
typedef struct ry_net_residual {
    float *to;         /* NULL = only normalize */
    const float *bias; /* with layer scale */
    uint32_t branch;
    uint32_t rows; /* of each image */
} ry_net_residual;

/* h [rows, C padded] = LayerNorm of x [rows, C] */
void ry_net_normalize(ry_net_worker *w, const ry_net_norm *norm, size_t rows, const float *x,
                      float *h, const ry_net_residual *residual);

/* h [rows, C padded] = rows of x [rows, C padded] times the factor of their image; returns h, or x
 * itself without stochastic depth. rows: of each image */
const float *ry_net_scaled(ry_net_worker *w, uint32_t branch, uint32_t rows, const float *x,
                           float *h);

/* Adds the gradients of the weights of m, from dy [rows, n_out] and x [rows, n_in]. With layer
 * scale those of the weights that contain it go to net->raw, and ry_net_unfold must follow: it adds
 * the gradients of weights, bias and scale. */
void ry_net_outer(ry_net_worker *w, const ry_net_matrix *m, size_t rows, const float *dy,
                  size_t dy_row, const float *x, size_t x_row);

/* The same without the gradient of the bias. */
void ry_net_outer_weights(ry_net_worker *w, const ry_net_matrix *m, size_t rows, const float *dy,
                          size_t dy_row, const float *x, size_t x_row);

void ry_net_unfold(ry_net_worker *w, const ry_net_matrix *m);

/* 1 if no gradient of m is wanted. */
static inline int ry_net_is_frozen(const ry_net_matrix *m)
{
    return m->w->frozen && (!m->b || m->b->frozen) && (!m->gamma || m->gamma->frozen);
}

/* Where the gradients of the bias of m are summed, before ry_net_unfold; NULL if it has none. */
static inline float *ry_net_bias_grad(const ry_net *net, const ry_net_matrix *m)
{
    if (!m->b) return NULL;
    return m->gamma ? net->raw + m->w->size : ry_net_grad(net, m->b);
}

/* d [rows, C padded] += the gradient of LayerNorm of x [rows, C], from dy [rows, C padded]; adds
 * those of its weights too. */
void ry_net_norm_grad(ry_net_worker *w, const ry_net_norm *norm, size_t rows, const float *x,
                      const float *dy, float *d);

/* ---- forward (net_forward.c) --------------------------------------------------------------- */

/* Block i from tokens[i]. `again`: only what the backward pass reads, with the known decision of
 * the cut. */
void ry_net_block_forward(ry_net_worker *w, uint32_t i, int again);

/* to [n in, C] = all rows after the attention residual of block i, before its cut */
void ry_net_project(ry_net_worker *w, uint32_t i, float *to);

/* z = y + MLP(y) of block i; `only_inside`: stop after u. */
void ry_net_mlp(ry_net_worker *w, uint32_t i, float *z, int only_inside);

/* ---- attention pooling (net_pool.c) -------------------------------------------------------- */

/* pooled[0] from the normalized rows of all tokens, in net->h. */
void ry_net_pool_forward(ry_net_worker *w);

/* dh = the gradient of these rows, from dpooled[0], which changes; uses h and wide. */
void ry_net_pool_backward(ry_net_worker *w);

/* class_row [n, N] = the probe's attention to the tokens that enter block i, mean over heads. */
void ry_net_pool_row(ry_net_worker *w, uint32_t i);

/* ---- cuts (net_cut.c) ---------------------------------------------------------------------- */

/* x: the rows that the hook may read; NULL if the hook is not called. */
ry_block_state ry_net_block_state(const ry_net_worker *w, uint32_t i, const float *x);

/* The rows after the cut of block i: `to` [n out, C] from `from` [n in, C]. */
void ry_net_reduce(ry_net_worker *w, uint32_t i, const float *from, float *to);

/* A cut before the projection: heads [n out, C padded] = reduced rows of attention's output, with
 * `scaled` times the factors of stochastic depth, and y of block i = its reduced input plus the
 * part of the bias that the product does not add. NULL y: only the heads. */
void ry_net_reduce_heads(ry_net_worker *w, uint32_t i, float *y, float *heads, int scaled);

/* ---- taps (net_taps.c) --------------------------------------------------------------------- */

/* Taps after this block: fills their rows; adds the gradient of these rows to the stream.
 * dfeatures: that of ry_net_backward */
void ry_net_taps_forward(ry_net_worker *w, uint32_t block);
void ry_net_taps_backward(ry_net_worker *w, uint32_t block, const float *dfeatures);

/* Replaces the rows that enter the block by the teacher's, if the batch has them. */
void ry_net_force(ry_net_worker *w, uint32_t block);

/* ---- gradients of cuts (net_cut.c) --------------------------------------------------------- */

/* The current stream of gradients. */
static inline float *ry_net_d(const ry_net_worker *w) { return w->net->d[w->d_now]; }

/* The stream of gradients through the cut of block i, from the rows after it to those before it.
 * `from` [n in, C]: the rows that were cut, if their values are needed. Fills dweight if weights
 * have gradients. */
void ry_net_cut_back(ry_net_worker *w, uint32_t i, const float *from);

/* The same for a cut before the projection: dheads[0] (reduced) to dheads[1] too. ds: the stream
 * times the factors. */
void ry_net_cut_back_heads(ry_net_worker *w, uint32_t i, const float *ds);

/* Adds the gradient of the projection's bias after a cut that fuses: a fused row has the bias as
 * often as its weights sum to. ds: [n out, C padded] */
void ry_net_fused_bias_grad(ry_net_worker *w, uint32_t i, const float *ds);

/* From dweight to the gradient of attention's head-mean matrix: fills dmean of every image. */
void ry_net_weights_back(ry_net_worker *w, uint32_t i);

/* The same for statistics of each head: the gradient of one head's matrix, in memory of this
 * thread. */
const float *ry_net_head_matrix(ry_net_worker *w, uint32_t i, const ry_attention_grad *g,
                                size_t image, size_t head);

#endif
