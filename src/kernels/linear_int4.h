/* linear_int4.h - what the 4-bit bodies of linear.h share. SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_KERNELS_LINEAR_INT4_H
#define RY_KERNELS_LINEAR_INT4_H

#include "kernels/linear_body.h"
#include "kernels/panels.h"
#include "kernels/quant4.h"

/* Packs into panels (panels.h), or borrows them, with bias and scale padded to whole panels. */
renyi_status ry_int4_pack(ry_linear *l, const ry_linear_spec *spec, const renyi_allocator *al,
                          renyi_error *err) RENYI_CHECK;

size_t ry_int4_input_bytes(const ry_linear *l, size_t rows);

#endif
