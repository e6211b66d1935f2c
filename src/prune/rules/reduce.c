/* reduce.c - drop, fuse and merge as rows and weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/reduce.h"

#include <string.h>

static void stay(ry_cut *out, uint32_t token, uint32_t row)
{
    out->source[row] = token;
    out->target[token] = row;
    out->weight[token] = 1.0f;
}

void ry_reduce_drop(const ry_block_view *v, ry_cut *out, const uint32_t *kept, uint32_t n_kept)
{
    for (uint32_t j = 0; j < v->n_tokens; j++) {
        out->target[j] = RY_NO_TOKEN;
        out->weight[j] = 0.0f;
    }
    for (uint32_t j = 0; j < v->n_prefix; j++) stay(out, j, j);
    for (uint32_t i = 0; i < n_kept; i++) stay(out, v->n_prefix + kept[i], v->n_prefix + i);
}

void ry_reduce_fuse(const ry_block_view *v, ry_cut *out, const float *weight)
{
    const uint32_t row = out->n_out - 1;
    out->source[row] = RY_NO_TOKEN;
    for (uint32_t j = v->n_prefix; j < v->n_tokens; j++) {
        if (out->target[j] != RY_NO_TOKEN) continue;
        out->target[j] = row;
        out->weight[j] = weight[j];
    }
}

void ry_reduce_mean(const ry_block_view *v, ry_cut *out, float *sum)
{
    memset(sum, 0, out->n_out * sizeof *sum);
    for (uint32_t j = 0; j < v->n_tokens; j++) sum[out->target[j]] += v->sizes ? v->sizes[j] : 1.0f;
    for (uint32_t j = 0; j < v->n_tokens; j++)
        out->weight[j] = (v->sizes ? v->sizes[j] : 1.0f) / sum[out->target[j]];
}
