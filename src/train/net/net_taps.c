/* net_taps.c - taps: tokens after a block that are compared with a teacher's, directly or through a
 * LayerNorm and a projection to the teacher's width, which are trained with the model; and their
 * gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "train/net/net_run.h"

#include <string.h>

/* The teacher's row for each row of an image (ry_net_options.feature_prefix). */
static void set_teacher_rows(const ry_net *net, const ry_net_tap *tap, size_t image)
{
    const uint32_t rows = net->blocks[tap->block].rows.out, K = net->config.n_prefix;
    const ry_net_tokens *facts = &net->tokens[net->tokens[tap->block + 1].facts];
    uint32_t *to = tap->token + image * rows;
    memcpy(to, facts->patch + image * rows, rows * sizeof *to);
    for (uint32_t k = 0; k < K; k++)
        to[k] = k < net->feature_prefix ? net->n_patches + k : RY_NO_TOKEN;
}

/* Copies the rows, for a teacher of the same width. */
static void copy_rows(ry_net_worker *w, const ry_net_tap *tap)
{
    const ry_net *net = w->net;
    const size_t of_image = (size_t)net->blocks[tap->block].rows.out * net->config.dim;
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(tap->rows + i * of_image, net->tokens[tap->block + 1].x + i * of_image,
               of_image * sizeof(float));
    ry_step_end(&step);
}

static void tap_forward(ry_net_worker *w, const ry_net_tap *tap)
{
    const ry_net *net = w->net;
    const size_t rows = (size_t)w->n * net->blocks[tap->block].rows.out;
    if (net->direct) {
        copy_rows(w, tap);
    } else {
        ry_net_normalize(w, &tap->norm, rows, net->tokens[tap->block + 1].x, tap->in, NULL);
        ry_net_product(w, tap->proj.ahead_op, rows, tap->in, tap->rows);
    }
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&step, &i);) set_teacher_rows(net, tap, i);
    ry_step_end(&step);
}

void ry_net_taps_forward(ry_net_worker *w, uint32_t block)
{
    for (uint32_t k = 0; k < w->net->n_taps; k++)
        if (w->net->taps[k].block == block) tap_forward(w, &w->net->taps[k]);
}

void ry_net_force(ry_net_worker *w, uint32_t block)
{
    const ry_net *net = w->net;
    const size_t C = net->config.dim, K = net->config.n_prefix, P = net->n_patches, N = P + K;
    if (!net->forced || block == 0) return;
    const float *rows = net->forced + (block - 1) * ry_net_tap_floats(net);
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&step, &i);) {
        float *x = net->tokens[block].x + i * N * C;
        memcpy(x, rows + (i * N + P) * C, K * C * sizeof *x); /* the teacher's prefix comes last */
        memcpy(x + K * C, rows + i * N * C, P * C * sizeof *x);
    }
    ry_step_end(&step);
}

/* Adds the gradient of a tap's rows to the stream d. With forced rows the gradient from later
 * blocks belongs to the teacher's rows and is dropped. */
static void direct_back(ry_net_worker *w, const ry_net_tap *tap, const float *dfeatures)
{
    const ry_net *net = w->net;
    const size_t C = net->config.dim, row = ry_net_row(net, C);
    const size_t of_image = net->blocks[tap->block].rows.out;
    const int replaces = net->forced && tap->block + 1 < net->config.n_blocks;
    float *d = ry_net_d(w);
    ry_step step = ry_runner_step(w->run, w->n);
    for (size_t i; ry_step_next(&step, &i);)
        for (size_t r = i * of_image; r < (i + 1) * of_image; r++) {
            if (replaces) memset(d + r * row, 0, C * sizeof *d);
            ry_row_add(d + r * row, dfeatures + r * C, 1.0f, C);
        }
    ry_step_end(&step);
}

static void project_back(ry_net_worker *w, const ry_net_tap *tap, const float *dfeatures)
{
    const ry_net *net = w->net;
    const size_t F = net->feature_dim, of_image = net->blocks[tap->block].rows.out * F;
    const size_t rows = (size_t)w->n * net->blocks[tap->block].rows.out;
    ry_step step = ry_runner_step(w->run, w->n); /* into our buffer: oneDNN reads whole tiles */
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(net->dfeatures + i * of_image, dfeatures + i * of_image,
               of_image * sizeof *dfeatures);
    ry_step_end(&step);
    ry_net_product(w, tap->proj.back_op, rows, net->dfeatures, net->dh);
    ry_net_outer(w, &tap->proj, rows, net->dfeatures, F, tap->in, ry_net_row(net, net->config.dim));
    ry_net_norm_grad(w, &tap->norm, rows, net->tokens[tap->block + 1].x, net->dh, ry_net_d(w));
}

void ry_net_taps_backward(ry_net_worker *w, uint32_t block, const float *dfeatures)
{
    const ry_net *net = w->net;
    for (uint32_t k = 0; dfeatures && k < net->n_taps; k++) {
        const float *d = dfeatures + k * ry_net_tap_floats(net);
        if (net->taps[k].block == block)
            (net->direct ? direct_back : project_back)(w, &net->taps[k], d);
    }
}

uint32_t ry_net_taps(const ry_net *net) { return net->n_taps; }

size_t ry_net_tap_floats(const ry_net *net)
{
    return (size_t)net->max_batch * net->n_tokens * net->feature_dim;
}

void ry_net_tap_view(const ry_net *net, uint32_t k, ry_net_features_view *out)
{
    const ry_net_tap *tap = &net->taps[k];
    *out = (ry_net_features_view){tap->rows, tap->token, net->blocks[tap->block].rows.out};
}
