/* gguf_blocks.h - the block types of GGUF: 32 or 256 numbers that share scales, and their values as
 * floats.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_GGUF_BLOCKS_H
#define RY_GGUF_BLOCKS_H

#include "formats/tensor.h"

enum { RY_GGUF_BLOCK_MAX = 256 }; /* elements */

/* Elements and bytes of a block; 0 if the type has no blocks. */
size_t ry_gguf_block_elements(ry_dtype t);
size_t ry_gguf_block_bytes(ry_dtype t);

/* out [n_blocks * elements]: the exact values of the file, each rounded as a product of floats (and
 * for Q4_1, Q5_1, Q4_K, Q5_K a sum). */
void ry_gguf_blocks_to_f32(ry_dtype t, const void *blocks, size_t n_blocks, float *out);

#endif
