/* fuzz_formats.c - tensor files and JSON: what a reader accepts must be consistent and readable to
 * the last byte.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "formats/safetensors.h"
#include "formats/tensor.h"
#include "formats/torch/torch_zip.h"
#include "fuzz_targets.h"

#include <math.h>
#include <stdlib.h>

/* What a reader accepts must be consistent and is read to the last byte. */
typedef renyi_status (*tensor_reader)(ry_tensors **out, const void *bytes, size_t size,
                                      const char *what, const renyi_limits *limits,
                                      const renyi_allocator *al, renyi_error *err);

static int read_tensors(tensor_reader parse, const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    ry_tensors *set;
    renyi_error err;
    volatile uint8_t sink = 0;

    if (parse(&set, data, size, "fuzz", &limits, NULL, &err)) {
        if (set || !err.message[0]) abort();
        return 0;
    }
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        if (ry_tensors_find(set, t->name) != t) abort();
        if (t->bytes != ry_tensor_elements(t) * ry_dtype_size(t->dtype)) abort();
        for (uint64_t k = 0; k < t->bytes; k++) sink ^= ((const uint8_t *)t->data)[k];
    }
    (void)sink;
    ry_tensors_free(set);
    return 0;
}

/* ---- safetensors ----------------------------------------------------------------------------- */

/* Any bytes as a safetensors file. */
int fuzz_safetensors(const uint8_t *data, size_t size)
{
    return read_tensors(ry_safetensors_parse, data, size);
}

/* ---- torch ----------------------------------------------------------------------------------- */

/* Any bytes as a PyTorch zip checkpoint. */
int fuzz_torch(const uint8_t *data, size_t size)
{
    return read_tensors(ry_torch_parse, data, size);
}

/* ---- json ------------------------------------------------------------------------------------ */

/* Any bytes as config.json, read as models read it. */
int fuzz_json(const uint8_t *data, size_t size)
{
    const ry_json_limits limits = {1 << 20, 100000, 0};
    renyi_error err;
    json_t *j;

    if (ry_json_parse(&j, (const char *)data, size, "fuzz", &limits, &err)) {
        if (j || !err.message[0]) abort();
        return 0;
    }
    uint32_t n = 0;
    double x = 0, mean[3] = {0, 0, 0};
    const char *text = "";
    int flag = 0, bad = 0;
    const json_t *cfg = ry_json_object(j, "pretrained_cfg");
    bad += ry_json_uint(j, "patch_size", &n, "fuzz", &err) != RENYI_OK;
    bad += ry_json_uint(cfg, "num_classes", &n, "fuzz", &err) != RENYI_OK;
    bad += ry_json_double(cfg, "crop_pct", &x, "fuzz", &err) != RENYI_OK;
    bad += ry_json_double3(cfg, "mean", mean, "fuzz", &err) != RENYI_OK;
    bad += ry_json_string(cfg, "interpolation", &text, "fuzz", &err) != RENYI_OK;
    bad += ry_json_bool(j, "do_resize", &flag, "fuzz", &err) != RENYI_OK;
    if (!text || !isfinite(x) || !isfinite(mean[2]) || (bad && !err.message[0])) abort();
    json_decref(j);
    return 0;
}
