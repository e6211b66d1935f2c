/* sparsevlm.h - SparseVLM (Zhang et al. 2024): the best of the rows that a cut drops are clustered,
 * and each cluster becomes one row.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SPARSEVLM_H
#define RY_SPARSEVLM_H

#include "base/alloc.h"
#include "base/checked.h"
#include "model/common/llama_cuts.h"
#include "prune/policy/policy_spec.h"

/* Memory to cluster m rows into c. */
typedef struct ry_recycler {
    uint32_t most, most_rows; /* m and c at most; 0 = nothing is ever merged */
    float *distance;          /* [m (m - 1) / 2] of each pair */
    double *density, *worth;  /* [m] */
    float *nearness;          /* [m] */
    uint32_t *order;          /* [m] */
    uint64_t *rank;           /* [2m] */
    uint32_t *centre;         /* [c] */
    uint32_t *cluster;        /* [m] */
    float *merged;            /* [c, dim] */
} ry_recycler;

/* Sets the sizes for a policy and at most V visual rows, and takes the memory. */
void ry_recycler_lay_out(ry_recycler *h, ry_arena *a, const ry_policy *p, uint32_t V, size_t dim);

/* dropped: [n_dropped] indices of the visual rows that go, best score first. Fills the merged rows
 * of the choice and adds to its cost. */
void ry_recycle(const ry_recycler *h, const ry_policy *p, const ry_llama_view *v,
                const uint32_t *dropped, uint32_t n_dropped, ry_llama_choice *choice);

#endif
