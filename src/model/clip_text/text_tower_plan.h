/* text_tower_plan.h - runs texts through a text tower: how texts are packed into a pass, and
 * the plan: products bound to the most rows they may get, one arena of activations.
 *
 * A pass is a list of tokens. With causal attention (CLIP) a token depends only on the tokens
 * before it. So padding is left out, and the common beginning of two texts is in the list once: a
 * thousand class names in one template share the template's first words. Without it (SigLIP) every
 * text is there as a whole, with its padding.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEXT_TOWER_PLAN_H
#define RY_TEXT_TOWER_PLAN_H

#include "model/clip_text/text_tower.h"
#include "model/vit/vit_plan.h" /* ry_block_ops */

/* ---- packing ------------------------------------------------------------------------------- */

/* A text from the caller. */
typedef struct ry_text_line {
    const int32_t *ids; /* [length]; borrowed */
    uint32_t length;    /* at least 1 */
    uint32_t pool;      /* the token whose row is the result; the last if attention is causal */
    uint32_t index;     /* row of its result */
} ry_text_line;

/* A text in a pass. */
typedef struct ry_text_span {
    uint32_t length; /* tokens */
    uint32_t shared; /* leading tokens that the text before it has computed */
    uint32_t pool;
    uint32_t index;
} ry_text_span;

/* Texts that are computed at the same time. */
typedef struct ry_text_pass {
    uint32_t n_rows, n_texts;
    int sees_all;               /* no text shares tokens with another */
    uint32_t max_rows, context; /* R: most rows, and most texts; most tokens of a text */
    int32_t *ids;               /* [R] of each row */
    uint32_t *positions;        /* [R] in its text */
    ry_text_span *texts;        /* [R] */
    uint32_t *paths;            /* [R, context] rows of each text */
} ry_text_pass;

/* Sorts texts so that those with a common beginning are neighbours. The result does not depend on
 * the order before. */
void ry_text_sort(ry_text_line *lines, size_t n);

/* Fills the pass with the first of n sorted texts; returns how many fit, at least one. */
size_t ry_text_pack(ry_text_pass *p, const ry_text_line *lines, size_t n);

/* ---- plan ---------------------------------------------------------------------------------- */

typedef struct ry_text_plan {
    const ry_text *text;
    ry_kernels kernels;
    uint32_t max_tokens; /* R: rows of a pass, and texts */
    ry_block_ops *ops;   /* [L] */
    ry_linear_op *projection;
    ry_team team;

    void *arena;
    size_t arena_bytes;
    float *x;          /* [R, C] residual stream */
    float *h;          /* [R, C padded] normalized rows; attention's output */
    float *wide;       /* [R, 3C or M padded] qkv, then the inside of the MLP */
    float *pooled_x;   /* [R, C] the residual stream of the texts' pooled tokens */
    float *pooled_h;   /* [R, C padded] the same, normalized */
    float *embeddings; /* [R, embed_dim] */
    float *attention;  /* [threads, attention_each] scratch */
    size_t attention_each;
    ry_text_pass pass; /* the current texts */
} ry_text_plan;

typedef struct ry_text_plan_options {
    renyi_cpu level;
    uint32_t max_tokens; /* at least the tower's context */
    unsigned n_threads;
} ry_text_plan_options;

renyi_status ry_text_plan_new(ry_text_plan **out, const ry_text *text,
                              const ry_text_plan_options *opt, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
void ry_text_plan_free(ry_text_plan *p, const renyi_allocator *al);

/* Floats from one row of `width` to the next in h, wide and pooled_h. */
static inline size_t ry_text_row(const ry_text_plan *p, size_t width)
{
    return ry_linear_row(p->text->blocks[0].qkv, width);
}

/* Computes the texts of p->pass. out: row `index` of [.., embed_dim] for each of them. */
void ry_text_forward(ry_text_plan *p, float *out);

#endif
