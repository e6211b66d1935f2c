/* fuzz_models.c - safetensors files as models: configured and loaded as the public functions do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "engine/core/model_handle.h"
#include "formats/checkpoint.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors.h"
#include "fuzz_targets.h"
#include "model/clip_text/text_tower.h"
#include "model/llama/llama_plan.h"
#include "model/llava/mmproj.h"
#include "model/llava/visual.h"
#include "model/vit/vit.h"
#include "text/spm.h"

#include <stdlib.h>
#include <string.h>

/* Configs that would be separate files are in the metadata under `key`, embedded ones under their
 * file names. NULL when there is no such text or it is not JSON. */
static json_t *config_of(const ry_tensors *set, const char *key, const char *file)
{
    const char *beside = ry_tensors_meta(set, key);
    const char *text = beside ? beside : ry_tensors_meta(set, file);
    json_t *j = NULL;
    if (text && ry_json_parse(&j, text, strlen(text), key, NULL, NULL)) return NULL;
    return j;
}

/* Loads a safetensors file whose metadata holds config.json, in f32 and in int8. */
typedef void loader(const ry_checkpoint *ckpt, renyi_dtype dtype);

static int load_both(loader *load, const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    char path[] = "fuzz";
    ry_checkpoint ckpt = {.tensors_path = path};
    if (ry_safetensors_parse(&ckpt.tensors, data, size, path, &limits, NULL, NULL)) return 0;
    ckpt.config = config_of(ckpt.tensors, "config.json", "config.json");
    ckpt.open_clip_config =
        config_of(ckpt.tensors, "open_clip_config.json", "open_clip_config.json");
    ckpt.preprocessor_config =
        config_of(ckpt.tensors, "preprocessor_config.json", "preprocessor_config.json");
    load(&ckpt, RENYI_DTYPE_F32);
    load(&ckpt, RENYI_DTYPE_INT8);
    json_decref(ckpt.config);
    json_decref(ckpt.open_clip_config);
    json_decref(ckpt.preprocessor_config);
    ry_tensors_free(ckpt.tensors);
    return 0;
}

/* ---- model ----------------------------------------------------------------------------------- */

/* Any safetensors file as a model: configured and loaded as renyi_model_open does, in f32 and in
 * int8, from weights of either kind. */
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

/* The pixels of base and tiles, of small tiles and images only. */
static void cut_tiles(const ry_tile_plan *p, uint32_t side, uint32_t width, uint32_t height)
{
    enum { MOST = 64, IMAGE = 100 };
    static const uint8_t rgb[IMAGE * IMAGE * 3] = {1, 2, 3};
    const renyi_image image = {.rgb = rgb, .width = width, .height = height};
    if (side > MOST || width > IMAGE || height > IMAGE) return;
    const size_t bytes = (1 + (size_t)p->across * p->down) * side * side * 3;
    uint8_t *out = malloc(bytes); /* exact size: the sanitizer sees writes behind it */
    renyi_error err = {0};
    if (out && ry_tile_cut(out, &image, p, side, RENYI_BICUBIC, ry_resize_best(), NULL, &err))
        abort();
    free(out);
}

/* Images of many shapes in the grids of a LLaVA-NeXT: the windows of the tiles are in the tiles and
 * make up the visual tokens. */
static void place_images(const ry_visual_config *c)
{
    static const uint32_t sides[] = {1, 2, 3, 7, 100, 333, 4096, 1 << 24};
    enum { N = sizeof sides / sizeof *sides };
    const uint32_t G = c->tiles.patches;
    ry_tile_plan p;
    for (size_t i = 0; c->tiles.n && i < (size_t)N * N; i++) {
        uint32_t patches = 0;
        if (ry_tile_place(&p, &c->tiles, sides[i % N], sides[i / N], NULL)) abort();
        for (uint32_t t = 1; t <= p.across * p.down; t++) {
            const ry_tile_window w = ry_tile_window_of(&p, G, t);
            if (w.left + w.columns > G || w.top + w.lines > G) abort();
            patches += w.columns * w.lines;
        }
        if (patches != p.n_columns * p.n_lines || p.across * p.down > RY_MAX_TILES) abort();
        if (p.left + p.width > p.across * c->tiles.side) abort();
        if (p.top + p.height > p.down * c->tiles.side || !p.width || !p.height) abort();
        cut_tiles(&p, c->tiles.side, sides[i % N], sides[i / N]);
    }
}

/* Any safetensors file as a LLaVA whose visual side is opened, as
 * renyi_visual_open does; config.json and preprocessor_config.json are in the metadata. */
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
    place_images(&config);
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

/* ---- gguf_model ------------------------------------------------------------------------------ */

/* The tokenizer among the values, and a text of all kinds of characters. */
static void run_tokenizer(const ry_gguf *g)
{
    static const char text[] = "it's <s>a  b\n 12\xc3\xa9 \xe6\x97\xa5!";
    int32_t ids[128];
    ry_id_sink sink = {ids, 128, 0};
    renyi_error err = {0};
    renyi_lm_stream stream = {0};
    char part[RENYI_LM_STREAM_ROOM];
    ry_spm *spm;
    int is_bad;
    if (ry_spm_read_gguf(&spm, g, "fuzz", NULL, &err)) {
        if (spm || !err.message[0]) abort();
        return;
    }
    if (ry_spm_encode(spm, text, sizeof text - 1, 0, 0, &sink, &err) && !err.message[0]) abort();
    for (uint32_t id = 0; id < spm->bpe->n_ids; id++)
        if (ry_spm_put(spm, &stream, (int32_t)id, part, &is_bad) > sizeof part) abort();
    ry_spm_free(spm);
}

static void load_mmproj(const ry_checkpoint *file)
{
    renyi_error err = {0};
    ry_checkpoint llava;
    if (ry_mmproj_read(&llava, file, NULL, &err)) {
        if (!err.message[0] || llava.tensors) abort();
        return;
    }
    load_visual(&llava, RENYI_DTYPE_F32);
    ry_checkpoint_close(&llava, NULL);
}

/* Any GGUF as a Llama with its tokenizer, or as the visual side of a LLaVA. */
int fuzz_gguf_model(const uint8_t *data, size_t size)
{
    const renyi_limits limits = {0, 1 << 20, 0, 0, 0};
    char path[] = "fuzz";
    ry_checkpoint ckpt = {.tensors_path = path, .is_gguf = 1};
    ry_gguf g;
    if (ry_gguf_parse(&g, data, size, path, &limits, NULL, NULL)) return 0;
    ckpt.tensors = g.tensors;
    if (ry_gguf_config(&ckpt.config, &g, path, NULL)) abort();
    run_tokenizer(&g);
    if (ry_mmproj_is(&ckpt)) {
        load_mmproj(&ckpt);
    } else {
        load_llama(&ckpt, RENYI_DTYPE_F32);
        load_llama(&ckpt, RENYI_DTYPE_INT8); /* keeps blocks of Q8_0 and Q4_0 */
        load_llama(&ckpt, RENYI_DTYPE_INT4);
    }
    json_decref(ckpt.config);
    ry_gguf_free(&g, NULL);
    return 0;
}
