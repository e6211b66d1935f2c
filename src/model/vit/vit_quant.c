/* vit_quant.c - see vit_quant.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/vit_quant.h"

#include "base/json.h"
#include "base/status.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const tails[RY_N_BESIDE] = {"_scale", "_range"};

void ry_vit_beside_name(char out[RY_NAME_MAX + RY_BESIDE_MAX], const char *weight,
                        ry_vit_beside which)
{
    snprintf(out, RY_NAME_MAX + RY_BESIDE_MAX, "%.*s%s", RY_NAME_MAX, weight, tails[which]);
}

static const ry_tensor *beside(const ry_tensors *set, const ry_tensor *weight, ry_vit_beside which)
{
    char name[RY_NAME_MAX + RY_BESIDE_MAX];
    ry_vit_beside_name(name, weight->name, which);
    return ry_tensors_find(set, name);
}

const ry_tensor *ry_vit_beside_weight(const ry_vit_naming *n, const char *name,
                                      const ry_tensors *set)
{
    const size_t length = strlen(name);
    for (int i = 0; i < RY_N_BESIDE; i++) {
        char weight[RY_NAME_MAX];
        uint32_t block;
        const size_t tail = strlen(tails[i]);
        if (length <= tail || length - tail >= sizeof weight ||
            strcmp(name + length - tail, tails[i]) != 0)
            continue;
        memcpy(weight, name, length - tail);
        weight[length - tail] = '\0';
        const ry_vit_name *row = ry_vit_name_match(n, weight, &block);
        if (row && ry_vit_is_product(row->role)) return ry_tensors_find(set, weight);
    }
    return NULL;
}

/* ---- what the file says of itself ----------------------------------------------------------- */

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
static renyi_status write_text(ry_vit_config *c, uint32_t n_ranges, const json_t *scheme,
                               renyi_error *err)
{
    const char *activations = n_ranges ? "static" : "per token";
    uint32_t photos = 0;
    char count[32] = "", rest[48] = "";
    RY_TRY(ry_json_string(scheme, "activations", &activations, RY_QUANT_KEY, err));
    RY_TRY(ry_json_uint(scheme, "calibration_photos", &photos, RY_QUANT_KEY, err));
    if (photos) snprintf(count, sizeof count, " (%u photos)", photos);
    if (n_ranges && n_ranges < c->n_quantised)
        snprintf(rest, sizeof rest, " but %u of %u per token", c->n_quantised - n_ranges,
                 c->n_quantised);
    snprintf(c->quantization, sizeof c->quantization,
             "weights int8 per channel, activations %.40s%s%s", activations, rest, count);
    return RENYI_OK;
}

renyi_status ry_vit_quant_describe(ry_vit_config *c, const ry_vit_naming *n, const ry_tensors *set,
                                   renyi_error *err)
{
    json_t *scheme;
    uint32_t n_ranges = 0;
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        uint32_t block;
        if (t->dtype != RY_I8 || !ry_vit_name_match(n, t->name, &block)) continue;
        c->n_quantised++;
        n_ranges += beside(set, t, RY_BESIDE_RANGE) != NULL;
    }
    if (!c->n_quantised) return RENYI_OK;
    RY_TRY(read_scheme(&scheme, set, err));
    const renyi_status st = write_text(c, n_ranges, scheme, err);
    json_decref(scheme);
    return st;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static float float_at(const ry_tensor *t, size_t i)
{
    float x;
    memcpy(&x, (const char *)t->data + i * sizeof x, sizeof x);
    return x;
}

renyi_status ry_vit_dequantise(float *out, const ry_tensor *weight, const ry_tensors *set,
                               renyi_error *err)
{
    const ry_tensor *scales = beside(set, weight, RY_BESIDE_SCALE);
    const int8_t *q = weight->data;
    const size_t n_out = (size_t)weight->shape[0], n_in = (size_t)weight->shape[1];
    for (size_t j = 0; j < n_out; j++, q += n_in, out += n_in) {
        const float scale = float_at(scales, j);
        int8_t least = 0;
        if (!(scale >= 0.0f && scale <= FLT_MAX / 127.0f))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "tensor '%.120s' holds %g at element %zu; a finite number from 0 on "
                           "wanted: " RY_QUANTISE_AGAIN,
                           scales->name, (double)scale, j);
        for (size_t k = 0; k < n_in; k++) {
            out[k] = scale * (float)q[k];
            least = q[k] < least ? q[k] : least;
        }
        if (least == INT8_MIN)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "tensor '%.120s' holds -128 in channel %zu; -127 to 127 "
                           "wanted: " RY_QUANTISE_AGAIN,
                           weight->name, j);
    }
    return RENYI_OK;
}

int ry_vit_quant_scale(float *out, const ry_tensor *weight, const ry_tensors *set)
{
    if (weight->dtype != RY_I8) return 0;
    memcpy(out, beside(set, weight, RY_BESIDE_SCALE)->data, (size_t)weight->shape[0] * sizeof *out);
    return 1;
}

renyi_status ry_vit_quant_range(ry_quant_range *out, int *has, const ry_tensor *weight,
                                const ry_tensors *set, renyi_error *err)
{
    const ry_tensor *t = weight->dtype == RY_I8 ? beside(set, weight, RY_BESIDE_RANGE) : NULL;
    *has = t != NULL;
    if (!t) return RENYI_OK;
    *out = (ry_quant_range){float_at(t, 0), float_at(t, 1)};
    if (out->low < out->high && isfinite(out->high - out->low)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "tensor '%.120s' holds %g and %g; a low end below a high end, both finite, "
                   "wanted: " RY_QUANTISE_AGAIN,
                   t->name, (double)out->low, (double)out->high);
}
