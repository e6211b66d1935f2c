/* scores.h - the scores of every patch at every block of an unpruned run, by several metrics.
 * One forward pass serves all metrics: the columns that a metric needs are computed from the
 * queries and keys of the run, by the kernels that a cut would use.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SCORES_H
#define RY_SCORES_H

#include "model/common/hook.h"
#include "prune/policy/policy_spec.h"

typedef struct ry_scores ry_scores;

enum { RY_MAX_METRICS = 64 };

typedef struct ry_scores_options {
    uint32_t n_metrics;         /* 1 to RY_MAX_METRICS */
    const char *const *metrics; /* [n_metrics] the text after metric= in a policy: "col n=4" */
    double keep;                /* share of the patches that a cut would keep, (0, 1] */
    uint32_t max_batch, n_threads;
    /* Called with every block of every image, from any thread; the view has queries and keys. May
     * be NULL. */
    void (*watch)(void *user, const ry_block_view *view);
    void *user;
} ry_scores_options;

/* Parses a metric's text: its short name (as ry_scores_name), and a policy of one cut by it.
 * `correct` is refused: it combines two rankings and has no scores of its own. */
renyi_status ry_scores_read(char name[RY_MAX_POLICY_TEXT], ry_policy *policy, const renyi_model *m,
                            const char *given, renyi_error *err) RENYI_CHECK;

/* Borrows m. */
renyi_status ry_scores_new(ry_scores **out, const renyi_model *m, const ry_scores_options *opt,
                           renyi_error *err) RENYI_CHECK;
void ry_scores_free(ry_scores *s);

/* n <= max_batch images; exactly one of pixels [n, S, S, 3] and chw [n, 3, S, S]. */
void ry_scores_run(ry_scores *s, const uint8_t *pixels, const float *chw, uint32_t n);

/* [n_patches] scores of the last run, in raster order; larger is better. */
const float *ry_scores_get(const ry_scores *s, uint32_t image, uint32_t metric, uint32_t block);

/* [n_classes] logits of the last run; of a model without classifier its embedding. */
const float *ry_scores_logits(const ry_scores *s, uint32_t image);

/* How many patches a cut at `keep` leaves. */
uint32_t ry_scores_kept(const ry_scores *s);

/* Short name without defaults: "col n=4". Borrowed until ry_scores_free. */
const char *ry_scores_name(const ry_scores *s, uint32_t metric);

#endif
