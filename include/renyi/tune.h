/* tune.h - which policy should I use? The fastest within a loss of accuracy, or the most accurate
 * within a time, on a user's own photos.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Life of a program:
 *   renyi_model_open -> renyi_dataset_open -> renyi_tune_new -> renyi_tune_run -> result -> free.
 *
 * How it is found
 *   1. Photos are split by a seeded shuffle: some to search with, the rest to confirm with.
 *   2. Candidates that cost too much fall out: first by MACs, then by measured time. A time is the
 *      median of ratios to the dense model, both run in turn, times the dense model's median.
 *   3. Successive halving: all that are left see the same few photos, the better third goes on to
 *      three times as many, until few have seen all photos of the search. Better is, for a bound of
 *      the loss, a larger expected saving: the time saved times the chance that the loss is within
 *      the bound; for a bound of the cost, a smaller estimated loss.
 *   4. The best are timed again, longer, side by side. In their order they are confirmed on the
 *      photos that the search never saw, until one keeps the bound there too.
 * Candidate 0 is the dense model at its own size: all losses are against it. It is the answer when
 * nothing that is faster keeps the bound.
 *
 * The choice depends on times, so on the machine; with a bound of GMACs it does not. Threads,
 * memory and the rest are as in eval.h. */
#ifndef RENYI_TUNE_H
#define RENYI_TUNE_H

#include "renyi/sweep.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct renyi_tune renyi_tune;

typedef enum renyi_tune_goal {
    RENYI_TUNE_MAX_DROP = 0,    /* fastest that loses at most `bound` points of accuracy */
    RENYI_TUNE_TARGET_MS = 1,   /* most accurate that takes at most `bound` ms per photo */
    RENYI_TUNE_TARGET_GMACS = 2 /* most accurate with at most `bound` GMACs per photo */
} renyi_tune_goal;

typedef enum renyi_tune_stage {
    RENYI_TUNE_TIMING = 0,      /* of all candidates */
    RENYI_TUNE_RUNG = 1,        /* photos of the search */
    RENYI_TUNE_LAST_TIMING = 2, /* of the best */
    RENYI_TUNE_CONFIRMING = 3   /* photos that the search never saw */
} renyi_tune_stage;

typedef struct renyi_tune_progress {
    renyi_tune_stage stage;
    uint32_t rung, n_rungs; /* of RENYI_TUNE_RUNG, from 1; 0 elsewhere */
    uint32_t n_candidates;  /* in this stage */
    uint64_t images;        /* that each of them will have seen at its end; 0 when timing */
    uint64_t done, total;   /* of this stage's work */
} renyi_tune_progress;

typedef struct renyi_tune_options {
    uint32_t struct_size;
    renyi_tune_goal goal;
    double bound;           /* points, ms or GMACs */
    const renyi_grid *grid; /* candidates: its sizes x policies, its models are not looked at; read
                               by renyi_tune_new. NULL = the default policies at the usual sizes */
    uint32_t batch;         /* photos run together when times are measured; 0 = 1 */
    uint32_t n_threads;     /* of the model; 0 = physical cores */
    uint32_t n_workers;     /* as in renyi_eval_options, as all fields below */
    uint32_t unlabelled;    /* 1 = the dense model's answers are right: a loss is a disagreement */
    double search;          /* share of the photos to search with; 0 = 0.5 */
    uint64_t seed;          /* of the split */
    uint32_t apply_exif;
    uint32_t resume;
    const renyi_preprocess *preprocess; /* its size is not looked at */
    const char *name;
    const char *log; /* lines of all candidates */
    renyi_limits limits;
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks; each may be NULL */
    /* Open the same model for another size, as in renyi_sweep_options; `model` is `name`. The
     * tuning frees it. *preprocess comes with size 0; left so, that of these options is used. NULL:
     * only candidates of the model's own size can be tried. */
    renyi_status (*open_model)(void *user, const char *model, uint32_t image_size,
                               renyi_model **out, renyi_preprocess *preprocess, renyi_error *err);
    void (*on_failure)(void *user, const char *file, const char *message); /* photo skipped */
    int (*progress)(void *user, const renyi_tune_progress *now); /* non-zero stops: ABORTED */
} renyi_tune_options;

