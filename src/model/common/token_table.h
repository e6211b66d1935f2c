/* token_table.h - the rows that tokens begin as: a table that stays as stored (half the size of
 * floats when the file is F16 or BF16), since a pass reads a few of its rows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TOKEN_TABLE_H
#define RY_TOKEN_TABLE_H

#include "model/common/weight_loader.h"

/* *out [vocab, width]: a copy of RY_TOKEN_EMBED with an empty name. All of it must be finite; it is
 * looked at in pieces of `room` floats, which the loader's scratch has. */
renyi_status ry_token_table_load(ry_tensor *out, ry_loader *ld, size_t room) RENYI_CHECK;
void ry_token_table_free(ry_tensor *t, const renyi_allocator *al); /* a zeroed one is fine */

/* out [width] = the row of a token below vocab */
void ry_token_table_row(const ry_tensor *t, size_t token, float *out);

#endif
