/* sweep_state.h - the state of a sweep (renyi_sweep): groups, points, failures.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SWEEP_STATE_H
#define RY_SWEEP_STATE_H

#include "eval/data/text_lines.h"
#include "renyi/sweep.h"

/* One model at one size in one dtype, and its points. */
typedef struct ry_sweep_group {
    const char *model;        /* of the grid */
    const char *architecture; /* in the pool */
    uint32_t asked_size;      /* as in the grid; 0 = the model's own */
    uint32_t image_size, native_size, n_blocks;
    uint64_t n_params;
    renyi_dtype asked_dtype, dtype;
    renyi_preprocess preprocess;
    const renyi_dataset *data; /* one of renyi_sweep.datasets */
    size_t first, count;       /* points */
} ry_sweep_group;

typedef struct ry_sweep_point {
    size_t group;
    const char *policy;     /* in full, in the pool */
    const uint32_t *tokens; /* [n_blocks] in the pool */
    int is_bound;
    renyi_eval_result result;
    uint32_t *answers; /* [n_images] 2 * prediction + is_top1, or RY_NO_ANSWER; in the pool */
} ry_sweep_point;

#define RY_NO_ANSWER UINT32_MAX

struct renyi_sweep {
    renyi_allocator al;
    renyi_sweep_options o; /* its strings are in the pool */
    const renyi_grid *grid;
    ry_pool pool;
    renyi_dataset **datasets; /* [n_datasets] one for each number of classes */
    size_t n_datasets, dataset_capacity;
    ry_sweep_group *groups;
    size_t n_groups, group_capacity;
    ry_sweep_point *points;
    size_t n_points, point_capacity;
    renyi_sweep_skip *skips;
    size_t n_skips, skip_capacity;
    renyi_eval_failure *failures;
    size_t n_failures, failure_capacity, failure_cursor;
    renyi_eval_times times;
    double gmacs; /* of all points */
};

/* Opens a model of the grid at a size in a dtype, and sets the preprocessing to use. */
renyi_status ry_sweep_open(const renyi_sweep *s, const char *model, uint32_t image_size,
                           renyi_dtype dtype, renyi_model **out, renyi_preprocess *preprocess,
                           renyi_error *err) RENYI_CHECK;

#endif
