/* token_rows.c - see token_rows.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/token_rows.h"

#include "kernels/rows/rows.h"

#include <math.h>
#include <string.h>

void ry_token_reduce(const ry_row_lists *l, const ry_cut *cut, uint32_t n_tokens, uint32_t first,
                     uint32_t last)
{
    for (uint32_t r = first; r < last; r++) {
        float *to = l->to + r * l->row;
        const uint32_t s = cut->source[r];
        if (s == RY_NO_TOKEN)
            memset(to, 0, l->width * sizeof *to);
        else
            ry_row_scale(to, l->from + s * l->row, cut->weight[s], l->width);
    }
    for (uint32_t j = 0; j < n_tokens; j++) {
        const uint32_t r = cut->target[j];
        if (r < first || r >= last || cut->source[r] == j) continue;
        ry_row_add(l->to + r * l->row, l->from + j * l->row, cut->weight[j], l->width);
    }
}

void ry_token_lengths(const ry_row_lists *l, const ry_cut *cut, uint32_t n_tokens, uint32_t first,
                      uint32_t last)
{
    float mean[RY_TOKEN_CHUNK] = {0};
    uint32_t members[RY_TOKEN_CHUNK] = {0};
    for (uint32_t j = 0; j < n_tokens; j++)
        if (cut->target[j] >= first && cut->target[j] < last) members[cut->target[j] - first]++;
    for (uint32_t j = 0; j < n_tokens; j++) {
        const uint32_t r = cut->target[j];
        if (r < first || r >= last || members[r - first] < 2) continue;
        mean[r - first] += cut->weight[j] * ry_row_length(l->from + j * l->row, l->width);
    }
    for (uint32_t r = first; r < last; r++) {
        if (members[r - first] < 2) continue;
        float *row = l->to + r * l->row;
        const float length = ry_row_length(row, l->width);
        if (length > 0.0f) ry_row_scale(row, row, mean[r - first] / length, l->width);
    }
}

float ry_token_weight_sum(const ry_cut *cut, uint32_t n_tokens, uint32_t r)
{
    float sum = 0.0f;
    for (uint32_t j = 0; j < n_tokens; j++)
        if (cut->target[j] == r) sum += cut->weight[j];
    return sum;
}

void ry_token_sizes(float *to, float *log_to, const float *from, const ry_cut *cut,
                    uint32_t n_tokens)
{
    for (uint32_t r = 0; r < cut->n_out; r++) to[r] = cut->source[r] == RY_NO_TOKEN ? 1.0f : 0.0f;
    for (uint32_t j = 0; j < n_tokens; j++) {
        const uint32_t r = cut->target[j];
        if (r != RY_NO_TOKEN && cut->source[r] != RY_NO_TOKEN) to[r] += from ? from[j] : 1.0f;
    }
    for (uint32_t r = 0; r < cut->n_out; r++) log_to[r] = logf(to[r]);
}

void ry_token_mean(float *to, const float *rows, size_t row, size_t width, const float *sizes,
                   size_t first, size_t n_tokens)
{
    float sum = 0.0f;
    memset(to, 0, width * sizeof *to);
    for (size_t j = first; j < n_tokens; j++) {
        const float size = sizes ? sizes[j] : 1.0f;
        ry_row_add(to, rows + j * row, size, width);
        sum += size;
    }
    ry_row_scale(to, to, 1.0f / sum, width);
}
