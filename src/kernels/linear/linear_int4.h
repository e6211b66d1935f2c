/* linear_int4.h - what the 4-bit bodies of linear.h share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LINEAR_INT4_H
#define RY_LINEAR_INT4_H

#include "kernels/linear/linear_backend.h"
#include "kernels/linear/panels.h"
#include "kernels/linear/quant4.h"

/* Packs into panels (panels.h), or borrows them, with bias and scale padded to whole panels. */
renyi_status ry_int4_pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                          renyi_error *err) RENYI_CHECK;

size_t ry_int4_input_bytes(const ry_linear *l, size_t rows);

#endif
