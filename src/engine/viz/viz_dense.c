/* viz_dense.c - what the unpruned run shows: scores, ranks and colour scales of every metric and
 * layer, and single rows and columns of the attention per head.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"
#include "prune/rules/select.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

/* ---- metrics ------------------------------------------------------------------------------- */

/* Memory for ranking P patches. */
typedef struct ranking {
    uint64_t *keys;  /* [2P] */
    uint32_t *order; /* [P] best first */
} ranking;

/* The score that a share q of the patches is below, interpolated linearly. `order` ranks all n;
 * scores that are not finite are left out. */
static float percentile(const float *score, const uint32_t *order, uint32_t n, double q)
{
    uint32_t first = 0, last = n; /* infinity ranks first; minus infinity and NaN last */
    while (first < last && !isfinite(score[order[first]])) first++;
    while (last > first && !isfinite(score[order[last - 1]])) last--;
    if (first == last) return 0.0f;
    const double at = (1.0 - q) * (last - first - 1);
    const uint32_t below = (uint32_t)at, next = below + 1 < last - first ? below + 1 : below;
    const double a = (double)score[order[first + below]], b = (double)score[order[first + next]];
    return (float)(a + (b - a) * (at - below));
}

static renyi_status fill_map(const float *score, uint32_t n, const ranking *by, renyi_viz_map *out,
                             ry_pool *pool, renyi_error *err)
{
    float *copy = RY_POOL_TAKE(pool, n, float);
    uint32_t *rank = RY_POOL_TAKE(pool, n, uint32_t);
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
                                renyi_viz_metric *out, ry_pool *pool, renyi_error *err)
{
    const ry_viz_metric *m = &v->scored[place];
    renyi_viz_map *maps = RY_POOL_TAKE(pool, v->n_layers, renyi_viz_map);
    *out = (renyi_viz_metric){.name = ry_pool_text(pool, m->name),
                              .label = ry_pool_text(pool, m->label),
                              .order = m->order,
                              .maps = maps};
    if (!maps || !out->name || !out->label) return ry_fail_nomem(err, v->n_layers * sizeof *maps);
    for (uint32_t i = 0; i < v->n_layers; i++)
        RY_TRY(fill_map(ry_scores_get(v->scores, 0, place, v->layers[i]), v->model->vit.n_patches,
                        by, &maps[i], pool, err));
    return RENYI_OK;
}

static renyi_status fill_keeps(const renyi_viz *v, renyi_viz_result *r, ry_pool *pool,
                               renyi_error *err)
{
    double *keeps = RY_POOL_TAKE(pool, v->n_keeps, double);
    uint32_t *kept = RY_POOL_TAKE(pool, v->n_keeps, uint32_t);
    if (!keeps || !kept) return ry_fail_nomem(err, v->n_keeps * sizeof *keeps);
    memcpy(keeps, v->keeps, v->n_keeps * sizeof *keeps);
    memcpy(kept, v->kept, v->n_keeps * sizeof *kept);
    r->n_keeps = v->n_keeps;
    r->keeps = keeps;
    r->kept = kept;
    return RENYI_OK;
}

static renyi_status fill_metrics(const renyi_viz *v, const ranking *by, renyi_viz_result *r,
                                 ry_pool *pool, renyi_error *err)
{
    renyi_viz_metric *metrics = RY_POOL_TAKE(pool, v->n_metrics, renyi_viz_metric);
    renyi_viz_metric *norms = RY_POOL_TAKE(pool, v->n_norms, renyi_viz_metric);
    if (!metrics || !norms) return ry_fail_nomem(err, v->n_norms * sizeof *norms);
    for (uint32_t i = 0; i < v->n_metrics; i++)
        RY_TRY(fill_metric(v, i, by, &metrics[i], pool, err));
    for (uint32_t i = 0; i < v->n_norms; i++) {
        if (v->norms[i] < v->n_metrics)
            norms[i] = metrics[v->norms[i]];
        else
            RY_TRY(fill_metric(v, v->norms[i], by, &norms[i], pool, err));
    }
    r->n_metrics = v->n_metrics;
    r->metrics = metrics;
    r->n_norms = v->n_norms;
    r->norms = norms;
    return fill_keeps(v, r, pool, err);
}

renyi_status ry_viz_fill_dense(const renyi_viz *v, renyi_viz_result *r, ry_pool *pool,
                               renyi_error *err)
{
    const uint32_t n = v->model->vit.n_patches;
    const ranking by = {ry_alloc(&v->al, n, 2 * sizeof *by.keys),
                        ry_alloc(&v->al, n, sizeof *by.order)};
    const renyi_status st = by.keys && by.order ? fill_metrics(v, &by, r, pool, err)
                                                : ry_fail_nomem(err, n * 2 * sizeof *by.keys);
    ry_free(&v->al, by.keys);
    ry_free(&v->al, by.order);
    return st;
}

/* ---- attention ----------------------------------------------------------------------------- */

/* The kernels of a run never hold the attention matrix of one head, so its rows are computed again
 * here, for the layers shown, from the queries and keys that the run left in v->seen. */

/* Queries and keys of one layer, N tokens. */
typedef struct layer_keys {
    const float *qk; /* [N, 2C] */
    size_t n, dim, head;
    float *logits; /* [N] scratch */
} layer_keys;

