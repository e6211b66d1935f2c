/* reduce.h - what becomes of the tokens that a cut does not keep, once that is chosen: nothing, a
 * share of one fused token, or a share of the mean of several.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_REDUCE_H
#define RY_REDUCE_H

#include "model/common/hook.h"

/* Writes rows 0 .. n_prefix-1 for the prefix and the next ones for `kept` [n_kept] (counted from
 * the first patch); all other tokens go nowhere. */
void ry_reduce_drop(const ry_block_view *view, ry_cut *out, const uint32_t *kept, uint32_t n_kept);

/* After ry_reduce_drop: what went nowhere goes to the last row, token j with weight[j] (EViT: the
 * plain weighted sum, not divided by the sum of the weights). weight: [N]. */
void ry_reduce_fuse(const ry_block_view *view, ry_cut *out, const float *weight);

/* When every token has its row: weights that make each row the mean of its tokens, each counted as
 * many times as the patches it stands for. sum: [n_out] scratch. */
void ry_reduce_mean(const ry_block_view *view, ry_cut *out, float *sum);

#endif
