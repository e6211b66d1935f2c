/* visual_config.c - reads a ry_visual_config from the checkpoint of a LLaVA: which layer is read,
 * how images become square, the widths of the projector.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "model/llava/visual.h"

#include <math.h>
#include <string.h>

#define CONFIG_FILE "config.json"

enum { MAX_WIDTH = 1 << 16 };

/* ---- the projector ------------------------------------------------------------------------- */

static renyi_status check_projector(ry_visual_config *c, const ry_tensor_naming *n,
                                    const ry_tensors *set, renyi_error *err)
{
    static const ry_extent_limit limits[] = {{RY_X_MLP, MAX_WIDTH, "width inside"},
                                             {RY_X_EMBED, MAX_WIDTH, "width"}};
    uint64_t x[RY_X_COUNT] = {[RY_X_1] = 1, [RY_X_DIM] = c->tower.dim};
    x[RY_X_MLP] = ry_tensor_size(n, set, RY_FC1_W, 2, 0);
    x[RY_X_EMBED] = ry_tensor_size(n, set, RY_FC2_W, 2, 0);
    RY_TRY(ry_tensor_check_extents(x, limits, 2, "projector: ", err));
    RY_TRY(ry_tensor_check_all(n, x, set, err));
    c->mid_dim = (uint32_t)x[RY_X_MLP];
    c->lm_dim = (uint32_t)x[RY_X_EMBED];
    return RENYI_OK;
}

/* Accepts only the projector of LLaVA-1.5: two products with the erf form of GELU between them. */
static renyi_status check_projector_type(const json_t *config, renyi_error *err)
{
    const char *act = "gelu", *type = "mlp2x_gelu";
    RY_TRY(ry_json_string(config, "projector_hidden_act", &act, CONFIG_FILE, err));
    RY_TRY(ry_json_string(config, "mm_projector_type", &type, CONFIG_FILE, err));
    if (strcmp(act, "gelu") != 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": projector_hidden_act '%.40s'; this build runs gelu", act);
    if (strcmp(type, "mlp2x_gelu") != 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": mm_projector_type '%.40s'; this build runs mlp2x_gelu, the "
                                   "projector of LLaVA-1.5",
                       type);
    return RENYI_OK;
}

static renyi_status configure_projector(ry_visual_config *c, const ry_checkpoint *llava,
                                        const renyi_allocator *al, renyi_error *err)
{
    ry_tensor_naming n;
    ry_tensors *set;
    ry_visual_projector_find(&n, &c->layout, llava->tensors);
    RY_TRY(check_projector_type(llava->config, err));
    RY_TRY(ry_visual_projector_tensors(&set, &n, llava->tensors, al, err));
    const renyi_status st = check_projector(c, &n, set, err);
    ry_tensors_free(set);
    return st;
}

/* ---- the tower ----------------------------------------------------------------------------- */

/* Layers are counted as hidden states: 0 is the embedding, 1 the output of the first block;
 * negative numbers count from the end. */
static renyi_status choose_layer(ry_visual_config *c, const json_t *config, renyi_error *err)
{
    double layer = -2;
    RY_TRY(ry_json_double(config, "mm_vision_select_layer", &layer, CONFIG_FILE, err));
    RY_TRY(ry_json_double(config, "vision_feature_layer", &layer, CONFIG_FILE, err));
    const double L = c->n_blocks, place = layer < 0 ? L + 1 + layer : layer;
    if (layer != floor(layer) || !(place >= 1 && place <= L))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": features of layer %g; of a tower of %u blocks 1 to %u are "
                                   "read, or -1 to -%u from the end",
                       layer, c->n_blocks, c->n_blocks, c->n_blocks);
    c->tower.n_blocks = (uint32_t)place;
    return RENYI_OK;
}

static renyi_status check_feature_rows(const json_t *config, renyi_error *err)
{
    const char *hf = "default", *own = "patch";
    RY_TRY(ry_json_string(config, "vision_feature_select_strategy", &hf, CONFIG_FILE, err));
    RY_TRY(ry_json_string(config, "mm_vision_select_feature", &own, CONFIG_FILE, err));
    if (strcmp(hf, "default") == 0 && strcmp(own, "patch") == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   CONFIG_FILE
                   ": features '%.40s'; this build gives the language model the patches "
                   "alone (vision_feature_select_strategy default, "
                   "mm_vision_select_feature patch)",
                   strcmp(hf, "default") ? hf : own);
}

/* LLaVA-1.5 was trained on padded squares; the config may differ. */
static renyi_status choose_padding(ry_visual_config *c, const ry_checkpoint *llava,
                                   renyi_error *err)
{
    const char *ratio = "pad";
    RY_TRY(ry_json_string(llava->config, "image_aspect_ratio", &ratio, CONFIG_FILE, err));
    if (strcmp(ratio, "pad") != 0 && strcmp(ratio, "square") != 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": image_aspect_ratio '%.40s'; this build knows pad and square "
                                   "(LLaVA-1.5)",
                       ratio);
    c->pad_to_square = strcmp(ratio, "pad") == 0;
    return ry_json_bool(llava->preprocessor_config, "do_pad", &c->pad_to_square,
                        "preprocessor_config.json", err);
}

static renyi_status configure_tower(ry_visual_config *c, const ry_visual_source *from,
                                    uint32_t image_size, const renyi_allocator *al,
                                    renyi_error *err)
{
    ry_visual_tower_file tower;
    RY_TRY(ry_visual_tower_open(&tower, from, al, err));
    const renyi_status st = ry_vit_configure(&c->tower, &tower.ckpt, image_size, err);
    ry_visual_tower_close(&tower);
    RY_TRY(st);
    if (!c->tower.is_clip || !c->tower.n_prefix)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "the image tower is a %s, not a CLIP",
                       c->tower.family);
    c->n_blocks = c->tower.n_blocks;
    c->tower.proj_dim = 0; /* of a whole CLIP; not used here */
    return RENYI_OK;
}

renyi_status ry_visual_configure(ry_visual_config *out, const ry_visual_source *from,
                                 uint32_t image_size, const renyi_allocator *al, renyi_error *err)
{
    *out = (ry_visual_config){0};
    if (!ry_visual_is_llava(from->llava))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "not a LLaVA: neither Hugging Face's multi_modal_projector.linear_1.weight "
                       "nor LLaVA's own mm_projector.0.weight is there");
    RY_TRY(configure_tower(out, from, image_size, al, err));
    RY_TRY(configure_projector(out, from->llava, al, err));
    RY_TRY(choose_layer(out, from->llava->config, err));
    RY_TRY(check_feature_rows(from->llava->config, err));
    return choose_padding(out, from->llava, err);
}
