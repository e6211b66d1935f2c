/* vit_plan.h - everything that a run of a Vision Transformer needs, fixed beforehand: the token
 * count of every block, every matrix product bound to its rows, one arena of activations. A run
 * then allocates nothing; only which tokens stay is decided during it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_PLAN_H
#define RY_VIT_PLAN_H

#include "model/vit/token_cut.h"

typedef struct ry_block_ops {
    ry_linear_op *qkv, *proj, *fc1, *fc2;
    ry_linear_op *pool_keys;    /* of ry_pool_row; NULL = the block's cut does not need it */
    ry_linear_op *qkv_anchored; /* qkv with one more row; NULL = the block never has an anchor */
} ry_block_ops;

/* Buffers of the cuts of a run; all NULL in a dense plan. */
typedef struct ry_vit_cuts {
    float *class_row;     /* [B, N] */
    float *columns;       /* [B, N] */
    double *column_parts; /* [B, row blocks, sets, N] */
    ry_cut cut;           /* the decision of the current block; each list is [B, N] */
    uint32_t *n_out;     /* [L] rows that adaptive cuts leave of the current image. One per block: a
                            thread may still read one while others write that of the next block */
    float *sizes[2];     /* [B, N] patches that tokens stand for, before and after a cut */
    float *log_sizes;    /* [B, N] */
    uint32_t *places[2]; /* [B, N] with rotary positions: the patch whose position a token has, or
                            RY_NO_TOKEN; before and after a cut */
} ry_vit_cuts;

/* The attention-pooling head of a run; all NULL without one. */
typedef struct ry_vit_pool {
    ry_linear_op *keys, *proj, *fc1, *fc2;
    float *logits; /* [B, N, H padded] then the probe's attention, a column for each head */
    float *means;  /* [B, H, C] tokens weighted by it */
    float *heads;  /* [B, C padded] output of attention */
} ry_vit_pool;

typedef struct ry_vit_plan {
    const ry_vit *vit;
    ry_kernels kernels;
    const ry_token_hook *hook; /* NULL = dense; borrowed */
    uint32_t max_batch;
    int one_by_one;     /* images of a batch run one after the other: a cut is adaptive, a block may
                           have an anchor, or the options ask for it */
    int has_anchors;    /* some block may have one */
    double last_macs;   /* per image, of the last run that was not stopped */
    ry_pooling pool;    /* what the output reads */
    uint32_t n_outputs; /* floats of an output */
    ry_linear_op *patch_embed;
    /* The last product is one of three: the head (or two heads), the text head on the embedding, or
     * the projection. An embedding without projection needs none of them. */
    ry_linear_op *head, *head_dist, *text_head, *projection;
    ry_block_rows *rows; /* [L] */
    ry_block_ops *ops;   /* [L] */
    ry_team team;        /* its `low` holds rows of h or wide in fewer bits */

    /* Activations, B = max_batch, N = tokens of the first block. With anchors the token lists have
     * space for one more row. */
    void *arena;
    size_t arena_bytes;
    float *x[2];     /* [B, N, C] residual stream; a cut reduces it from one to the other */
    float *h;        /* [B, N, C padded] normalized rows; attention's output */
    float *wide;     /* [B, N, 3C, M or 2M padded] at first the patches; then qkv, then reduced rows
                        of h for the projection, then the inside of the MLP */
    float *gated;    /* [B, N, M padded] inside a gated MLP; NULL = not gated */
    float *pooled_x; /* [B, pooled rows, C] what the head reads: the residual stream of the class
                        rows in the last block, or the mean of the patch rows */
    float *pooled_h; /* [B, pooled rows, C or 2C padded] the same, normalized */
    uint32_t *row_list; /* [class rows, with anchors N] 0, 1, ...: queries if not all keys are */
    uint8_t *anchored;  /* [L] whether the current image has one in this block; per block for the
                           same reason as ry_vit_cuts.n_out */
    float *logits_dist; /* [B, classes] of the second head */
    float *embedding;   /* [B, embedding padded] input of the text head */
    float *attention;   /* [threads, attention_each] scratch */
    size_t attention_each;
    ry_vit_pool pooling;
    ry_vit_cuts cuts;
} ry_vit_plan;

typedef struct ry_vit_plan_options {
    renyi_cpu level;
    const ry_token_hook *hook; /* NULL = dense */
    uint32_t max_batch;
    unsigned n_threads;
    int all_rows;   /* finish every row of the last block, for callers that read it */
    int one_by_one; /* run the images of a batch one after the other, whatever the hook needs */
    renyi_output output;
} ry_vit_plan_options;

renyi_status ry_vit_plan_new(ry_vit_plan **out, const ry_vit *vit, const ry_vit_plan_options *opt,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_vit_plan_free(ry_vit_plan *p, const renyi_allocator *al);

/* Floats from one row of `width` to the next in h and wide, as the products of the blocks need it.
 */
static inline size_t ry_vit_row(const ry_vit_plan *p, size_t width)
{
    return ry_linear_row(p->vit->blocks[0].qkv, width);
}

/* The same in pooled_h. */
static inline size_t ry_vit_pooled_row(const ry_vit_plan *p)
{
    return ry_vit_row(p, ry_vit_pooled_width(&p->vit->config, p->pool));
}

/* Multiply-accumulates per image of the matrix products that a run computes; an upper bound if a
 * cut is adaptive. */
double ry_vit_plan_macs(const ry_vit_plan *p);
double ry_vit_ends_macs(const ry_vit_plan *p); /* the patch embedding and the heads of it */
/* Of them, the patch embedding and the blocks before `block`, which a run from there saves. */
double ry_vit_macs_before(const ry_vit_plan *p, uint32_t block);

/* One call of the model. Exactly one of pixels, chw and tokens is given. */
typedef struct ry_vit_input {
    const uint8_t *pixels;   /* [n, S, S, 3], normalized through lut */
    const float (*lut)[256]; /* [3] */
    const float *chw;        /* [n, 3, S, S] */
    /* Begin at block `first`, at most ry_plain_blocks: image i is item pick[i] of tokens
     * [.., N, C], what a run of any plan of this model taps before that block. */
    const float *tokens;
    const uint32_t *pick; /* [n] */
    uint32_t first;
    uint32_t n;
    renyi_progress progress; /* after every block; may be NULL */
    void *progress_user;
    /* Called after the embedding (block = L) and after each block. Without all_rows the last block
     * may show only the prefix rows: see n_tokens. */
    void (*tap)(void *user, uint32_t block, const float *x, uint32_t n_tokens);
    void *tap_user;
    /* If the plan runs images one by one: called on the caller's thread after each image with its
     * output [n_outputs], which may be changed. */
    void (*answered)(void *user, uint32_t image, float *out);
    void *answered_user;
    /* For calibration: called with every product's input just before the product; NULL = none. x:
     * rows as in ry_linear_op_input(op). Called on the caller's thread while the others wait. */
    void (*watch)(void *user, const ry_linear_op *op, ry_extent run, const float *x);
    void *watch_user;
} ry_vit_input;

/* out: [n, n_outputs]. RENYI_ERR_ABORTED if the progress callback stopped the run. */
renyi_status ry_vit_forward(ry_vit_plan *p, const ry_vit_input *in, float *out) RENYI_CHECK;

#endif
