/* sweep_points.c - points, pairs and failures of a sweep.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/evaluation.h"
#include "eval/sweep/sweep_state.h"

size_t renyi_sweep_count(const renyi_sweep *s) { return s->n_points; }

void renyi_sweep_get(const renyi_sweep *s, size_t i, renyi_sweep_point *out)
{
    const ry_sweep_point *p = &s->points[i];
    const ry_sweep_group *g = &s->groups[p->group];
    *out = (renyi_sweep_point){.model = g->model,
                               .architecture = g->architecture,
                               .image_size = g->image_size,
                               .native_size = g->native_size,
                               .n_params = g->n_params,
                               .preprocess = g->preprocess,
                               .n_blocks = g->n_blocks,
                               .tokens = p->tokens,
                               .is_bound = p->is_bound,
                               .result = p->result,
                               .dtype = g->dtype};
}

void renyi_sweep_get_pair(const renyi_sweep *s, size_t a, size_t b, renyi_eval_pair *out)
{
    const uint32_t *x = s->points[a].answers, *y = s->points[b].answers;
    renyi_dataset_info data;
    renyi_dataset_get_info(s->datasets[0], &data);
    *out = (renyi_eval_pair){0};
    for (size_t i = 0; i < data.n_images; i++)
        if (x[i] != RY_NO_ANSWER && y[i] != RY_NO_ANSWER)
            ry_pair_add(out, x[i] & 1, y[i] & 1, x[i] >> 1 == y[i] >> 1);
    ry_pair_finish(out);
}

size_t renyi_sweep_skip_count(const renyi_sweep *s) { return s->n_skips; }

void renyi_sweep_get_skip(const renyi_sweep *s, size_t i, renyi_sweep_skip *out)
{
    *out = s->skips[i];
}

size_t renyi_sweep_failure_count(const renyi_sweep *s) { return s->n_failures; }

void renyi_sweep_get_failure(const renyi_sweep *s, size_t i, renyi_eval_failure *out)
{
    *out = s->failures[i];
}

void renyi_sweep_get_times(const renyi_sweep *s, renyi_eval_times *out) { *out = s->times; }

void renyi_sweep_get_data(const renyi_sweep *s, renyi_dataset_info *out)
{
    renyi_dataset_get_info(s->datasets[0], out);
}
