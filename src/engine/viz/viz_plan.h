/* viz_plan.h - the struct behind a renyi_viz: the lists of its options, checked and owned, and the
 * functions that fill a result.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIZ_PLAN_H
#define RY_VIZ_PLAN_H

#include "base/buffer.h"
#include "engine/core/policy_api.h"
#include "engine/viz/scores.h"
#include "renyi/viz.h"

/* One metric that the dense run scores. */
typedef struct ry_viz_metric {
    const char *name, *label;
    double order;
} ry_viz_metric;

/* One policy to run. */
typedef struct ry_viz_policy {
    ry_policy policy;         /* checked for the model */
    const char *text, *label; /* the policy in full, and its name for people */
    uint32_t metric, norm;    /* index in the metrics, in the norms, or RENYI_NONE */
    double keep;              /* of the sweep, else NaN */
    uint32_t merges, adaptive;
    const double *macs; /* [n_blocks + 1] from the input to the end of each block; the last includes
                           the head */
} ry_viz_policy;

struct renyi_viz {
    const renyi_model *model; /* borrowed */
    renyi_allocator al;
    ry_pool pool; /* memory of all lists below */
    uint32_t n_threads, n_top, time;
    renyi_progress progress; /* or NULL */
    void *progress_user;
    uint32_t n_layers, *layers;
    uint32_t n_keeps, *kept;
    double *keeps;
    ry_viz_metric *scored; /* [n_scored] of the dense run, each once: the metrics come first */
    uint32_t n_scored, n_metrics;
    uint32_t n_norms, *norms; /* [n_norms] indices in scored */
    uint32_t liked;           /* index in scored of the metric that chooses the default token */
    uint32_t n_rows, n_sweep; /* policies: the dense one, then rows, then the sweep */
    ry_viz_policy *policies;  /* [1 + n_rows + n_sweep] */
    const char **class_names; /* [n_classes] */
    ry_scores *scores;        /* the dense run */
    uint32_t attention;
    int32_t query, token; /* token: -1 = the best of `liked` in the last layer */
    float *seen;          /* [n_layers, N, 2C] queries and keys of a run, with attention */
};

/* ---- making, viz_options.c, viz_policies.c ---- */

/* Everything but the policies and the dense run. */
renyi_status ry_viz_read_options(renyi_viz *v, const renyi_viz_options *o,
                                 renyi_error *err) RENYI_CHECK;
renyi_status ry_viz_read_policies(renyi_viz *v, const renyi_viz_options *o,
                                  renyi_error *err) RENYI_CHECK;

/* ---- filling a result; memory comes from its pool ---- */

/* viz_dense.c: metrics, norms and keep rates from the scores of the run. */
renyi_status ry_viz_fill_dense(const renyi_viz *v, renyi_viz_result *r, ry_pool *pool,
                               renyi_error *err) RENYI_CHECK;

/* viz_dense.c: copies queries and keys of a block into v->seen, if its layer is shown; after the
 * run, rows and columns of the attention. */
void ry_viz_watch(void *viz, const ry_block_view *view);
renyi_status ry_viz_fill_attention(const renyi_viz *v, renyi_viz_result *r, ry_pool *pool,
                                   renyi_error *err) RENYI_CHECK;

/* viz_rows.c: the best classes of [n_classes] logits, and the cost of the policy. */
renyi_status ry_viz_fill_answer(const renyi_viz *v, const ry_viz_policy *policy,
                                const float *logits, double ms, renyi_viz_answer *out,
                                ry_pool *pool, renyi_error *err) RENYI_CHECK;

/* viz_rows.c: runs the policies; the dense one too, if it is to be timed. */
renyi_status ry_viz_fill_rows(const renyi_viz *v, renyi_viz_result *r, ry_pool *pool,
                              renyi_error *err) RENYI_CHECK;

#endif
