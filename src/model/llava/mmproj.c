/* mmproj.c - reads an mmproj file: its tensors under Hugging Face's names, its values as the
 * configs of a LLaVA-1.5.
 *
 * Converters leave out what LLaVA-1.5 does not read: the last block of the tower and the LayerNorm
 * after it. In such a file (no v.post_ln) the features come from the last block; in a file with the
 * whole tower from the one before, as in LLaVA.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llava/mmproj.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "formats/tensor_set.h"
#include "model/common/tensor_names.h"
#include "model/llava/visual.h"

#include <stdio.h>
#include <string.h>

#define VALUES "values"
#define VISION "clip.vision."
#define BLK "v.blk.#."

/* ---- names --------------------------------------------------------------------------------- */

/* clang-format off: a table reads by columns */
#define PAIR(w, b, name)                             \
    {w, RY_GROUP_CORE, name ".weight", {RY_X_END}},  \
    {                                                \
        b, RY_GROUP_CORE, name ".bias", { RY_X_END } \
    }
static const ry_tensor_name tower_names[] = {
    {RY_CLS_TOKEN, RY_GROUP_CORE, "v.class_embd", {RY_X_END}},
    {RY_PATCH_W, RY_GROUP_CORE, "v.patch_embd.weight", {RY_X_END}},
    {RY_POS_EMBED, RY_GROUP_CORE, "v.position_embd.weight", {RY_X_END}},
    PAIR(RY_PRE_NORM_W, RY_PRE_NORM_B, "v.pre_ln"),
    PAIR(RY_NORM1_W, RY_NORM1_B, BLK "ln1"),
    PAIR(RY_Q_W, RY_Q_B, BLK "attn_q"),
    PAIR(RY_K_W, RY_K_B, BLK "attn_k"),
    PAIR(RY_V_W, RY_V_B, BLK "attn_v"),
    PAIR(RY_PROJ_W, RY_PROJ_B, BLK "attn_out"),
    PAIR(RY_NORM2_W, RY_NORM2_B, BLK "ln2"),
    PAIR(RY_FC1_W, RY_FC1_B, BLK "ffn_up"),
    PAIR(RY_FC2_W, RY_FC2_B, BLK "ffn_down"),
    {RY_NORM_W, RY_GROUP_NORM, "v.post_ln.weight", {RY_X_END}},
    {RY_NORM_B, RY_GROUP_NORM, "v.post_ln.bias", {RY_X_END}}};
static const ry_tensor_name projector_names[] = {PAIR(RY_FC1_W, RY_FC1_B, "mm.0"),
                                                 PAIR(RY_FC2_W, RY_FC2_B, "mm.2")};
/* clang-format on */

static ry_tensor_naming naming_of(const ry_tensor_name *table, size_t n, uint32_t n_blocks)
{
    return (ry_tensor_naming){.layout = RY_LAYOUT_HF,
                              .table = table,
                              .n_names = n,
                              .n_blocks = n_blocks,
                              .groups = RY_GROUP_CORE};
}
#define NAMING(table, n_blocks) naming_of(table, sizeof table / sizeof table[0], n_blocks)

int ry_mmproj_is(const ry_checkpoint *file)
{
    const char *family = json_string_value(json_object_get(file->config, "general.architecture"));
    return file->is_gguf && family && strcmp(family, "clip") == 0;
}

/* ---- values -------------------------------------------------------------------------------- */

typedef struct tower {
    uint32_t side, patch, dim, mlp, heads, blocks;
    double eps, mean[3], std[3];
    int is_whole;   /* with the LayerNorm after the last block */
    int is_swapped; /* older converters called the first matrix of the MLP ffn_down */
} tower;

static renyi_status need_uint(const json_t *values, const char *key, uint32_t *out,
                              renyi_error *err)
{
    *out = 0;
    RY_TRY(ry_json_uint(values, key, out, VALUES, err));
    if (*out) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "no value %s, or 0; convert the model again", key);
}