/* Sides of a square picture worth trying: 0 (the model's own), and 6/7, 5/7, 4/7 of it in whole
 * patches, where those differ. Returns how many. */
#define RENYI_TUNE_SIZES 4
RENYI_API uint32_t renyi_tune_usual_sizes(const renyi_model *m, uint32_t sizes[RENYI_TUNE_SIZES]);

/* Borrows m and d, which must outlive the tuning. At least 16 photos. Policies of the grid that do
 * not fit the model are candidates without a chance, not an error. */
RENYI_API RENYI_CHECK renyi_status renyi_tune_new(renyi_tune **out, const renyi_model *m,
                                                  const renyi_dataset *d,
                                                  const renyi_tune_options *opt, renyi_error *err);
RENYI_API void renyi_tune_free(renyi_tune *t);

/* Once. That nothing keeps the bound is a result, not an error. */
RENYI_API RENYI_CHECK renyi_status renyi_tune_run(renyi_tune *t, renyi_error *err);

typedef enum renyi_tune_fate {
    RENYI_TUNE_OPEN = 0,     /* not decided: not run, or interrupted */
    RENYI_TUNE_MISFIT = 1,   /* this model cannot run it */
    RENYI_TUNE_COSTLY = 2,   /* above the bound, or not cheaper than dense */
    RENYI_TUNE_BEATEN = 3,   /* left behind after some rung */
    RENYI_TUNE_FINALIST = 4, /* saw all photos of the search */
    RENYI_TUNE_REFUTED = 5,  /* its loss was above the bound on the photos that confirm */
    RENYI_TUNE_CHOSEN = 6
} renyi_tune_fate;

/* A candidate beside the dense model on the same photos. */
typedef struct renyi_tune_loss {
    uint64_t images;              /* 0: none, all numbers below are NaN */
    uint64_t only_dense, only_it; /* photos of which only one of the two is right */
    uint64_t other;               /* photos that it answers otherwise */
    double top1;                  /* per cent */
    double drop;                  /* points below dense */
    renyi_interval range;         /* of the drop, 95 % */
    double p_value;               /* McNemar's exact test, two-sided */
    double agreement;             /* per cent answered as dense does */
} renyi_tune_loss;

typedef struct renyi_tune_candidate {
    uint32_t image_size;
    const char *policy; /* in full; borrowed until renyi_tune_free */
    const char *why;    /* MISFIT: the reason; else NULL; borrowed */
    renyi_tune_fate fate;
    uint32_t rungs;  /* that it ran */
    double gmacs;    /* nominal, per photo; NaN for a misfit */
    double ms;       /* per photo; NaN = not measured */
    double speedup;  /* of dense in the same rounds */
    double estimate; /* points lost, from labels and disagreements (docs/EVAL.md) */
    double chance;   /* that the loss is within the bound; NaN with other goals */
    renyi_tune_loss search, confirmed;
} renyi_tune_candidate;

/* Candidates in order: 0 is dense, then those that got furthest, best first. */
RENYI_API size_t renyi_tune_count(const renyi_tune *t);
RENYI_API void renyi_tune_get(const renyi_tune *t, size_t i, renyi_tune_candidate *out);

typedef struct renyi_tune_result {
    int is_found;   /* something keeps the bound: candidate `chosen` */
    size_t chosen;  /* 0 = the dense model itself */
    size_t nearest; /* not found, or dense: what came nearest to it; 0 = there was nothing else */
    uint32_t looks; /* candidates that were tried on the photos that confirm. The interval of one
                       that was not the first is too narrow: the best of several looks better */
    uint64_t n_search, n_confirm; /* photos; unreadable ones counted in */
    uint64_t n_failed;            /* unreadable photos met */
    double seconds;
} renyi_tune_result;
RENYI_API void renyi_tune_get_result(const renyi_tune *t, renyi_tune_result *out);

#ifdef __cplusplus
}
#endif
#endif
