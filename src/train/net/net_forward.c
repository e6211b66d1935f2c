/* net_forward.c - the forward pass of a micro-batch; saves everything that the backward pass needs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/status.h"
#include "image/patches.h"
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

#include <string.h>

/* ---- patches ------------------------------------------------------------------------------- */

/* x = [tokens, patches W + b] + positions, then a LayerNorm if there is one before the blocks */
static void embed_image(const ry_net *net, const float *chw, float *first, size_t i)
{
    const ry_vit_config *c = &net->config;
    const size_t C = c->dim, K = c->n_prefix, P = net->n_patches, N = net->n_tokens;
    const size_t patch = 3 * (size_t)c->patch_size * c->patch_size, S = c->image_size;
    const ry_net_tokens *t = &net->tokens[0];
    float *x = first + i * N * C;

    const float *pos = ry_net_value(net, net->pos);
    const size_t placed = c->n_placed;
    memcpy(x, pos, placed * C * sizeof *x);
    memset(x + placed * C, 0, (K - placed) * C * sizeof *x);
    memcpy(x + K * C, pos + placed * C, P * C * sizeof *x);
    for (size_t k = 0; k < K; k++) {
        ry_row_add(x + k * C, ry_net_prefix(net, net->params.value, (uint32_t)k), 1.0f, C);
        t->patch[i * N + k] = RY_NO_TOKEN;
    }
    for (size_t j = 0; j < P; j++) t->patch[i * N + K + j] = (uint32_t)j;
    ry_patches_from_chw(net->patches + i * P * patch, chw + i * 3 * S * S, c->image_size,
                        c->patch_size);
}

/* tokens[0].x = LayerNorm of the embedded rows */
static void norm_before(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const size_t C = net->config.dim, rows = (size_t)w->n * net->n_tokens;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t at = t * RY_CONVERT_ROWS;
        net->kernels.layernorm(net->tokens[0].x + at * C, C, net->embedded + at * C, C,
                               ry_row_end(t, rows) - at, C, ry_net_value(net, net->pre_norm.w),
                               ry_net_value(net, net->pre_norm.b), (float)net->config.norm_eps);
    }
    ry_step_end(&step);
}

static void embed_patches(ry_net_worker *w, const ry_net_batch *batch)
{
    const ry_net *net = w->net;
    const ry_extent run = {w->n, net->n_patches};
    float *first = net->embedded ? net->embedded : net->tokens[0].x;
    float *x = first + (size_t)net->config.n_prefix * net->config.dim;

    ry_step images = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&images, &i);) embed_image(net, batch->chw, first, i);
    ry_step_end(&images);
    ry_runner_linear(w->run, net->patch_embed.ahead_op, run, net->patches,
                     x); /* adds to positions */
    if (net->embedded) norm_before(w);
}

/* ---- blocks -------------------------------------------------------------------------------- */

static void attend(ry_net_worker *w, uint32_t i, int again)
{
    const ry_net *net = w->net;
    const ry_block_rows *b = &net->blocks[i].rows;
    const size_t blocks = ry_attention_blocks(b->attend, net->kernels.attention_rows);
    const ry_block_state s = ry_net_block_state(w, i, NULL);
    ry_step step = ry_runner_step(w->run, w->n * blocks);
    for (size_t t; ry_step_next(&step, &t);) {
        ry_attention at = ry_block_attention(&s, t / blocks);
        if (b->path == RY_PATH_PREFIX) {
            at.rows = net->prefix_rows;
            at.n_rows = b->attend;
        }
        if (again) at.class_row = NULL, at.column_parts = NULL; /* the decision is known */
        net->kernels.attention(&at, t % blocks, ry_net_scratch(w));
    }
    ry_step_end(&step);
}

/* y = the class rows of x, if nothing else is read after the last block */
static void start_class(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t C = net->config.dim, K = ry_vit_class_rows(&net->config);
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t image; ry_step_next(&step, &image);) {
        const float factor = ry_net_factor(w, 2 * i, image);
        float *to = b->y + image * K * C;
        memcpy(to, net->tokens[i].x + image * b->rows.in * C, K * C * sizeof *to);
        for (size_t k = 0; factor != 1.0f && k < K; k++)
            ry_row_add(to + k * C, ry_linear_bias(b->proj.ahead), factor - 1.0f, C);
    }
    ry_step_end(&step);
}

/* y += the projection of attention's output. rows: of each image */
static void add_projection(ry_net_worker *w, uint32_t i, uint32_t rows, float *y)
{
    const ry_net_block *b = &w->net->blocks[i];
    const float *heads = ry_net_scaled(w, 2 * i, rows, b->heads, w->net->h);
    ry_net_product(w, b->proj.ahead_op, (size_t)w->n * rows, heads, y);
}