/* Accepts only what LLaVA-1.5 has. */
static renyi_status check_kind(const json_t *values, renyi_error *err)
{
    const char *projector = "mlp", *merge = "flat";
    int has_tower = 1, silu = 0;
    RY_TRY(ry_json_string(values, "clip.projector_type", &projector, VALUES, err));
    RY_TRY(ry_json_string(values, VISION "projector_type", &projector, VALUES, err));
    RY_TRY(ry_json_string(values, VISION "mm_patch_merge_type", &merge, VALUES, err));
    RY_TRY(ry_json_bool(values, "clip.has_vision_encoder", &has_tower, VALUES, err));
    RY_TRY(ry_json_bool(values, "clip.use_silu", &silu, VALUES, err));
    if (has_tower && !silu && strcmp(projector, "mlp") == 0 && strcmp(merge, "flat") == 0)
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "clip.projector_type '%.40s', " VISION "mm_patch_merge_type '%.40s'%s%s; of "
                   "mmproj files this build runs those of LLaVA-1.5: 'mlp' and 'flat'",
                   projector, merge, has_tower ? "" : ", no image tower", silu ? ", SiLU" : "");
}

static renyi_status read_values(tower *t, const json_t *values, renyi_error *err)
{
    static const tower usual = {.eps = 1e-5,
                                .mean = {0.48145466, 0.4578275, 0.40821073},
                                .std = {0.26862954, 0.26130258, 0.27577711}};
    *t = usual;
    RY_TRY(check_kind(values, err));
    RY_TRY(need_uint(values, VISION "image_size", &t->side, err));
    RY_TRY(need_uint(values, VISION "patch_size", &t->patch, err));
    RY_TRY(need_uint(values, VISION "embedding_length", &t->dim, err));
    RY_TRY(need_uint(values, VISION "feed_forward_length", &t->mlp, err));
    RY_TRY(need_uint(values, VISION "attention.head_count", &t->heads, err));
    RY_TRY(need_uint(values, VISION "block_count", &t->blocks, err));
    RY_TRY(ry_json_double(values, VISION "attention.layer_norm_epsilon", &t->eps, VALUES, err));
    RY_TRY(ry_json_double3(values, VISION "image_mean", t->mean, VALUES, err));
    RY_TRY(ry_json_double3(values, VISION "image_std", t->std, VALUES, err));
    if (t->blocks <= RY_MAX_BLOCKS) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_LIMIT, -1, VISION "block_count is %u; at most %d accepted",
                   t->blocks, RY_MAX_BLOCKS);
}

/* Hidden state that is read; 0 is the embedding. */
static renyi_status choose_layer(const tower *t, const json_t *values, int *out, renyi_error *err)
{
    const json_t *layers = json_object_get(values, VISION "feature_layer");
    *out = t->is_whole ? -2 : -1;
    if (!layers) return RENYI_OK;
    if (json_array_size(layers) != 1)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       VISION "feature_layer lists %zu layers; this build reads one",
                       json_array_size(layers));
    const json_int_t layer = json_integer_value(json_array_get(layers, 0));
    if (layer >= 1 && layer <= (json_int_t)t->blocks) return *out = (int)layer, RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, VISION "feature_layer is %lld; 1 to %u expected",
                   (long long)layer, t->blocks);
}

