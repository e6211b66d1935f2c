/* net_block_grad.c - the way back through one block. The stream of gradients comes in as that of
 * the rows that left the block and goes out as that of the rows that entered it.
 *
 * With factors f of stochastic depth a branch is f (rows W^T + b), so its gradient begins as f d.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

#include <string.h>

/* g = activation of u again, wide = its gradient from that of g */
static void activation_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t M = net->config.mlp_dim, row = ry_net_row(net, M);
    const size_t rows = (size_t)w->n * b->rows.mlp;
    ry_step step = ry_net_begin(w, (rows + RY_NET_CHUNK - 1) / RY_NET_CHUNK);
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_NET_CHUNK; r < rows && r < (t + 1) * RY_NET_CHUNK; r++) {
            const float *u = b->u + r * row;
            float *du = net->wide + r * row;
            net->activation_grad(du, net->g + r * row, du, u, M);
        }
    ry_step_end(&step);
}

/* From the gradient of z = y + MLP(LayerNorm y) to that of y, in place. */
static void mlp_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t rows = (size_t)w->n * b->rows.mlp;
    const size_t h = ry_net_row(net, net->config.dim), u = ry_net_row(net, net->config.mlp_dim);
    const float *ds = ry_net_scaled(w, 2 * i + 1, b->rows.mlp, ry_net_d(w), net->dscaled);

    ry_net_product(w, b->fc2.back_op, rows, ds, net->wide);
    activation_back(w, i);
    ry_net_outer(w, &b->fc2, rows, ds, h, net->g, u);
    ry_net_normalise(w, &b->norm2, rows, b->y, net->h, NULL);
    ry_net_outer(w, &b->fc1, rows, net->wide, u, net->h, h);
    ry_net_product(w, b->fc1.back_op, rows, net->wide, net->dh);
    ry_net_norm_grad(w, &b->norm2, rows, b->y, net->dh, ry_net_d(w));
}

/* From the prefix rows to all: the others got no gradient yet. */
static void spread_prefix(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const size_t row = ry_net_row(net, net->config.dim), K = net->config.n_prefix;
    const size_t N = net->blocks[i].rows.in;
    const float *from = ry_net_d(w);
    float *to = net->d[!w->d_now];
    ry_step step = ry_net_begin(w, w->n);
    for (size_t image; ry_step_next(&step, &image);) {
        memcpy(to + image * N * row, from + image * K * row, K * row * sizeof *to);
        memset(to + (image * N + K) * row, 0, (N - K) * row * sizeof *to);
    }
    ry_step_end(&step);
    w->d_now = !w->d_now;
}

/* Through the projection: the gradient of attention's output, of all rows that attended. */
static const float *project_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const size_t rows = (size_t)w->n * b->rows.project, h = ry_net_row(net, net->config.dim);
    const int before = b->rows.way == RY_WAY_BEFORE;
    const float *ds = ry_net_scaled(w, 2 * i, b->rows.project, ry_net_d(w), net->dscaled);
    const float *heads = b->heads;

    if (before) {
        ry_net_reduce_heads(w, i, NULL, net->h, 0);
        heads = net->h;
    }
    ry_net_outer(w, &b->proj, rows, ds, h, heads, h);
    ry_net_product(w, b->proj.back_op, rows, ds, net->dheads[0]);
    if (!before) return net->dheads[0];
    ry_net_fused_bias_grad(w, i, ds);
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

    if (b->weights == RY_WEIGHTS_COLUMNS && !each) ry_net_weights_back(w, i);
    ry_step step = ry_net_begin(w, w->n * H);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / H;
        const ry_attention at = ry_net_attention_of(w, i, image);
        ry_attention_grad g = {.n_tokens = N,
                               .n_heads = H,
                               .head = at.head,
                               .qkv = at.qkv,
                               .qkv_row = at.qkv_row,
                               .key_bias = at.key_bias,
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
    ry_net_normalise(w, &b->norm1, rows, x, net->h, NULL);
    ry_net_outer(w, &b->qkv, rows, net->wide, ry_net_row(net, 3 * C), net->h, ry_net_row(net, C));
    ry_net_product(w, b->qkv.back_op, rows, net->wide, net->dh);
    ry_net_norm_grad(w, &b->norm1, rows, x, net->dh, ry_net_d(w));
}

void ry_net_block_backward(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const ry_net_block *b = &net->blocks[i];
    const ry_block_way way = b->rows.way;
    const int values = b->weights != RY_WEIGHTS_CONSTANT || b->rows.needs.mean_length;

    if (net->checkpoint_activations) ry_net_block_forward(w, i, 1);
    if (way == RY_WAY_END) {
        if (values) ry_net_mlp(w, i, net->pre, 0); /* the rows that were cut, again */
        ry_net_cut_back(w, i, net->pre);
    }
    mlp_back(w, i);
    if (way == RY_WAY_AFTER) {
        if (values) ry_net_project(w, i, net->pre);
        ry_net_cut_back(w, i, net->pre);
    }
    const float *dheads = project_back(w, i);
    if (way == RY_WAY_PREFIX) spread_prefix(w, i);
    attention_back(w, i, dheads);
    qkv_back(w, i);
}