void ry_net_project(ry_net_worker *w, uint32_t i, float *to)
{
    const ry_net_block *b = &w->net->blocks[i];
    const ry_net_residual start = {to, ry_linear_bias(b->proj.ahead), 2 * i, b->rows.in};
    ry_net_normalize(w, &b->norm1, (size_t)w->n * b->rows.in, w->net->tokens[i].x, w->net->h,
                     &start);
    add_projection(w, i, b->rows.in, to);
}

/* g = activation of u, times the factor of the image */
static void activate(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t M = net->config.mlp_dim, row = ry_net_row(net, M);
    const size_t u_row = ry_net_row(net, ry_net_mlp_in(net));
    const size_t rows = (size_t)w->n * b->rows.mlp;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, rows); r++) {
            const float factor = ry_net_factor(w, 2 * i + 1, r / b->rows.mlp);
            if (net->config.gated)
                net->kernels.swiglu(net->g + r * row, row, b->u + r * u_row, u_row, 1, M);
            else
                net->activation(net->g + r * row, b->u + r * u_row, M);
            if (factor != 1.0f) ry_row_scale(net->g + r * row, net->g + r * row, factor, M);
        }
    ry_step_end(&step);
}

void ry_net_mlp(ry_net_worker *w, uint32_t i, float *z, int only_inside)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t rows = (size_t)w->n * b->rows.mlp;
    const ry_net_residual start = {only_inside ? NULL : z, ry_linear_bias(b->fc2.ahead), 2 * i + 1,
                                   b->rows.mlp};
    ry_net_normalize(w, &b->norm2, rows, b->y, net->h, &start);
    ry_net_product(w, b->fc1.ahead_op, rows, net->h, b->u);
    if (only_inside) return;
    activate(w, i);
    ry_net_product(w, b->fc2.ahead_op, rows, net->g, z);
}

/* The hook's decision in block i; x: the rows it may read. */
static void decide_cut(ry_net_worker *w, uint32_t i, const float *x)
{
    const ry_block_state s = ry_net_block_state(w, i, x);
    ry_block_decide(w->run, &w->net->hook, &s);
}

/* From x to y: attention, and a cut in the middle of the block. */
static void run_attention(ry_net_worker *w, uint32_t i, int again)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const ry_block_path path = b->rows.path;
    const int by_tokens = (b->rows.needs.what & RY_NEED_TOKENS) != 0;
    const int decide = b->rows.decide && !again;
    const int all = path != RY_PATH_PREFIX && path != RY_PATH_BEFORE; /* rows are projected */
    const size_t rows = (size_t)w->n * b->rows.in;
    float *y = path == RY_PATH_AFTER ? net->pre : b->y;
    const ry_net_residual start = {all ? y : NULL, ry_linear_bias(b->proj.ahead), 2 * i,
                                   b->rows.in};

    if (decide && b->rows.needs.what & RY_NEED_POOL_ROW) ry_net_pool_row(w, i);
    ry_net_normalize(w, &b->norm1, rows, net->tokens[i].x, net->h, &start);
    ry_net_product(w, b->qkv.ahead_op, rows, net->h, b->qkv_rows);
    attend(w, i, again);
    if (decide && !by_tokens) decide_cut(w, i, net->tokens[i].x);
    if (path == RY_PATH_PREFIX) start_class(w, i);
    if (path == RY_PATH_BEFORE) {
        ry_net_reduce_heads(w, i, y, net->h, 1);
        ry_net_product(w, b->proj.ahead_op, (size_t)w->n * b->rows.project, net->h, y);
    } else {
        add_projection(w, i, b->rows.project, y);
    }
    if (decide && by_tokens) decide_cut(w, i, y);
    if (path == RY_PATH_AFTER) ry_net_reduce(w, i, y, b->y);
}

void ry_net_block_forward(ry_net_worker *w, uint32_t i, int again)
{
    const ry_net *net = w->net;
    const int end = net->blocks[i].rows.path == RY_PATH_END;
    float *z = end ? net->pre : net->tokens[i + 1].x;
    run_attention(w, i, again);
    ry_net_mlp(w, i, z, again);
    if (end && !again) ry_net_reduce(w, i, z, net->tokens[i + 1].x);
}

/* ---- heads --------------------------------------------------------------------------------- */

/* The input of the heads and of the projection of features for one image, from its normalized rows
 * h. */
