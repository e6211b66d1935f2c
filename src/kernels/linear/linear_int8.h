/* linear_int8.h - what the 8-bit bodies of linear.h share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LINEAR_INT8_H
#define RY_LINEAR_INT8_H

#include "kernels/linear/linear_backend.h"
#include "kernels/linear/panels.h"

/* Packs into panels (panels.h), or borrows them, with bias, scale and sum padded to whole panels.
 * pairs: ry_quant_channel */
renyi_status ry_int8_pack(ry_linear *l, const ry_linear_spec *spec, int pairs,
                          const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Allocates bias, scale and sum [n_padded] and fills the first n_out of bias. */
renyi_status ry_int8_columns(ry_linear *l, const ry_linear_spec *spec, size_t n_padded,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Channel j, w [n_in], as integers q [n_in]; its scale and sum go to l. */
void ry_int8_channel(ry_linear *l, const ry_linear_spec *spec, size_t j, const float *w, int8_t *q,
                     int pairs);

#endif
