/* linear_vec8.c - our packed products with vectors of 8 floats (AVX2 or NEON): weights as floats,
 * and as bfloat16.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_VEC8
#include "kernels/linear/linear_template.h"

const ry_linear_vtable ry_linear_vec8 = {.pack = pack_f32,
                                         .reads = 1,
                                         .update = update_f32,
                                         .bind = bind_f32,
                                         .tiles = count_tiles,
                                         .tile = tile_f32,
                                         .row_padding = RY_LINE};

const ry_linear_vtable ry_linear_bf16_vec8 = {.pack = pack_bf16,
                                              .reads = 1,
                                              .bind = bind_bf16,
                                              .tiles = count_tiles,
                                              .tile = tile_bf16,
                                              .row_padding = RY_LINE};
