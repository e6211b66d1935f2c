/* fuzz_model.c - any safetensors file as a model: configured and loaded as renyi_model_open does.
 * The configs beside it travel in the file's own metadata, under "config" and "preprocessor"; those
 * inside it under their own names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "engine/core/model_handle.h"
#include "formats/safetensors.h"
#include "model/vit/vit.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* NULL when there is no such text or it is not JSON. */
static json_t *config_of(const ry_tensors *set, const char *key, const char *file)
{
    const char *beside = ry_tensors_meta(set, key);
    const char *text = beside ? beside : ry_tensors_meta(set, file);
    json_t *j = NULL;
    if (text && ry_json_parse(&j, text, strlen(text), key, NULL, NULL)) return NULL;
    return j;
}

/* In floats and in 8 bits, from weights of either kind. */
static void load(const ry_checkpoint *ckpt, renyi_dtype dtype)
{
    const renyi_options opt = {.struct_size = sizeof opt};
    ry_vit_config config;
    ry_vit vit;
    ry_labels labels;
    renyi_error err = {0};
    if (ry_vit_configure(&config, ckpt, 0, &err)) {
        if (!err.message[0]) abort();
        return;
    }
    if (ry_vit_load(&vit, &config, ckpt, &opt, RENYI_CPU_SCALAR, dtype, &err)) {
        if (!err.message[0] || vit.blocks) abort();
        return;
    }
    if (!ry_labels_read(&labels, ckpt->config, config.n_classes, NULL, &err))
        ry_labels_free(&labels, NULL);
    ry_vit_free(&vit, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    char path[] = "fuzz";
    ry_checkpoint ckpt = {.tensors_path = path};
    if (ry_safetensors_parse(&ckpt.tensors, data, size, path, &limits, NULL, NULL)) return 0;
    ckpt.config = config_of(ckpt.tensors, "config", "config.json");
    ckpt.preprocessor_config = config_of(ckpt.tensors, "preprocessor", "preprocessor_config.json");
    load(&ckpt, RENYI_DTYPE_F32);
    load(&ckpt, RENYI_DTYPE_INT8);
    json_decref(ckpt.config);
    json_decref(ckpt.preprocessor_config);
    ry_tensors_free(ckpt.tensors);
    return 0;
}
