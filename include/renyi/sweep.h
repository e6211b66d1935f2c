/* sweep.h - many models, sizes and policies on the same photos.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Life of a program:
 *   renyi_grid_new -> renyi_sweep_new -> renyi_sweep_run -> points and pairs -> free in reverse
 * order.
 *
 * A grid is what to try: models x image sizes x policies, written down briefly. A sweep runs it.
 * The rest is as in renyi.h and eval.h.
 */
#ifndef RENYI_SWEEP_H
#define RENYI_SWEEP_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- grids --------------------------------------------------------------------------------- */

typedef struct renyi_grid renyi_grid; /* immutable */

/* A spec is lines of text; "#" begins a comment:
 *
 *   models      vit_tiny "my models/deit.safetensors"
 *   sizes       160 192 model                     "model" = the size it was made for
 *   policy      evit keep=0.5|0.7 metric=cls|col n=2|4 layers=0,3,6|3,6,9 fuse
 *   policy      none|fast|balanced
 *   frameworks  evit naive mosaic                 crossed with the lines below
 *   metrics     cls col
 *   keep        0.5 0.7                           ... and any other key of the policy grammar
 *   p           8 16
 *
 * A policy line is complete in itself: alternatives stand between "|", and all combinations are
 * meant. Frameworks (rules or presets) are crossed with the lines that begin with a key. Words that
 * a rule or metric has no use for (n with cls, p with evit) are left out of that combination; one
 * that no combination has a use for is an error. A rule that takes several budgets is tried with
 * each. What means the same is there once. */

/* Borrowed for the call. What is given here replaces the lines of the file with the same word. */
typedef struct renyi_grid_options {
    uint32_t struct_size;
    uint32_t n_models, n_sizes, n_policies, n_lines;
    const char *file;            /* a spec; NULL = none */
    const char *const *models;   /* [n_models] any text; a grid needs at least one model */
    const uint32_t *sizes;       /* [n_sizes] sides in pixels; 0 = the model's. None = just that */
    const char *const *policies; /* [n_policies] each as after the word "policy" */
    const char *const *lines;    /* [n_lines] more lines of a spec */
    uint64_t max_file_bytes;     /* 0 = 1 MiB */
    renyi_allocator allocator;
} renyi_grid_options;

/* A grid without policies and frameworks gets those of renyi_grid_default_spec. Errors name file
 * and line, or the line itself. On success *out is owned by the caller (renyi_grid_free). */
RENYI_API RENYI_CHECK renyi_status renyi_grid_new(renyi_grid **out, const renyi_grid_options *opt,
                                                  renyi_error *err);
RENYI_API void renyi_grid_free(renyi_grid *g);

/* Policy lines worth trying on any Vision Transformer of twelve blocks. Static string. */
RENYI_API const char *renyi_grid_default_spec(void);

typedef struct renyi_grid_point {
    const char *model;
    uint32_t image_size; /* 0 = the model's */
    const char
        *policy;    /* in full, every default said, as renyi_policy_check does without a model */
} renyi_grid_point; /* strings are borrowed until renyi_grid_free */

/* Points in order: all policies of a size, all sizes of a model, all models. */
RENYI_API size_t renyi_grid_count(const renyi_grid *g);
RENYI_API void renyi_grid_get(const renyi_grid *g, size_t i, renyi_grid_point *out);

/* The three lists that are crossed: no two models, sizes or policies are the same. */
typedef struct renyi_grid_info {
    uint32_t n_models, n_sizes, n_policies;
    const char *const *models;
    const uint32_t *sizes;
    const char *const *policies;
} renyi_grid_info; /* borrowed until renyi_grid_free */
RENYI_API void renyi_grid_get_info(const renyi_grid *g, renyi_grid_info *out);

/* ---- sweeps -------------------------------------------------------------------------------- */

typedef struct renyi_sweep renyi_sweep; /* what every point of a grid answered to every photo */

/* How far renyi_sweep_run is. A pass is one model at one size over all photos with as many of the
 * policies as memory allows. */
typedef struct renyi_sweep_progress {
    const char *model;
    uint32_t image_size, n_policies; /* of this pass */
    uint32_t pass, n_passes;         /* from 0; those of models still to come are a guess */
    uint64_t photos, n_photos;       /* done in this pass, of all */
    uint64_t answers, n_answers;     /* photos x points, of the whole sweep */
    double share;                    /* of all arithmetic, 0 to 1 */
    double share_now; /* what of it was not in the log: as much took the time so far */
} renyi_sweep_progress;

