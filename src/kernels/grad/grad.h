/* grad.h - the table of backward kernels: what training needs besides the products of linear.h. It
 * is filled as in kernels.h: plain C first, then each CPU level overwrites what it improves.
 *
 * Every op is divided into pieces (tiles of an output, heads, blocks of rows) that may run at the
 * same time and in any order. An element is always summed in the same order, so the bits depend
 * neither on the number of threads nor on the division.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_GRAD_H
#define RY_GRAD_H

#include "renyi/renyi.h"

#include <stddef.h>

/* ---- gradient of the weights of a linear: dw += dy^T x, db += sum of the rows of dy ---------- */

typedef struct ry_outer {
    const float *dy;      /* [rows, n_out] */
    const float *x;       /* [rows, n_in] */
    size_t dy_row, x_row; /* floats from one row to the next */
    size_t rows, n_out, n_in;
    float *dw;          /* [n_out, n_in] without gaps */
    float *db;          /* [n_out], or NULL */
    unsigned n_threads; /* there are enough tiles for this many threads; 0 = 1 */
} ry_outer;

/* One tile of dw; scratch: ry_outer_scratch floats, 64-byte aligned, one for each thread. */
#define RY_DECL_OUTER(fn) void fn(const ry_outer *o, size_t tile, float *scratch)

size_t ry_outer_tiles(const ry_outer *o);
size_t ry_outer_scratch(void);

/* For the levels: what tile number `tile` covers. */
enum {
    RY_OUTER_OUT = 192,  /* rows of dw in a tile, at most */
    RY_OUTER_IN = 384,   /* columns of dw in a tile, at most */
    RY_OUTER_DEPTH = 256 /* rows of dy and x per chunk, at most */
};
typedef struct ry_outer_tile {
    size_t out, n_out; /* first row of dw, and how many */
    size_t in, n_in;   /* first column, and how many */
} ry_outer_tile;
ry_outer_tile ry_outer_tile_of(const ry_outer *o, size_t tile);

/* ---- attention -------------------------------------------------------------------------------
 * One image. The probabilities are computed again from qkv, with the same subtraction of the
 * largest logit as in attention.h; the unit of work is a head. */

typedef struct ry_attention_grad {
    size_t n_tokens, n_heads, head; /* N, H, d as in attention.h */
    const float *qkv;               /* [N, 3*H*d] */
    size_t qkv_row;
    const float *key_bias; /* [N], or NULL */
    float logit_factor;    /* as in attention.h; 0 = 1 */
    size_t n_rows;         /* leading query rows that were computed: N, or only the prefix */
    const float *dout;     /* [n_rows, H*d] gradient of the output */
    size_t dout_row;
    /* Gradients of the head-mean probabilities, if the loss depends on them; or NULL. */
    const float *dclass_row; /* [N] of row 0 */
    const float *dmean;      /* [n_rows, N] of all computed rows */
    float *dqkv;             /* [N, 3*H*d]; written, not added to; dq = 0 from row n_rows on */
    size_t dqkv_row;
} ry_attention_grad;

/* Columns of head h in dq, dk and dv; scratch: ry_attention_grad_scratch floats, 64-byte aligned */
#define RY_DECL_ATTENTION_GRAD(fn) void fn(const ry_attention_grad *g, size_t h, float *scratch)
/* mean [n_rows, N]: the head-mean probabilities of an image; reads qkv, key_bias and the sizes. */
#define RY_DECL_ATTENTION_MEAN(fn) void fn(const ry_attention_grad *g, float *mean, float *scratch)

/* Enough for every level. */
size_t ry_attention_grad_scratch(size_t n_tokens, size_t head);

/* ---- LayerNorm -------------------------------------------------------------------------------
 * dx += the gradient of y = (x - mean) / sqrt(var + eps) * w + b; mean and var are computed again.
 * The gradients of w and b are sums over rows; each block of rows writes its own partial sums. */

typedef struct ry_layernorm_grad {
    const float *x, *dy; /* [rows, n] */
    const float *w;      /* [n] */
    float *dx;           /* [rows, n], added to */
    size_t x_row, dy_row, dx_row;
    size_t rows, n;
    float eps;
    float *parts; /* [ry_layernorm_grad_blocks, 2, n] sums of dw and db of each block; written */
} ry_layernorm_grad;

enum { RY_LAYERNORM_GRAD_ROWS = 32 }; /* of a block */
#define RY_DECL_LAYERNORM_GRAD(fn) void fn(const ry_layernorm_grad *g, size_t block)

size_t ry_layernorm_grad_blocks(size_t rows);
/* dw, db += the parts of all blocks, added in their order in double. */
void ry_layernorm_grad_sum(float *dw, float *db, const float *parts, size_t n_blocks, size_t n);

/* ---- activations ----------------------------------------------------------------------------- */

/* y = f(u); y and u may be the same */
#define RY_DECL_ACTIVATION(fn) void fn(float *y, const float *u, size_t n)
/* du = dy f'(u). Also y = f(u), which shares most of the work, with the bits of the function above.
 * du or y may be dy, and y may be u. */
#define RY_DECL_ACTIVATION_GRAD(fn) \
    void fn(float *du, float *y, const float *dy, const float *u, size_t n)

/* The gate of a SwiGLU MLP, y = silu(gate) up with u = [gate, up], [2 n]: du [2 n] from dy [n].
 * Also y [n], with the bits of the kernel swiglu (kernels.h). y may be dy. */
#define RY_DECL_SWIGLU_GRAD(fn) \
    void fn(float *du, float *y, const float *dy, const float *u, size_t n)

typedef struct ry_grad_kernels {
    renyi_cpu level;
    RY_DECL_OUTER((*outer));
    RY_DECL_ATTENTION_GRAD((*attention_grad));
    RY_DECL_ATTENTION_MEAN((*attention_mean));
    RY_DECL_LAYERNORM_GRAD((*layernorm_grad));
    RY_DECL_ACTIVATION((*gelu)); /* erf form */
    RY_DECL_ACTIVATION_GRAD((*gelu_grad));
    RY_DECL_ACTIVATION((*quick_gelu));
    RY_DECL_ACTIVATION_GRAD((*quick_gelu_grad));
    RY_DECL_ACTIVATION((*gelu_tanh));
    RY_DECL_ACTIVATION_GRAD((*gelu_tanh_grad));
    RY_DECL_SWIGLU_GRAD((*swiglu_grad));
} ry_grad_kernels;

void ry_grad_kernels_init(ry_grad_kernels *k, renyi_cpu level);

/* One function per level; each writes the entries it has. */
void ry_grad_init_scalar(ry_grad_kernels *k);
void ry_grad_init_vec8(ry_grad_kernels *k);
void ry_grad_init_avx512(ry_grad_kernels *k);

#endif
