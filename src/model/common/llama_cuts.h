/* llama_cuts.h - cuts of a prefill: between two layers some of the visual rows are dropped. A cut
 * says what it must see of a layer, and a function of the caller chooses the rows that stay; it may
 * add rows that others were merged into.
 *
 * Rows are numbered from 0 in the order in which the sequence was read, and keep their numbers. The
 * layers between two cuts are a stage; all layers of a stage have the same rows in their caches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAMA_CUTS_H
#define RY_LLAMA_CUTS_H

#include <stddef.h>
#include <stdint.h>

enum { RY_LLAMA_MAX_CUTS = 64 };

/* Whose attention makes the score of a visual row. */
typedef enum ry_llama_queries {
    RY_QUERIES_NONE,   /* no scores */
    RY_QUERIES_LAST,   /* the last row */
    RY_QUERIES_TEXT,   /* the rows after the visual ones */
    RY_QUERIES_RATERS, /* those of them that the image speaks of (llama_raters.c) */
    RY_QUERIES_ALL     /* all rows; a row sees those before it and itself */
} ry_llama_queries;

typedef struct ry_llama_cut {
    uint32_t layer; /* the first that dropped rows do not enter; 1 to L-1 */
    uint32_t look; /* the layer whose attention and keys are seen: layer - 1, or layer itself, which
                      then is begun with all rows before the cut */
    ry_llama_queries queries;
    double order;  /* a score is the Ln norm of a column of the attention, averaged over the heads;
                      n >= 1 or INFINITY; of one row for every n the same */
    int key_sizes; /* the L1 norms of the keys are seen too */
} ry_llama_cut;

/* What a cut sees: n rows of which the visual ones begin at `first`. */
typedef struct ry_llama_view {
    uint32_t cut; /* index */
    uint32_t n, first, n_visual;
    const uint32_t *place;  /* [n_visual] index among the visual rows that were read; RENYI_NONE =
                               a merged row, which are the last ones */
    const float *score;     /* [n_visual], or NULL */
    const float *key_sizes; /* [n], or NULL */
    const float *x;         /* [n, dim] the residual stream */
    size_t dim;
    const float *norm; /* [dim] weights of the model's last RMSNorm */
    double norm_eps;
} ry_llama_view;

/* What becomes of the visual rows: those that stay, then the merged ones. Together they are at most
 * n_visual. */
typedef struct ry_llama_choice {
    uint32_t *kept;            /* [n_kept] ascending indices below n_visual; memory of the caller */
    uint32_t n_kept, n_merged; /* n_kept >= 1 */
    const float *merged;       /* [n_merged, dim] */
    double macs;               /* multiply-accumulates of the choice that count as its cost */
} ry_llama_choice;

typedef void (*ry_llama_choose)(void *self, const ry_llama_view *view, ry_llama_choice *choice);

typedef struct ry_llama_cuts {
    uint32_t n;
    ry_llama_cut cut[RY_LLAMA_MAX_CUTS]; /* ascending layers */
    int renumbers; /* rows have consecutive positions in each stage; else their numbers */
    ry_llama_choose choose;
    void *self;
} ry_llama_cuts;

#endif
