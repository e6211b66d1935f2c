/* dtype.c - which numbers a machine multiplies fastest. A format that brings no speed is refused
 * with the reason.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/dtype.h"

#include "base/cpu.h"
#include "base/status.h"

const char *renyi_dtype_name(renyi_dtype dtype)
{
    switch (dtype) {
    case RENYI_DTYPE_DEFAULT: return "default";
    case RENYI_DTYPE_F32: return "f32";
    case RENYI_DTYPE_BF16: return "bf16";
    case RENYI_DTYPE_INT8: return "int8";
    case RENYI_DTYPE_INT4: return "int4";
    case RENYI_DTYPE_AUTO: return "auto";
    }
    return "unknown";
}

/* NULL = faster than f32 here, else why not. Whoever asks for plain C gets its specification. */
static const char *why_not(renyi_dtype dtype, renyi_cpu level)
{
    if (dtype == RENYI_DTYPE_BF16 && level < RENYI_CPU_AVX512)
        return "bf16 needs AVX-512 with BF16 instructions";
    if (dtype == RENYI_DTYPE_BF16 && !ry_cpu_has_bf16())
        return "bf16 needs BF16 instructions, which this AVX-512 lacks";
    if (dtype == RENYI_DTYPE_INT8 && level == RENYI_CPU_AVX512 && !ry_cpu_has_vnni())
        return "int8 needs VNNI instructions, which this AVX-512 lacks";
    return NULL;
}

static renyi_dtype fastest(renyi_cpu level)
{
    if (!why_not(RENYI_DTYPE_INT8, level)) return RENYI_DTYPE_INT8;
    if (!why_not(RENYI_DTYPE_BF16, level)) return RENYI_DTYPE_BF16;
    return RENYI_DTYPE_F32;
}

renyi_status ry_dtype_choose(renyi_dtype wanted, renyi_cpu level, renyi_dtype *out,
                             renyi_error *err)
{
    if ((unsigned)wanted > RENYI_DTYPE_INT4)
        return ry_fail(err, RENYI_ERR_ARG, -1, "dtype %d is not known", (int)wanted);
    if (wanted == RENYI_DTYPE_INT4)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "int4 is for language models; a vision model runs in f32, bf16 or int8");
    *out = wanted;
    if (wanted == RENYI_DTYPE_DEFAULT) *out = RENYI_DTYPE_F32;
    if (wanted == RENYI_DTYPE_AUTO) *out = fastest(level);
    const char *reason = why_not(*out, level);
    if (!reason) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "%s; at CPU level %s it would be slower than f32. The fastest here is %s",
                   reason, renyi_cpu_name(level), renyi_dtype_name(fastest(level)));
}

renyi_status ry_dtype_choose_lm(renyi_dtype wanted, renyi_dtype *out, renyi_error *err)
{
    if ((unsigned)wanted > RENYI_DTYPE_INT4)
        return ry_fail(err, RENYI_ERR_ARG, -1, "dtype %d is not known", (int)wanted);
    *out = wanted == RENYI_DTYPE_DEFAULT ? RENYI_DTYPE_F32
           : wanted == RENYI_DTYPE_AUTO  ? RENYI_DTYPE_INT8
                                         : wanted;
    return RENYI_OK;
}

renyi_dtype ry_dtype_of_quantised(renyi_cpu level)
{
    return why_not(RENYI_DTYPE_INT8, level) ? RENYI_DTYPE_F32 : RENYI_DTYPE_INT8;
}

renyi_status renyi_dtype_check(renyi_dtype dtype, renyi_cpu cpu, renyi_error *err)
{
    renyi_cpu level;
    renyi_dtype chosen;
    RY_TRY(ry_cpu_choose(cpu, &level, err));
    return ry_dtype_choose(dtype, level, &chosen, err);
}
