/* net_ends_grad.c - the way back through heads, pooling and the final LayerNorm into the stream,
 * and at its other end into patches, tokens and positions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

#include <string.h>

/* ---- heads --------------------------------------------------------------------------------- */

/* dpooled = dlogits W, and the gradients of the head; dlogits NULL = zeros */
static void head_back(ry_net_worker *w, int k, const float *dlogits)
{
    const ry_net *net = w->net;
    const ry_net_matrix *m = &net->head[k];
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    if (!dlogits) {
        ry_step clear = ry_net_begin(w, 1);
        for (size_t t; ry_step_next(&clear, &t);)
            memset(net->dpooled[k], 0, w->n * row * sizeof(float));
        ry_step_end(&clear);
        return;
    }
    const ry_extent run = {w->n, 1};
    ry_step step = ry_net_begin(w, ry_linear_op_tiles(m->back_op, run));
    for (size_t t; ry_step_next(&step, &t);)
        ry_linear_op_tile(m->back_op, t, run, w->thread, dlogits, net->dpooled[k]);
    ry_step_end(&step);
    ry_net_outer(w, m, w->n, dlogits, net->config.n_classes, net->pooled[k], row);
}

/* h = gradient of the rows that the projection of features read */
static void features_back(ry_net_worker *w, const float *dfeatures)
{
    const ry_net *net = w->net;
    const uint32_t n_rows = ry_net_last_rows(net) - net->config.n_prefix;
    const size_t rows = (size_t)w->n * n_rows, F = net->feature_dim;
    ry_step step = ry_net_begin(w, w->n); /* in memory of ours: oneDNN reads whole tiles */
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(net->dfeatures + i * n_rows * F, dfeatures + i * n_rows * F,
               n_rows * F * sizeof(float));
    ry_step_end(&step);
    ry_net_product(w, net->feature.back_op, rows, net->dfeatures, net->h);
    ry_net_outer(w, &net->feature, rows, net->dfeatures, F, net->feature_in,
                 ry_net_row(net, net->config.dim));
}

/* d rows of the patches of an image = their share of the mean's gradient */
static void spread_mean(const ry_net *net, size_t image, const float *dmean, float *d)
{
    const ry_vit_config *c = &net->config;
    const size_t row = ry_net_row(net, c->dim);
    const uint32_t rows = ry_net_last_rows(net);
    const float *sizes = ry_net_sizes(net, c->n_blocks, image, rows);
    float sum = 0.0f;
    for (uint32_t j = c->n_prefix; j < rows; j++) sum += sizes ? sizes[j] : 1.0f;
    for (uint32_t j = c->n_prefix; j < rows; j++)
        ry_row_add(d + j * row, dmean, (sizes ? sizes[j] : 1.0f) / sum, c->dim);
}

/* dh = gradient of the normalised rows of an image, d = what reaches its rows beside the norm. */
static void ungather(const ry_net *net, float *d, size_t image, int features)
{
    const ry_vit_config *c = &net->config;
    const size_t C = c->dim, row = ry_net_row(net, C), K = c->n_prefix;
    const uint32_t rows = ry_net_last_rows(net), n_rows = rows - c->n_prefix;
    float *dh = net->dh + image * rows * row;

    memset(dh, 0, rows * row * sizeof *dh);
    memset(d + image * rows * row, 0, rows * row * sizeof *d);
    for (size_t k = 0; c->pool == RY_POOL_TOKEN && k < K; k++)
        memcpy(dh + k * row, net->dpooled[k] + image * row, C * sizeof *dh);
    if (c->pool == RY_POOL_NORM_MEAN) spread_mean(net, image, net->dpooled[0] + image * row, dh);
    if (c->pool == RY_POOL_MEAN)
        spread_mean(net, image, net->dpooled[1] + image * row, d + image * rows * row);
    for (uint32_t j = 0; features && j < n_rows; j++)
        ry_row_add(dh + (K + j) * row, net->h + (image * n_rows + j) * row, 1.0f, C);
}

void ry_net_ends_backward(ry_net_worker *w, const float *dlogits, const float *dlogits_dist,
                          const float *dfeatures)
{
    const ry_net *net = w->net;
    const uint32_t L = net->config.n_blocks;
    const size_t row = ry_net_row(net, net->config.dim);
    const int mean_first = net->config.pool == RY_POOL_MEAN;

    head_back(w, 0, dlogits);
    if (ry_net_is_distilled(net)) head_back(w, 1, dlogits_dist);
    if (dfeatures) features_back(w, dfeatures);
    if (mean_first) { /* dpooled[1], idle without a second head: the gradient of the mean */
        ry_step clear = ry_net_begin(w, 1);
        for (size_t t; ry_step_next(&clear, &t);)
            memset(net->dpooled[1], 0, w->n * row * sizeof(float));
        ry_step_end(&clear);
        ry_net_norm_grad(w, &net->norm, w->n, net->pooled_x, net->dpooled[0], net->dpooled[1]);
    }
    ry_step step = ry_net_begin(w, w->n);
    for (size_t i; ry_step_next(&step, &i);) ungather(net, ry_net_d(w), i, dfeatures != NULL);
    ry_step_end(&step);
    if (!mean_first || dfeatures)
        ry_net_norm_grad(w, &net->norm, (size_t)w->n * ry_net_last_rows(net), net->tokens[L].x,
                         net->dh, ry_net_d(w));
}

/* ---- patches ------------------------------------------------------------------------------- */

/* Positions and prefix tokens: token t of all images, one after the other. */
static void token_back(const ry_net *net, const float *d, uint32_t n, size_t t)
{
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    const ry_param *own = t < net->config.n_prefix ? net->token[t] : NULL;
    float *pos = net->pos->frozen ? NULL : ry_net_grad(net, net->pos);
    float *token = own && !own->frozen ? ry_net_grad(net, own) : NULL;
    for (size_t i = 0; i < n; i++) {
        const float *from = d + (i * net->n_tokens + t) * row;
        if (pos) ry_row_add(pos + t * C, from, 1.0f, C);
        if (token) ry_row_add(token, from, 1.0f, C);
        if (t >= net->config.n_prefix) /* the patches' rows without a gap, for their weights */
            memcpy(net->h + (i * net->n_patches + t - net->config.n_prefix) * row, from,
                   C * sizeof *from);
    }
}

void ry_net_embed_backward(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const size_t patch = 3 * (size_t)net->config.patch_size * net->config.patch_size;
    ry_step step = ry_net_begin(w, net->n_tokens);
    for (size_t t; ry_step_next(&step, &t);) token_back(net, ry_net_d(w), w->n, t);
    ry_step_end(&step);
    ry_net_outer(w, &net->patch_embed, (size_t)w->n * net->n_patches, net->h,
                 ry_net_row(net, net->config.dim), net->patches, patch);
}
