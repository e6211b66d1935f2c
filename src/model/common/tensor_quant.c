/* tensor_quant.c - reads tensors as floats, and 8-bit weights with their scales and ranges.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/tensor_quant.h"

#include "base/half.h"
#include "base/json.h"
#include "base/status.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const suffixes[RY_N_QUANT_PARTS] = {"_scale", "_range"};

void ry_quant_part_name(char out[RY_NAME_MAX + RY_QUANT_SUFFIX_MAX], const char *weight,
                        ry_quant_part which)
{
    snprintf(out, RY_NAME_MAX + RY_QUANT_SUFFIX_MAX, "%.*s%s", RY_NAME_MAX, weight,
             suffixes[which]);
}

static const ry_tensor *find_part(const ry_tensors *set, const ry_tensor *weight,
                                  ry_quant_part which)
{
    char name[RY_NAME_MAX + RY_QUANT_SUFFIX_MAX];
    ry_quant_part_name(name, weight->name, which);
    return ry_tensors_find(set, name);
}

const ry_tensor *ry_quant_part_weight(const ry_tensor_naming *n, const char *name,
                                      const ry_tensors *set)
{
    const size_t length = strlen(name);
    for (int i = 0; i < RY_N_QUANT_PARTS; i++) {
        char weight[RY_NAME_MAX];
        uint32_t block;
        const size_t suffix = strlen(suffixes[i]);
        if (length <= suffix || length - suffix >= sizeof weight ||
            strcmp(name + length - suffix, suffixes[i]) != 0)
            continue;
        memcpy(weight, name, length - suffix);
        weight[length - suffix] = '\0';
        const ry_tensor_name *row = ry_tensor_name_match(n, weight, &block);
        if (row && ry_tensor_role_is_product(row->role)) return ry_tensors_find(set, weight);
    }
    return NULL;
}

/* ---- what the metadata says ---------------------------------------------------------------- */

/* The scheme in the metadata, or NULL; owned by the caller. */
static renyi_status read_scheme(json_t **out, const ry_tensors *set, renyi_error *err)
{
    const char *text = ry_tensors_meta(set, RY_QUANT_KEY);
    const ry_json_limits limits = {1 << 16, 1000, 8};
    uint32_t version = 0;
    *out = NULL;
    if (!text) return RENYI_OK;
    RY_TRY(ry_json_parse(out, text, strlen(text), RY_QUANT_KEY, &limits, err));
    const renyi_status st = ry_json_uint(*out, "version", &version, RY_QUANT_KEY, err);
    if (!st && version == RY_QUANT_VERSION) return RENYI_OK;
    json_decref(*out);
    *out = NULL;
    return st ? st
              : ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                        RY_QUANT_KEY " of version %u; this build reads version %d. "
                                     "A newer renyi may read it",
                        version, RY_QUANT_VERSION);
}

/* "weights int8 per channel, activations static max but 1 of 48 per token (128 photos)" */
static renyi_status describe_scheme(ry_vit_config *c, uint32_t n_ranges, const json_t *scheme,
                                    renyi_error *err)
{
    const char *activations = n_ranges ? "static" : "per token";
    uint32_t images = 0;
    char count[32] = "", rest[48] = "";
    RY_TRY(ry_json_string(scheme, "activations", &activations, RY_QUANT_KEY, err));
    RY_TRY(ry_json_uint(scheme, "calibration_photos", &images, RY_QUANT_KEY, err));
    if (images) snprintf(count, sizeof count, " (%u photos)", images);
    if (n_ranges && n_ranges < c->n_quantized)
        snprintf(rest, sizeof rest, " but %u of %u per token", c->n_quantized - n_ranges,
                 c->n_quantized);
    snprintf(c->quantization, sizeof c->quantization,
             "weights int8 per channel, activations %.40s%s%s", activations, rest, count);
    return RENYI_OK;
}

renyi_status ry_vit_quant_describe(ry_vit_config *c, const ry_tensor_naming *n,
                                   const ry_tensors *set, renyi_error *err)
{
    json_t *scheme;
    uint32_t n_ranges = 0;
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        uint32_t block;
        if (t->dtype != RY_I8 || !ry_tensor_name_match(n, t->name, &block)) continue;
        c->n_quantized++;
        n_ranges += find_part(set, t, RY_QUANT_RANGE) != NULL;
    }
    if (!c->n_quantized) return RENYI_OK;
    RY_TRY(read_scheme(&scheme, set, err));
    const renyi_status st = describe_scheme(c, n_ranges, scheme, err);
    json_decref(scheme);
    return st;
}

/* ---- values -------------------------------------------------------------------------------- */

static float read_float(const ry_tensor *t, size_t i)
{
    float x;
    memcpy(&x, (const char *)t->data + i * sizeof x, sizeof x);
    return x;
}

/* out [count] = the float values of elements of an I8 weight. Names and shapes have been checked.
 */