static renyi_status write_configs(ry_checkpoint *out, const tower *t, const json_t *values,
                                  renyi_error *err)
{
    int gelu = 0, layer;
    RY_TRY(ry_json_bool(values, "clip.use_gelu", &gelu, VALUES, err));
    RY_TRY(choose_layer(t, values, &layer, err));
    out->config =
        json_pack("{s:s, s:i, s:{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f}}", "model_type",
                  "llava", "vision_feature_layer", layer, "vision_config", "model_type",
                  "clip_vision_model", "hidden_size", (int)t->dim, "intermediate_size", (int)t->mlp,
                  "num_attention_heads", (int)t->heads, "num_hidden_layers", (int)t->blocks,
                  "image_size", (int)t->side, "patch_size", (int)t->patch, "hidden_act",
                  gelu ? "gelu" : "quick_gelu", "layer_norm_eps", t->eps);
    out->preprocessor_config =
        json_pack("{s:i, s:{s:i}, s:{s:i, s:i}, s:[f,f,f], s:[f,f,f]}", "resample", 3, "size",
                  "shortest_edge", (int)t->side, "crop_size", "height", (int)t->side, "width",
                  (int)t->side, "image_mean", t->mean[0], t->mean[1], t->mean[2], "image_std",
                  t->std[0], t->std[1], t->std[2]);
    return out->config && out->preprocessor_config ? RENYI_OK : ry_fail_nomem(err, 0);
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* The first tensor of the naming that is not there; missing = "": all are there. */
typedef struct search {
    const ry_tensors *set;
    char missing[RY_NAME_MAX];
} search;

static void look_for(void *user, const ry_tensor_naming *n, const ry_tensor_name *row,
                     uint32_t block)
{
    search *s = user;
    char name[RY_NAME_MAX];
    ry_tensor_name_write(name, n, row, block);
    if (!*s->missing && !ry_tensors_find(s->set, name)) strcpy(s->missing, name);
}

/* Dimension i of a tensor with n; 0 if it has another number. */
static uint64_t size_of(const ry_tensors *set, const char *name, uint32_t n, uint32_t i)
{
    const ry_tensor *t = ry_tensors_find(set, name);
    return t->n_dims == n ? t->shape[i] : 0;
}

/* The values must be those of the tensors, which are all there. */
static renyi_status check_sizes(const tower *t, const ry_tensors *set, renyi_error *err)
{
    static const char up[] = "v.blk.0.ffn_up.weight";
    const uint64_t grid = t->side % t->patch ? 0 : t->side / t->patch,
                   dim = size_of(set, "v.class_embd", 1, 0);
    const struct {
        const char *key;
        uint64_t says, is;
    } sizes[] = {
        {"embedding_length", t->dim, dim},
        {"patch_size", t->patch, size_of(set, "v.patch_embd.weight", 4, 2)},
        {"feed_forward_length", t->mlp, /* one side is the width */
         dim ? size_of(set, up, 2, size_of(set, up, 2, 0) == dim) : 0},
        {"image_size / patch_size, squared, and 1,", grid * grid + 1,
         size_of(set, "v.position_embd.weight", 2, 0)},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].says != sizes[i].is)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           VISION "%s is %llu, but the tensors have %llu; the file is damaged: "
                                  "download or convert it again",
                           sizes[i].key, (unsigned long long)sizes[i].says,
                           (unsigned long long)sizes[i].is);
    if (t->dim % t->heads == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   VISION "attention.head_count is %u, which does not divide the width %u; the "
                          "file is damaged: download or convert it again",
                   t->heads, t->dim);
}

static renyi_status check_tensors(tower *t, const ry_tensors *set, renyi_error *err)
{
    const ry_tensor_naming names = NAMING(tower_names, t->blocks);
    const ry_tensor_naming projector = NAMING(projector_names, 1);
    search s = {.set = set};
    ry_tensor_names_each(&names, look_for, &s);
    ry_tensor_names_each(&projector, look_for, &s);
    if (*s.missing)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "tensor '%s' is missing; is it the mmproj file of a LLaVA-1.5?", s.missing);
    const ry_tensor *up = ry_tensors_find(set, "v.blk.0.ffn_up.weight");
    t->is_swapped =
        up->n_dims == 2 && up->shape[0] == t->dim && up->shape[1] == t->mlp && t->dim != t->mlp;
    t->is_whole = ry_tensors_find(set, "v.post_ln.weight") != NULL;
    return check_sizes(t, set, err);
}

