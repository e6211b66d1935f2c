/* visual.c - the visual side of a LLaVA from a checkpoint: finds its tensors, reads the
 * configuration (which layer is read, how images become square, the projector), loads tower and
 * projector.
 *
 * The tower has the names of every CLIP (tensor_names.c) with another prefix.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llava/visual.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "model/common/other_families.h"
#include "model/common/weight_loader.h"

#include <math.h>
#include <string.h>

/* ---- tensors of the visual side ------------------------------------------------------------ */

/* clang-format off: a table reads by columns */
#define LINEAR(role_w, role_b, name, out, in)           \
    {role_w, RY_GROUP_CORE, name ".weight", {out, in}}, \
    {                                                   \
        role_b, RY_GROUP_CORE, name ".bias", { out }    \
    }
static const ry_tensor_name hf_names[] = {
    LINEAR(RY_FC1_W, RY_FC1_B, "multi_modal_projector.linear_1", RY_X_MLP, RY_X_DIM),
    LINEAR(RY_FC2_W, RY_FC2_B, "multi_modal_projector.linear_2", RY_X_EMBED, RY_X_MLP),
};
static const ry_tensor_name llava_names[] = {
    LINEAR(RY_FC1_W, RY_FC1_B, "mm_projector.0", RY_X_MLP, RY_X_DIM),
    LINEAR(RY_FC2_W, RY_FC2_B, "mm_projector.2", RY_X_EMBED, RY_X_MLP),
};
/* clang-format on */

static const char *const none[] = {NULL};
#define TABLE(names) names, sizeof names / sizeof names[0]
#define WHAT "the projector of a LLaVA"
static const ry_tensor_layout layouts[] = {
    {RY_LAYOUT_HF, 1, "Hugging Face", TABLE(hf_names), 0, none, WHAT, NULL, 0, NULL, NULL, 0},
    {RY_LAYOUT_OPENAI, 1, "LLaVA's own", TABLE(llava_names), 0, none, WHAT, NULL, 0, NULL, NULL, 0},
};

int ry_visual_projector_find(ry_tensor_naming *out, const char **layout, const ry_tensors *set)
{
    if (!ry_tensor_naming_among(out, set, layouts, sizeof layouts / sizeof *layouts)) return 0;
    out->groups = RY_GROUP_CORE;
    if (layout)
        *layout = out->layout != RY_LAYOUT_HF ? "llava"
                  : *out->prefix              ? "transformers"
                                              : "llava-hf";
    return 1;
}

ry_tensor_naming ry_visual_projector_naming(void)
{
    return (ry_tensor_naming){.layout = RY_LAYOUT_HF,
                              .of = &layouts[0],
                              .table = hf_names,
                              .n_names = sizeof hf_names / sizeof hf_names[0],
                              .n_blocks = 1, /* its roles are those of a block */
                              .groups = RY_GROUP_CORE};
}

renyi_status ry_visual_projector_tensors(ry_tensors **out, const ry_tensor_naming *n,
                                         const ry_tensors *set, const renyi_allocator *al,
                                         renyi_error *err)
{
    char prefix[RY_NAME_MAX];
    ry_tensor_name_write(prefix, n, &n->table[0], 0);
    char *end = strstr(prefix + strlen(n->prefix), "projector."); /* in both layouts */
    end[strlen("projector.")] = '\0';
    return ry_tensors_under(out, set, prefix, al, err);
}

int ry_visual_is_llava(const ry_checkpoint *llava)
{
    ry_tensor_naming n;
    return ry_visual_projector_find(&n, NULL, llava->tensors);
}

int ry_visual_has_tower(const ry_checkpoint *llava)
{
    ry_tensor_naming n;
    return ry_vit_naming_find(&n, llava->tensors) && n.is_clip;
}

