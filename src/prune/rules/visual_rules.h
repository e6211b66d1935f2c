/* visual_rules.h - rules that choose among the patch tokens of one picture when the tower is done:
 * PruMerge and VisPruner. They see all patches at once and cut no block, so a run of the tower
 * knows nothing of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISUAL_RULES_H
#define RY_VISUAL_RULES_H

#include "kernels/attention/attention.h"
#include "prune/policy/policy_spec.h"

/* Which attention the scores come from. */
typedef struct ry_after_needs {
    int behind;  /* of the block behind those that were run, as one head; 0 = of the last of them */
    int columns; /* column norms too, besides the class token's row */
    ry_column_spec spec;
} ry_after_needs;
void ry_after_needs_of(ry_after_needs *out, const ry_policy *p);

/* A picture of P patches; rows of all arrays begin with the first patch. Borrowed for the call. */
typedef struct ry_after_view {
    const float *x;    /* [P, C] features */
    const float *keys; /* [P, C] of the block behind, rows key_row apart, if it was looked at */
    size_t key_row;
    const float *class_row; /* [P] attention that the class token pays */
    const float *columns;   /* [P] norms, with needs.columns */
    float class_column;     /* the norm of the class token's own column */
} ry_after_view;

typedef struct ry_after ry_after;

typedef struct ry_after_spec {
    const ry_policy *policy; /* checked, one of these rules; copied */
    uint32_t n_patches, dim;
    unsigned n_threads;
    renyi_cpu level;
} ry_after_spec;

renyi_status ry_after_new(ry_after **out, const ry_after_spec *spec, const renyi_allocator *al,
                          renyi_error *err) RENYI_CHECK;
void ry_after_free(ry_after *a, const renyi_allocator *al);
size_t ry_after_bytes(const ry_after *a);
uint32_t ry_after_most(const ry_after *a); /* rows that a picture may give */

/* The decision is made in phases, one after the other, each of so many tiles that may run at the
 * same time on any thread; asked when the phases before are done. 0 tiles = that was the last.
 * rows: [P + 1, C], filled by the end. */
enum { RY_AFTER_PHASES = 4 };
uint32_t ry_after_tiles(const ry_after *a, uint32_t phase);
void ry_after_work(ry_after *a, const ry_after_view *view, float *rows, uint32_t phase,
                   uint32_t tile, unsigned thread);

/* Of the last picture, until the next. */
uint32_t ry_after_count(const ry_after *a);       /* rows */
const uint32_t *ry_after_kept(const ry_after *a); /* [rows] patches; RENYI_NONE of a fused row */
const float *ry_after_scores(const ry_after *a);  /* [P] what ranked; of correct the columns */

#endif