static ry_tensor_role swapped(ry_tensor_role role)
{
    switch (role) {
    case RY_FC1_W: return RY_FC2_W;
    case RY_FC1_B: return RY_FC2_B;
    case RY_FC2_W: return RY_FC1_W;
    case RY_FC2_B: return RY_FC1_B;
    default: return role;
    }
}

/* Adds a tensor under the name of its role in `to`. */
static renyi_status add_as(ry_tensors *out, const ry_tensor *from, ry_tensor_role role,
                           uint32_t block, const ry_tensor_naming *to, renyi_error *err)
{
    char name[RY_NAME_MAX];
    ry_tensor t = *from;
    size_t i = 0;
    while (to->table[i].role != role) i++; /* every role of the tables here is in theirs */
    ry_tensor_name_write(name, to, &to->table[i], block);
    t.name = name;
    return ry_tensors_add(out, &t, "mmproj", err);
}

/* The LayerNorm that a CLIP has after its last block and a LLaVA does not read. Its numbers do not
 * matter: they are those of the one before the blocks. */
static renyi_status add_unread_norm(ry_tensors *out, const ry_tensors *set,
                                    const ry_tensor_naming *to, renyi_error *err)
{
    const ry_tensor *w = ry_tensors_find(set, "v.pre_ln.weight"),
                    *b = ry_tensors_find(set, "v.pre_ln.bias");
    RY_TRY(add_as(out, w, RY_NORM_W, 0, to, err));
    return add_as(out, b, RY_NORM_B, 0, to, err);
}

static renyi_status rename_tensors(ry_tensors *out, const tower *t, const ry_tensors *set,
                                   renyi_error *err)
{
    const ry_tensor_naming names = NAMING(tower_names, t->blocks);
    const ry_tensor_naming projector = NAMING(projector_names, 1);
    const ry_tensor_naming to_projector = ry_visual_projector_naming();
    ry_tensor_naming to_tower = ry_vit_naming_clip(t->blocks);
    strcpy(to_tower.prefix, "vision_tower.vision_model.");
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *from = ry_tensors_at(set, i);
        uint32_t block;
        const ry_tensor_name *row = ry_tensor_name_match(&names, from->name, &block);
        if (row) {
            const ry_tensor_role role = t->is_swapped ? swapped(row->role) : row->role;
            RY_TRY(add_as(out, from, role, block, &to_tower, err));
        } else if ((row = ry_tensor_name_match(&projector, from->name, &block))) {
            RY_TRY(add_as(out, from, row->role, 0, &to_projector, err));
        } else {
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "tensor '%.120s' is none of a LLaVA-1.5's mmproj", from->name);
        }
    }
    if (!t->is_whole) RY_TRY(add_unread_norm(out, set, &to_tower, err)); /* check_tensors */
    return ry_tensors_finish(out, "mmproj", err);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static renyi_status read_file(ry_checkpoint *out, const ry_checkpoint *file,
                              const renyi_allocator *al, renyi_error *err)
{
    tower t;
    RY_TRY(read_values(&t, file->config, err));
    RY_TRY(check_tensors(&t, file->tensors, err));
    RY_TRY(write_configs(out, &t, file->config, err));
    RY_TRY(ry_tensors_new(&out->tensors, al, err));
    RY_TRY(rename_tensors(out->tensors, &t, file->tensors, err));
    out->tensors_path = ry_strdup(al, file->tensors_path);
    return out->tensors_path ? RENYI_OK : ry_fail_nomem(err, strlen(file->tensors_path) + 1);
}

renyi_status ry_mmproj_read(ry_checkpoint *out, const ry_checkpoint *file,
                            const renyi_allocator *al, renyi_error *err)
{
    *out = (ry_checkpoint){0};
    const renyi_status st = read_file(out, file, al, err);
    if (st) ry_checkpoint_close(out, al);
    return st;
}
