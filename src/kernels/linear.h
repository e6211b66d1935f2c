/* linear.h - y = x W^T + b with weights packed once: the matrix products of the model.
 * One interface, three bodies: plain C (linear_scalar.c, the specification), our packed AVX2 kernel
 * (linear_avx2.c) and oneDNN (linear_onednn.c, the one file that knows it) from AVX-512 on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_KERNELS_LINEAR_H
#define RY_KERNELS_LINEAR_H

#include "renyi/renyi.h"

#include <stddef.h>

typedef struct ry_linear ry_linear; /* immutable after new; may be shared by threads */

/* What happens to a row after the product and the bias. */
typedef enum ry_epilogue {
    RY_EPI_NONE,     /* y = xW + b */
    RY_EPI_GELU,     /* y = gelu(xW + b), erf form */
    RY_EPI_RESIDUAL, /* y += xW + b */
    RY_EPI_QUICKGELU /* y = v * sigmoid(1.702 v), v = xW + b */
} ry_epilogue;

/* w: [n_out, n_in] row-major; bias: [n_out] or NULL. Both are copied (packed). A linear has one
 * epilogue for life, because a backend may compile it in. */
typedef struct ry_linear_spec {
    const float *w, *bias;
    size_t n_out, n_in;
    ry_epilogue epilogue;
} ry_linear_spec;

renyi_status ry_linear_new(ry_linear **out, const ry_linear_spec *spec, renyi_cpu level,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_linear_free(ry_linear *l, const renyi_allocator *al);
size_t ry_linear_out(const ry_linear *l);
size_t ry_linear_in(const ry_linear *l);

#endif