static renyi_status dequantize(float *out, const ry_tensor *weight, const ry_tensors *set,
                               ry_range range, renyi_error *err)
{
    const ry_tensor *scales = find_part(set, weight, RY_QUANT_SCALE);
    const size_t n_in = (size_t)weight->shape[1], end = range.first + range.count;
    for (size_t at = range.first, n; at < end; at += n, out += n) {
        const size_t j = at / n_in, left = n_in - at % n_in;
        const int8_t *q = (const int8_t *)weight->data + at;
        const float scale = read_float(scales, j);
        int8_t least = 0;
        n = left < end - at ? left : end - at;
        if (!(scale >= 0.0f && scale <= FLT_MAX / 127.0f))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "tensor '%.120s' holds %g at element %zu; a finite number from 0 on "
                           "expected: " RY_QUANTIZE_AGAIN,
                           scales->name, (double)scale, j);
        for (size_t k = 0; k < n; k++) {
            out[k] = scale * (float)q[k];
            least = q[k] < least ? q[k] : least;
        }
        if (least == INT8_MIN)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "tensor '%.120s' holds -128 in channel %zu; -127 to 127 "
                           "expected: " RY_QUANTIZE_AGAIN,
                           weight->name, j);
    }
    return RENYI_OK;
}

/* Index of the first NaN or infinity, or n. Whole blocks are tested first, without a branch. */
static size_t first_not_finite(const float *x, size_t n)
{
    enum { BLOCK = 4096 };
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t end = n - at < BLOCK ? n : at + BLOCK;
        unsigned bad = 0;
        for (size_t i = at; i < end; i++) {
            uint32_t bits;
            memcpy(&bits, x + i, sizeof bits);
            bad |= (bits & 0x7f800000u) == 0x7f800000u;
        }
        for (size_t i = at; bad && i < end; i++)
            if (!isfinite(x[i])) return i;
    }
    return n;
}

static renyi_status to_floats(float *out, const ry_tensor *t, ry_range range, renyi_error *err)
{
    const size_t block = ry_dtype_block(t->dtype);
    ry_tensor part = *t;
    if (range.first % block || range.count % block) /* a matrix that is read by columns */
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "tensor '%.120s' has type %s; F32, F16 or BF16 expected for this one",
                       t->name, ry_dtype_name(t->dtype));
    part.n_dims = 1;
    part.shape[0] = range.count;
    part.bytes = ry_dtype_bytes(t->dtype, range.count);
    part.data = (const char *)t->data + ry_dtype_bytes(t->dtype, range.first);
    return ry_tensor_to_f32(&part, out, err);
}

static renyi_status fail_not_finite(const ry_tensor *t, float found, size_t element,
                                    renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "tensor '%.120s' holds %s at element %zu of %zu; finite weights expected: "
                   "the file is damaged, download or convert it again",
                   t->name, isnan(found) ? "NaN" : "infinity", element,
                   (size_t)ry_tensor_elements(t));
}

renyi_status ry_tensor_read_range(float *out, const ry_tensor *t, const ry_tensors *set,
                                  ry_range range, renyi_error *err)
{
    RY_TRY(t->dtype == RY_I8 ? dequantize(out, t, set, range, err) : to_floats(out, t, range, err));
    const size_t bad = first_not_finite(out, range.count);
    return bad == range.count ? RENYI_OK : fail_not_finite(t, out[bad], range.first + bad, err);
}

renyi_status ry_tensor_read_blocks(void *out, const ry_tensor *t, ry_range range, renyi_error *err)
{
    const size_t elements = ry_dtype_block(t->dtype), size = ry_dtype_size(t->dtype);
    const uint8_t *from = (const uint8_t *)t->data + ry_dtype_bytes(t->dtype, range.first);
    assert(range.first % elements == 0 && range.count % elements == 0);
    memcpy(out, from, ry_dtype_bytes(t->dtype, range.count));
    for (size_t k = 0; k < range.count; k += elements, from += size) {
        const float d = ry_half_to_float((uint16_t)(from[0] | (unsigned)from[1] << 8));
        if (!isfinite(d)) return fail_not_finite(t, d, range.first + k, err);
    }
    return RENYI_OK;
}

renyi_status ry_tensor_read(float *out, const ry_tensor *t, const ry_tensors *set, renyi_error *err)
{
    const ry_range all = {0, (size_t)ry_tensor_elements(t)};
    return ry_tensor_read_range(out, t, set, all, err);
}

int ry_quant_scales(float *out, const ry_tensor *weight, const ry_tensors *set)
{
    if (weight->dtype != RY_I8) return 0;
    memcpy(out, find_part(set, weight, RY_QUANT_SCALE)->data,
           (size_t)weight->shape[0] * sizeof *out);
    return 1;
}

renyi_status ry_quant_input_range(ry_quant_range *out, int *has, const ry_tensor *weight,
                                  const ry_tensors *set, renyi_error *err)
{
    const ry_tensor *t = weight->dtype == RY_I8 ? find_part(set, weight, RY_QUANT_RANGE) : NULL;
    *has = t != NULL;
    if (!t) return RENYI_OK;
    *out = (ry_quant_range){read_float(t, 0), read_float(t, 1)};
    if (out->low < out->high && isfinite(out->high - out->low)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "tensor '%.120s' holds %g and %g; a low end below a high end, both finite, "
                   "expected: " RY_QUANTIZE_AGAIN,
                   t->name, (double)out->low, (double)out->high);
}
