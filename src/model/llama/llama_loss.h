/* llama_loss.h - what a Llama's weights lose when they are kept in fewer bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAMA_LOSS_H
#define RY_LLAMA_LOSS_H

#include "model/llama/llama.h"

/* *out: the root of (sum of squared errors / sum of squares) of the weights in `dtype`, measured on
 * 16 rows of the output matrix and of every matrix of the first, the middle and the last layer; 0
 * for f32, for packed files and for matrices that keep the blocks of a GGUF. Of int8 it is that of
 * AVX2's form, which is never the better one. */
renyi_status ry_llama_loss(double *out, const ry_llama_config *c, const ry_checkpoint *ckpt,
                           renyi_dtype dtype, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;

#endif
