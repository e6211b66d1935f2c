/* visual_rules.h - rules that choose among the patch tokens of one image after the tower of a
 * LLaVA. They see all patches at once and cut no block; the tower does not know them. What each
 * rule does: docs/VISUAL_RULES.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_RULES_H
#define RY_VISUAL_RULES_H

#include "kernels/attention/attention.h"
#include "prune/policy/policy_spec.h"

/* What a rule sees besides the features. */
typedef struct ry_visual_rule_needs {
    int behind;    /* attention and keys of the block after the last one that ran, as one head */
    int class_row; /* attention of the class token, the mean over the heads of the last block that
                      ran (behind: of the block after it) */
    int columns;   /* column norms of the same attention */
    ry_column_spec spec;
    int keys;       /* keys of the last block that ran, the mean over its heads */
    int projected;  /* the rows that the projector makes of all patches */
    int draws;      /* an image key */
    int relevance;  /* of the patches to the question */
    uint32_t early; /* class row and columns of this block too; RENYI_NONE = of no other */
} ry_visual_rule_needs;
void ry_visual_rule_needs_of(ry_visual_rule_needs *out, const ry_policy *p);

/* One image of P patches; arrays begin with the first patch. Borrowed for the call. What the rule
 * does not need is NULL. */
typedef struct ry_visual_rule_view {
    const float *x;    /* [P, C] features; the class token's is the row before them */
    const float *keys; /* [P, C], with needs.keys [P, C / heads]; rows key_row floats apart */
    size_t key_row;
    const float *class_row;       /* [P] attention of the class token */
    const float *columns;         /* [P] norms */
    float class_column;           /* the norm of the class token's own column */
    const float *early_class_row; /* [P] of block needs.early */
    const float *early_columns;   /* [P] */
    const float *projected;       /* [P, lm_dim] */
    const float *relevance;       /* [P] the larger the more */
    uint64_t image_key;           /* names the image for random choices */
} ry_visual_rule_view;

typedef struct ry_visual_rule ry_visual_rule;

typedef struct ry_visual_rule_spec {
    const ry_policy *policy; /* checked, one of these rules; copied */
    uint32_t n_patches, dim;
    unsigned n_threads;
    renyi_cpu level;
    uint32_t n_heads, lm_dim;
} ry_visual_rule_spec;

renyi_status ry_visual_rule_new(ry_visual_rule **out, const ry_visual_rule_spec *spec,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_visual_rule_free(ry_visual_rule *a, const renyi_allocator *al);
/* The next images keep so many patches, 1 to P. */
void ry_visual_rule_set_count(ry_visual_rule *a, uint32_t count);
size_t ry_visual_rule_bytes(const ry_visual_rule *a);
uint32_t ry_visual_rule_most(const ry_visual_rule *a); /* most rows of an image */
double ry_visual_rule_macs(const ry_visual_rule *a);   /* multiply-accumulates of a decision */

/* A decision is a sequence of phases; the tiles of a phase may run at the same time on any
 * thread. Ask for the number of tiles when the phases before are done; 0 = nothing to do.
 * rows: [P + 1, C], filled by the end. */
enum { RY_VISUAL_PHASES = 5 };
uint32_t ry_visual_rule_tiles(const ry_visual_rule *a, uint32_t phase);
void ry_visual_rule_work(ry_visual_rule *a, const ry_visual_rule_view *view, float *rows,
                         uint32_t phase, uint32_t tile, unsigned thread);

/* Of the last image, until the next. */
uint32_t ry_visual_rule_count(const ry_visual_rule *a); /* rows */
/* [rows] the patch that each row is or continues; RENYI_NONE for a row that is of no one patch. */
const uint32_t *ry_visual_rule_kept(const ry_visual_rule *a);
/* [P] what ranked, the larger the better; of correct the columns. NULL = the rule has no scores. */
const float *ry_visual_rule_scores(const ry_visual_rule *a);

#endif
