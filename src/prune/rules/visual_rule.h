/* visual_rule.h - the state shared by the rules behind the tower, prumerge.c and vispruner.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_RULE_H
#define RY_VISUAL_RULE_H

#include "kernels/kernels.h"
#include "prune/rules/visual_rules.h"

/* Scratch of one thread while a row is made. */
typedef struct ry_visual_scratch {
    uint32_t *list, *order; /* [P] */
    float *near;            /* [P] */
    uint64_t *rank;         /* [2P] */
} ry_visual_scratch;

struct ry_visual_rule {
    ry_policy policy;
    uint32_t n_patches, dim; /* P, C */
    unsigned n_threads;
    ry_kernels kernels;
    void *arena;
    size_t arena_bytes;
    float *unit;    /* [P, C] keys (prumerge) or features (vispruner), each of length 1 */
    float *cosines; /* [P, P], the lower triangle */
    float *gram;    /* [threads, gram_each] scratch of the kernel */
    size_t gram_each;
    float *score;          /* [P] what ranks */
    float *weight;         /* [P] prumerge: what a token counts in a sum */
    uint32_t *order;       /* [P] by score, the best first */
    uint32_t *class_order; /* [P] by class attention, for correct */
    uint64_t *rank;        /* [2P] */
    uint8_t *taken;        /* [P] */
    uint32_t *kept;        /* [P + 1] */
    uint32_t n_kept;       /* patches among them */
    uint32_t n_rows;
    uint32_t *list, *next;      /* [P] vispruner: what is left, before and after a round */
    ry_visual_scratch *scratch; /* [threads] */
};

static inline float ry_visual_rule_cosine(const ry_visual_rule *a, uint32_t i, uint32_t j)
{
    return i > j ? a->cosines[(size_t)i * a->n_patches + j]
                 : a->cosines[(size_t)j * a->n_patches + i];
}

/* Puts `count` patches chosen by the policy's metric into kept and taken, best first (class
 * attention's before Col-Ln's). Call when scores are computed. */
void ry_visual_rule_choose(ry_visual_rule *a, uint32_t count);

/* prumerge.c: which patches stay; output row i. */
void ry_prumerge_choose(ry_visual_rule *a);
void ry_prumerge_row(const ry_visual_rule *a, const ry_visual_rule_view *v, float *row, uint32_t i,
                     const ry_visual_scratch *h);

/* vispruner.c: which patches stay. */
void ry_vispruner_choose(ry_visual_rule *a);

#endif
