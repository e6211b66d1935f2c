/* visual_names.c - see visual_names.h. The tower's own names are those of every CLIP
 * (tensor_names_tables.c), with another text before them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llava/visual_names.h"

#include "base/json.h"
#include "base/status.h"

#include <string.h>

/* clang-format off: a table reads by columns */
#define LINEAR(role_w, role_b, name, out, in)           \
    {role_w, RY_GROUP_CORE, name ".weight", {out, in}}, \
    {                                                   \
        role_b, RY_GROUP_CORE, name ".bias", { out }    \
    }
static const ry_vit_name hf_names[] = {
    LINEAR(RY_FC1_W, RY_FC1_B, "multi_modal_projector.linear_1", RY_X_MLP, RY_X_DIM),
    LINEAR(RY_FC2_W, RY_FC2_B, "multi_modal_projector.linear_2", RY_X_EMBED, RY_X_MLP),
};
static const ry_vit_name llava_names[] = {
    LINEAR(RY_FC1_W, RY_FC1_B, "mm_projector.0", RY_X_MLP, RY_X_DIM),
    LINEAR(RY_FC2_W, RY_FC2_B, "mm_projector.2", RY_X_EMBED, RY_X_MLP),
};
/* clang-format on */

static const char *const none[] = {NULL};
#define TABLE(names) names, sizeof names / sizeof names[0]
#define WHAT "the projector of a LLaVA"
static const ry_vit_layout layouts[] = {
    {RY_LAYOUT_HF, 1, "Hugging Face", TABLE(hf_names), 0, none, WHAT},
    {RY_LAYOUT_OPENAI, 1, "LLaVA's own", TABLE(llava_names), 0, none, WHAT},
};

int ry_visual_projector_find(ry_vit_naming *out, const char **layout, const ry_tensors *set)
{
    if (!ry_vit_naming_among(out, set, layouts, sizeof layouts / sizeof *layouts)) return 0;
    out->groups = RY_GROUP_CORE;
    if (layout)
        *layout = out->layout != RY_LAYOUT_HF ? "llava" : *out->body ? "transformers" : "llava-hf";
    return 1;
}

ry_vit_naming ry_visual_projector_naming(void)
{
    return (ry_vit_naming){.layout = RY_LAYOUT_HF,
                           .of = &layouts[0],
                           .table = hf_names,
                           .n_names = sizeof hf_names / sizeof hf_names[0],
                           .n_blocks = 1, /* that its roles belong to */
                           .groups = RY_GROUP_CORE};
}

renyi_status ry_visual_projector_tensors(ry_tensors **out, const ry_vit_naming *n,
                                         const ry_tensors *set, const renyi_allocator *al,
                                         renyi_error *err)
{
    char prefix[RY_NAME_MAX];
    ry_vit_name_write(prefix, n, &n->table[0], 0);
    char *end = strstr(prefix + strlen(n->body), "projector."); /* in both layouts */
    end[strlen("projector.")] = '\0';
    return ry_tensors_under(out, set, prefix, al, err);
}

int ry_visual_is_llava(const ry_checkpoint *llava)
{
    ry_vit_naming n;
    return ry_visual_projector_find(&n, NULL, llava->tensors);
}

int ry_visual_has_tower(const ry_checkpoint *llava)
{
    ry_vit_naming n;
    return ry_vit_naming_find(&n, llava->tensors) && n.is_clip;
}

renyi_status ry_visual_tower_open(ry_visual_tower *out, const ry_visual_source *from,
                                  const renyi_allocator *al, renyi_error *err)
{
    ry_vit_naming n;
    *out = (ry_visual_tower){.ckpt = from->tower ? *from->tower : *from->llava};
    if (from->tower) return RENYI_OK;
    if (!ry_vit_naming_find(&n, from->llava->tensors) || !n.is_clip)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "no image tower in it: looked for ...vision_tower....embeddings."
                       "class_embedding");
    /* LLaVA's own config speaks of the language model, and not of the tower */
    if (!ry_json_object(from->llava->config, "vision_config")) out->ckpt.config = NULL;
    out->ckpt.tensors = NULL;
    out->owned = 1;
    return ry_tensors_under(&out->ckpt.tensors, from->llava->tensors, n.body, al, err);
}

void ry_visual_tower_close(ry_visual_tower *t)
{
    if (t->owned) ry_tensors_free(t->ckpt.tensors);
    *t = (ry_visual_tower){0};
}
