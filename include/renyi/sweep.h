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

#ifdef __cplusplus
}
#endif
#endif
