/* net_backward.c - the backward pass of a net: heads, blocks from the last to the first, patches.
 *
 * The stream of gradients d enters a block as the gradient of the rows that left it and leaves as
 * that of the rows that entered it. With factors f of stochastic depth a branch is
 * f (rows W^T + b), so its gradient begins as f d.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

#include <string.h>

/* ---- heads --------------------------------------------------------------------------------- */

/* dpooled = dlogits W, and the gradients of the head; dlogits NULL = zeros */
static void head_back(ry_net_worker *w, int k, const float *dlogits)
{
    const ry_net *net = w->net;
    const ry_net_matrix *m = &net->head[k];
    const size_t row = ry_net_pooled_row(net);
    if (!dlogits) {
        ry_step clear = ry_runner_step(w->run, 1);
        for (size_t t; ry_step_next(&clear, &t);)
            memset(net->dpooled[k], 0, w->n * row * sizeof(float));
        ry_step_end(&clear);
        return;
    }
    ry_runner_linear(w->run, m->back_op, (ry_extent){w->n, 1}, dlogits, net->dpooled[k]);
    ry_net_outer(w, m, w->n, dlogits, net->config.n_classes, net->pooled[k], row);
}

/* h = gradient of the rows that the projection of features read */
static void features_back(ry_net_worker *w, const float *dfeatures)
{
    const ry_net *net = w->net;
    const uint32_t n_rows = ry_net_last_patches(net);
    const size_t rows = (size_t)w->n * n_rows, F = net->feature_dim;
    ry_step step = ry_runner_step(w->run, w->n); /* into our buffer: oneDNN reads whole tiles */
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(net->dfeatures + i * n_rows * F, dfeatures + i * n_rows * F,
               n_rows * F * sizeof(float));
    ry_step_end(&step);
    ry_net_product(w, net->feature.back_op, rows, net->dfeatures, net->h);
    ry_net_outer(w, &net->feature, rows, net->dfeatures, F, net->feature_in,
                 ry_net_row(net, net->config.dim));
}

/* d rows of the patches of an image += their share of the mean's gradient */
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

/* For one image: dh = gradient of its normalized rows, d = gradient that does not pass the norm. */
static void scatter_pooled(const ry_net *net, float *d, size_t image, int features)
{
    const ry_vit_config *c = &net->config;
    const size_t C = c->dim, row = ry_net_row(net, C), K = c->n_prefix;
    const uint32_t rows = ry_net_last_rows(net), n_rows = ry_net_last_patches(net);
    const float *dpooled = net->dpooled[0] + image * ry_net_pooled_row(net);
    float *dh = net->dh + image * rows * row;

    if (c->pool != RY_POOL_ATTENTION) memset(dh, 0, rows * row * sizeof *dh);
    memset(d + image * rows * row, 0, rows * row * sizeof *d);
    for (size_t k = 0; c->pool == RY_POOL_TOKEN && k < ry_vit_class_rows(c); k++)
        memcpy(dh + k * row, net->dpooled[k] + image * row, C * sizeof *dh);
    if (c->pool == RY_POOL_CLASS_MEAN) {
        memcpy(dh, dpooled, C * sizeof *dh);
        spread_mean(net, image, dpooled + C, dh);
    }
    if (c->pool == RY_POOL_NORM_MEAN) spread_mean(net, image, dpooled, dh);
    if (c->pool == RY_POOL_MEAN)
        spread_mean(net, image, net->dpooled[1] + image * row, d + image * rows * row);
    for (uint32_t j = 0; features && j < n_rows; j++)
        ry_row_add(dh + (K + j) * row, net->h + (image * n_rows + j) * row, 1.0f, C);
}

