/* tuning.h - the inside of renyi_tune: candidates, what photos said about them, the stages.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TUNING_H
#define RY_TUNING_H

#include "eval/data/dataset.h"
#include "renyi/sweep.h"

/* What a candidate answered beside dense. Photos of later rungs are added to those before. */
typedef struct ry_tally {
    uint64_t n, n_right;
    uint64_t only_dense, only_it; /* right */
    uint64_t other;               /* another answer than dense's */
} ry_tally;

typedef struct ry_candidate {
    uint32_t image_size;
    char *policy, *why; /* in the pool */
    renyi_tune_fate fate;
    uint32_t rungs;
    double gmacs;
    double ratio;                   /* time over dense's in the same round; NaN = not measured */
    double estimate, chance, score; /* of the last rung: points, share, larger is better */
    ry_tally search, confirmed;
    uint32_t place; /* in the list it came from: the last tie-break */
} ry_candidate;

typedef enum ry_dense_state { RY_DENSE_UNKNOWN = 0, RY_DENSE_GIVEN, RY_DENSE_NONE } ry_dense_state;

/* Dense's answer for a photo; NONE: the photo cannot be used. */
typedef struct ry_dense_answer {
    uint32_t prediction;
    uint8_t state, is_right;
} ry_dense_answer;

struct renyi_tune {
    renyi_allocator al;
    renyi_tune_options o;     /* strings and preprocess copied; grid not used after new */
    const renyi_model *model; /* borrowed: the dense one's size */
    const renyi_dataset *data;
    renyi_model_info info;
    renyi_preprocess preprocess;
    ry_pool pool;
    ry_dataset_entry
        *images;            /* [n_images] shuffled: n_search to search with, the rest to confirm */
    ry_dense_answer *dense; /* [n_images] */
    size_t n_images, n_search;
    ry_candidate *candidates; /* [count]; 0 = dense */
    size_t count, capacity;
    uint32_t *alive; /* [n_alive] candidates still in the race, best first once they were scored */
    size_t n_alive;
    double dense_ms;     /* median of dense_times; NaN = not measured */
    double *dense_times; /* [n_times] of all rounds so far, any order */
    size_t n_times, times_capacity;
    int is_log_begun;
    renyi_tune_progress now;
    renyi_tune_result result;
    /* Tests say what time a candidate takes; NULL = measure. */
    double (*fake_ms)(uint32_t image_size, const char *policy, double gmacs);
};

/* ---- tuning_candidates.c ---- */
/* Dense and all that the grid offers, with its MACs; misfits are marked. */
renyi_status ry_tune_list(renyi_tune *t, const renyi_grid *grid, renyi_error *err) RENYI_CHECK;
/* The model for a size: t->model itself, or one that is opened now. ry_tune_close gives it back. */
renyi_status ry_tune_open(const renyi_tune *t, uint32_t image_size, const renyi_model **out,
                          renyi_preprocess *preprocess, renyi_error *err) RENYI_CHECK;
void ry_tune_close(const renyi_tune *t, const renyi_model *m);

/* A copy of a list of candidates, those of one size side by side and dense left out; owned. */
typedef struct ry_size_list {
    uint32_t *items;
    size_t n;
} ry_size_list;
renyi_status ry_tune_by_size(const renyi_tune *t, const uint32_t *list, size_t n, ry_size_list *out,
                             renyi_error *err) RENYI_CHECK;
/* How many from `from` on have the same size, `most` at most. */
size_t ry_tune_same_size(const renyi_tune *t, const ry_size_list *list, size_t from, size_t most);

/* ---- tuning_time.c ---- */
/* Times of the listed candidates in turn with dense, `rounds` of each. */
renyi_status ry_tune_time(renyi_tune *t, const uint32_t *list, size_t n, uint32_t rounds,
                          renyi_error *err) RENYI_CHECK;
double ry_tune_ms(const renyi_tune *t, const ry_candidate *c); /* NaN = not measured */

/* ---- tuning_judge.c ---- */
/* The listed candidates on photos [from, to), added to their tally of the search or, from n_search
 * on, of the confirmation. */
renyi_status ry_tune_judge(renyi_tune *t, const uint32_t *list, size_t n, size_t from, size_t to,
                           renyi_error *err) RENYI_CHECK;

/* ---- tuning_score.c: pure arithmetic ---- */

/* What a photo costs that is answered otherwise than dense does, from -1 (dense was wrong, it is
 * right) to 1, over all candidates: a line in the share of such photos, and the variance. */
typedef struct ry_pooled {
    double at_zero, slope, variance;
} ry_pooled;
ry_pooled ry_tune_pool(const ry_candidate *candidates, const uint32_t *list, size_t n);
/* Estimated loss in points and its standard deviation. */
void ry_tune_estimate(const ry_tally *tally, const ry_pooled *pooled, double *mean,
                      double *deviation);
double ry_tune_drop(const ry_tally *tally); /* points lost on just these photos; NaN without */
/* Estimates and chances of the listed from what they answered so far. */
void ry_tune_weigh(renyi_tune *t, const uint32_t *list, size_t n);
/* Scores from those and from times; sorts the list, best first. */
void ry_tune_rank(renyi_tune *t, uint32_t *list, size_t n);

/* ---- tuning_race.c ---- */
enum { RY_TUNE_MAX_RUNGS = 16 };
/* Photos at the end of every rung, ascending up to n_photos; returns the number of rungs. */
uint32_t ry_tune_rungs(size_t n_candidates, size_t n_photos, size_t ends[RY_TUNE_MAX_RUNGS]);
/* Successive halving of t->alive. */
renyi_status ry_tune_race(renyi_tune *t, renyi_error *err) RENYI_CHECK;

/* ---- tuning_confirm.c ---- */
renyi_status ry_tune_confirm(renyi_tune *t, renyi_error *err) RENYI_CHECK;

/* ---- tuning_run.c ---- */
/* Is its cost, as far as it is known, what the goal allows? */
int ry_tune_is_cheap(const renyi_tune *t, const ry_candidate *c);
/* Begin a stage: candidates, photos that each will have seen. */
void ry_tune_stage(renyi_tune *t, renyi_tune_stage stage, size_t n_candidates, size_t images);
/* Tell the caller how far it is; RENYI_ERR_ABORTED if it wants to stop. */
renyi_status ry_tune_tell(renyi_tune *t, uint64_t done, renyi_error *err) RENYI_CHECK;

#endif
