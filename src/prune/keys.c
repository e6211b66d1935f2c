/* keys.c - SPDX-License-Identifier: Apache-2.0 */
#include "prune/keys.h"

#include <math.h>
#include <string.h>

/* Sums run in so many lanes, in a fixed order: the compiler makes vectors of them for any level,
 * and the bits are the same for all. */
enum { LANES = 16 };

size_t ry_keys_row(size_t head) { return (head + LANES - 1) / LANES * LANES; }

static float dot(const float *restrict a, const float *restrict b, size_t row)
{
    float part[LANES] = {0};
    for (size_t i = 0; i < row; i += LANES)
        for (unsigned l = 0; l < LANES; l++) part[l] += a[i + l] * b[i + l];
    for (unsigned half = LANES / 2; half; half /= 2)
        for (unsigned l = 0; l < half; l++) part[l] += part[l + half];
    return part[0];
}

void ry_keys_fill(const ry_keys *k, const ry_block_view *v, uint32_t from, uint32_t to)
{
    const size_t head = v->dim / v->n_heads;
    for (uint32_t j = from; j < to; j++) {
        const float *key = v->qkv + j * v->qkv_row + v->dim;
        float *unit = k->unit + j * k->row;
        memcpy(unit, key, head * sizeof *unit);
        memset(unit + head, 0, (k->row - head) * sizeof *unit);
        for (uint32_t h = 1; h < v->n_heads; h++)
            for (size_t i = 0; i < head; i++) unit[i] += key[h * head + i];
        /* The mean's 1/H drops out of a cosine. */
        const float length = sqrtf(dot(unit, unit, k->row));
        const float scale = length > 0.0f ? 1.0f / length : 0.0f;
        for (size_t i = 0; i < head; i++) unit[i] *= scale;
    }
}

uint32_t ry_keys_nearest(const ry_keys *k, uint32_t token, const uint32_t *among, uint32_t n,
                         float *cosine)
{
    const float *mine = k->unit + token * k->row;
    uint32_t best = 0;
    *cosine = -2.0f; /* below any cosine */
    for (uint32_t i = 0; i < n; i++) {
        const float c = dot(mine, k->unit + among[i] * k->row, k->row);
        if (c > *cosine) {
            *cosine = c;
            best = i;
        }
    }
    return best;
}
