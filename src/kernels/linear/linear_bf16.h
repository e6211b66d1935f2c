/* linear_bf16.h - what the bodies that keep weights as bfloat16 share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LINEAR_BF16_H
#define RY_LINEAR_BF16_H

#include "kernels/linear/linear_backend.h"

/* Packs panels of `width` outputs, each [n_in, width]: panel p at packed + p * n_in * width. Bias
 * is padded to whole panels. */
renyi_status ry_bf16_pack(ry_linear *l, const ry_linear_spec *spec, size_t width,
                          const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