static void heads_back(ry_net_worker *w, const float *dlogits, const float *dlogits_dist,
                       const float *dfeatures)
{
    const ry_net *net = w->net;
    const uint32_t L = net->config.n_blocks;
    const size_t row = ry_net_row(net, net->config.dim);
    const int mean_first = net->config.pool == RY_POOL_MEAN;

    head_back(w, 0, dlogits);
    if (ry_net_is_distilled(net)) head_back(w, 1, dlogits_dist);
    if (net->config.pool == RY_POOL_ATTENTION) ry_net_pool_backward(w);
    if (dfeatures) features_back(w, dfeatures);
    if (mean_first) { /* dpooled[1] has no second head here: it holds the gradient of the mean */
        ry_step clear = ry_runner_step(w->run, 1);
        for (size_t t; ry_step_next(&clear, &t);)
            memset(net->dpooled[1], 0, w->n * row * sizeof(float));
        ry_step_end(&clear);
        ry_net_norm_grad(w, &net->norm, w->n, net->pooled_x, net->dpooled[0], net->dpooled[1]);
    }
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&step, &i);) scatter_pooled(net, ry_net_d(w), i, dfeatures != NULL);
    ry_step_end(&step);
    if (!mean_first || dfeatures)
        ry_net_norm_grad(w, &net->norm, (size_t)w->n * ry_net_last_rows(net), net->tokens[L].x,
                         net->dh, ry_net_d(w));
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* g = activation of u again, in place of its gradient; wide = the gradient of u */
static void activation_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t M = net->config.mlp_dim, row = ry_net_row(net, M);
    const size_t u_row = ry_net_row(net, ry_net_mlp_in(net));
    const size_t rows = (size_t)w->n * b->rows.mlp;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, rows); r++) {
            float *g = net->g + r * row;
            (net->config.gated ? net->grad.swiglu_grad : net->activation_grad)(
                net->wide + r * u_row, g, g, b->u + r * u_row, M);
        }
    ry_step_end(&step);
}

/* From the gradient of z = y + MLP(LayerNorm y) to that of y, in place. */
static void mlp_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t rows = (size_t)w->n * b->rows.mlp;
    const size_t h = ry_net_row(net, net->config.dim), g = ry_net_row(net, net->config.mlp_dim);
    const size_t u = ry_net_row(net, ry_net_mlp_in(net));
    const float *ds = ry_net_scaled(w, 2 * i + 1, b->rows.mlp, ry_net_d(w), net->dscaled);

    ry_net_product(w, b->fc2.back_op, rows, ds, net->g);
    activation_back(w, i);
    ry_net_outer(w, &b->fc2, rows, ds, h, net->g, g);
    ry_net_unfold(w, &b->fc2);
    ry_net_normalize(w, &b->norm2, rows, b->y, net->h, NULL);
    ry_net_outer(w, &b->fc1, rows, net->wide, u, net->h, h);
    ry_net_product(w, b->fc1.back_op, rows, net->wide, net->dh);
    ry_net_norm_grad(w, &b->norm2, rows, b->y, net->dh, ry_net_d(w));
}

/* From the gradients of the class rows to those of all rows: the others are zero. */
static void spread_prefix(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const size_t row = ry_net_row(net, net->config.dim);
    const size_t K = ry_vit_class_rows(&net->config), N = net->blocks[i].rows.in;
    const float *from = ry_net_d(w);
    float *to = net->d[!w->d_now];
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t image; ry_step_next(&step, &image);) {
        memcpy(to + image * N * row, from + image * K * row, K * row * sizeof *to);
        memset(to + (image * N + K) * row, 0, (N - K) * row * sizeof *to);
    }
    ry_step_end(&step);
    w->d_now = !w->d_now;
}

/* Through the projection: returns the gradient of attention's output for all query rows. */
static const float *project_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t rows = (size_t)w->n * b->rows.project, h = ry_net_row(net, net->config.dim);
    const int before = b->rows.path == RY_PATH_BEFORE, fuses = before && !b->rows.needs.drops;
    const float *ds = ry_net_scaled(w, 2 * i, b->rows.project, ry_net_d(w), net->dscaled);
    const float *heads = b->heads;

    if (before) {
        ry_net_reduce_heads(w, i, NULL, net->h, 0);
        heads = net->h;
    }
    (fuses ? ry_net_outer_weights : ry_net_outer)(w, &b->proj, rows, ds, h, heads, h);
    if (fuses) ry_net_fused_bias_grad(w, i, ds);
    ry_net_unfold(w, &b->proj);
    ry_net_product(w, b->proj.back_op, rows, ds, net->dheads[0]);
    if (!before) return net->dheads[0];
    ry_net_cut_back_heads(w, i, ds);
    return net->dheads[1];
}

