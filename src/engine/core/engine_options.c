/* engine_options.c - option structs of callers completed and checked; CPU level and number format
 * chosen. A format that brings no speed is refused with the reason.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/engine_options.h"

#include "base/cpu.h"
#include "base/status.h"

#include <string.h>

enum { MAX_THREADS = 1024 };

/* ---- structs ------------------------------------------------------------------------------- */

renyi_status ry_struct_read(void *out, size_t size, const void *given, const char *what,
                            renyi_error *err)
{
    uint32_t struct_size;
    memset(out, 0, size);
    if (!given) return RENYI_OK;
    memcpy(&struct_size, given, sizeof struct_size);
    if (struct_size < sizeof struct_size || struct_size > size)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s: struct_size %u, this library knows %zu", what,
                       struct_size, size);
    memcpy(out, given, struct_size);
    return RENYI_OK;
}

renyi_status ry_allocator_check(const renyi_allocator *al, const char *what, renyi_error *err)
{
    if (!al->alloc == !al->release) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s: allocator has one of alloc and release; set both or none", what);
}

renyi_status ry_options_read(renyi_options *out, const renyi_options *opt, renyi_error *err)
{
    RY_TRY(ry_struct_read(out, sizeof *out, opt, "renyi_options", err));
    return ry_allocator_check(&out->allocator, "renyi_options", err);
}

renyi_status ry_threads_choose(uint32_t *n_threads, renyi_error *err)
{
    if (!*n_threads) *n_threads = ry_cpu_threads(1);
    if (*n_threads <= MAX_THREADS) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "%u threads; at most %d", *n_threads, MAX_THREADS);
}

renyi_status ry_streams_batch(uint32_t *images, uint32_t batch, uint32_t n_streams,
                              renyi_error *err)
{
    const uint64_t n = (uint64_t)batch * (n_streams ? n_streams : 1);
    if (n > UINT32_MAX)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u streams of %u images are too many", n_streams,
                       batch);
    *images = (uint32_t)n;
    return RENYI_OK;
}

/* ---- number formats ------------------------------------------------------------------------ */

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

/* NULL if the format is faster than f32 at this level, else why not. The plain C level runs int8
 * anyway: it is the specification that the other levels are tested against. */
static const char *why_not(renyi_dtype dtype, renyi_cpu level)
{
#if defined(__aarch64__)
    if (dtype == RENYI_DTYPE_BF16 && (level < RY_CPU_VEC8 || !ry_cpu_has_bf16()))
        return "bf16 needs NEON with BF16 instructions, which this CPU lacks";
    return NULL;
#elif !defined(RY_HAS_ONEDNN) /* its int8 with AVX-512 is that of AVX2 */
    return dtype == RENYI_DTYPE_BF16 ? "bf16 needs oneDNN, which this build lacks" : NULL;
#endif
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

static renyi_status check_known(renyi_dtype wanted, renyi_error *err)
{
    if ((unsigned)wanted <= RENYI_DTYPE_INT4) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "dtype %d is not known", (int)wanted);
}

renyi_status ry_dtype_choose(renyi_dtype wanted, renyi_cpu level, renyi_dtype *out,
                             renyi_error *err)
{
    RY_TRY(check_known(wanted, err));
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
    RY_TRY(check_known(wanted, err));
    *out = wanted == RENYI_DTYPE_DEFAULT ? RENYI_DTYPE_F32
           : wanted == RENYI_DTYPE_AUTO  ? RENYI_DTYPE_INT8
                                         : wanted;
    return RENYI_OK;
}

renyi_dtype ry_dtype_of_quantized(renyi_cpu level)
{
    return why_not(RENYI_DTYPE_INT8, level) ? RENYI_DTYPE_F32 : RENYI_DTYPE_INT8;
}

renyi_status ry_compute_choose(ry_compute *out, renyi_options *opt, const renyi_options *given,
                               renyi_error *err)
{
    RY_TRY(ry_options_read(opt, given, err));
    RY_TRY(ry_cpu_choose(opt->cpu, &out->level, err));
    return ry_dtype_choose(opt->dtype, out->level, &out->dtype, err);
}

renyi_status renyi_dtype_check(renyi_dtype dtype, renyi_cpu cpu, renyi_error *err)
{
    renyi_cpu level;
    renyi_dtype chosen;
    RY_TRY(ry_cpu_choose(cpu, &level, err));
    return ry_dtype_choose(dtype, level, &chosen, err);
}
