/* epilogue.h - how our own products store a finished sum v = xW + b into y: activation or residual.
 * In plain C, and as a vector function for files that include simd.h before.
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
    case RY_EPI_GELU_TANH: *y = ry_gelu_tanh(v); break;
    case RY_N_EPILOGUES: break;
    }
}

#ifdef RY_SIMD_H
/* Stores the first min(left, VL) lanes. */
RY_INLINE void ry_epilogue_store(ry_epilogue epilogue, float *y, vf v, size_t left)
{
    switch (epilogue) {
    case RY_EPI_NONE: break;
    case RY_EPI_GELU: v = vf_gelu(v); break;
    case RY_EPI_RESIDUAL: v = vf_add(v, vf_load_upto(y, left)); break;
    case RY_EPI_QUICKGELU: v = vf_quick_gelu(v); break;
    case RY_EPI_GELU_TANH: v = vf_gelu_tanh(v); break;
    case RY_N_EPILOGUES: break;
    }
    vf_store_upto(y, v, left);
}
#endif

#endif
