/* net_state.h - the fields of a ry_net. For the files of this folder only.
 *
 * Letters as everywhere: B most images of a micro-batch, N tokens of an image before any cut, C
 * width, M width of the MLP, L blocks, K prefix tokens. The rows of all images of a pass follow
 * each other in every buffer; buffers of products have B x N rows, rounded up to whole tiles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NET_STATE_H
#define RY_NET_STATE_H

#include "kernels/grad/grad.h"
#include "model/vit/token_cut.h"
#include "prune/rules/pruner.h"
#include "train/net/net.h"

/* A linear of the model, in both directions. */
typedef struct ry_net_matrix {
    const ry_param *w, *b; /* no bias: NULL */
    const ry_param *gamma; /* [n_out] layer scale, NULL = none. Both linears have it in their
                              weights: row j of W and b times gamma[j] */
    ry_linear *ahead;      /* y = x W^T + b */
    ry_linear *back;       /* dx = dy W; NULL = not needed */
    ry_linear_op *ahead_op;
    ry_linear_op *back_op;
} ry_net_matrix;

typedef struct ry_net_norm {
    const ry_param *w, *b;
} ry_net_norm;

/* Where the weights of a fused token get their gradient from. */
typedef enum ry_net_weights {
    RY_WEIGHTS_CONSTANT,  /* they have none */
    RY_WEIGHTS_CLASS_ROW, /* class attention */
    RY_WEIGHTS_COLUMNS    /* Col-Ln scores, as shares of their sum */
} ry_net_weights;

typedef struct ry_net_block {
    ry_net_norm norm1, norm2;
    ry_net_matrix qkv, proj, fc1, fc2;
    ry_block_rows rows;     /* with the current policy; never RY_PATH_LISTED */
    ry_net_weights weights; /* of its cut */
    /* Saved by the forward pass; with checkpoint_activations shared by all blocks. */
    float *qkv_rows; /* [B N, 3C padded] */
    float *heads;    /* [B N, C padded] attention's output */
    float *y;        /* [B N, C] after attention and, if the cut is there, after the cut */
    float *u;        /* [B N, M padded] input of the MLP's activation; gated: 2M, gate and up */
    ry_cut cut;      /* the decision of its cut; each list is [B, N] */
} ry_net_block;

/* The tokens that enter a block, or leave the last. */
typedef struct ry_net_tokens {
    float *x;         /* [B N, C] */
    float *sizes;     /* [B, N] patches that tokens stand for */
    float *log_sizes; /* [B, N] */
    uint32_t *patch;  /* [B, N] which patch, or RY_NO_TOKEN */
    uint32_t facts;   /* index of the tokens whose sizes and patch are valid here: those after the
                         previous cut */
} ry_net_tokens;

/* A place between two blocks where tokens are compared with those of a teacher. */
typedef struct ry_net_tap {
    uint32_t block; /* after it */
    ry_net_norm norm;
    ry_net_matrix proj; /* C -> feature_dim */
    float *in;          /* [B N, C padded] normalized */
    float *rows;        /* [B N, feature_dim] */
    uint32_t *token;    /* [B, N] the teacher's row, or RY_NO_TOKEN */
} ry_net_tap;

/* An attention-pooling head (net_pool.c). */
typedef struct ry_net_pool {
    const ry_param *probe, *q_w, *q_b;
    ry_net_matrix kv, proj, fc1, fc2; /* kv of all tokens, the others of one row per image */
    ry_net_norm norm;
    float *query;     /* [C] */
    float *kv_rows;   /* [B N, 2C padded] */
    float *attention; /* [B, H, N] */
    float *heads;     /* [B, C padded] attention's output */
    float *x;         /* [B, C] after the projection */
    float *h;         /* [B, C padded] normalized */
    float *u, *g;     /* [B, M padded] before and after the activation */
    float *dheads;    /* [B, C padded] */
    float *dquery;    /* [B, C] */
} ry_net_pool;

struct ry_net {
    renyi_allocator al;
    ry_vit_config config;
    renyi_cpu level;
    renyi_dtype dtype;
    ry_team team;
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
    ry_net_matrix head[2];          /* the second only in a distilled model */
    ry_net_norm norm, pre_norm;     /* after the blocks; before them, or without parameters */
    ry_net_pool pool;               /* of RY_POOL_ATTENTION */
    const ry_param *pos, *token[3]; /* positions; class token, distillation token, registers */
    ry_net_block *blocks;           /* [L] */
    ry_net_tokens *tokens;          /* [L + 1] */
    ry_net_tap *taps;               /* [n_taps] */

    ry_policy policy;
    ry_pruner *pruner;    /* NULL: dense */
    ry_token_hook hook;   /* the pruner's */
    uint64_t *image_keys; /* [B] for `random` */
    uint32_t n_last;     /* images of the last forward pass; 0 = none with these weights and cuts */
    const float *branch; /* [2L, n_last] of it */
    const float *forced; /* of it */

