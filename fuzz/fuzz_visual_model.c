/* fuzz_visual_model.c - any safetensors file as a LLaVA whose visual side is opened, as
 * renyi_visual_open does; config.json travels in the file's metadata.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llava/visual.h"
#include "model_target.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(const ry_checkpoint *ckpt, renyi_dtype dtype)
{
    const renyi_options opt = {.struct_size = sizeof opt};
    const ry_visual_source from = {ckpt, NULL};
    ry_visual_config config;
    ry_visual visual;
    renyi_error err = {0};
    if (ry_visual_configure(&config, &from, 0, NULL, &err)) {
        if (!err.message[0]) abort();
        return;
    }
    if (ry_visual_load(&visual, &config, &from, &opt, RENYI_CPU_SCALAR, dtype, &err)) {
        if (!err.message[0] || visual.tower.blocks) abort();
        return;
    }
    ry_visual_free(&visual, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(load, data, size);
}
