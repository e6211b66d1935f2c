/* net_taps.c - tokens between the blocks, as a teacher's of the same depth are compared with: a
 * LayerNorm and a projection to the teacher's width for each tap, both learned beside the model, and
 * the way back into the stream. SPDX-License-Identifier: Apache-2.0 */
#include "train/net_run.h"

#include <string.h>

/* Which of the teacher's rows each row of an image is (ry_net_options.feature_prefix). */
static void name_tokens(const ry_net *net, const ry_net_tap *tap, size_t image)
{
    const uint32_t rows = net->blocks[tap->block].rows.out, K = net->config.n_prefix;
    const ry_net_tokens *facts = &net->tokens[net->tokens[tap->block + 1].facts];
    uint32_t *to = tap->token + image * rows;
    memcpy(to, facts->patch + image * rows, rows * sizeof *to);
    for (uint32_t k = 0; k < K; k++)
        to[k] = k < net->feature_prefix ? net->n_patches + k : RY_NO_TOKEN;
}

void ry_net_taps_forward(ry_net_worker *w, uint32_t block)
{
    const ry_net *net = w->net;
    for (uint32_t k = 0; k < net->n_taps; k++) {
        const ry_net_tap *tap = &net->taps[k];
        if (tap->block != block) continue;
        const size_t rows = (size_t)w->n * net->blocks[block].rows.out;
        ry_net_normalise(w, &tap->norm, rows, net->tokens[block + 1].x, tap->in, NULL);
        ry_net_product(w, tap->proj.ahead_op, rows, tap->in, tap->rows);
        ry_step step = ry_net_begin(w, w->n);
        for (size_t i; ry_step_next(&step, &i);) name_tokens(net, tap, i);
        ry_step_end(&step);
    }
}

void ry_net_taps_backward(ry_net_worker *w, uint32_t block, const float *dfeatures)
{
    const ry_net *net = w->net;
    const size_t F = net->feature_dim, of_image = net->blocks[block].rows.out * F;
    for (uint32_t k = 0; dfeatures && k < net->n_taps; k++) {
        const ry_net_tap *tap = &net->taps[k];
        if (tap->block != block) continue;
        const size_t rows = (size_t)w->n * net->blocks[block].rows.out;
        const float *d = dfeatures + k * ry_net_tap_floats(net);
        ry_step step = ry_net_begin(w, w->n); /* in memory of ours: oneDNN reads whole tiles */
        for (size_t i; ry_step_next(&step, &i);)
            memcpy(net->dfeatures + i * of_image, d + i * of_image, of_image * sizeof *d);
        ry_step_end(&step);
        ry_net_product(w, tap->proj.back_op, rows, net->dfeatures, net->dh);
        ry_net_outer(w, &tap->proj, rows, net->dfeatures, F, tap->in,
                     ry_net_row(net, net->config.dim));
        ry_net_norm_grad(w, &tap->norm, rows, net->tokens[block + 1].x, net->dh, ry_net_d(w));
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
