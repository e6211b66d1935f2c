/* fuzz_json.c - any bytes as config.json, looked at the way models do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
