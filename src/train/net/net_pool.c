/* net_pool.c - the attention-pooling head in training: attention of a learned query over the patch
 * tokens, then a projection and an MLP; its gradients; and the row of its attention that rules
 * read.
 *
 * With keys k_j and values v_j of the normalized tokens, q = Q probe + b, and for each head
 *   a_j = softmax_j(q . k_j / sqrt(d) + log size_j),   out = sum_j a_j v_j,
 * the gradient g of out gives
 *   dv_j = a_j g,   ds_j = a_j (g . v_j - g . out),   dk_j = ds_j q / sqrt(d),
 *   dq = sum_j ds_j k_j / sqrt(d).
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

#include <math.h>
#include <string.h>

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0.0;
    for (size_t k = 0; k < n; k++) sum += (double)a[k] * (double)b[k];
    return sum;
}

/* One head of one image. */
typedef struct head {
    size_t d, row;        /* width; floats between rows of keys and values */
    uint32_t first, last; /* patch tokens; the probe sees no others */
    const float *q;       /* [d] */
    const float *k, *v;   /* [N] rows */
    float *a;             /* [N] attention */
    double scale;
} head;

static head head_of(const ry_net *net, size_t image, size_t h, uint32_t rows)
{
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim, H = net->config.n_heads, d = C / H;
    const size_t row = ry_net_row(net, 2 * C);
    const float *k = p->kv_rows + image * rows * row + h * d;
    return (head){.d = d,
                  .row = row,
                  .first = net->config.n_prefix,
                  .last = rows,
                  .q = p->query + h * d,
                  .k = k,
                  .v = k + C,
                  .a = p->attention + (image * H + h) * rows,
                  .scale = 1.0 / sqrt((double)d)};
}

/* ---- forward ------------------------------------------------------------------------------- */

/* query = Q probe + b: the same for every image */
static void make_query(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim;
    const float *q = ry_net_value(net, p->q_w), *b = ry_net_value(net, p->q_b);
    ry_step step = ry_runner_step(w->run, ry_row_tiles(C));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t i = t * RY_CONVERT_ROWS; i < ry_row_end(t, C); i++)
            p->query[i] = (float)((double)b[i] + dot(q + i * C, ry_net_value(net, p->probe), C));
    ry_step_end(&step);
}

/* A merged token counts as often as the patches it stands for. log_sizes: [N], NULL = 1 each */
static void attend_head(const head *h, const float *log_sizes)
{
    double most = -INFINITY, sum = 0.0;
    for (uint32_t j = h->first; j < h->last; j++) {
        const double logit = dot(h->q, h->k + j * h->row, h->d) * h->scale +
                             (log_sizes ? (double)log_sizes[j] : 0.0);
        h->a[j] = (float)logit;
        most = fmax(most, (double)h->a[j]);
    }
    for (uint32_t j = h->first; j < h->last; j++) {
        h->a[j] = (float)exp((double)h->a[j] - most);
        sum += (double)h->a[j];
    }
    for (uint32_t j = h->first; j < h->last; j++) h->a[j] = (float)((double)h->a[j] / sum);
    memset(h->a, 0, h->first * sizeof *h->a);
}

/* Attention of all heads over normalized rows in net->h; `block`: what they enter, L = the head. */
static void attend(ry_net_worker *w, uint32_t block, uint32_t rows)
{
    const ry_net *net = w->net;
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim, H = net->config.n_heads, row = ry_net_row(net, C);
    const int sized = ry_net_sizes(net, block, 0, rows) != NULL;
    const float *log_sizes = net->tokens[net->tokens[block].facts].log_sizes;

    make_query(w);
    ry_net_product(w, p->kv.ahead_op, (size_t)w->n * rows, net->h, p->kv_rows);
    ry_step step = ry_runner_step(w->run, w->n * H);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / H;
        const head h = head_of(net, image, t % H, rows);
        float *out = p->heads + image * row + t % H * h.d;
        attend_head(&h, sized ? log_sizes + image * rows : NULL);
        memset(out, 0, h.d * sizeof *out);
        for (uint32_t j = h.first; j < h.last; j++) ry_row_add(out, h.v + j * h.row, h.a[j], h.d);
    }
    ry_step_end(&step);
}

/* g = activation of u, [n, M padded] */
static void activate(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const size_t M = net->config.mlp_dim, row = ry_net_row(net, M);
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&step, &i);)
        net->activation(net->pool.g + i * row, net->pool.u + i * row, M);
    ry_step_end(&step);
}

void ry_net_pool_forward(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    const ry_extent one = {w->n, 1};

    attend(w, net->config.n_blocks, ry_net_last_rows(net));
    ry_runner_linear(w->run, p->proj.ahead_op, one, p->heads, p->x);
    ry_step step = ry_runner_step(w->run, w->n); /* what the MLP adds to */
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(net->pooled[0] + i * row, p->x + i * C, C * sizeof(float));
    ry_step_end(&step);
    ry_net_normalize(w, &p->norm, w->n, p->x, p->h, NULL);
    ry_runner_linear(w->run, p->fc1.ahead_op, one, p->h, p->u);
    activate(w);
    ry_runner_linear(w->run, p->fc2.ahead_op, one, p->g, net->pooled[0]);
}

