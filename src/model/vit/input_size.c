/* input_size.c - the side of the input of a ViT, from its positions and its configs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/input_size.h"

#include "base/json.h"
#include "base/status.h"
#include "model/vit/open_clip_config.h"
#include "model/vit/rotary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_FILE "config.json"

static renyi_status refuse_image_size(uint32_t wanted, uint32_t patch, renyi_error *err)
{
    const uint32_t below = wanted / patch * patch, top = RY_MAX_IMAGE / patch * patch;
    if (wanted > top)
        return ry_fail(err, RENYI_ERR_ARG, -1, "input side of %u pixels; at most %u accepted",
                       wanted, top);
    if (!below || below + patch > top)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "input side of %u pixels is not a multiple of the patch size %u; %u would fit", wanted,
            patch, below ? below : patch);
    return ry_fail(
        err, RENYI_ERR_ARG, -1,
        "input side of %u pixels is not a multiple of the patch size %u; %u or %u would fit",
        wanted, patch, below, below + patch);
}

/* The side of a square of so many patches; 0 if they form none. */
static uint64_t square_side(uint64_t patches)
{
    uint64_t side = 0;
    while ((side + 1) * (side + 1) <= patches) side++;
    return side * side == patches ? side : 0;
}

renyi_status ry_vit_count_placed(ry_vit_config *c, const json_t *config, uint64_t n_positions,
                                 renyi_error *err)
{
    int patches_only = square_side(n_positions) != 0;
    if (c->rope_theta > 0.0) return RENYI_OK;
    c->n_placed = c->layout == RY_LAYOUT_TIMM ? c->n_prefix : ry_vit_class_rows(c);
    if (c->layout != RY_LAYOUT_TIMM) return RENYI_OK;
    RY_TRY(ry_json_bool(ry_json_object(config, "model_args"), "no_embed_class", &patches_only,
                        CONFIG_FILE, err));
    if (patches_only) c->n_placed = 0;
    return RENYI_OK;
}

/* The size that the positions were made for. */
static renyi_status native_size(const ry_vit_config *c, uint64_t n_positions, uint32_t *native,
                                renyi_error *err)
{
    const uint64_t patches = n_positions > c->n_placed ? n_positions - c->n_placed : 0;
    const uint64_t side = square_side(patches);
    if (!side)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%" PRIu64 " positions, %u of them for prefix tokens: the other %" PRIu64
                       " do not form a square, and only square inputs are supported",
                       n_positions, c->n_placed, patches);
    if (side * c->patch_size > RY_MAX_IMAGE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "positions for an input of %" PRIu64 " pixels; at most %d accepted",
                       side * c->patch_size, RY_MAX_IMAGE);
    *native = (uint32_t)side * c->patch_size;
    return RENYI_OK;
}

/* The number at the end of an architecture's name: "vit_so400m_patch14_siglip_384". */
static json_int_t side_of_name(const ry_checkpoint *ckpt)
{
    const char *name = json_string_value(json_object_get(ckpt->config, "architecture"));
    if (!name) name = ry_tensors_meta(ckpt->tensors, "architecture");
    const char *last = name ? strrchr(name, '_') : NULL;
    return last ? strtol(last + 1, NULL, 10) : 0;
}

/* The side that a config names may be no multiple of the patch: So400m/14 reads 384 pixels, the
 * last 6 of them in no patch, which a convolution leaves out. */
static void add_rest(uint32_t *native, const ry_vit_config *c, const ry_checkpoint *ckpt,
                     const json_t *config)
{
    const json_t *timm = json_object_get(ckpt->config, "pretrained_cfg");
    const json_t *args = json_object_get(config, "model_args");
    const json_int_t sides[] = {
        json_integer_value(json_object_get(args, "img_size")),
        json_integer_value(json_array_get(json_object_get(timm, "input_size"), 1)),
        json_integer_value(json_object_get(config, "image_size")),
        c->open_clip ? json_integer_value(ry_open_clip_image_size(ckpt)) : 0, side_of_name(ckpt)};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        if (sides[i] <= *native || sides[i] - *native >= c->patch_size) continue;
        *native = (uint32_t)sides[i];
        return;
    }
}

renyi_status ry_vit_choose_image_size(ry_vit_config *c, const ry_checkpoint *ckpt,
                                      const json_t *config, uint64_t n_positions, uint32_t wanted,
                                      uint32_t *native, renyi_error *err)
{
    if (c->rope_theta > 0.0) {
        RY_TRY(ry_rotary_image_size(native, c, ckpt, err));
        if (!*native || *native % c->patch_size || *native > RY_MAX_IMAGE)
            return ry_fail_in(err, refuse_image_size(*native, c->patch_size, err),
                              CONFIG_FILE " (image_size)");
    } else {
        RY_TRY(native_size(c, n_positions, native, err));
        add_rest(native, c, ckpt, config);
    }
    if (wanted && wanted != *native && (wanted % c->patch_size || wanted > RY_MAX_IMAGE))
        return refuse_image_size(wanted, c->patch_size, err);
    c->image_size = wanted ? wanted : *native;
    return RENYI_OK;
}