static size_t token_count(const renyi_viz *v)
{
    return (size_t)v->model->vit.config.n_prefix + v->model->vit.n_patches;
}

void ry_viz_watch(void *viz, const ry_block_view *view)
{
    const renyi_viz *v = viz;
    const size_t row = 2 * (size_t)view->dim;
    for (uint32_t i = 0; i < v->n_layers; i++) {
        if (v->layers[i] != view->block) continue;
        float *to = v->seen + i * token_count(v) * row;
        for (uint32_t t = 0; t < view->n_tokens; t++)
            memcpy(to + t * row, view->qkv + t * view->qkv_row, row * sizeof *to);
    }
}

/* Sums in lanes of a fixed order: fast, and the same bits with every compiler. */
static float dot(const float *a, const float *b, size_t n)
{
    float lane[LANES] = {0}, sum = 0.0f;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) lane[k] += a[i + k] * b[i + k];
    for (; i < n; i++) sum += a[i] * b[i];
    for (size_t k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

/* m->logits = exp(q_i k_j / sqrt(d) - largest) for all j; returns one over their sum. */
static float softmax_row(const layer_keys *m, size_t h, size_t i)
{
    const float *q = m->qk + i * 2 * m->dim + h * m->head;
    const float scale = 1.0f / sqrtf((float)m->head);
    float largest = -INFINITY;
    double sum = 0.0;
    for (size_t j = 0; j < m->n; j++) {
        const float *k = m->qk + j * 2 * m->dim + m->dim + h * m->head;
        m->logits[j] = dot(q, k, m->head) * scale;
        largest = fmaxf(largest, m->logits[j]);
    }
    for (size_t j = 0; j < m->n; j++) {
        m->logits[j] = expf(m->logits[j] - largest);
        sum += (double)m->logits[j];
    }
    return (float)(1.0 / sum);
}

/* Row `query` and column `token` of one head's attention matrix: [N] each. */
static void fill_head(const layer_keys *m, size_t h, size_t query, size_t token, float *row,
                      float *column)
{
    for (size_t i = 0; i < m->n; i++) {
        const float share = softmax_row(m, h, i);
        column[i] = m->logits[token] * share;
        if (i != query) continue;
        for (size_t j = 0; j < m->n; j++) row[j] = m->logits[j] * share;
    }
}

static void mean_of(float *mean, const float *heads, size_t n_heads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t h = 0; h < n_heads; h++) sum += (double)heads[h * n + i];
        mean[i] = (float)(sum / (double)n_heads);
    }
}

static renyi_status fill_layer(const layer_keys *m, const renyi_viz_attention *a,
                               renyi_viz_attention_layer *out, ry_pool *pool, renyi_error *err)
{
    const size_t n = m->n, all = n * a->n_heads;
    float *row = RY_POOL_TAKE(pool, all, float);
    float *column = RY_POOL_TAKE(pool, all, float);
    float *means = RY_POOL_TAKE(pool, 2 * n, float);
    if (!row || !column || !means) return ry_fail_nomem(err, all * sizeof *row);
    const size_t query = a->query < 0 ? 0 : a->n_prefix + (size_t)a->query;
    const size_t token = a->n_prefix + (size_t)a->token;
    for (size_t h = 0; h < a->n_heads; h++)
        fill_head(m, h, query, token, row + h * n, column + h * n);
    mean_of(means, row, a->n_heads, n);
    mean_of(means + n, column, a->n_heads, n);
    *out = (renyi_viz_attention_layer){
        .row = row, .column = column, .row_mean = means, .column_mean = means + n};
    return RENYI_OK;
}

/* The patch that Col-L4 ranks first in the last layer shown. */
static int32_t best_patch(const renyi_viz *v)
{
    const float *s = ry_scores_get(v->scores, 0, v->liked, v->layers[v->n_layers - 1]);
    uint32_t best = 0;
    for (uint32_t p = 1; p < v->model->vit.n_patches; p++)
        if (s[p] > s[best]) best = p;
    return (int32_t)best;
}

renyi_status ry_viz_fill_attention(const renyi_viz *v, renyi_viz_result *r, ry_pool *pool,
                                   renyi_error *err)
{
    const ry_vit_config *c = &v->model->vit.config;
    const size_t n = token_count(v);
    renyi_viz_attention *a = RY_POOL_TAKE(pool, 1, renyi_viz_attention);
    renyi_viz_attention_layer *layers = RY_POOL_TAKE(pool, v->n_layers, renyi_viz_attention_layer);
    float *logits = RY_POOL_TAKE(pool, n, float);
    if (!a || !layers || !logits) return ry_fail_nomem(err, n * sizeof *logits);
    *a = (renyi_viz_attention){.n_heads = c->n_heads,
                               .n_tokens = (uint32_t)n,
                               .n_prefix = c->n_prefix,
                               .query = v->query,
                               .token = v->token < 0 ? best_patch(v) : v->token,
                               .layers = layers};
    for (uint32_t i = 0; i < v->n_layers; i++) {
        const layer_keys m = {.qk = v->seen + i * n * 2 * c->dim,
                              .n = n,
                              .dim = c->dim,
                              .head = c->dim / c->n_heads,
                              .logits = logits};
        RY_TRY(fill_layer(&m, a, &layers[i], pool, err));
    }
    r->attention = a;
    return RENYI_OK;
}