static void attention_back(ry_net_worker *w, uint32_t i, const float *dheads)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t H = net->config.n_heads, N = b->rows.in;
    const size_t row = ry_net_row(net, net->config.dim);
    const int each = b->rows.needs.columns.each_head;
    const ry_block_state s = ry_net_block_state(w, i, NULL);

    if (b->weights == RY_WEIGHTS_COLUMNS && !each) ry_net_weights_back(w, i);
    ry_step step = ry_runner_step(w->run, w->n * H);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / H;
        const ry_attention at = ry_block_attention(&s, image);
        ry_attention_grad g = {.n_tokens = N,
                               .n_heads = H,
                               .head = at.head,
                               .qkv = at.qkv,
                               .qkv_row = at.qkv_row,
                               .key_bias = at.key_bias,
                               .logit_factor = at.logit_factor,
                               .n_rows = b->rows.attend,
                               .dout = dheads + image * b->rows.attend * row,
                               .dout_row = row,
                               .dqkv = net->wide + image * N * at.qkv_row,
                               .dqkv_row = at.qkv_row};
        if (b->weights == RY_WEIGHTS_CLASS_ROW) g.dclass_row = net->dweight + image * N;
        if (b->weights == RY_WEIGHTS_COLUMNS)
            g.dmean =
                each ? ry_net_head_matrix(w, i, &g, image, t % H) : net->dmean + image * N * N;
        net->grad.attention_grad(&g, t % H, ry_net_scratch(w));
    }
    ry_step_end(&step);
}

/* From the gradient of qkv to that of x, added to the stream. */
static void qkv_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t rows = (size_t)w->n * b->rows.in, C = net->config.dim;
    const float *x = net->tokens[i].x;
    ry_net_normalize(w, &b->norm1, rows, x, net->h, NULL);
    ry_net_outer(w, &b->qkv, rows, net->wide, ry_net_row(net, 3 * C), net->h, ry_net_row(net, C));
    ry_net_product(w, b->qkv.back_op, rows, net->wide, net->dh);
    ry_net_norm_grad(w, &b->norm1, rows, x, net->dh, ry_net_d(w));
}

static void block_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const ry_block_path path = b->rows.path;
    const int values = b->weights != RY_WEIGHTS_CONSTANT || b->rows.needs.length;

    if (net->checkpoint_activations) ry_net_block_forward(w, i, 1);
    if (path == RY_PATH_END) {
        if (values) ry_net_mlp(w, i, net->pre, 0); /* the rows before the cut, again */
        ry_net_cut_back(w, i, net->pre);
    }
    mlp_back(w, i);
    if (path == RY_PATH_AFTER) {
        if (values) ry_net_project(w, i, net->pre);
        ry_net_cut_back(w, i, net->pre);
    }
    const float *dheads = project_back(w, i);
    if (path == RY_PATH_PREFIX) spread_prefix(w, i);
    attention_back(w, i, dheads);
    qkv_back(w, i);
}

/* ---- patches ------------------------------------------------------------------------------- */

