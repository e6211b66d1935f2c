/* reduce.h - what happens to the tokens that a cut does not keep: dropped, added to one fused
 * token, averaged into a kept one, or joined to the kept token with the most similar key.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_REDUCE_H
#define RY_REDUCE_H

#include "base/alloc.h"
#include "kernels/kernels.h"
#include "model/common/hook.h"

/* Writes rows 0 .. n_prefix-1 for the prefix and the next ones for `kept` [n_kept] (counted from
 * the first patch); all other tokens are dropped. */
void ry_reduce_drop(const ry_block_view *view, ry_cut *out, const uint32_t *kept, uint32_t n_kept);

/* After ry_reduce_drop: dropped tokens are added to the last row, token j with weight[j] (EViT: the
 * plain weighted sum, not divided by the sum of the weights). weight: [N]. */
void ry_reduce_fuse(const ry_block_view *view, ry_cut *out, const float *weight);

/* When every token has its row: weights that make each row the mean of its tokens, each counted as
 * many times as the patches it stands for. sum: [n_out] scratch. */
void ry_reduce_mean(const ry_block_view *view, ry_cut *out, float *sum);

/* The same by amounts in out->weight: each is divided by the sum of its row. */
void ry_reduce_shares(const ry_block_view *view, ry_cut *out, float *sum);

/* ---- nearest keys ---------------------------------------------------------------------------- */

/* Finds the most similar token by the cosine of keys averaged over the heads. The list holds first
 * the candidates, then the tokens that look for one. */

/* One image's memory for a list of up to n tokens. */
typedef struct ry_keys {
    uint32_t *list;    /* [n] tokens, filled by the caller: candidates first */
    uint32_t *partner; /* [n] for each of the others the list index of its most similar candidate */
    float *similarity; /* [n] and their cosine */
    float *unit;       /* [n, unit_row] keys of length 1; 0 where a key has no direction */
    float *gram;       /* [n, gram_row] their products */
    float *pack;       /* [tiles, pack_each] for the kernel */
    size_t head, unit_row, gram_row, pack_each;
} ry_keys;

ry_keys ry_keys_layout(ry_arena *a, const ry_kernels *kernels, size_t n, size_t head);

/* Keys of a tile of a list of n tokens; tiles may be filled at the same time. */
uint32_t ry_keys_fill_tiles(uint32_t n);
void ry_keys_fill(const ry_keys *k, const ry_block_view *view, uint32_t n, uint32_t tile);

/* Call when all keys are filled. For token list[among + i]: partner[i] is the index < among of
 * the most similar candidate, similarity[i] their cosine. Equal ones: the lower index; if no
 * cosine is a number, index 0 and -2. Tiles may run at the same time. */
uint32_t ry_keys_match_tiles(const ry_kernels *kernels, uint32_t n, uint32_t among);
void ry_keys_match(const ry_keys *k, const ry_kernels *kernels, uint32_t n, uint32_t among,
                   uint32_t tile);

#endif
