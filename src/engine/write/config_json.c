/* config_json.c - see config_json.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/write/config_json.h"

#include <stdio.h>

static json_t *label_list(const ry_vit_config *c, const char *const *labels)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < c->n_classes; i++) {
        char placeholder[24]; /* counts as no name (engine/core/label_file.h) */
        snprintf(placeholder, sizeof placeholder, "LABEL_%u", i);
        json_t *name = labels[i] ? json_string(labels[i]) : NULL;
        if (!json_array_append_new(list, name ? name : json_string(placeholder))) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *model_args(const ry_vit_config *c)
{
    json_t *args =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:f}", "img_size", (int)c->image_size, "patch_size",
                  (int)c->patch_size, "embed_dim", (int)c->dim, "depth", (int)c->n_blocks,
                  "num_heads", (int)c->n_heads, "mlp_ratio", (double)c->mlp_dim / c->dim);
    if (args && c->activation == RY_EPI_QUICKGELU)
        (void)json_object_set_new(args, "act_layer", json_string("quick_gelu"));
    return args;
}

static json_t *pretrained(const ry_vit_config *c)
{
    static const char *const filters[] = {"bicubic", "bilinear", "lanczos"};
    static const char *const crops[] = {"center", "squash", "border"};
    const renyi_preprocess *p = &c->preprocess;
    return json_pack("{s:[i, i, i], s:s, s:s, s:f, s:[f, f, f], s:[f, f, f], s:i}", "input_size", 3,
                     (int)c->image_size, (int)c->image_size, "interpolation",
                     filters[p->interpolation], "crop_mode", crops[p->crop_mode], "crop_pct",
                     p->crop_pct, "mean", p->mean[0], p->mean[1], p->mean[2], "std", p->std[0],
                     p->std[1], p->std[2], "num_classes", (int)c->n_classes);
}

json_t *ry_config_json(const ry_vit_config *c, const char *const *labels)
{
    /* json_pack takes over the parts, also when it fails */
    json_t *config =
        json_pack("{s:s, s:i, s:i, s:s, s:f, s:o, s:o}", "architecture", c->architecture,
                  "num_classes", (int)c->n_classes, "num_features", (int)c->dim, "global_pool",
                  c->pool == RY_POOL_TOKEN ? "token" : "avg", "layer_norm_eps", c->norm_eps,
                  "model_args", model_args(c), "pretrained_cfg", pretrained(c));
    if (config && labels && json_object_set_new(config, "label_names", label_list(c, labels))) {
        json_decref(config);
        return NULL;
    }
    return config;
}

/* ---- CLIP ----------------------------------------------------------------------------------- */

/* What both towers of a CLIP say of themselves. */
typedef struct tower {
    const char *type;
    uint32_t dim, mlp_dim, n_heads, n_blocks, embed_dim;
    double norm_eps;
    ry_epilogue activation;
} tower;

static json_t *tower_json(const tower *t)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:s}", "model_type", t->type,
                     "hidden_size", (int)t->dim, "intermediate_size", (int)t->mlp_dim,
                     "num_attention_heads", (int)t->n_heads, "num_hidden_layers", (int)t->n_blocks,
                     "projection_dim", (int)t->embed_dim, "layer_norm_eps", t->norm_eps,
                     "hidden_act", t->activation == RY_EPI_QUICKGELU ? "quick_gelu" : "gelu");
}

json_t *ry_clip_config_json(const ry_vit_config *c, const ry_text_config *text)
{
    const tower images = {"clip_vision_model", c->dim,      c->mlp_dim,  c->n_heads,
                          c->n_blocks,         c->proj_dim, c->norm_eps, c->activation};
    const tower texts = {"clip_text_model", text->dim,       text->mlp_dim,  text->n_heads,
                         text->n_blocks,    text->embed_dim, text->norm_eps, text->activation};
    json_t *vision = tower_json(&images), *words = tower_json(&texts);
    if (!vision || json_object_set_new(vision, "image_size", json_integer(c->image_size)) ||
        json_object_set_new(vision, "patch_size", json_integer(c->patch_size)) || !words ||
        json_object_set_new(words, "vocab_size", json_integer(text->vocab)) ||
        json_object_set_new(words, "max_position_embeddings", json_integer(text->context))) {
        json_decref(vision);
        json_decref(words);
        return NULL;
    }
    return json_pack("{s:s, s:i, s:o, s:o}", "model_type", "clip", "projection_dim",
                     (int)c->proj_dim, "vision_config", vision, "text_config", words);
}