static void gather_pooled(const ry_net *net, size_t image)
{
    const ry_vit_config *c = &net->config;
    const size_t C = c->dim, row = ry_net_row(net, C), K = c->n_prefix;
    const size_t pooled = ry_net_pooled_row(net);
    const uint32_t rows = ry_net_last_rows(net), n_rows = ry_net_last_patches(net);
    const float *h = net->h + image * rows * row;
    const ry_net_tokens *last = &net->tokens[c->n_blocks];
    const float *sizes = ry_net_sizes(net, c->n_blocks, image, rows);

    for (size_t k = 0; c->pool == RY_POOL_TOKEN && k < ry_vit_class_rows(c); k++)
        memcpy(net->pooled[k] + image * row, h + k * row, C * sizeof *h);
    if (c->pool == RY_POOL_CLASS_MEAN) {
        memcpy(net->pooled[0] + image * pooled, h, C * sizeof *h);
        ry_token_mean(net->pooled[0] + image * pooled + C, h, row, C, sizes, K, rows);
    }
    if (c->pool == RY_POOL_NORM_MEAN)
        ry_token_mean(net->pooled[0] + image * row, h, row, C, sizes, K, rows);
    if (c->pool == RY_POOL_MEAN) {
        float *x = net->pooled_x + image * C;
        ry_token_mean(x, last->x + image * rows * C, C, C, sizes, K, rows);
        net->kernels.layernorm(net->pooled[0] + image * row, row, x, C, 1, C,
                               ry_net_value(net, net->norm.w), ry_net_value(net, net->norm.b),
                               (float)c->norm_eps);
    }
    if (!ry_net_final_features(net)) return;
    for (size_t j = 0; j < n_rows; j++)
        memcpy(net->feature_in + (image * n_rows + j) * row, h + (K + j) * row, C * sizeof *h);
    memcpy(net->feature_patch + image * n_rows, net->tokens[last->facts].patch + image * rows + K,
           n_rows * sizeof(uint32_t));
}

typedef struct outputs {
    const ry_net_batch *batch;
    float *logits[2];
} outputs;

static void run_forward(ry_net_worker *w, const void *user)
{
    const outputs *out = user;
    const ry_net *net = w->net;
    const uint32_t L = net->config.n_blocks;
    embed_patches(w, out->batch);
    for (uint32_t i = 0; i < L; i++) {
        ry_net_force(w, i);
        ry_net_block_forward(w, i, 0);
        ry_net_taps_forward(w, i);
    }

    const uint32_t rows = ry_net_last_rows(net);
    if (net->config.pool != RY_POOL_MEAN || ry_net_final_features(net))
        ry_net_normalize(w, &net->norm, (size_t)w->n * rows, net->tokens[L].x, net->h, NULL);
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&step, &i);) gather_pooled(net, i);
    ry_step_end(&step);
    if (net->config.pool == RY_POOL_ATTENTION) ry_net_pool_forward(w);
    for (int k = 0; k < (ry_net_is_distilled(net) ? 2 : 1); k++)
        ry_runner_linear(w->run, net->head[k].ahead_op, (ry_extent){w->n, 1}, net->pooled[k],
                         out->logits[k]);
    if (ry_net_final_features(net))
        ry_net_product(w, net->feature.ahead_op, (size_t)w->n * ry_net_last_patches(net),
                       net->feature_in, net->features);
}

/* The `random` metric is seeded by the pixels of each image, as in a session. */
static void set_image_keys(ry_net *net, const ry_net_batch *batch)
{
    const size_t each = (size_t)3 * net->config.image_size * net->config.image_size;
    if (!net->pruner || net->policy.metric != RY_METRIC_RANDOM) return;
    for (uint32_t i = 0; i < batch->n; i++)
        net->image_keys[i] = ry_hash(batch->chw + i * each, each * sizeof *batch->chw);
    ry_pruner_name_images(net->pruner, net->image_keys, batch->n);
}

renyi_status ry_net_forward(ry_net *net, const ry_net_batch *batch, float *logits,
                            float *logits_dist, renyi_error *err)
{
    const outputs out = {batch, {logits, logits_dist}};
    if (!batch->n || batch->n > net->max_batch)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u images; the micro-batch takes 1 to %u", batch->n,
                       net->max_batch);
    if (batch->forced && (!net->direct || net->n_taps != net->config.n_blocks || net->pruner ||
                          net->feature_prefix != net->config.n_prefix))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "blocks can start from a teacher's tokens only if all of them are compared "
                       "directly, prefix included, and there are no cuts");
    if (ry_net_is_distilled(net) && !logits_dist)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a model with two heads needs buffers for the logits of both");
    set_image_keys(net, batch);
    net->branch = batch->branch;
    net->forced = batch->forced;
    ry_net_threads(net, batch->n, run_forward, &out);
    net->n_last = batch->n;
    return RENYI_OK;
}
