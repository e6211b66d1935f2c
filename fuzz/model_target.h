/* model_target.h - what the targets of models do with their bytes: a safetensors file whose
 * metadata holds config.json, loaded in floats and in 8 bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_FUZZ_MODEL_TARGET_H
#define RENYI_FUZZ_MODEL_TARGET_H

#include "base/json.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"

#include <string.h>

typedef void fuzz_load(const ry_checkpoint *ckpt, renyi_dtype dtype);

static inline int fuzz_model(fuzz_load *load, const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    char path[] = "fuzz";
    ry_checkpoint ckpt = {.tensors_path = path};
    if (ry_safetensors_parse(&ckpt.tensors, data, size, path, &limits, NULL, NULL)) return 0;
    const char *config = ry_tensors_meta(ckpt.tensors, "config.json");
    if (config && ry_json_parse(&ckpt.config, config, strlen(config), "config.json", NULL, NULL))
        ckpt.config = NULL;
    load(&ckpt, RENYI_DTYPE_F32);
    load(&ckpt, RENYI_DTYPE_INT8);
    json_decref(ckpt.config);
    ry_tensors_free(ckpt.tensors);
    return 0;
}

#endif
