/* viz_dense.c - scores, ranks and colour scales of every metric and layer of the unpruned run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"
#include "prune/rules/select.h"

#include <math.h>
#include <string.h>

/* Memory for ranking P patches. */
typedef struct ranking {
    uint64_t *keys;  /* [2P] */
    uint32_t *order; /* [P] best first */
} ranking;

/* The score below which a share q of the patches lies, between neighbours linearly. order ranks
 * all n of them; those that are not finite are left out. */
static float percentile(const float *score, const uint32_t *order, uint32_t n, double q)
{
    uint32_t first = 0, last = n; /* infinity is ranked first; minus infinity and NaN last */
    while (first < last && !isfinite(score[order[first]])) first++;
    while (last > first && !isfinite(score[order[last - 1]])) last--;
    if (first == last) return 0.0f;
    const double at = (1.0 - q) * (last - first - 1);
    const uint32_t below = (uint32_t)at, next = below + 1 < last - first ? below + 1 : below;
    const double a = (double)score[order[first + below]], b = (double)score[order[first + next]];
    return (float)(a + (b - a) * (at - below));
}

static renyi_status fill_map(const float *score, uint32_t n, const ranking *by, renyi_viz_map *out,
                             ry_stash *stash, renyi_error *err)
{
    float *copy = RY_STASH_TAKE(stash, float, n);
    uint32_t *rank = RY_STASH_TAKE(stash, uint32_t, n);
    if (!copy || !rank) return ry_fail_nomem(err, n * sizeof *copy);
    memcpy(copy, score, n * sizeof *copy);
    ry_rank(by->order, score, n, by->keys);
    for (uint32_t i = 0; i < n; i++) rank[by->order[i]] = i;
    *out = (renyi_viz_map){.score = copy,
                           .rank = rank,
                           .low = percentile(score, by->order, n, 0.01),
                           .high = percentile(score, by->order, n, 0.99)};
    return RENYI_OK;
}

static renyi_status fill_metric(const renyi_viz *v, uint32_t place, const ranking *by,
                                renyi_viz_metric *out, ry_stash *stash, renyi_error *err)
{
    const ry_viz_metric *m = &v->scored[place];
    renyi_viz_map *maps = RY_STASH_TAKE(stash, renyi_viz_map, v->n_layers);
    *out = (renyi_viz_metric){.name = ry_stash_text(stash, m->name),
                              .label = ry_stash_text(stash, m->label),
                              .order = m->order,
                              .maps = maps};
    if (!maps || !out->name || !out->label) return ry_fail_nomem(err, v->n_layers * sizeof *maps);
    for (uint32_t i = 0; i < v->n_layers; i++)
        RY_TRY(fill_map(ry_scores_get(v->scores, 0, place, v->layers[i]), v->model->vit.n_patches,
                        by, &maps[i], stash, err));
    return RENYI_OK;
}

static renyi_status fill_keeps(const renyi_viz *v, renyi_viz_result *r, ry_stash *stash,
                               renyi_error *err)
{
    double *keeps = RY_STASH_TAKE(stash, double, v->n_keeps);
    uint32_t *kept = RY_STASH_TAKE(stash, uint32_t, v->n_keeps);
    if (!keeps || !kept) return ry_fail_nomem(err, v->n_keeps * sizeof *keeps);
    memcpy(keeps, v->keeps, v->n_keeps * sizeof *keeps);
    memcpy(kept, v->kept, v->n_keeps * sizeof *kept);
    r->n_keeps = v->n_keeps;
    r->keeps = keeps;
    r->kept = kept;
    return RENYI_OK;
}

static renyi_status fill_metrics(const renyi_viz *v, const ranking *by, renyi_viz_result *r,
                                 ry_stash *stash, renyi_error *err)
{
    renyi_viz_metric *metrics = RY_STASH_TAKE(stash, renyi_viz_metric, v->n_metrics);
    renyi_viz_metric *norms = RY_STASH_TAKE(stash, renyi_viz_metric, v->n_norms);
    if (!metrics || !norms) return ry_fail_nomem(err, v->n_norms * sizeof *norms);
    for (uint32_t i = 0; i < v->n_metrics; i++)
        RY_TRY(fill_metric(v, i, by, &metrics[i], stash, err));
    for (uint32_t i = 0; i < v->n_norms; i++) {
        if (v->norms[i] < v->n_metrics)
            norms[i] = metrics[v->norms[i]];
        else
            RY_TRY(fill_metric(v, v->norms[i], by, &norms[i], stash, err));
    }
    r->n_metrics = v->n_metrics;
    r->metrics = metrics;
    r->n_norms = v->n_norms;
    r->norms = norms;
    return fill_keeps(v, r, stash, err);
}

renyi_status ry_viz_fill_dense(const renyi_viz *v, renyi_viz_result *r, ry_stash *stash,
                               renyi_error *err)
{
    const uint32_t n = v->model->vit.n_patches;
    const ranking by = {ry_alloc(&v->stash.al, n, 2 * sizeof *by.keys),
                        ry_alloc(&v->stash.al, n, sizeof *by.order)};
    const renyi_status st = by.keys && by.order ? fill_metrics(v, &by, r, stash, err)
                                                : ry_fail_nomem(err, n * 2 * sizeof *by.keys);
    ry_free(&v->stash.al, by.keys);
    ry_free(&v->stash.al, by.order);
    return st;
}