void ry_net_pool_row(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const uint32_t N = net->blocks[i].rows.in;
    const size_t H = net->config.n_heads;
    ry_net_normalize(w, &net->norm, (size_t)w->n * N, net->tokens[i].x, net->h, NULL);
    attend(w, i, N);
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t image; ry_step_next(&step, &image);) {
        const float *a = net->pool.attention + image * H * N;
        float *to = net->class_row + image * N;
        memset(to, 0, N * sizeof *to);
        for (size_t h = 0; h < H; h++) ry_row_add(to, a + h * N, 1.0f / (float)H, N);
    }
    ry_step_end(&step);
}

/* ---- backward ------------------------------------------------------------------------------ */

/* dpooled[0] = the gradient of the projected row, from that of the result */
static void mlp_back(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim, M = net->config.mlp_dim;
    const size_t row = ry_net_row(net, C), u = ry_net_row(net, M);
    const ry_extent one = {w->n, 1};
    float *du = net->wide, *d = net->dpooled[0];

    ry_net_outer(w, &p->fc2, w->n, d, row, p->g, u);
    ry_runner_linear(w->run, p->fc2.back_op, one, d, du);
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&step, &i);)
        net->activation_grad(du + i * u, p->g + i * u, du + i * u, p->u + i * u, M);
    ry_step_end(&step);
    ry_net_outer(w, &p->fc1, w->n, du, u, p->h, row);
    ry_runner_linear(w->run, p->fc1.back_op, one, du, net->dh);
    ry_net_norm_grad(w, &p->norm, w->n, p->x, net->dh, d);
}

/* From the gradient g [d] of one head's output: dkv of all tokens, dq [d] of this image. */
static void head_back(const head *h, const float *g, const float *out, float *dk, float *dq)
{
    const double along = dot(g, out, h->d);
    const size_t C = (size_t)(h->v - h->k);
    memset(dq, 0, h->d * sizeof *dq);
    for (uint32_t j = 0; j < h->last; j++) {
        const float *k = h->k + j * h->row, *v = h->v + j * h->row;
        const double a = (double)h->a[j];
        const float ds = (float)(a * (dot(g, v, h->d) - along) * h->scale);
        ry_row_scale(dk + j * h->row, h->q, ds, h->d);
        ry_row_scale(dk + j * h->row + C, g, h->a[j], h->d);
        ry_row_add(dq, k, ds, h->d);
    }
}

static void attention_back(ry_net_worker *w, uint32_t rows)
{
    const ry_net *net = w->net;
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim, H = net->config.n_heads, row = ry_net_row(net, C);
    ry_step step = ry_runner_step(w->run, w->n * H);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / H;
        const head h = head_of(net, image, t % H, rows);
        const size_t at = t % H * h.d;
        head_back(&h, p->dheads + image * row + at, p->heads + image * row + at,
                  net->wide + image * rows * h.row + at, p->dquery + image * C + at);
    }
    ry_step_end(&step);
}

/* Row i of Q and its bias; the images in their order. */
static void query_row_back(const ry_net *net, uint32_t n, size_t i)
{
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim;
    double sum = 0.0;
    for (uint32_t image = 0; image < n; image++) sum += (double)p->dquery[image * C + i];
    p->dquery[i] = (float)sum; /* image 0 was read: its place holds the sum */
    if (!p->q_w->frozen)
        ry_row_add(ry_net_grad(net, p->q_w) + i * C, ry_net_value(net, p->probe), (float)sum, C);
    if (!p->q_b->frozen) ry_net_grad(net, p->q_b)[i] += (float)sum;
}

static void query_back(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(C));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t i = t * RY_CONVERT_ROWS; i < ry_row_end(t, C); i++)
            query_row_back(net, w->n, i);
    ry_step_end(&step);
    if (p->probe->frozen) return;
    ry_step probe = ry_runner_step(w->run, 1);
    for (size_t t; ry_step_next(&probe, &t);)
        for (size_t i = 0; i < C; i++)
            ry_row_add(ry_net_grad(net, p->probe), ry_net_value(net, p->q_w) + i * C, p->dquery[i],
                       C);
    ry_step_end(&probe);
}

void ry_net_pool_backward(ry_net_worker *w)
{
    const ry_net *net = w->net;
    const ry_net_pool *p = &net->pool;
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    const uint32_t rows = ry_net_last_rows(net);
    const size_t all = (size_t)w->n * rows;

    mlp_back(w);
    ry_net_outer(w, &p->proj, w->n, net->dpooled[0], row, p->heads, row);
    ry_runner_linear(w->run, p->proj.back_op, (ry_extent){w->n, 1}, net->dpooled[0], p->dheads);
    attention_back(w, rows);
    query_back(w);
    ry_net_normalize(w, &net->norm, all, net->tokens[net->config.n_blocks].x, net->h, NULL);
    ry_net_outer(w, &p->kv, all, net->wide, ry_net_row(net, 2 * C), net->h, row);
    ry_net_product(w, p->kv.back_op, all, net->wide, net->dh);
}
