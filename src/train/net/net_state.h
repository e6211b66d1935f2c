/* net_state.h - what stands behind a ry_net, for the files net_*.c alone.
 *
 * Letters as everywhere: B images of a micro-batch at most, N tokens of an image before any cut, C
 * width, M width of the MLP, L blocks, K prefix tokens. The rows of all images of a pass lie one
 * after the other in every buffer, n x rows of them; buffers of products have room for B x N and
 * the tile that begins there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NET_STATE_H
#define RY_NET_STATE_H

#include "base/steps.h"
#include "kernels/grad/grad.h"
#include "kernels/kernels.h"
#include "model/vit/vit_rows.h"
#include "prune/rules/pruner.h"
#include "train/net/net.h"

/* A linear of the model, both ways. */
typedef struct ry_net_matrix {
    const ry_param *w, *b;
    ry_linear *ahead; /* y = x W^T + b */
    ry_linear *back;  /* dx = dy W; NULL: nobody asks */
    ry_linear_op *ahead_op;
    ry_linear_op *back_op;
} ry_net_matrix;

typedef struct ry_net_norm {
    const ry_param *w, *b;
} ry_net_norm;

/* What becomes of the weights of a fused token in the backward pass. */
typedef enum ry_net_weights {
    RY_WEIGHTS_CONSTANT,
    RY_WEIGHTS_CLASS_ROW, /* class attention */
    RY_WEIGHTS_COLUMNS    /* Col-Ln scores, as shares of their sum */
} ry_net_weights;

typedef struct ry_net_block {
    ry_net_norm norm1, norm2;
    ry_net_matrix qkv, proj, fc1, fc2;
    ry_block_rows rows;     /* with the cuts of now; never RY_WAY_LISTED */
    ry_net_weights weights; /* of its cut */
    /* Saved by the forward pass; with checkpoint_activations one memory for all blocks. */
    float *qkv_rows; /* [B N, 3C padded] */
    float *heads;    /* [B N, C padded] attention's output */
    float *y;        /* [B N, C] after attention and, if the cut is there, after the cut */
    float *u;        /* [B N, M padded] the MLP's inside before its activation */
    /* The decision of its cut (model/common/hook.h), each [B, N] */
    uint32_t *source, *target;
    float *weight, *score;
} ry_net_block;

/* The tokens that enter a block, or leave the last. */
typedef struct ry_net_tokens {
    float *x;         /* [B N, C] */
    float *sizes;     /* [B, N] each image's after the other: patches that tokens stand for */
    float *log_sizes; /* [B, N] */
    uint32_t *patch;  /* [B, N] which patch, or RY_NO_TOKEN */
    uint32_t facts;   /* index of the tokens whose sizes and patch these are: those after the last
                         cut before */
} ry_net_tokens;

/* A place between two blocks where tokens are compared with a teacher's. */
typedef struct ry_net_tap {
    uint32_t block; /* after it */
    ry_net_norm norm;
    ry_net_matrix proj; /* C -> feature_dim */
    float *in;          /* [B N, C padded] normalised */
    float *rows;        /* [B N, feature_dim] */
    uint32_t *token;    /* [B, N] the teacher's row, or RY_NO_TOKEN */
} ry_net_tap;

struct ry_net {
    renyi_allocator al;
    ry_vit_config config;
    renyi_cpu level;
    renyi_dtype dtype;
    unsigned n_threads;
    uint32_t max_batch, n_patches, n_tokens; /* B, P, N */
    size_t max_rows;                         /* B x N and what fills the last tile of a product */
    uint32_t feature_dim, feature_prefix, n_taps;
    int direct;
    int checkpoint_activations;
    ry_kernels kernels;
    ry_grad_kernels grad;
    RY_DECL_ACTIVATION((*activation));
    RY_DECL_ACTIVATION_GRAD((*activation_grad));

    ry_params params;
    ry_net_matrix patch_embed, feature;
    ry_net_matrix head[2]; /* the second only in a distilled model */
    ry_net_norm norm;
    const ry_param *pos, *token[2]; /* positions; class and distillation token */
    ry_net_block *blocks;           /* [L] */
    ry_net_tokens *tokens;          /* [L + 1] */
    ry_net_tap *taps;               /* [n_taps] */