renyi_status ry_visual_tower_open(ry_visual_tower_file *out, const ry_visual_source *from,
                                  const renyi_allocator *al, renyi_error *err)
{
    ry_tensor_naming n;
    *out = (ry_visual_tower_file){.ckpt = from->tower ? *from->tower : *from->llava};
    if (from->tower) return RENYI_OK;
    if (!ry_vit_naming_find(&n, from->llava->tensors) || !n.is_clip)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "no image tower in it: looked for ...vision_tower....embeddings."
                       "class_embedding");
    /* the config of LLaVA's own layout describes the language model, not the tower */
    if (!ry_json_object(from->llava->config, "vision_config")) out->ckpt.config = NULL;
    out->ckpt.tensors = NULL;
    out->owned = 1;
    return ry_tensors_under(&out->ckpt.tensors, from->llava->tensors, n.prefix, al, err);
}

void ry_visual_tower_close(ry_visual_tower_file *t)
{
    if (t->owned) ry_tensors_free(t->ckpt.tensors);
    *t = (ry_visual_tower_file){0};
}

#define CONFIG_FILE "config.json"

enum { MAX_WIDTH = 1 << 16 };

/* ---- configuration of the projector -------------------------------------------------------- */

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

/* ---- configuration of the tower ------------------------------------------------------------ */

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
static renyi_status choose_square(ry_visual_config *c, const ry_checkpoint *llava, renyi_error *err)
{
    const char *ratio = "pad";
    RY_TRY(ry_json_string(llava->config, "image_aspect_ratio", &ratio, CONFIG_FILE, err));
    if (strcmp(ratio, "pad") != 0 && strcmp(ratio, "square") != 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": image_aspect_ratio '%.40s'; this build knows pad and square "
                                   "(LLaVA-1.5) and anyres (LLaVA-NeXT)",
                       ratio);
    c->pad_to_square = strcmp(ratio, "pad") == 0;
    return ry_json_bool(llava->preprocessor_config, "do_pad", &c->pad_to_square,
                        "preprocessor_config.json", err);
}

static renyi_status choose_pictures(ry_visual_config *c, const ry_checkpoint *llava,
                                    renyi_error *err)
{
    int tiles;
    RY_TRY(ry_visual_has_tiles(&tiles, llava, err));
    return tiles ? ry_visual_configure_tiles(c, llava, err) : choose_square(c, llava, err);
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
    RY_TRY(ry_vit_refuse_others(from->llava, err));
    if (!ry_visual_is_llava(from->llava))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "not a LLaVA: neither Hugging Face's multi_modal_projector.linear_1.weight "
                       "nor LLaVA's own mm_projector.0.weight is there");
    RY_TRY(configure_tower(out, from, image_size, al, err));
    RY_TRY(configure_projector(out, from->llava, al, err));
    RY_TRY(choose_layer(out, from->llava->config, err));
    RY_TRY(check_feature_rows(from->llava->config, err));
    return choose_pictures(out, from->llava, err);
}

/* ---- weights of the projector -------------------------------------------------------------- */

static renyi_status load_linears(ry_visual *v, ry_loader *ld)
{
    const ry_visual_config *c = &v->config;
    const ry_linear_source first = {.w = {RY_FC1_W},
                                    .b = {RY_FC1_B},
                                    .parts = 1,
                                    .n_out = c->mid_dim,
                                    .n_in = c->tower.dim,
                                    .epilogue = RY_EPI_GELU,
                                    .dtype = RENYI_DTYPE_F32};
    const ry_linear_source second = {.w = {RY_FC2_W},
                                     .b = {RY_FC2_B},
                                     .parts = 1,
                                     .n_out = c->lm_dim,
                                     .n_in = c->mid_dim,
                                     .epilogue = RY_EPI_NONE,
                                     .dtype = RENYI_DTYPE_F32};
    RY_TRY(ry_loader_begin(ld, 0));
    RY_TRY(ry_loader_linear(ld, &first, &v->project[0]));
    return ry_loader_linear(ld, &second, &v->project[1]);
}

