/* fuzz_models.c - safetensors files as models: configured and loaded as the public functions do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "engine/core/model_handle.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "fuzz_targets.h"
#include "model/clip_text/text_tower.h"
#include "model/llama/llama_plan.h"
#include "model/llava/visual.h"
#include "model/vit/vit.h"

#include <stdlib.h>
#include <string.h>

/* Loads a safetensors file whose metadata holds config.json, in f32 and in int8. */
typedef void loader(const ry_checkpoint *ckpt, renyi_dtype dtype);

static int load_both(loader *load, const uint8_t *data, size_t size)
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

/* ---- model ----------------------------------------------------------------------------------- */

/* Any safetensors file as a model: configured and loaded as renyi_model_open does.
 * Configs that would be separate files are in the metadata under "config" and "preprocessor",
 * embedded ones under their file names. */
/* NULL when there is no such text or it is not JSON. */
static json_t *config_of(const ry_tensors *set, const char *key, const char *file)
{
    const char *beside = ry_tensors_meta(set, key);
    const char *text = beside ? beside : ry_tensors_meta(set, file);
    json_t *j = NULL;
    if (text && ry_json_parse(&j, text, strlen(text), key, NULL, NULL)) return NULL;
    return j;
}

/* In f32 and in int8, from weights of either kind. */
static void load_vit(const ry_checkpoint *ckpt, renyi_dtype dtype)
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

int fuzz_model(const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    char path[] = "fuzz";
    ry_checkpoint ckpt = {.tensors_path = path};
    if (ry_safetensors_parse(&ckpt.tensors, data, size, path, &limits, NULL, NULL)) return 0;
    ckpt.config = config_of(ckpt.tensors, "config", "config.json");
    ckpt.preprocessor_config = config_of(ckpt.tensors, "preprocessor", "preprocessor_config.json");
    ckpt.open_clip_config = config_of(ckpt.tensors, "open_clip", "open_clip_config.json");
    load_vit(&ckpt, RENYI_DTYPE_F32);
    load_vit(&ckpt, RENYI_DTYPE_INT8);
    json_decref(ckpt.config);
    json_decref(ckpt.preprocessor_config);
    json_decref(ckpt.open_clip_config);
    ry_tensors_free(ckpt.tensors);
    return 0;
}

/* ---- text_model ------------------------------------------------------------------------------ */

/* Any safetensors file as a CLIP whose text tower is opened, as renyi_text_open
 * does; config.json is in the metadata. */
static void load_text_tower(const ry_checkpoint *ckpt, renyi_dtype dtype)
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

int fuzz_text_model(const uint8_t *data, size_t size)
{
    return load_both(load_text_tower, data, size);
}

/* ---- visual_model ---------------------------------------------------------------------------- */

/* Any safetensors file as a LLaVA whose visual side is opened, as
 * renyi_visual_open does; config.json is in the metadata. */
static void load_visual(const ry_checkpoint *ckpt, renyi_dtype dtype)
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

int fuzz_visual_model(const uint8_t *data, size_t size)
{
    return load_both(load_visual, data, size);
}

/* ---- lm_model -------------------------------------------------------------------------------- */

/* Any safetensors file as a Llama that is opened and, if it is small, fed: as
 * renyi_lm_open does; config.json is in the metadata. */
enum { ROWS = 3, MAX_VOCAB = 4096 };

/* A pass of a few rows. */
static void feed_llama(const ry_llama *m)
{
    static float logits[MAX_VOCAB];
    const renyi_lm_input in[ROWS] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    const ry_llama_plan_options opt = {RENYI_CPU_SCALAR, 2 * ROWS, ROWS, 1, 0};
    ry_llama_plan *p;
    if (m->config.vocab > MAX_VOCAB || m->config.n_layers > 8) return;
    if (ry_llama_plan_new(&p, m, &opt, NULL, NULL)) return;
    ry_llama_forward(p, in, ROWS, NULL);
    ry_llama_forward(p, in, 1, logits);
    ry_llama_plan_free(p, NULL);
}

static void load_llama(const ry_checkpoint *ckpt, renyi_dtype dtype)
{
    const renyi_options opt = {.struct_size = sizeof opt};
    ry_llama_config config;
    ry_llama model;
    renyi_error err = {0};
    if (ry_llama_configure(&config, ckpt, &err)) {
        if (!err.message[0]) abort();
        return;
    }
    if (ry_llama_load(&model, &config, ckpt, &opt, RENYI_CPU_SCALAR, dtype, &err)) {
        if (!err.message[0] || model.layers) abort();
        return;
    }
    feed_llama(&model);
    ry_llama_free(&model, NULL);
}

int fuzz_lm_model(const uint8_t *data, size_t size) { return load_both(load_llama, data, size); }
