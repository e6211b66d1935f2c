/* sweep.h - many models, sizes and policies on the same photos.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A grid is what to try: models x image sizes x policies, written down briefly. The rest is as in
 * renyi.h and eval.h.
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

#ifdef __cplusplus
}
#endif
#endif
