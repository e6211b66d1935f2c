/* sweep.h - runs many models, image sizes and policies on the same images, and tunes a policy.
 *
 * Call orders:
 *   sweep   renyi_grid_new -> renyi_sweep_new -> renyi_sweep_run -> renyi_sweep_get,
 *           renyi_sweep_get_pair -> free in reverse order
 *   tuning  renyi_model_open, renyi_dataset_open -> renyi_tune_new -> renyi_tune_run
 *           -> renyi_tune_get_result -> free in reverse order
 *
 * The rules of renyi.h and eval.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_SWEEP_H
#define RENYI_SWEEP_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- grids ----------------------------------------------------------------------------------- */

/* A grid is a list of points to try: models x image sizes x dtypes x policies. Call order:
 * renyi_grid_new -> renyi_grid_count, renyi_grid_get -> renyi_grid_free.
 *
 * A spec describes a grid in lines of text; "#" starts a comment:
 *
 *   models      vit_tiny "my models/deit.safetensors"
 *   sizes       160 192 model                     "model" = the size it was made for
 *   dtypes      f32 int8                          none = that of the model's file
 *   policy      evit keep=0.5|0.7 metric=cls|col n=2|4 layers=0,3,6|3,6,9 fuse
 *   policy      none|fast|balanced
 *   frameworks  evit naive mosaic                 combined with the lines below
 *   metrics     cls col
 *   keep        0.5 0.7                           ... and any other key of the policy grammar
 *   p           8 16
 *
 * A policy line is complete: it gives all combinations of the alternatives separated by "|".
 * Frameworks (rules or presets) are combined with the lines that start with a key. A key that a
 * rule or metric does not use (n with cls, p with evit) is left out of that combination; a key that
 * no combination uses is an error. A rule with several kinds of budget is tried with each. Equal
 * policies appear once. */

typedef struct renyi_grid renyi_grid; /* immutable */

/* All fields are borrowed for the call. A list given here replaces the lines of the file with the
 * same keyword. */
typedef struct renyi_grid_options {
    uint32_t struct_size;
    uint32_t n_models, n_sizes, n_policies, n_lines;
    const char *file;            /* path of a spec; NULL = none */
    const char *const *models;   /* [n_models] any text; at least one model is needed */
    const uint32_t *sizes;       /* [n_sizes] sides in pixels; 0 = that of the model. None = only
                                    that */
    const char *const *policies; /* [n_policies] each as after the keyword "policy" */
    const char *const *lines;    /* [n_lines] further lines of a spec */
    uint64_t max_file_bytes;     /* size of `file`; 0 = 1 MiB */
    renyi_allocator allocator;
    uint32_t n_dtypes;
    const renyi_dtype *dtypes;   /* [n_dtypes]; none = only RENYI_DTYPE_DEFAULT */
    const renyi_model *rules_of; /* policies may name the rules added to this model; NULL = none */
} renyi_grid_options;

/* A grid without policies and frameworks gets those of renyi_grid_default_spec. Errors name file
 * and line, or the line itself. On success *out is owned by the caller (renyi_grid_free). */
RENYI_API RENYI_CHECK renyi_status renyi_grid_new(renyi_grid **out, const renyi_grid_options *opt,
                                                  renyi_error *err);
RENYI_API void renyi_grid_free(renyi_grid *g);

/* Policy lines worth trying on any Vision Transformer with twelve blocks. Static string. */
RENYI_API const char *renyi_grid_default_spec(void);

typedef struct renyi_grid_point {
    const char *model;
    uint32_t image_size; /* 0 = that of the model */
    const char *policy;  /* with all defaults, as from renyi_policy_check without a model */
    renyi_dtype dtype;
} renyi_grid_point; /* strings are borrowed until renyi_grid_free */

/* Points in order: by model, then size, then dtype, then policy. */
RENYI_API size_t renyi_grid_count(const renyi_grid *g);
RENYI_API void renyi_grid_get(const renyi_grid *g, size_t i, renyi_grid_point *out);

/* The lists that are combined, without duplicates. */
typedef struct renyi_grid_info {
    uint32_t n_models, n_sizes, n_policies;
    const char *const *models;
    const uint32_t *sizes;
    const char *const *policies;
    uint32_t n_dtypes;
    const renyi_dtype *dtypes;
} renyi_grid_info; /* borrowed until renyi_grid_free */
RENYI_API void renyi_grid_get_info(const renyi_grid *g, renyi_grid_info *out);

/* ---- sweeps ---------------------------------------------------------------------------------- */

/* A sweep runs every point of a grid on the same images. Call order: renyi_sweep_new ->
 * renyi_sweep_run -> renyi_sweep_get, renyi_sweep_get_pair -> renyi_sweep_free. A log makes it
 * possible to resume. */

