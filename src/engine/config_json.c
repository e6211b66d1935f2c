/* config_json.c - see config_json.h. SPDX-License-Identifier: Apache-2.0 */
#include "engine/config_json.h"

#include <stdio.h>

static json_t *label_list(const ry_vit_config *c, const char *const *labels)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < c->n_classes; i++) {
        char placeholder[24]; /* counts as no name (engine/labels.h) */
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