/* Positions and prefix tokens: token t of all images, in a fixed order of sums. */
static void token_back(const ry_net *net, const float *d, uint32_t n, size_t t)
{
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    const size_t K = net->config.n_prefix, placed = net->config.n_placed;
    const size_t n_class = ry_vit_class_rows(&net->config);
    const ry_param *own = t < K ? net->token[t < n_class ? t : 2] : NULL;
    float *token = own && !own->frozen ? ry_net_prefix(net, net->params.grad, (uint32_t)t) : NULL;
    float *pos = ry_net_grad(net, net->pos) + (t < K ? t : t - K + placed) * C;
    if (net->pos->frozen || (t >= placed && t < K)) pos = NULL;
    for (size_t i = 0; i < n; i++) {
        const float *from = d + (i * net->n_tokens + t) * row;
        if (pos) ry_row_add(pos, from, 1.0f, C);
        if (token) ry_row_add(token, from, 1.0f, C);
        if (t >= K) /* rows of the patches without gaps, for their weights */
            memcpy(net->h + (i * net->n_patches + t - K) * row, from, C * sizeof *from);
    }
}

/* The stream of gradients through the LayerNorm before the blocks. */
static void norm_before_back(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const size_t rows = (size_t)w->n * net->n_tokens, row = ry_net_row(net, net->config.dim);
    const float *from = ry_net_d(w);
    float *to = net->d[!w->d_now];
    ry_step step = ry_runner_step(w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t at = t * RY_CONVERT_ROWS;
        memset(to + at * row, 0, (ry_row_end(t, rows) - at) * row * sizeof *to);
    }
    ry_step_end(&step);
    ry_net_norm_grad(w, &net->pre_norm, rows, net->embedded, from, to);
    w->d_now = !w->d_now;
}

static void embed_back(ry_net_worker *w)
{
    const ry_net *net = w->net;
    if (net->embedded) norm_before_back(w);
    const size_t patch = 3 * (size_t)net->config.patch_size * net->config.patch_size;
    ry_step step = ry_runner_step(w->run, net->n_tokens);
    for (size_t t; ry_step_next(&step, &t);) token_back(net, ry_net_d(w), w->n, t);
    ry_step_end(&step);
    ry_net_outer(w, &net->patch_embed, (size_t)w->n * net->n_patches, net->h,
                 ry_net_row(net, net->config.dim), net->patches, patch);
}

/* ---- the whole pass ------------------------------------------------------------------------ */

typedef struct inputs {
    const float *dlogits, *dlogits_dist, *dfeatures;
    uint32_t lowest; /* block that is trained; L = only the heads */
    int patches;     /* something before the blocks is trained */
} inputs;

/* The stream of gradients ends at the lowest parameter that is not frozen. */
static void find_lowest(const ry_net *net, inputs *in)
{
    const uint32_t L = net->config.n_blocks;
    in->lowest = L;
    in->patches = 0;
    for (uint32_t i = 0; i < net->params.n; i++) {
        const ry_param *q = &net->params.list[i];
        if (q->frozen) continue;
        if (q->role >= RY_NORM1_W && q->role <= RY_FC2_B) {
            if (q->block < in->lowest) in->lowest = q->block;
        } else if (q->role <= RY_PATCH_B || q->role == RY_PRE_NORM_W || q->role == RY_PRE_NORM_B) {
            in->patches = 1;
        }
    }
    if (in->patches) in->lowest = 0;
}

static void run_backward(ry_net_worker *w, const void *user)
{
    const inputs *in = user;
    const float *final_features = w->net->n_taps ? NULL : in->dfeatures;
    heads_back(w, in->dlogits, in->dlogits_dist, final_features);
    for (uint32_t i = w->net->config.n_blocks; i-- > in->lowest;) {
        ry_net_taps_backward(w, i, in->dfeatures);
        block_back(w, i);
    }
    if (in->patches) embed_back(w);
}

renyi_status ry_net_backward(ry_net *net, const float *dlogits, const float *dlogits_dist,
                             const float *dfeatures, renyi_error *err)
{
    inputs in = {.dlogits = dlogits, .dlogits_dist = dlogits_dist, .dfeatures = dfeatures};
    if (!net->n_last)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a backward pass needs a forward pass before it with the same weights and "
                       "cuts");
    if (dfeatures && !net->feature_dim)
        return ry_fail(err, RENYI_ERR_ARG, -1, "the model was made without features");
    find_lowest(net, &in);
    ry_net_threads(net, net->n_last, run_backward, &in);
    return RENYI_OK;
}
