/* tile_config.c - whether a LLaVA reads images as one square (LLaVA-1.5) or as base and tiles
 * (LLaVA-NeXT): its grids, what becomes of the border, and the row that ends a line of patches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "formats/tensor_set.h"
#include "model/common/tensor_quant.h"
#include "model/llava/visual.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_FILE "config.json"
#define PREPROCESSOR_FILE "preprocessor_config.json"
#define PINPOINTS "image_grid_pinpoints"
#define OWN_FILE "; take the file that belongs to these weights"

/* ---- which kind ---------------------------------------------------------------------------- */

static const ry_tensor *find_newline(const ry_tensors *set)
{
    ry_tensor_naming n;
    char name[RY_NAME_MAX + 16];
    if (!ry_visual_projector_find(&n, NULL, set)) return NULL;
    snprintf(name, sizeof name, "%simage_newline", n.prefix);
    return ry_tensors_find(set, name);
}

renyi_status ry_visual_has_tiles(int *out, const ry_checkpoint *llava, renyi_error *err)
{
    const char *type = "", *ratio = "";
    RY_TRY(ry_json_string(llava->config, "model_type", &type, CONFIG_FILE, err));
    RY_TRY(ry_json_string(llava->config, "image_aspect_ratio", &ratio, CONFIG_FILE, err));
    *out = strcmp(type, "llava_next") == 0 || strcmp(ratio, "anyres") == 0;
    if (*out || *ratio || !find_newline(llava->tensors)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "the weights have image_newline, so this is a LLaVA-NeXT, but %s; put the "
                   "model's own config.json beside the weights",
                   llava->config ? "config.json says neither model_type llava_next nor "
                                   "image_aspect_ratio anyres"
                                 : "there is no config.json with its tile grids");
}

/* ---- grids --------------------------------------------------------------------------------- */

/* A list of sizes in pixels: [height, width] in transformers' files, [width, height] in LLaVA's
 * own. `value` is not NULL. */
static renyi_status read_grids(ry_tile_grids *g, const json_t *value, int width_first,
                               const char *file, renyi_error *err)
{
    const size_t n = json_array_size(value); /* 0 for other types */
    if (!n || n > RY_MAX_GRIDS)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: " PINPOINTS
                       " must be a list of 1 to %d sizes such as [336, 672]" OWN_FILE,
                       file, RY_MAX_GRIDS);
    for (size_t i = 0; i < n; i++) {
        const json_t *size = json_array_get(value, i);
        const json_t *x = json_array_get(size, width_first ? 0 : 1);
        const json_t *y = json_array_get(size, width_first ? 1 : 0);
        if (json_array_size(size) != 2 || !json_is_integer(x) || !json_is_integer(y))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: " PINPOINTS "[%zu] is not a pair of whole numbers" OWN_FILE, file,
                           i);
        const json_int_t side = g->side, w = json_integer_value(x), h = json_integer_value(y);
        if (w < side || h < side || w % side || h % side)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: " PINPOINTS "[%zu] is %lld wide and %lld high, which is no whole "
                           "number of tiles; the image tower reads %u x %u pixels" OWN_FILE,
                           file, i, (long long)w, (long long)h, g->side, g->side);
        if (w / side > RY_MAX_TILES || h / side > RY_MAX_TILES ||
            (w / side) * (h / side) > RY_MAX_TILES)
            return ry_fail(err, RENYI_ERR_LIMIT, -1,
                           "%s: " PINPOINTS "[%zu] is %lld wide and %lld high; a grid may have at "
                           "most %d tiles of %u x %u pixels",
                           file, i, (long long)w, (long long)h, RY_MAX_TILES, g->side, g->side);
        g->grid[i][0] = (uint32_t)(w / side);
        g->grid[i][1] = (uint32_t)(h / side);
    }
    g->n = (uint32_t)n;
    return RENYI_OK;
}

/* LlavaNextConfig's default: two in a row, two in a column, a square, three in a column, three in a
 * row. */
static void usual_grids(ry_tile_grids *g)
{
    static const uint32_t usual[][2] = {{2, 1}, {1, 2}, {2, 2}, {1, 3}, {3, 1}};
    g->n = sizeof usual / sizeof *usual;
    for (uint32_t i = 0; i < g->n; i++) {
        g->grid[i][0] = usual[i][0];
        g->grid[i][1] = usual[i][1];
    }
}