    ry_policy policy;
    ry_pruner *pruner;    /* NULL: dense */
    ry_token_hook hook;   /* the pruner's */
    uint64_t *image_keys; /* [B] for `random` */
    uint32_t n_last;      /* images of the last forward pass; 0 = none that fits */
    const float *branch;  /* [2L, n_last] of it */
    const float *forced;  /* of it */

    /* One arena. */
    void *arena;
    size_t arena_bytes;
    float *patches;          /* [B P, 3 p p] the pictures' */
    float *pre;              /* [B N, C] rows before a cut after the projection, or at the end */
    float *h;                /* [B N, C padded] normalised or reduced rows */
    float *g;                /* [B N, M padded] activated rows */
    float *d[2];             /* [B N, C padded] the gradient of the stream; cuts go from one to the
                                other */
    float *dh;               /* [B N, C padded] gradient of normalised rows */
    float *dheads[2];        /* [B N, C padded] of attention's output, after a cut and before */
    float *dscaled;          /* [B N, C padded] d times the factors of stochastic depth */
    float *wide;             /* [B N, 3C or M padded] gradient of u, then of qkv */
    float *parts;            /* [row blocks, 2, C] of LayerNorm's gradients */
    void *low;               /* rows in fewer bits, for products that do not take floats */
    float *pooled_x;         /* [B, C] mean of the patches before the norm: RY_POOL_MEAN */
    float *pooled[2];        /* [B, C padded] what each head reads */
    float *dpooled[2];       /* [B, C padded] */
    float *feature_in;       /* [B P, C padded] */
    float *features;         /* [B P, feature_dim] */
    float *dfeatures;        /* [B P, feature_dim]; with taps [B N, feature_dim] */
    uint32_t *feature_patch; /* [B, P] */
    uint32_t *prefix_rows;   /* [K] 0, 1, ... */
    float *class_row, *columns; /* [B, N] */
    double *column_parts;       /* [B, row blocks, sets, N] */
    uint8_t *rescued;           /* [B, N] */
    float *dweight;             /* [B, N] gradient of a fused token's weights */
    float *dmean;               /* [B or threads, N, N] gradient of attention's head mean */
    float *scratch;             /* [threads, scratch_each] */
    size_t scratch_each, matrix_scratch; /* floats; where a thread's second part begins */
    ry_ticket *tickets;                  /* [n_tickets] */
    size_t n_tickets;
};

/* ---- parts of making one, in net_params.c, net_plan.c ---------------------------------------- */

renyi_status ry_net_make_params(ry_net *net, renyi_error *err) RENYI_CHECK;
renyi_status ry_net_make_linears(ry_net *net, renyi_error *err) RENYI_CHECK;
renyi_status ry_net_make_arena(ry_net *net, renyi_error *err) RENYI_CHECK;
void ry_net_free_linears(ry_net *net);

/* ---- small facts --------------------------------------------------------------------------- */

/* Floats from one padded row of `width` to the next. */
static inline size_t ry_net_row(const ry_net *net, size_t width)
{
    return ry_linear_row(net->patch_embed.ahead, width);
}

static inline const float *ry_net_value(const ry_net *net, const ry_param *p)
{
    return net->params.value + p->offset;
}

static inline float *ry_net_grad(const ry_net *net, const ry_param *p)
{
    return net->params.grad + p->offset;
}

/* Are patch rows compared after the final LayerNorm? */
static inline int ry_net_final_features(const ry_net *net)
{
    return net->feature_dim && !net->n_taps;
}

/* Does the last block go through all rows? */
static inline int ry_net_all_rows(const ry_net *net)
{
    return net->feature_dim || net->config.pool != RY_POOL_TOKEN;
}

/* Rows of each image after the last block. */
static inline uint32_t ry_net_last_rows(const ry_net *net)
{
    const ry_block_rows *last = &net->blocks[net->config.n_blocks - 1].rows;
    return last->way == RY_WAY_PREFIX ? net->config.n_prefix : last->out;
}

/* Sizes of the tokens that enter block i (L: that leave the last) of an image; NULL = 1 each. */
static inline const float *ry_net_sizes(const ry_net *net, uint32_t i, size_t image, size_t rows)
{
    const ry_net_tokens *t = &net->tokens[net->tokens[i].facts];
    const uint32_t L = net->config.n_blocks;
    const ry_block_rows *last = &net->blocks[L - 1].rows;
    const int sized = i < L ? net->blocks[i].rows.sized : last->sized || last->needs.sizes;
    return sized ? t->sizes + image * rows : NULL;
}

#endif
