/* net_steps.c - the steps that both passes are made of: products, LayerNorm and their gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

#include <string.h>

typedef struct job {
    ry_net *net;
    uint32_t n;
    void (*work)(ry_net_worker *w, const void *user);
    const void *user;
} job;

static void run_thread(ry_runner *run, void *user)
{
    const job *j = user;
    ry_net_worker w = {.net = j->net, .run = run, .n = j->n};
    j->work(&w, j->user);
}

void ry_net_threads(ry_net *net, uint32_t n, void (*work)(ry_net_worker *w, const void *user),
                    const void *user)
{
    job j = {net, n, work, user};
    ry_team_run(&net->team, run_thread, &j);
}

void ry_net_product(ry_net_worker *w, const ry_linear_op *op, size_t rows, const float *x, float *y)
{
    ry_runner_linear(w->run, op, (ry_extent){1, rows}, x, y);
}

static void start_residual(const ry_net_worker *w, const ry_net_residual *r, const float *x,
                           size_t row)
{
    const size_t C = w->net->config.dim;
    const float factor = ry_net_factor(w, r->branch, row / r->rows);
    float *to = r->to + row * C;
    memcpy(to, x + row * C, C * sizeof *to);
    if (factor != 1.0f) ry_row_add(to, r->bias, factor - 1.0f, C);
}

void ry_net_normalize(ry_net_worker *w, const ry_net_norm *norm, size_t rows, const float *x,
                      float *h, const ry_net_residual *residual)
{
    const ry_net *net = w->net;
    const size_t C = net->config.dim, h_row = ry_net_row(net, C);
    const int starts = residual && residual->to;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(rows));
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t first = t * RY_CONVERT_ROWS, end = ry_row_end(t, rows);
        net->kernels.layernorm(h + first * h_row, h_row, x + first * C, C, end - first, C,
                               ry_net_value(net, norm->w), ry_net_value(net, norm->b),
                               (float)net->config.norm_eps);
        for (size_t r = first; starts && r < end; r++) start_residual(w, residual, x, r);
    }
    ry_step_end(&step);
}

const float *ry_net_scaled(ry_net_worker *w, uint32_t branch, uint32_t rows, const float *x,
                           float *h)
{
    const size_t C = w->net->config.dim, row = ry_net_row(w->net, C), all = (size_t)w->n * rows;
    if (!w->net->branch) return x;
    ry_step step = ry_runner_step(w->run, ry_row_tiles(all));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t r = t * RY_CONVERT_ROWS; r < ry_row_end(t, all); r++)
            ry_row_scale(h + r * row, x + r * row, ry_net_factor(w, branch, r / rows), C);
    ry_step_end(&step);
    return h;
}

/* net->raw = 0 for the weights and the bias of m */
static void clear_raw(ry_net_worker *w, const ry_net_matrix *m)
{
    ry_step step = ry_runner_step(w->run, 1);
    for (size_t t; ry_step_next(&step, &t);)
        memset(w->net->raw, 0, (m->w->size + ry_net_outputs(m)) * sizeof(float));
    ry_step_end(&step);
}

/* y = diag(gamma) (W x + b): with R, r the gradients of diag(gamma) W and diag(gamma) b,
 * dW_j = gamma_j R_j, db_j = gamma_j r_j, dgamma_j = R_j . W_j + r_j b_j. */
void ry_net_unfold(ry_net_worker *w, const ry_net_matrix *m)
{
    const ry_net *net = w->net;
    if (!m->gamma || ry_net_is_frozen(m)) return;
    const size_t n_out = ry_net_outputs(m), n_in = m->w->size / n_out;
    const float *gamma = ry_net_value(net, m->gamma), *raw_b = ry_net_bias_grad(net, m);
    const float *weight = ry_net_value(net, m->w), *bias = ry_net_value(net, m->b);
    ry_step step = ry_runner_step(w->run, ry_row_tiles(n_out));
    for (size_t t; ry_step_next(&step, &t);)
        for (size_t j = t * RY_CONVERT_ROWS; j < ry_row_end(t, n_out); j++) {
            const float *raw = net->raw + j * n_in;
            double sum = (double)raw_b[j] * (double)bias[j];
            for (size_t k = 0; k < n_in; k++) sum += (double)raw[k] * (double)weight[j * n_in + k];
            ry_row_add(ry_net_grad(net, m->w) + j * n_in, raw, gamma[j], n_in);
            ry_net_grad(net, m->b)[j] += gamma[j] * raw_b[j];
            ry_net_grad(net, m->gamma)[j] += (float)sum;
        }
    ry_step_end(&step);
}

static void add_outer(ry_net_worker *w, const ry_net_matrix *m, size_t rows, const float *dy,
                      size_t dy_row, const float *x, size_t x_row, float *db)
{
    const ry_net *net = w->net;
    const size_t n_out = ry_net_outputs(m);
    if (ry_net_is_frozen(m)) return;
    if (m->gamma) clear_raw(w, m);
    const ry_outer o = {.dy = dy,
                        .x = x,
                        .dy_row = dy_row,
                        .x_row = x_row,
                        .rows = rows,
                        .n_out = n_out,
                        .n_in = m->w->size / n_out,
                        .dw = m->gamma ? net->raw : ry_net_grad(net, m->w),
                        .db = db,
                        .n_threads = net->team.n_threads};
    ry_step step = ry_runner_step(w->run, ry_outer_tiles(&o));
    for (size_t t; ry_step_next(&step, &t);) net->grad.outer(&o, t, ry_net_scratch(w));
    ry_step_end(&step);
}

void ry_net_outer(ry_net_worker *w, const ry_net_matrix *m, size_t rows, const float *dy,
                  size_t dy_row, const float *x, size_t x_row)
{
    add_outer(w, m, rows, dy, dy_row, x, x_row, ry_net_bias_grad(w->net, m));
}

void ry_net_outer_weights(ry_net_worker *w, const ry_net_matrix *m, size_t rows, const float *dy,
                          size_t dy_row, const float *x, size_t x_row)
{
    add_outer(w, m, rows, dy, dy_row, x, x_row, NULL);
}

void ry_net_norm_grad(ry_net_worker *w, const ry_net_norm *norm, size_t rows, const float *x,
                      const float *dy, float *d)
{
    const ry_net *net = w->net;
    const size_t C = net->config.dim, blocks = ry_layernorm_grad_blocks(rows);
    const ry_layernorm_grad g = {.x = x,
                                 .dy = dy,
                                 .w = ry_net_value(net, norm->w),
                                 .dx = d,
                                 .x_row = C,
                                 .dy_row = ry_net_row(net, C),
                                 .dx_row = ry_net_row(net, C),
                                 .rows = rows,
                                 .n = C,
                                 .eps = (float)net->config.norm_eps,
                                 .parts = net->parts};
    ry_step step = ry_runner_step(w->run, blocks);
    for (size_t t; ry_step_next(&step, &t);) net->grad.layernorm_grad(&g, t);
    ry_step_end(&step);
    if (norm->w->frozen && norm->b->frozen) return;
    ry_step sum = ry_runner_step(w->run, 1);
    for (size_t t; ry_step_next(&sum, &t);)
        ry_layernorm_grad_sum(ry_net_grad(net, norm->w), ry_net_grad(net, norm->b), net->parts,
                              blocks, C);
    ry_step_end(&sum);
}
