/* keys.h - how alike two tokens are: the cosine of their keys, averaged over the heads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PRUNE_KEYS_H
#define RY_PRUNE_KEYS_H

#include "model/hook.h"

/* Rows of head-mean keys in one piece of memory; a row is padded with zeros to `row` floats. */
typedef struct ry_keys {
    float *unit; /* [N, row] of length 1; all 0 where a key has no direction */
    size_t row;
} ry_keys;

/* Floats from one row to the next for heads of `head` floats. */
size_t ry_keys_row(size_t head);

/* Fills the rows [from, to). Rows may be filled at the same time by several threads. */
void ry_keys_fill(const ry_keys *k, const ry_block_view *view, uint32_t from, uint32_t to);

/* The place in `among` [n >= 1] of the token most like `token`; the earlier one of equals, and the
 * first when nothing can be compared (NaN). *cosine: how alike, -2 when nothing compared. */
uint32_t ry_keys_nearest(const ry_keys *k, uint32_t token, const uint32_t *among, uint32_t n,
                         float *cosine);

#endif
