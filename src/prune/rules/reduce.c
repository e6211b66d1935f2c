/* reduce.c - turns a choice of tokens into rows and weights: drop, fuse, average, and which kept
 * token a removed one joins by the cosine of their keys.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/reduce.h"
#include "kernels/rows/rows.h"

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
    for (uint32_t j = 0; j < v->n_tokens; j++) out->weight[j] = v->sizes ? v->sizes[j] : 1.0f;
    ry_reduce_shares(v, out, sum);
}

void ry_reduce_shares(const ry_block_view *v, ry_cut *out, float *sum)
{
    memset(sum, 0, out->n_out * sizeof *sum);
    for (uint32_t j = 0; j < v->n_tokens; j++) sum[out->target[j]] += out->weight[j];
    for (uint32_t j = 0; j < v->n_tokens; j++) out->weight[j] /= sum[out->target[j]];
}

/* ---- nearest keys ---------------------------------------------------------------------------- */

enum { TILE = 32 }; /* keys per tile: a few microseconds of work */

/* Whole cache lines. */
static size_t padded(size_t width) { return (width + 15) / 16 * 16; }

ry_keys ry_keys_layout(ry_arena *a, const ry_kernels *kernels, size_t n, size_t head)
{
    const size_t rows = kernels->gram_rows;
    ry_keys k = {.head = head,
                 .unit_row = padded(head),
                 .gram_row = padded(n),
                 .pack_each = padded(ry_gram_scratch(n, head, rows))};
    k.list = RY_TAKE(a, n, uint32_t);
    k.partner = RY_TAKE(a, n, uint32_t);
    k.similarity = RY_TAKE(a, n, float);
    k.unit = RY_TAKE(a, n * k.unit_row, float);
    k.gram = RY_TAKE(a, n * k.gram_row, float);
    k.pack = RY_TAKE(a, ry_gram_blocks(n, rows) * k.pack_each, float);
    return k;
}

uint32_t ry_keys_fill_tiles(uint32_t n) { return (n + TILE - 1) / TILE; }

void ry_keys_fill(const ry_keys *k, const ry_block_view *v, uint32_t n, uint32_t tile)
{
    const uint32_t from = tile * TILE, to = from + TILE < n ? from + TILE : n;
    for (uint32_t i = from; i < to; i++) {
        const float *key = v->qkv + k->list[i] * v->qkv_row + v->dim;
        float *unit = k->unit + i * k->unit_row;
        memcpy(unit, key, k->head * sizeof *unit);
        for (uint32_t h = 1; h < v->n_heads; h++) /* a sum: 1/H cancels in a cosine */
            ry_row_add(unit, key + h * k->head, 1.0f, k->head);
        const float length = ry_row_length(unit, k->head);
        ry_row_scale(unit, unit, length == 0.0f ? 0.0f : 1.0f / length, k->head);
    }
}

/* Blocks of the kernel with a row >= `among`. */
uint32_t ry_keys_match_tiles(const ry_kernels *kernels, uint32_t n, uint32_t among)
{
    const size_t rows = kernels->gram_rows;
    return (uint32_t)(ry_gram_blocks(n, rows) - among / rows);
}

void ry_keys_match(const ry_keys *k, const ry_kernels *kernels, uint32_t n, uint32_t among,
                   uint32_t tile)
{
    const size_t rows = kernels->gram_rows, block = among / rows + tile;
    const size_t first = block * rows > among ? block * rows : among;
    const size_t last = (block + 1) * rows < n ? (block + 1) * rows : n;
    kernels->gram(k->gram, k->gram_row, k->unit, k->unit_row, n, k->head, block,
                  k->pack + tile * k->pack_each);
    for (size_t i = first; i < last; i++) {
        const float *cosine = k->gram + i * k->gram_row;
        float best = -2.0f; /* below any cosine */
        uint32_t place = 0;
        for (uint32_t j = 0; j < among; j++)
            if (cosine[j] > best) {
                best = cosine[j];
                place = j;
            }
        k->partner[i - among] = place;
        k->similarity[i - among] = best;
    }
}
