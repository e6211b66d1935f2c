/* tensor.c - one tensor: sizes, names of types, conversion to floats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/tensor.h"

#include "base/checked.h"
#include "base/half.h"
#include "base/status.h"
#include "formats/gguf/gguf_blocks.h"
#include "formats/tensor_set.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [RY_BOOL] = {"BOOL", 1}, [RY_U8] = {"U8", 1},     [RY_I8] = {"I8", 1},
    [RY_U16] = {"U16", 2},   [RY_I16] = {"I16", 2},   [RY_U32] = {"U32", 4},
    [RY_I32] = {"I32", 4},   [RY_U64] = {"U64", 8},   [RY_I64] = {"I64", 8},
    [RY_F16] = {"F16", 2},   [RY_BF16] = {"BF16", 2}, [RY_F32] = {"F32", 4},
    [RY_F64] = {"F64", 8},   [RY_Q8_0] = {"Q8_0", 0}, [RY_Q4_0] = {"Q4_0", 0},
    [RY_Q4_1] = {"Q4_1", 0}, [RY_Q5_0] = {"Q5_0", 0}, [RY_Q5_1] = {"Q5_1", 0},
    [RY_Q4_K] = {"Q4_K", 0}, [RY_Q5_K] = {"Q5_K", 0}, [RY_Q6_K] = {"Q6_K", 0},
};

size_t ry_dtype_size(ry_dtype t) { return t < RY_Q8_0 ? dtypes[t].size : ry_gguf_block_bytes(t); }
size_t ry_dtype_block(ry_dtype t) { return t < RY_Q8_0 ? 1 : ry_gguf_block_elements(t); }
const char *ry_dtype_name(ry_dtype t) { return dtypes[t].name; }

int ry_dtype_parse(const char *name, ry_dtype *out)
{
    for (size_t i = 0; i < RY_Q8_0; i++)
        if (!strcmp(dtypes[i].name, name)) {
            *out = (ry_dtype)i;
            return 1;
        }
    return 0;
}

uint64_t ry_tensor_elements(const ry_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) n *= t->shape[i]; /* checked by the reader */
    return n;
}

int ry_tensor_wanted_bytes(const ry_tensor *t, uint64_t *bytes)
{
    const size_t block = ry_dtype_block(t->dtype);
    *bytes = ry_dtype_size(t->dtype);
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (!ry_mul_u64(*bytes, i + 1 < t->n_dims ? t->shape[i] : t->shape[i] / block, bytes))
            return 0;
    return 1;
}

const char *ry_tensor_shape_text(const ry_tensor *t, char *buf, size_t size)
{
    size_t at = (size_t)snprintf(buf, size, "[");
    for (uint32_t i = 0; i < t->n_dims && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%llu", i ? ", " : "",
                               (unsigned long long)t->shape[i]);
    if (at + 2 <= size)
        memcpy(buf + at, "]", 2);
    else if (size >= 4)
        memcpy(buf + size - 4, "...", 4);
    return buf;
}

/* ---- to floats ----------------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void f16_run(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, in + 2 * i, sizeof h);
        out[i] = ry_half_to_float(h);
    }
}

/* bfloat16 is the upper half of a float. */
static void bf16_run(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, in + 2 * i, sizeof h);
        out[i] = float_of_bits((uint32_t)h << 16);
    }
}

static void f64_run(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double d;
        memcpy(&d, in + 8 * i, sizeof d);
        out[i] = (float)d; /* rounds to nearest; too large becomes infinite, as in PyTorch */
    }
}

renyi_status ry_tensor_to_f32(const ry_tensor *t, float *out, renyi_error *err)
{
    const size_t n = (size_t)ry_tensor_elements(t); /* t->bytes fits the address space */
    switch (t->dtype) {
    case RY_F32:
        if (n) memcpy(out, t->data, n * sizeof *out);
        return RENYI_OK;
    case RY_F16: f16_run(t->data, out, n); return RENYI_OK;
    case RY_BF16: bf16_run(t->data, out, n); return RENYI_OK;
    case RY_F64: f64_run(t->data, out, n); return RENYI_OK;
    default: break;
    }
    if (t->dtype >= RY_Q8_0) {
        ry_gguf_blocks_to_f32(t->dtype, t->data, n / ry_dtype_block(t->dtype), out);
        return RENYI_OK;
    }
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "tensor '%.200s' has type %s; F32, F16, BF16 or F64 expected", t->name,
                   ry_dtype_name(t->dtype));
}
