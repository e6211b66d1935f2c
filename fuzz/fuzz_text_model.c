/* fuzz_text_model.c - any safetensors file as a CLIP whose text tower is opened, as renyi_text_open
 * does; config.json travels in the file's metadata.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/clip_text/text_tower.h"
#include "model_target.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(const ry_checkpoint *ckpt, renyi_dtype dtype)
{
    const renyi_options opt = {.struct_size = sizeof opt};
    ry_text_config config;
    ry_text text;
    renyi_error err = {0};
    if (ry_text_configure(&config, ckpt, &err)) {
        if (!err.message[0]) abort();
        return;
    }
    if (ry_text_load(&text, &config, ckpt, &opt, RENYI_CPU_SCALAR, dtype, &err)) {
        if (!err.message[0] || text.blocks) abort();
        return;
    }
    ry_text_free(&text, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(load, data, size);
}
