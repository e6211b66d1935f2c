/* hook.h - the interface through which a rule reads and shortens the token list inside a block.
 * The model calls it, prune/ implements it, the engine connects the two. NULL = dense, at no cost.
 *
 * A cut is linear: every token goes with a weight to one row of the new list or to none. That
 * covers dropping, fusing and merging. Attention's projection is linear too, so the model can apply
 * the cut before it and project only the rows that stay.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_HOOK_H
#define RY_HOOK_H

#include "kernels/attention/attention.h"

#include <stddef.h>
#include <stdint.h>

/* What a rule reads of a block. */
enum {
    RY_NEED_CLASS_ROW = 1u << 0, /* head-mean attention of the class token */
    RY_NEED_COLUMNS = 1u << 1,   /* a statistic of the columns of the attention: `columns` */
    RY_NEED_TOKENS = 1u << 2,    /* token rows after the attention residual: the whole projection */
    RY_NEED_POOL_ROW = 1u << 3   /* head-mean attention of the pooling head's probe to the tokens
                                    that enter the block, as the class row; not with CLASS_ROW */
};

typedef enum ry_cut_place {
    RY_CUT_NONE, /* no cut */
    RY_CUT_MID,  /* between attention and MLP */
    RY_CUT_END   /* after the MLP, decided by attention */
} ry_cut_place;

/* The length of a row that a merge makes of several tokens; all but AS_IS need RY_NEED_TOKENS. */
typedef enum ry_merged_length {
    RY_LENGTH_AS_IS,  /* that of their mean, which is shorter than they are */
    RY_LENGTH_MEAN,   /* the mean of their lengths, each counted as often as its patches */
    RY_LENGTH_LARGEST /* the largest of their lengths */
} ry_merged_length;

/* Queried once per block when the plan is made. */
typedef struct ry_block_needs {
    uint32_t what; /* RY_NEED_* */
    ry_column_spec columns;
    ry_cut_place place;
    uint32_t n_after; /* tokens after the cut */
    int adaptive;     /* n_after is an upper bound; the rule sets ry_cut.n_out for each image. Cuts
                         in later blocks are adaptive too */
    int drops;        /* the cut only drops: tokens that go have no weight in any row */
    int sizes;        /* from here on tokens stand for several patches: keep their sizes, and add
                         log_factor * log(size) to the logits of their keys in later attention */
    float log_factor;
    float logit_factor; /* with `sizes`: products of queries and keys in later blocks times this */
    ry_merged_length length;
    int any_weights;  /* rows that continue a token may have weights that do not sum to 1 */
    int anchor;       /* anchor() may add a token to the attention of this block; the images of a
                         batch then run one after the other */
    int look;         /* call work() and watch() even if place is RY_CUT_NONE */
    double macs;      /* multiply-accumulates of the rule itself, per image, ... */
    double pair_macs; /* ... and for each pair of patches that enter, in either order */
} ry_block_needs;

/* What a block shows of one image, valid during the call. */
typedef struct ry_block_view {
    uint32_t block, image;
    uint32_t n_tokens; /* N: the plan's, or fewer after an adaptive cut */
    uint32_t dim, n_heads;
    uint32_t n_prefix;      /* leading tokens that must stay: class, distillation, registers */
    const float *class_row; /* [N] with RY_NEED_CLASS_ROW or RY_NEED_POOL_ROW */
    const float *columns;   /* [N] with RY_NEED_COLUMNS */
    const float *qkv;       /* [N, 3C]: queries, keys, values, head-major in each */
    size_t qkv_row;         /* floats from one row to the next */
    const float *x;     /* [N, C] after the attention residual with RY_NEED_TOKENS, else before */
    const float *sizes; /* [N] patches each token stands for; NULL = 1 each */
} ry_block_view;

#define RY_NO_TOKEN UINT32_MAX

/* The decision, in memory of the model. The prefix keeps its rows 0 .. n_prefix-1 and weight 1. */
typedef struct ry_cut {
    uint32_t n_out;   /* the plan's n_after; an adaptive rule may lower it in its last phase, which
                         must have one tile */
    uint32_t *source; /* [n_out] the token that row r continues, or RY_NO_TOKEN for a fused one */
    uint32_t *target; /* [N] the row that token j goes to, or RY_NO_TOKEN */
    float *weight;    /* [N] its share of that row; 1 for a token that stays unchanged */
    /* For watch() only. */
    float *score;     /* [N] the scores that the decision is based on */
    uint8_t *rescued; /* [N] kept by Col-Ln although class attention had not chosen it */
} ry_cut;

enum { RY_MAX_PHASES = 8 };

typedef struct ry_token_hook {
    void (*needs)(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out);
    /* The decision is made in up to RY_MAX_PHASES phases, one after the other. tiles(): tiles per
     * image of a phase, 0 = no such phase. work(): one tile; the tiles of a phase may run at the
     * same time on any threads. */
    uint32_t (*tiles)(const void *self, uint32_t block, uint32_t phase);
    void (*work)(void *self, const ry_block_view *view, ry_cut *cut, uint32_t phase, uint32_t tile);
    /* Called once per image with the finished decision, on any thread; may be NULL. */
    void (*watch)(void *self, const ry_block_view *view, const ry_cut *cut);
    void *self;
    /* With ry_block_needs.anchor, before the block: a row [C] that is one more key in its
     * attention, or NULL for none. x: [N, C] the tokens that enter. The row must be valid during
     * the call. Class row and columns remain those of the N tokens, without the share of the
     * anchor. */
    const float *(*anchor)(void *self, uint32_t block, const float *x);
} ry_token_hook;

#endif