static renyi_status load_projector(ry_visual *v, const ry_checkpoint *llava, ry_loader ld)
{
    ry_tensors *set;
    ry_visual_projector_find(&ld.naming, NULL, llava->tensors); /* ry_visual_configure found it */
    RY_TRY(ry_visual_projector_tensors(&set, &ld.naming, llava->tensors, ld.al, ld.err));
    ld.set = set;
    const renyi_status st = load_linears(v, &ld);
    ry_loader_end(&ld);
    ry_tensors_free(set);
    v->n_params += ld.n_params;
    return st;
}

/* ---- weights of the tower and of the block after it ---------------------------------------- */

static renyi_status load_queries(ry_visual *v, ry_loader *ld, renyi_dtype dtype)
{
    const uint32_t block = v->config.tower.n_blocks;
    const size_t C = v->config.tower.dim;
    const int together = ry_loader_find(ld, RY_QKV_W, block) != NULL;
    ry_linear_source qk = {.w = {RY_Q_W, RY_K_W},
                           .b = {RY_Q_B, RY_K_B},
                           .parts = 2,
                           .block = block,
                           .n_out = (together ? 3 : 2) * C,
                           .n_in = C,
                           .epilogue = RY_EPI_NONE,
                           .dtype = dtype};
    if (together) {
        qk.w[0] = RY_QKV_W;
        qk.b[0] = RY_QKV_B;
        qk.parts = 1;
    }
    RY_TRY(ry_loader_begin(ld, 0));
    RY_TRY(ry_loader_vector(ld, RY_NORM1_W, block, &v->norm_w));
    RY_TRY(ry_loader_vector(ld, RY_NORM1_B, block, &v->norm_b));
    return ry_loader_linear(ld, &qk, &v->qk);
}

static renyi_status load_tower(ry_visual *v, const ry_visual_source *from, const renyi_options *opt,
                               ry_loader ld, renyi_dtype dtype)
{
    ry_visual_tower_file tower;
    RY_TRY(ry_visual_tower_open(&tower, from, ld.al, ld.err));
    renyi_status st =
        ry_vit_load(&v->tower, &v->config.tower, &tower.ckpt, opt, ld.level, dtype, ld.err);
    if (!st && v->config.tower.n_blocks < v->config.n_blocks) {
        ld.set = tower.ckpt.tensors;
        ry_vit_naming_find(&ld.naming, ld.set); /* ry_vit_load found it */
        st = load_queries(v, &ld, dtype);
        ry_loader_end(&ld);
    }
    ry_visual_tower_close(&tower);
    v->n_params += v->tower.n_params + ld.n_params;
    return st;
}

/* ---- loading and freeing ------------------------------------------------------------------- */

renyi_status ry_visual_load(ry_visual *out, const ry_visual_config *config,
                            const ry_visual_source *from, const renyi_options *opt, renyi_cpu level,
                            renyi_dtype dtype, renyi_error *err)
{
    renyi_options quiet = *opt; /* the tower reports progress; the rest is small */
    quiet.progress = NULL;
    const ry_loader ld = {.opt = &quiet, .al = &opt->allocator, .level = level, .err = err};
    memset(out, 0, sizeof *out);
    out->config = *config;
    renyi_status st = load_tower(out, from, opt, ld, dtype);
    if (!st) st = load_projector(out, from->llava, ld);
    if (!st) st = ry_visual_load_newline(out, from->llava, ld.al, ld.err);
    if (st) ry_visual_free(out, &opt->allocator);
    return st;
}

void ry_visual_free(ry_visual *v, const renyi_allocator *al)
{
    ry_vit_free(&v->tower, al);
    ry_linear_free(v->project[0], al);
    ry_linear_free(v->project[1], al);
    ry_free(al, v->norm_w);
    ry_free(al, v->norm_b);
    ry_linear_free(v->qk, al);
    ry_free(al, v->newline);
    *v = (ry_visual){0};
}
