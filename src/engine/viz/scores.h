/* scores.h - what each of several metrics thinks of every patch at every block of an unpruned run.
 * One forward pass serves them all: its blocks are only watched, and the columns that a metric
 * wants are computed from the queries and keys at hand, by the kernels that a cut would use.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SCORES_H
#define RY_SCORES_H

#include "model/common/hook.h"
#include "prune/policy/policy_spec.h"

typedef struct ry_scores ry_scores;

enum { RY_MAX_METRICS = 64 };

typedef struct ry_scores_options {
    uint32_t n_metrics;         /* 1 to RY_MAX_METRICS */
    const char *const *metrics; /* [n_metrics] what a policy says behind metric=: "col n=4" */
    double keep;                /* share of the patches that a cut would keep, (0, 1] */
    uint32_t max_batch, n_threads;
    /* Shown every block of every image, with its queries and keys, from any thread; may be NULL. */
    void (*watch)(void *user, const ry_block_view *view);
    void *user;
} ry_scores_options;

/* Reads a metric's text: its name, short as ry_scores_name says it, and what it is in a policy of
 * one cut. `correct` is refused: it joins two rankings and is none. */
renyi_status ry_scores_read(char name[RY_MAX_POLICY_TEXT], ry_policy *policy, const renyi_model *m,
                            const char *said, renyi_error *err) RENYI_CHECK;

/* Borrows m. */
renyi_status ry_scores_new(ry_scores **out, const renyi_model *m, const ry_scores_options *opt,
                           renyi_error *err) RENYI_CHECK;
void ry_scores_free(ry_scores *s);

/* n <= max_batch pictures; exactly one of pixels [n, S, S, 3] and chw [n, 3, S, S]. */
void ry_scores_run(ry_scores *s, const uint8_t *pixels, const float *chw, uint32_t n);

/* [n_patches] of the last run, in raster order; larger is better. */
const float *ry_scores_get(const ry_scores *s, uint32_t image, uint32_t metric, uint32_t block);

/* [n_classes] of the last run; of a model without classifier its embedding. */
const float *ry_scores_logits(const ry_scores *s, uint32_t image);

/* Patches that a cut at `keep` leaves: the best so many, equal scores to the lower place. */
uint32_t ry_scores_kept(const ry_scores *s);

/* Short, every word that is not a default: "col n=4". Borrowed until ry_scores_free. */
const char *ry_scores_name(const ry_scores *s, uint32_t metric);

#endif
