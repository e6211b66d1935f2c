/* epilogue.h - what our own products do to a finished sum v = xW + b on its way into y; in plain C,
 * and in vectors for kernels that have chosen a width before including this.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_EPILOGUE_H
#define RY_EPILOGUE_H

#include "kernels/linear/activation.h"
#include "kernels/linear/linear.h"

static inline void ry_epilogue_one(ry_epilogue epilogue, float *y, float v)
{
    switch (epilogue) {
    case RY_EPI_NONE: *y = v; break;
    case RY_EPI_GELU: *y = ry_gelu(v); break;
    case RY_EPI_RESIDUAL: *y += v; break;
    case RY_EPI_QUICKGELU: *y = ry_quick_gelu(v); break;
    }
}

#ifdef RY_SIMD_H
/* The first `left` lanes, or all if there are more, into y. */
RY_INLINE void ry_epilogue_store(ry_epilogue epilogue, float *y, vf v, size_t left)
{
    switch (epilogue) {
    case RY_EPI_NONE: break;
    case RY_EPI_GELU: v = vf_gelu(v); break;
    case RY_EPI_RESIDUAL: v = vf_add(v, vf_load_upto(y, left)); break;
    case RY_EPI_QUICKGELU: v = vf_quick_gelu(v); break;
    }
    vf_store_upto(y, v, left);
}
#endif

#endif
