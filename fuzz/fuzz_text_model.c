/* fuzz_text_model.c - any safetensors file as a CLIP whose text tower is opened, as renyi_text_open
 * does; config.json travels in the file's metadata. SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "formats/safetensors.h"
#include "model/text.h"

#include <stdlib.h>
#include <string.h>

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
