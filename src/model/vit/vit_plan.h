/* vit_plan.h - everything a run of a Vision Transformer needs, fixed beforehand: the token count of
 * every block, every matrix product bound to its rows, one arena of activations. A run then
 * allocates nothing and makes no decision but which tokens stay.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIT_PLAN_H
#define RY_VIT_PLAN_H

#include "base/steps.h"
#include "kernels/kernels.h"
#include "model/vit/vit_rows.h"

/* Steps of a block: eleven of its own, four to watch, an anchor, and those of a cut (vit_cut.c).
 * Before the blocks: patches and their product (two steps with a watcher, three if it converted),
 * LayerNorm, a report. After them: pooling (two), LayerNorm, two products, and one for what joins
 * them. */
enum {
    RY_MAX_PHASES = 8,
    RY_STEPS_PER_BLOCK = 11 + 4 + 1 + 3 + RY_MAX_PHASES,
    RY_STEPS_AT_ENDS = 1 + 3 + 1 + 1 + 2 + 1 + 2 * 3 + 1
};

typedef struct ry_block_ops {
    ry_linear_op *qkv, *proj, *fc1, *fc2;
    ry_linear_op *qkv_anchored; /* qkv of one row more; NULL = the block never has an anchor */
} ry_block_ops;

/* What the cuts of a run are made of; all NULL in a dense plan. */
typedef struct ry_vit_cuts {
    float *class_row;     /* [B, N] */
    float *columns;       /* [B, N] */
    double *column_parts; /* [B, row blocks, sets, N] */
    uint32_t *source;     /* [B, N] decisions: hook.h, ry_cut */
    uint32_t *target;     /* [B, N] */
    float *weight;        /* [B, N] */
    float *score;         /* [B, N] */
    uint8_t *rescued;     /* [B, N] */
    uint32_t *n_out;      /* [L] rows that adaptive cuts leave of the image at work; one for each
                             block, since a thread may still be reading it when others are in the next */
    float *sizes[2];      /* [B, N] patches that tokens stand for, before and after a cut */
    float *log_sizes;     /* [B, N] */
} ry_vit_cuts;

typedef struct ry_vit_plan {
    const ry_vit *vit;
    ry_kernels kernels;
    const ry_token_hook *hook; /* NULL = dense; borrowed */
    uint32_t max_batch;
    unsigned n_threads;
    int one_by_one;     /* images of a batch run one after the other: a cut is adaptive, a block may
                           have an anchor, or somebody asked for it */
    int has_anchors;    /* some block may have one */
    double last_macs;   /* per image, of the last run that was not stopped */
    uint32_t n_outputs; /* floats of an answer */
    ry_linear_op *patch_embed;
    /* A run ends with one of three: the head (or two), the words on the embedding, or nothing more
     * than the embedding, which may be projected. */
    ry_linear_op *head, *head_dist, *words, *projection;
    ry_block_rows *rows; /* [L] */
    ry_block_ops *ops;   /* [L] */
    size_t n_tickets;

    /* Activations, B = max_batch, N = tokens of the first block. With anchors the lists of tokens
     * have room for one row more. */
    void *arena;
    size_t arena_bytes;
    float *x[2];     /* [B, N, C] residual stream; a cut reduces it from one to the other */
    float *h;        /* [B, N, C padded] normalised rows; attention's output */
    float *wide;     /* [B, N, 3C or M padded] qkv, then reduced rows of h for the projection, then
                        the MLP's inside; at first the patches */
    void *low;       /* rows of h or wide in fewer bits, for products that do not take floats */
    float *pooled_x; /* [B, pooled rows, C] what the head reads: the residual stream of the prefix
                        rows in the last block, or the mean of the patch rows */
    float *pooled_h; /* [B, pooled rows, C padded] the same, normalised */
    uint32_t
        *row_list; /* [n_prefix, with anchors N] 0, 1, ...: queries when they are not all keys */
    uint8_t *anchored;  /* [L] has the image at work one in this block; as ry_vit_cuts.n_out */
    float *logits_dist; /* [B, classes] of the second head */
    float *embedding;   /* [B, embedding padded] that meets the words */
    float *attention;   /* [threads, attention_each] scratch */
    size_t attention_each;
    ry_vit_cuts cuts;
    ry_ticket *tickets; /* [n_tickets] */
} ry_vit_plan;

typedef struct ry_vit_plan_options {
    renyi_cpu level;
    const ry_token_hook *hook; /* NULL = dense */
    uint32_t max_batch;
    unsigned n_threads;
    int all_rows;   /* finish every row of the last block, for those who look at it */
    int one_by_one; /* images of a batch one after the other, whatever the hook says */
    renyi_output output;
} ry_vit_plan_options;

renyi_status ry_vit_plan_new(ry_vit_plan **out, const ry_vit *vit, const ry_vit_plan_options *opt,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_vit_plan_free(ry_vit_plan *p, const renyi_allocator *al);

/* Floats from one row of `width` to the next in h and wide. */
static inline size_t ry_vit_row(const ry_vit_plan *p, size_t width)
{
    return ry_linear_row(p->vit->patch_embed, width);
}

/* Multiply-accumulates of the matrix products that a run really does, per image; at most, if a cut
 * is adaptive. */
double ry_vit_plan_macs(const ry_vit_plan *p);
double ry_vit_ends_macs(const ry_vit_plan *p); /* of the patch embedding and the heads among them */

/* One call of the model. Exactly one of pixels and chw is given. */
typedef struct ry_vit_input {
    const uint8_t *pixels;   /* [n, S, S, 3], normalised through lut */
    const float (*lut)[256]; /* [3] */
    const float *chw;        /* [n, 3, S, S] */
    uint32_t n;
    renyi_progress progress; /* after every block; may be NULL */
    void *progress_user;
    /* Called after the embedding (block = L) and after each block. Without all_rows the last block
     * may have no more to show than the prefix: n_tokens says it. */
    void (*tap)(void *user, uint32_t block, const float *x, uint32_t n_tokens);
    void *tap_user;
    /* Of a plan that runs images one by one: called by the caller's thread when one is done, with
     * its answer [n_outputs], which may be changed. */
    void (*answered)(void *user, uint32_t image, float *out);
    void *answered_user;
    /* For calibration: every product's input, just before it is multiplied; NULL = none. x: rows
     * as ry_linear_op_input(op) says. Called by the caller's thread while the others wait. */
    void (*watch)(void *user, const ry_linear_op *op, ry_extent run, const float *x);
    void *watch_user;
} ry_vit_input;

/* out: [n, n_outputs]. RENYI_ERR_ABORTED when the progress callback said so. */
renyi_status ry_vit_forward(ry_vit_plan *p, const ry_vit_input *in, float *out) RENYI_CHECK;

#endif