/* A processor with other grids or tiles than the model would put rows in wrong places. */
static renyi_status check_processor(const ry_tile_grids *g, const json_t *processor,
                                    renyi_error *err)
{
    static const char *const keys[][2] = {
        {"crop_size", "height"}, {"crop_size", "width"}, {"size", "shortest_edge"}};
    const json_t *sizes = json_object_get(processor, PINPOINTS);
    ry_tile_grids mine = {.side = g->side};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t pixels = g->side;
        RY_TRY(ry_json_uint(ry_json_object(processor, keys[i][0]), keys[i][1], &pixels,
                            PREPROCESSOR_FILE, err));
        if (pixels != g->side)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           PREPROCESSOR_FILE ": tiles of %u pixels (%s, %s); the image tower reads "
                                             "%u x %u" OWN_FILE,
                           pixels, keys[i][0], keys[i][1], g->side, g->side);
    }
    if (!sizes) return RENYI_OK;
    RY_TRY(read_grids(&mine, sizes, 0, PREPROCESSOR_FILE, err));
    int same = mine.n == g->n;
    for (uint32_t i = 0; same && i < g->n; i++)
        same = mine.grid[i][0] == g->grid[i][0] && mine.grid[i][1] == g->grid[i][1];
    if (same) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   PREPROCESSOR_FILE " and " CONFIG_FILE " have different " PINPOINTS
                                     "; take the two files that belong to these weights");
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* transformers has only spatial_unpad. */
static renyi_status read_merge_type(ry_visual_config *c, const json_t *config, renyi_error *err)
{
    const char *type = strcmp(c->layout, "llava") == 0 ? "flat" : "spatial_unpad";
    RY_TRY(ry_json_string(config, "mm_patch_merge_type", &type, CONFIG_FILE, err));
    c->tiles.keeps_padding = strcmp(type, "spatial") == 0;
    c->ends_lines = strcmp(type, "spatial_unpad") == 0;
    if (c->tiles.keeps_padding || c->ends_lines) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   CONFIG_FILE ": mm_patch_merge_type '%.40s'; this build knows spatial_unpad "
                               "(LLaVA-1.6) and spatial",
                   type);
}

static renyi_status check_newline(const ry_visual_config *c, const ry_checkpoint *llava,
                                  renyi_error *err)
{
    char shape[128];
    const ry_tensor *t = find_newline(llava->tensors);
    if (!c->ends_lines) return RENYI_OK;
    if (!t)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "image_newline is missing: a LLaVA-NeXT ends each line of patches with it; "
                       "download the weights again");
    if (t->n_dims == 1 && t->shape[0] == c->lm_dim) return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_FORMAT, -1,
        "image_newline is %s; the projector makes rows of %u; download the weights again",
        ry_tensor_shape_text(t, shape, sizeof shape), c->lm_dim);
}

renyi_status ry_visual_configure_tiles(ry_visual_config *c, const ry_checkpoint *llava,
                                       renyi_error *err)
{
    const json_t *sizes = json_object_get(llava->config, PINPOINTS);
    const int own = strcmp(c->layout, "llava") == 0;
    c->tiles = (ry_tile_grids){.side = c->tower.image_size,
                               .patches = c->tower.image_size / c->tower.patch_size,
                               .truncates = own};
    if (sizes && !json_is_null(sizes))
        RY_TRY(read_grids(&c->tiles, sizes, own, CONFIG_FILE, err));
    else if (!own)
        usual_grids(&c->tiles);
    else
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": " PINPOINTS
                                   " is missing; image_aspect_ratio anyres needs it");
    RY_TRY(check_processor(&c->tiles, llava->preprocessor_config, err));
    RY_TRY(read_merge_type(c, llava->config, err));
    return check_newline(c, llava, err);
}

renyi_status ry_visual_load_newline(ry_visual *v, const ry_checkpoint *llava,
                                    const renyi_allocator *al, renyi_error *err)
{
    const size_t n = v->config.lm_dim;
    if (!v->config.ends_lines) return RENYI_OK;
    v->newline = ry_alloc(al, n, sizeof *v->newline);
    if (!v->newline) return ry_fail_nomem(err, n * sizeof *v->newline);
    v->n_params += n;
    return ry_tensor_read(v->newline, find_newline(llava->tensors), llava->tensors, err);
}