typedef struct renyi_sweep renyi_sweep; /* results of every point for every image */

/* Progress of renyi_sweep_run. A pass is one model at one size and dtype over all images, with as
 * many policies as memory allows. */
typedef struct renyi_sweep_progress {
    const char *model;
    uint32_t image_size, n_policies; /* of this pass */
    uint32_t pass, n_passes;         /* from 0; passes of models still to come are an estimate */
    uint64_t photos, n_photos;       /* images done in this pass, all images */
    uint64_t answers, n_answers;     /* results (images x points) of the whole sweep */
    double share;                    /* share of all arithmetic that is done, 0 to 1 */
    double share_now; /* part of `share` that was not in the log, for estimating the time */
    renyi_dtype dtype;
} renyi_sweep_progress;

typedef struct renyi_sweep_options {
    uint32_t struct_size;
    uint32_t batch, n_threads, n_workers, apply_exif; /* as in renyi_eval_options */
    const char *data;                                 /* path for renyi_dataset_open; copied */
    const renyi_dataset_options *dataset;             /* borrowed for renyi_sweep_new */
    const char *log;     /* as in renyi_eval_options, one log for all points; copied */
    uint32_t resume;     /* 1 = results in the log are not computed again */
    uint64_t max_bytes;  /* memory of sessions that exist together; the rest runs in further passes
                            over the images; 0 = 1 GiB */
    renyi_limits limits; /* limits for images */
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks */
    /* Opens a model of the grid at a size (0 = its own) in a dtype; the sweep frees it. *preprocess
     * has size 0 on entry; if it is left so, the model's is used. Called more than once for each
     * model and size. */
    renyi_status (*open_model)(void *user, const char *model, uint32_t image_size,
                               renyi_dtype dtype, renyi_model **out, renyi_preprocess *preprocess,
                               renyi_error *err);
    /* Called once for each image that cannot be used. */
    void (*on_failure)(void *user, const char *file, const char *message);
    /* Called after every batch. Non-zero stops: renyi_sweep_run returns RENYI_ERR_ABORTED. */
    int (*progress)(void *user, const renyi_sweep_progress *p);
    const renyi_ranks *ranks; /* several processes; NULL = one. Borrowed until renyi_sweep_free */
    const char *condition;    /* as in renyi_eval_options; copied */
    renyi_decode_mode decode; /* how image files are decoded */
} renyi_sweep_options;

/* Opens the data and, as a check, every model at every size in every dtype. All points run on the
 * same images with the same classes. Policies that a model cannot run at a size (too few patches or
 * blocks) are left out and listed (renyi_sweep_get_skip); no point at all is an error. Borrows g
 * until renyi_sweep_free. On success *out is owned by the caller (renyi_sweep_free). */
