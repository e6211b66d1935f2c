/* dtype.c - which numbers a machine multiplies fastest. A format that brings no speed is refused
 * with the reason. SPDX-License-Identifier: Apache-2.0 */
#include "engine/dtype.h"

#include "base/cpu.h"
#include "base/status.h"

const char *renyi_dtype_name(renyi_dtype dtype)
{
    switch (dtype) {
    case RENYI_DTYPE_DEFAULT: return "default";
    case RENYI_DTYPE_F32: return "f32";
    case RENYI_DTYPE_BF16: return "bf16";
    case RENYI_DTYPE_INT8: return "int8";
    case RENYI_DTYPE_AUTO: return "auto";
    }
    return "unknown";
}

renyi_status ry_dtype_choose(renyi_dtype wanted, renyi_cpu level, renyi_dtype *out,
                             renyi_error *err)
{
    switch (wanted) {
    case RENYI_DTYPE_DEFAULT:
    case RENYI_DTYPE_F32: *out = RENYI_DTYPE_F32; return RENYI_OK;
    case RENYI_DTYPE_AUTO:
    case RENYI_DTYPE_INT8: *out = RENYI_DTYPE_INT8; return RENYI_OK;
    case RENYI_DTYPE_BF16:
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "bf16 needs a CPU with AVX-512 BF16; with %s it would be slower than f32. "
                       "Use int8 or f32",
                       renyi_cpu_name(level));
    }
    return ry_fail(err, RENYI_ERR_ARG, -1, "dtype %d is not known", (int)wanted);
}

renyi_status renyi_dtype_check(renyi_dtype dtype, renyi_cpu cpu, renyi_error *err)
{
    renyi_cpu level;
    renyi_dtype chosen;
    RY_TRY(ry_cpu_choose(cpu, &level, err));
    return ry_dtype_choose(dtype, level, &chosen, err);
}
