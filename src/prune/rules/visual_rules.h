/* visual_rules.h - rules that choose among the patch tokens of one image after the tower:
 * PruMerge and VisPruner. They see all patches at once and cut no block; the tower does not know
 * them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_RULES_H
#define RY_VISUAL_RULES_H

#include "kernels/attention/attention.h"
#include "prune/policy/policy_spec.h"

/* Which attention the scores come from. */
typedef struct ry_visual_rule_needs {
    int behind;  /* of the block after the last one that ran, as one head; 0 = of the last one
                  * that ran */
    int columns; /* column norms too, besides the class token's row */
    ry_column_spec spec;
} ry_visual_rule_needs;
void ry_visual_rule_needs_of(ry_visual_rule_needs *out, const ry_policy *p);

/* One image of P patches; arrays begin with the first patch. Borrowed for the call. */
typedef struct ry_visual_rule_view {
    const float *x;    /* [P, C] features */
    const float *keys; /* [P, C] of the block after, rows key_row apart, with needs.behind */
    size_t key_row;
    const float *class_row; /* [P] attention of the class token */
    const float *columns;   /* [P] norms, with needs.columns */
    float class_column;     /* the norm of the class token's own column */
} ry_visual_rule_view;

typedef struct ry_visual_rule ry_visual_rule;

typedef struct ry_visual_rule_spec {
    const ry_policy *policy; /* checked, one of these rules; copied */
    uint32_t n_patches, dim;
    unsigned n_threads;
    renyi_cpu level;
} ry_visual_rule_spec;

renyi_status ry_visual_rule_new(ry_visual_rule **out, const ry_visual_rule_spec *spec,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_visual_rule_free(ry_visual_rule *a, const renyi_allocator *al);
size_t ry_visual_rule_bytes(const ry_visual_rule *a);
uint32_t ry_visual_rule_most(const ry_visual_rule *a); /* most rows of an image */

/* A decision is a sequence of phases; the tiles of a phase may run at the same time on any
 * thread. Ask for the number of tiles when the phases before are done; 0 = no more phases.
 * rows: [P + 1, C], filled by the end. */
enum { RY_VISUAL_PHASES = 4 };
uint32_t ry_visual_rule_tiles(const ry_visual_rule *a, uint32_t phase);
void ry_visual_rule_work(ry_visual_rule *a, const ry_visual_rule_view *view, float *rows,
                         uint32_t phase, uint32_t tile, unsigned thread);

/* Of the last image, until the next. */
uint32_t ry_visual_rule_count(const ry_visual_rule *a); /* rows */
const uint32_t *
ry_visual_rule_kept(const ry_visual_rule *a); /* [rows] patches; RENYI_NONE for a fused row */
const float *
ry_visual_rule_scores(const ry_visual_rule *a); /* [P] what ranked; of correct the columns */

#endif
