/* visual_rule.h - the interface of a rule behind the tower: the table of functions that each one
 * fills, and the state that they share. A new rule is a new file with one such table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_RULE_H
#define RY_VISUAL_RULE_H

#include "kernels/kernels.h"
#include "prune/rules/visual_rules.h"

/* What a rule reads; bits of ry_visual_ops.reads. */
enum {
    RY_READS_SCORES = 1u << 0, /* the class row or the columns, as the metric says */
    RY_READS_BEHIND = 1u << 1, /* ... of the block behind the tower, and its keys */
    RY_READS_KEYS = 1u << 2,
    RY_READS_PROJECTED = 1u << 3,
    RY_READS_EARLY = 1u << 4 /* the same scores of the policy's block */
};

/* The rows of which the cosines of all pairs are computed before a choice. */
typedef enum ry_visual_pairs {
    RY_PAIRS_NONE,
    RY_PAIRS_KEYS,
    RY_PAIRS_FEATURES,
    RY_PAIRS_CENTRED, /* features minus their mean */
    RY_PAIRS_PROJECTED
} ry_visual_pairs;

/* Scratch of one thread while a row is made. */
typedef struct ry_visual_scratch {
    uint32_t *list, *order; /* [P] */
    float *near;            /* [P] */
    uint64_t *rank;         /* [2P] */
} ry_visual_scratch;

typedef struct ry_visual_ops {
    uint32_t reads;
    ry_visual_pairs pairs;
    int has_scores; /* fills `score` */
    /* Fills kept, n_kept and n_rows. */
    void (*choose)(ry_visual_rule *a, const ry_visual_rule_view *v);
    /* Output row i; NULL = the features of patch kept[i]. */
    void (*row)(const ry_visual_rule *a, const ry_visual_rule_view *v, float *row, uint32_t i,
                const ry_visual_scratch *h);
    double (*macs)(const ry_visual_rule *a); /* besides the cosines; NULL = none that count */
} ry_visual_ops;

struct ry_visual_rule {
    ry_policy policy;
    const ry_visual_ops *ops;
    uint32_t n_patches, dim; /* P, C */
    uint32_t grid;           /* patches a side; P = grid * grid where a rule needs it */
    uint32_t n_factors;      /* rows of `factors` */
    uint32_t pair_dim;       /* floats of a row whose cosines are computed; 0 = none */
    unsigned n_threads;
    ry_kernels kernels;
    void *arena;
    size_t arena_bytes;
    float *unit;    /* [P, pair_dim] those rows, each of length 1 */
    float *cosines; /* [P, P], the lower triangle */
    float *mean;    /* [pair_dim] of those rows; 0 if they are not centred */
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
    uint32_t *list, *next;      /* [P] lists of a rule's own */
    float *near;                /* [P] numbers of a rule's own */
    double *spread;             /* [P] cdpruner: what is new in each patch */
    double *factors;            /* [rows, P] cdpruner: of its Cholesky factor */
    ry_visual_scratch *scratch; /* [threads] */
};

static inline float ry_visual_rule_cosine(const ry_visual_rule *a, uint32_t i, uint32_t j)
{
    return i > j ? a->cosines[(size_t)i * a->n_patches + j]
                 : a->cosines[(size_t)j * a->n_patches + i];
}

/* Scores of the policy's metric and their order: class_row, or columns divided by `sum`. */
void ry_visual_rule_score(ry_visual_rule *a, const float *class_row, const float *columns,
                          double sum);

/* Puts `count` patches chosen by the policy's metric into kept and taken, best first (class
 * attention's before Col-Ln's). Call when scores are computed. */
void ry_visual_rule_choose(ry_visual_rule *a, uint32_t count);

/* All taken patches become the rows, in raster order. */
void ry_visual_rule_keep_taken(ry_visual_rule *a);

extern const ry_visual_ops ry_visual_prumerge, ry_visual_vispruner, ry_visual_visionzip,
    ry_visual_divprune, ry_visual_hiprune, ry_visual_mosaic, ry_visual_cdpruner, ry_visual_random,
    ry_visual_uniform, ry_visual_pool;

#endif