typedef struct renyi_sweep_options {
    uint32_t struct_size;
    uint32_t batch, n_threads, n_workers, apply_exif; /* as in renyi_eval_options */
    const char *data;                                 /* path for renyi_dataset_open; copied */
    const renyi_dataset_options *dataset;             /* borrowed for renyi_sweep_new */
    const char *log;     /* as in renyi_eval_options; all points share it. Copied */
    uint32_t resume;     /* 1 = what the log holds already is not run again */
    uint64_t max_bytes;  /* of sessions that live together; what is more runs in another pass over
                            the photos; 0 = 1 GiB */
    renyi_limits limits; /* of photos */
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks */
    /* Open a model of the grid at a size (0 = its own); the sweep frees it. *preprocess comes with
     * size 0; left so, the model's is used. Called more than once for each model and size. */
    renyi_status (*open_model)(void *user, const char *model, uint32_t image_size,
                               renyi_model **out, renyi_preprocess *preprocess, renyi_error *err);
    void (*on_failure)(void *user, const char *file, const char *message); /* once a photo */
    /* After every batch; non-zero stops: renyi_sweep_run returns RENYI_ERR_ABORTED. */
    int (*progress)(void *user, const renyi_sweep_progress *p);
    const renyi_ranks *ranks; /* borrowed until renyi_sweep_free; NULL = alone */
    const char *condition;    /* as in renyi_eval_options. Copied */
} renyi_sweep_options;

/* Borrows g until renyi_sweep_free. Opens every model at every size to see that it can be done, and
 * the data: all points run on the same photos with the same classes. Policies that a model cannot
 * run at a size (too few patches, fewer blocks) are left out and listed; no point at all is an
 * error. On success *out is owned by the caller (renyi_sweep_free). */
RENYI_API RENYI_CHECK renyi_status renyi_sweep_new(renyi_sweep **out, const renyi_grid *g,
                                                   const renyi_sweep_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_sweep_free(renyi_sweep *s);

/* Run what is not done yet. Results are those of renyi_eval, each point's as if it were alone. */
RENYI_API RENYI_CHECK renyi_status renyi_sweep_run(renyi_sweep *s, renyi_error *err);

/* One point; result.images is 0 before it is run. */
typedef struct renyi_sweep_point {
    const char *model;        /* as in the grid */
    const char *architecture; /* renyi_model_info */
    uint32_t image_size;      /* that it runs at */
    uint32_t native_size;     /* that the model was made for */
    uint64_t n_params;
    renyi_preprocess preprocess;
    uint32_t n_blocks;
    const uint32_t *tokens;   /* [n_blocks] that leave each block, class token counted in */
    int is_bound;             /* tokens and gmacs are the most it may be: the policy adapts (ats) */
    renyi_eval_result result; /* result.policy: in full, for this model */
    renyi_dtype dtype;        /* of the matrix products in the blocks */
} renyi_sweep_point;          /* pointers are borrowed until renyi_sweep_free */

RENYI_API size_t renyi_sweep_count(const renyi_sweep *s);
RENYI_API void renyi_sweep_get(const renyi_sweep *s, size_t i, renyi_sweep_point *out);

/* Two points on the photos that both answered, also of different models and sizes. */
RENYI_API void renyi_sweep_get_pair(const renyi_sweep *s, size_t a, size_t b, renyi_eval_pair *out);

/* Points of the grid that cannot be run. */
typedef struct renyi_sweep_skip {
    const char *model, *policy, *message;
    uint32_t image_size;
} renyi_sweep_skip; /* borrowed until renyi_sweep_free */
RENYI_API size_t renyi_sweep_skip_count(const renyi_sweep *s);
RENYI_API void renyi_sweep_get_skip(const renyi_sweep *s, size_t i, renyi_sweep_skip *out);

/* Photos that could not be used by at least one point. */
RENYI_API size_t renyi_sweep_failure_count(const renyi_sweep *s);
RENYI_API void renyi_sweep_get_failure(const renyi_sweep *s, size_t i, renyi_eval_failure *out);

/* Sums over all passes; `images` and `resumed` count a photo once a pass. */
RENYI_API void renyi_sweep_get_times(const renyi_sweep *s, renyi_eval_times *out);
RENYI_API void renyi_sweep_get_data(const renyi_sweep *s, renyi_dataset_info *out);

/* ---- tuning ---------------------------------------------------------------------------------- */

/* which policy should I use? The fastest within a loss of accuracy, or the most accurate
 * within a time, on a user's own photos.
 * *
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
