/* viz_attention.c - single rows and columns of the attention, per head, from queries and keys that
 * the dense run left. The kernels of a run never hold a matrix of one head, so it is computed here
 * once more, for the layers shown.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

/* One layer: queries and keys of N tokens. */
typedef struct matrix {
    const float *qk; /* [N, 2C] */
    size_t n, dim, head;
    float *logits; /* [N] scratch */
} matrix;

static size_t tokens_of(const renyi_viz *v)
{
    return (size_t)v->model->vit.config.n_prefix + v->model->vit.n_patches;
}

void ry_viz_watch(void *viz, const ry_block_view *view)
{
    const renyi_viz *v = viz;
    const size_t row = 2 * (size_t)view->dim;
    for (uint32_t i = 0; i < v->n_layers; i++) {
        if (v->layers[i] != view->block) continue;
        float *to = v->seen + i * tokens_of(v) * row;
        for (uint32_t t = 0; t < view->n_tokens; t++)
            memcpy(to + t * row, view->qkv + t * view->qkv_row, row * sizeof *to);
    }
}

/* In lanes of fixed order: fast without changing with the compiler. */
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
static float soft_row(const matrix *m, size_t h, size_t i)
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

/* Both lists of one head: [N] each. */
static void fill_head(const matrix *m, size_t h, size_t query, size_t token, float *row,
                      float *column)
{
    for (size_t i = 0; i < m->n; i++) {
        const float share = soft_row(m, h, i);
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

static renyi_status fill_layer(const matrix *m, const renyi_viz_attention *a,
                               renyi_viz_attention_layer *out, ry_stash *stash, renyi_error *err)
{
    const size_t n = m->n;
    float *row = RY_STASH_TAKE(stash, float, a->n_heads *n);
    float *column = RY_STASH_TAKE(stash, float, a->n_heads *n);
    float *means = RY_STASH_TAKE(stash, float, 2 * n);
    if (!row || !column || !means) return ry_fail_nomem(err, a->n_heads * n * sizeof *row);
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

/* The patch that Col-L4 ranks first in the last layer. */
static int32_t best_patch(const renyi_viz *v)
{
    const float *s = ry_scores_get(v->scores, 0, v->liked, v->layers[v->n_layers - 1]);
    uint32_t best = 0;
    for (uint32_t p = 1; p < v->model->vit.n_patches; p++)
        if (s[p] > s[best]) best = p;
    return (int32_t)best;
}

renyi_status ry_viz_fill_attention(const renyi_viz *v, renyi_viz_result *r, ry_stash *stash,
                                   renyi_error *err)
{
    const ry_vit_config *c = &v->model->vit.config;
    const size_t n = tokens_of(v);
    renyi_viz_attention *a = RY_STASH_TAKE(stash, renyi_viz_attention, 1);
    renyi_viz_attention_layer *layers =
        RY_STASH_TAKE(stash, renyi_viz_attention_layer, v->n_layers);
    float *logits = RY_STASH_TAKE(stash, float, n);
    if (!a || !layers || !logits) return ry_fail_nomem(err, n * sizeof *logits);
    *a = (renyi_viz_attention){.n_heads = c->n_heads,
                               .n_tokens = (uint32_t)n,
                               .n_prefix = c->n_prefix,
                               .query = v->query,
                               .token = v->token < 0 ? best_patch(v) : v->token,
                               .layers = layers};
    for (uint32_t i = 0; i < v->n_layers; i++) {
        const matrix m = {.qk = v->seen + i * n * 2 * c->dim,
                          .n = n,
                          .dim = c->dim,
                          .head = c->dim / c->n_heads,
                          .logits = logits};
        RY_TRY(fill_layer(&m, a, &layers[i], stash, err));
    }
    r->attention = a;
    return RENYI_OK;
}