RENYI_API RENYI_CHECK renyi_status renyi_sweep_new(renyi_sweep **out, const renyi_grid *g,
                                                   const renyi_sweep_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_sweep_free(renyi_sweep *s);

/* Runs everything that is not done yet. Each point gets the results that renyi_eval_run would
 * give. */
RENYI_API RENYI_CHECK renyi_status renyi_sweep_run(renyi_sweep *s, renyi_error *err);

/* One point. result.images is 0 before it is run. */
typedef struct renyi_sweep_point {
    const char *model;        /* as in the grid */
    const char *architecture; /* as in renyi_model_info */
    uint32_t image_size;      /* size it runs at */
    uint32_t native_size;     /* size the model was made for */
    uint64_t n_params;
    renyi_preprocess preprocess;
    uint32_t n_blocks;
    const uint32_t *tokens;   /* [n_blocks] tokens that leave each block, class token included */
    int is_bound;             /* tokens and gmacs are upper bounds: the policy adapts to the image
                                 (ats) */
    renyi_eval_result result; /* result.policy has all defaults for this model */
    renyi_dtype dtype;        /* format of the matrix products in the blocks */
} renyi_sweep_point;          /* pointers are borrowed until renyi_sweep_free */

RENYI_API size_t renyi_sweep_count(const renyi_sweep *s);
RENYI_API void renyi_sweep_get(const renyi_sweep *s, size_t i, renyi_sweep_point *out);

/* Two points compared on the images for which both have a result. Models and sizes may differ. */
RENYI_API void renyi_sweep_get_pair(const renyi_sweep *s, size_t a, size_t b, renyi_eval_pair *out);

/* Points of the grid that cannot be run. */
typedef struct renyi_sweep_skip {
    const char *model, *policy, *message;
    uint32_t image_size;
} renyi_sweep_skip; /* borrowed until renyi_sweep_free */
RENYI_API size_t renyi_sweep_skip_count(const renyi_sweep *s);
RENYI_API void renyi_sweep_get_skip(const renyi_sweep *s, size_t i, renyi_sweep_skip *out);

/* Images that at least one point could not use. */
RENYI_API size_t renyi_sweep_failure_count(const renyi_sweep *s);
RENYI_API void renyi_sweep_get_failure(const renyi_sweep *s, size_t i, renyi_eval_failure *out);

/* Sums over all passes; `images` and `resumed` count an image once per pass. */
RENYI_API void renyi_sweep_get_times(const renyi_sweep *s, renyi_eval_times *out);
RENYI_API void renyi_sweep_get_data(const renyi_sweep *s, renyi_dataset_info *out);

/* ---- tuning ---------------------------------------------------------------------------------- */

/* Finds the fastest policy within a loss of accuracy, or the most accurate policy within a cost, on
 * the caller's images. Call order: renyi_model_open, renyi_dataset_open -> renyi_tune_new ->
 * renyi_tune_run -> renyi_tune_get_result, renyi_tune_get -> free in reverse order.
 *
 * Method:
 * 1. A seeded shuffle splits the images into a search part and a confirmation part.
 * 2. Candidates that cost too much are removed, first by MACs, then by measured time. A time is the
 *    median of its ratios to the dense model, both run alternately, times the dense model's median.
 * 3. Successive halving: all candidates run on the same few images, the better third continues with
 *    three times as many, until a few have seen all search images. With a bound on the loss, better
 *    means a larger expected saving: time saved times the probability that the loss is within the
 *    bound. With a bound on the cost, better means a smaller estimated loss.
 * 4. The best candidates are timed again, longer and side by side. In that order they run on the
 *    confirmation images until one meets the bound there too.
 * Candidate 0 is the dense model at its own size. All losses are relative to it, and it is the
 * result if nothing faster meets the bound. The choice depends on measured times, so on the
 * machine, except with a bound on GMACs. Threads and memory are as in eval.h. */

typedef struct renyi_tune renyi_tune;

typedef enum renyi_tune_goal {
    RENYI_TUNE_MAX_DROP = 0,    /* the fastest that loses at most `bound` points of accuracy */
    RENYI_TUNE_TARGET_MS = 1,   /* the most accurate that takes at most `bound` ms per image */
    RENYI_TUNE_TARGET_GMACS = 2 /* the most accurate with at most `bound` GMACs per image */
} renyi_tune_goal;

typedef enum renyi_tune_stage {
    RENYI_TUNE_TIMING = 0,      /* timing of all candidates */
    RENYI_TUNE_RUNG = 1,        /* search images */
    RENYI_TUNE_LAST_TIMING = 2, /* timing of the best candidates */
    RENYI_TUNE_CONFIRMING = 3   /* confirmation images */
} renyi_tune_stage;

typedef struct renyi_tune_progress {
    renyi_tune_stage stage;
    uint32_t rung, n_rungs; /* in RENYI_TUNE_RUNG, from 1; otherwise 0 */
    uint32_t n_candidates;  /* candidates in this stage */
    uint64_t images;        /* images each of them has seen at the end; 0 when timing */
    uint64_t done, total;   /* work of this stage */
} renyi_tune_progress;

typedef struct renyi_tune_options {
    uint32_t struct_size;
    renyi_tune_goal goal;
    double bound; /* percentage points, ms or GMACs */
    const renyi_grid
        *grid;      /* candidates: its sizes x dtypes x policies; its models are ignored; read by
                       renyi_tune_new. NULL = the default policies at the usual sizes */
    uint32_t batch; /* images per run when times are measured; 0 = 1 */
    uint32_t n_threads;  /* threads of the model; 0 = as in renyi_session_options */
    uint32_t n_workers;  /* this and uncommented fields below: as in renyi_eval_options */
    uint32_t unlabelled; /* 1 = the dense model's predictions count as correct: a loss is a
                            disagreement */
    double search;       /* share of the images for the search; 0 = 0.5 */
    uint64_t seed;       /* seed of the split */
    uint32_t apply_exif;
    uint32_t resume;
    const renyi_preprocess *preprocess; /* its size is ignored */
    const char *name;
    const char *log; /* one log for all candidates */
    renyi_limits limits;
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks; each may be NULL */
    /* Opens the same model for another size or dtype, as in renyi_sweep_options; `model` is `name`.
     * The tuning frees it. *preprocess has size 0 on entry; if it is left so, that of these options
     * is used. NULL = only candidates at the model's own size and dtype can be tried. */
    renyi_status (*open_model)(void *user, const char *model, uint32_t image_size,
                               renyi_dtype dtype, renyi_model **out, renyi_preprocess *preprocess,
                               renyi_error *err);
    /* Called for each image that is skipped. */
    void (*on_failure)(void *user, const char *file, const char *message);
    /* Non-zero stops: RENYI_ERR_ABORTED. */
    int (*progress)(void *user, const renyi_tune_progress *now);
    renyi_decode_mode decode; /* how image files are decoded */
} renyi_tune_options;

/* Image sides worth trying: 0 (the model's own) and 6/7, 5/7, 4/7 of it in whole patches, without
 * duplicates. Returns their number. */
#define RENYI_TUNE_SIZES 4
RENYI_API uint32_t renyi_tune_usual_sizes(const renyi_model *m, uint32_t sizes[RENYI_TUNE_SIZES]);

/* Needs at least 16 images. A policy of the grid that does not fit the model becomes a candidate
 * with fate MISFIT, not an error. Borrows m and d until renyi_tune_free. On success *out is owned
 * by the caller (renyi_tune_free). */
RENYI_API RENYI_CHECK renyi_status renyi_tune_new(renyi_tune **out, const renyi_model *m,
                                                  const renyi_dataset *d,
                                                  const renyi_tune_options *opt, renyi_error *err);
RENYI_API void renyi_tune_free(renyi_tune *t);

/* Runs the search; may be called once. If nothing meets the bound, that is a result, not an
 * error. */
RENYI_API RENYI_CHECK renyi_status renyi_tune_run(renyi_tune *t, renyi_error *err);

typedef enum renyi_tune_fate {
    RENYI_TUNE_OPEN = 0,     /* undecided: not run, or interrupted */
    RENYI_TUNE_MISFIT = 1,   /* the model cannot run it */
    RENYI_TUNE_COSTLY = 2,   /* above the bound, or not cheaper than the dense model */
    RENYI_TUNE_BEATEN = 3,   /* eliminated after a rung */
    RENYI_TUNE_FINALIST = 4, /* saw all search images */
    RENYI_TUNE_REFUTED = 5,  /* loss above the bound on the confirmation images */
    RENYI_TUNE_CHOSEN = 6
} renyi_tune_fate;

/* A candidate compared with the dense model on the same images. */
typedef struct renyi_tune_loss {
    uint64_t images;              /* 0 = none; then all numbers below are NaN */
    uint64_t only_dense, only_it; /* images that only one of the two classifies correctly */
    uint64_t other;               /* images with different predictions */
    double top1;                  /* percent */
    double drop;                  /* percentage points below the dense model */
    renyi_interval range;         /* 95 % interval of the drop */
    double p_value;               /* McNemar's exact test, two-sided */
    double agreement;             /* percent of images with the dense model's prediction */
} renyi_tune_loss;

typedef struct renyi_tune_candidate {
    uint32_t image_size;
    const char *policy; /* with all defaults; borrowed until renyi_tune_free */
    const char *why;    /* reason of MISFIT, else NULL; borrowed until renyi_tune_free */
    renyi_tune_fate fate;
    uint32_t rungs;  /* rungs that it ran */
    double gmacs;    /* nominal, per image; NaN for MISFIT */
    double ms;       /* per image; NaN = not measured */
    double speedup;  /* relative to the dense model in the same rounds */
    double estimate; /* estimated loss in points, from labels and disagreements (docs/EVAL.md) */
    double chance;   /* probability that the loss is within the bound; NaN with other goals */
    renyi_tune_loss search, confirmed;
    renyi_dtype dtype; /* of its blocks; that of candidate 0 is the model's */
} renyi_tune_candidate;

/* Candidates in order: 0 is the dense model, then those that got furthest, best first. */
RENYI_API size_t renyi_tune_count(const renyi_tune *t);
RENYI_API void renyi_tune_get(const renyi_tune *t, size_t i, renyi_tune_candidate *out);

typedef struct renyi_tune_result {
    int is_found;   /* 1 = candidate `chosen` meets the bound */
    size_t chosen;  /* 0 = the dense model */
    size_t nearest; /* not found, or chosen is 0: the candidate nearest to the bound, or 0 */
    uint32_t looks; /* candidates tried on the confirmation images. If there was more than one, the
                       interval of the chosen one is too narrow, because the best of several tends
                       to look better than it is */
    uint64_t n_search, n_confirm; /* images of each part, unreadable ones included */
    uint64_t n_failed;            /* unreadable images */
    double seconds;
    uint32_t n_threads, batch; /* that times were measured with, defaults filled in */
} renyi_tune_result;
RENYI_API void renyi_tune_get_result(const renyi_tune *t, renyi_tune_result *out);

#ifdef __cplusplus
}
#endif
#endif
