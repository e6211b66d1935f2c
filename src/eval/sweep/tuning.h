/* tuning.h - the state of a tuning (renyi_tune): candidates, their results on the images, and the
 * stages of the search.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TUNING_H
#define RY_TUNING_H

#include "eval/data/dataset.h"
#include "renyi/sweep.h"

/* A candidate beside the dense model on the same images. Later rungs add more images. */
typedef struct ry_tally {
    uint64_t n, n_right;
    uint64_t only_dense, only_it; /* images of which only one of the two is right */
    uint64_t other;               /* images that it answers differently */
} ry_tally;

typedef struct ry_candidate {
    uint32_t image_size;
    renyi_dtype dtype;
    char *policy, *why; /* in the pool; why: of a misfit */
    renyi_tune_fate fate;
    uint32_t rungs;
    double gmacs; /* of a cascade: of its first pass, then the mean over n_costed images; with
                     likeness: of the fewest tokens, then such a mean */
    uint64_t n_costed;
    double executed; /* the same in GMACs that really run; of `ats` the most, then the mean */
    double pace;     /* time over the dense model's in the same round, by the GMACs that ran in this
                        round; NaN = not measured */
    double ratio;    /* pace * executed */
    double estimate; /* after the last rung: points lost */
    double chance;   /* that the loss is within the bound */
    double score;    /* larger is better */
    ry_tally search, confirmed;
    uint32_t place; /* in the first list; decides ties */
} ry_candidate;

typedef enum ry_dense_state { RY_DENSE_UNKNOWN = 0, RY_DENSE_GIVEN, RY_DENSE_NONE } ry_dense_state;

/* The dense model's answer for an image; NONE: the image cannot be used. */
typedef struct ry_dense_answer {
    uint32_t prediction;
    uint8_t state, is_right;
} ry_dense_answer;

struct renyi_tune {
    renyi_allocator al;
    renyi_tune_options o;     /* strings and preprocess are copied; grid is not used after new */
    const renyi_model *model; /* borrowed; at the dense model's size */
    const renyi_dataset *data;
    renyi_model_info info;
    renyi_preprocess preprocess;
    ry_pool pool;
    ry_dataset_entry *images; /* [n_images] shuffled: n_search to search, the rest to confirm */
    ry_dense_answer *dense;   /* [n_images] */
    size_t n_images, n_search;
    ry_candidate *candidates; /* [count]; 0 = dense */
    size_t count, capacity;
    uint32_t *alive; /* [n_alive] candidates still in the search; best first after scoring */
    size_t n_alive;
    double dense_ms;     /* median of dense_times; NaN = not measured */
    double *dense_times; /* [n_times] of all rounds so far, in any order */
    size_t n_times, times_capacity;
    int is_log_begun;
    renyi_tune_progress now;
    renyi_tune_result result;
    /* For tests: the time that a candidate takes; NULL = measure. */
    double (*fake_ms)(uint32_t image_size, renyi_dtype dtype, const char *policy, double gmacs);
    double (*fake_seconds)(double macs); /* the time of a run; NULL = measure */
};

/* ---- tuning.c ------------------------------------------------------------------------------ */

/* The model for a size and dtype: t->model itself, or a new one. ry_tune_close frees it. */
renyi_status ry_tune_open(const renyi_tune *t, uint32_t image_size, renyi_dtype dtype,
                          const renyi_model **out, renyi_preprocess *preprocess,
                          renyi_error *err) RENYI_CHECK;
void ry_tune_close(const renyi_tune *t, const renyi_model *m);

/* A copy of a list of candidates, sorted by size and dtype, without dense; owned. */
typedef struct ry_size_list {
    uint32_t *items;
    size_t n;
} ry_size_list;
renyi_status ry_tune_by_size(const renyi_tune *t, const uint32_t *list, size_t n, ry_size_list *out,
                             renyi_error *err) RENYI_CHECK;
/* How many from `from` on have the same size and dtype; at most `most`. */
size_t ry_tune_same_size(const renyi_tune *t, const ry_size_list *list, size_t from, size_t most);

/* ---- tuning_run.c -------------------------------------------------------------------------- */

enum { RY_TUNE_MAX_RUNGS = 16 };
/* Images at the end of every rung, ascending up to n_images; returns the number of rungs. */
uint32_t ry_tune_rungs(size_t n_candidates, size_t n_images, size_t ends[RY_TUNE_MAX_RUNGS]);
/* Reports progress of the stage; RENYI_ERR_ABORTED if the callback asks to stop. */
renyi_status ry_tune_report(renyi_tune *t, uint64_t done, renyi_error *err) RENYI_CHECK;

/* ---- tuning_time.c ------------------------------------------------------------------------- */

/* Measures the listed candidates and dense in turn, `rounds` times each. */
renyi_status ry_tune_time(renyi_tune *t, const uint32_t *list, size_t n, uint32_t rounds,
                          renyi_error *err) RENYI_CHECK;
double ry_tune_ms(const renyi_tune *t, const ry_candidate *c); /* NaN = not measured */

/* ---- tuning_judge.c ------------------------------------------------------------------------ */

/* Runs the listed candidates on images [from, to) and adds the answers to their tally: of the
 * search, or from n_search on of the confirmation. */
renyi_status ry_tune_judge(renyi_tune *t, const uint32_t *list, size_t n, size_t from, size_t to,
                           renyi_error *err) RENYI_CHECK;

/* ---- tuning_score.c ------------------------------------------------------------------------ */

/* Mean loss of an image that is answered differently, over all candidates: a line in the share of
 * such images, and the variance. One image loses from -1 (only the candidate is right) to 1. */
typedef struct ry_pooled {
    double at_zero, slope, variance;
} ry_pooled;
ry_pooled ry_tune_pool(const ry_candidate *candidates, const uint32_t *list, size_t n);
/* Estimated loss in points, and its standard deviation. */
void ry_tune_estimate(const ry_tally *tally, const ry_pooled *pooled, double *mean,
                      double *deviation);
double ry_tune_drop(const ry_tally *tally); /* points lost on these images; NaN without images */
/* Sets estimate and chance of the listed candidates. */
void ry_tune_weigh(renyi_tune *t, const uint32_t *list, size_t n);
/* Sets their scores from those and from times, and sorts the list, best first. */
void ry_tune_rank(renyi_tune *t, uint32_t *list, size_t n);

#endif