    /* One arena. */
    void *arena;
    size_t arena_bytes;
    float *patches;          /* [B P, 3 p p] of the images */
    float *embedded;         /* [B N, C] before the LayerNorm before the blocks; NULL = none */
    float *pre;              /* [B N, C] rows before a cut after the projection, or at the end */
    float *h;                /* [B N, C padded] normalized or reduced rows */
    float *g;                /* [B N, M padded] activated rows */
    float *d[2];             /* [B N, C padded] the gradient of the stream; cuts go from one to the
                                other */
    float *dh;               /* [B N, C padded] gradient of normalized rows */
    float *dheads[2];        /* [B N, C padded] of attention's output, after a cut and before */
    float *dscaled;          /* [B N, C padded] d times the factors of stochastic depth */
    float *wide;             /* [B N, 3C or M (gated: 2M) padded] gradient of u, then of qkv */
    float *parts;            /* [row blocks, 2, C] of LayerNorm's gradients */
    float *raw;              /* [C max(C, M) + C] gradients of weights that contain layer scale */
    float *folded;           /* [threads, C max(C, M) + C] such weights before they are packed */
    float *pooled_x;         /* [B, C] mean of the patches before the norm: RY_POOL_MEAN */
    float *pooled[2];        /* [B, C padded] what each head reads; RY_POOL_CLASS_MEAN: 2C */
    float *dpooled[2];       /* the same */
    float *feature_in;       /* [B P, C padded] */
    float *features;         /* [B P, feature_dim] */
    float *dfeatures;        /* [B P, feature_dim]; with taps [B N, feature_dim] */
    uint32_t *feature_patch; /* [B, P] */
    uint32_t *prefix_rows;   /* [K] 0, 1, ... */
    float *class_row, *columns; /* [B, N] */
    double *column_parts;       /* [B, row blocks, sets, N] */
    float *dweight;             /* [B, N] gradient of the weights of fused tokens */
    float *dmean;               /* [B or threads, N, N] gradient of attention's head mean */
    float *scratch;             /* [threads, scratch_each] */
    size_t scratch_each, matrix_scratch; /* floats; where a thread's second part begins */
};

/* ---- making a net: net_params.c, net_plan.c ------------------------------------------------ */

renyi_status ry_net_make_params(ry_net *net, renyi_error *err) RENYI_CHECK;
renyi_status ry_net_make_linears(ry_net *net, renyi_error *err) RENYI_CHECK;
renyi_status ry_net_make_arena(ry_net *net, renyi_error *err) RENYI_CHECK;
void ry_net_free_linears(ry_net *net);

/* ---- helpers ------------------------------------------------------------------------------- */

/* Floats from one padded row of `width` to the next; products in bf16 take only rows without gaps.
 */
static inline size_t ry_net_row(const ry_net *net, size_t width)
{
    return net->dtype == RENYI_DTYPE_BF16 ? width : ry_linear_row(net->patch_embed.ahead, width);
}

/* Floats from what a head reads of one image to that of the next. */
static inline size_t ry_net_pooled_row(const ry_net *net)
{
    return ry_net_row(net, ry_vit_pooled_width(&net->config, net->config.pool));
}

/* Width of the first linear of an MLP. */
static inline size_t ry_net_mlp_in(const ry_net *net)
{
    return (net->config.gated ? 2 : 1) * (size_t)net->config.mlp_dim;
}

static inline size_t ry_net_outputs(const ry_net_matrix *m) { return (size_t)m->w->shape[0]; }

static inline const float *ry_net_value(const ry_net *net, const ry_param *p)
{
    return net->params.value + p->offset;
}

static inline float *ry_net_grad(const ry_net *net, const ry_param *p)
{
    return net->params.grad + p->offset;
}

/* Row k of the prefix in an array of the parameters' layout: their values or gradients. */
static inline float *ry_net_prefix(const ry_net *net, float *array, uint32_t k)
{
    const uint32_t n_class = ry_vit_class_rows(&net->config);
    if (k < n_class) return array + net->token[k]->offset;
    return array + net->token[2]->offset + (size_t)(k - n_class) * net->config.dim;
}

/* 1 if patch rows are compared after the final LayerNorm. */
static inline int ry_net_final_features(const ry_net *net)
{
    return net->feature_dim && !net->n_taps;
}

/* 1 if the last block computes all rows. */
static inline int ry_net_all_rows(const ry_net *net)
{
    return net->feature_dim || net->config.pool != RY_POOL_TOKEN;
}

/* Rows of each image after the last block: all, or only the class rows. */
static inline uint32_t ry_net_last_rows(const ry_net *net)
{
    const ry_block_rows *last = &net->blocks[net->config.n_blocks - 1].rows;
    return last->path == RY_PATH_PREFIX ? ry_vit_class_rows(&net->config) : last->out;
}

/* Rows of patches and fused tokens among them. */
static inline uint32_t ry_net_last_patches(const ry_net *net)
{
    const uint32_t rows = ry_net_last_rows(net), prefix = net->config.n_prefix;
    return rows > prefix ? rows - prefix : 0;
}

/* Floats of a matrix with layer scale and its bias: proj or fc2. */
static inline size_t ry_net_scaled_floats(const ry_net *net)
{
    const size_t C = net->config.dim, M = net->config.mlp_dim;
    return net->config.layer_scale ? C * (C > M ? C : M) + C : 0;
}

/* Sizes of the tokens of an image that enter block i (L: that leave the last); NULL = 1 each. */
static inline const float *ry_net_sizes(const ry_net *net, uint32_t i, size_t image, size_t rows)
{
    const ry_net_tokens *t = &net->tokens[net->tokens[i].facts];
    const uint32_t L = net->config.n_blocks;
    const ry_block_rows *last = &net->blocks[L - 1].rows;
    const int sized = i < L ? net->blocks[i].rows.sized : last->sized || last->needs.sizes;
    return sized ? t->sizes + image * rows : NULL;
}

#endif
