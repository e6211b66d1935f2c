/* new_model.c - a model that does not exist yet: its configuration from an architecture's name,
 * its config.json, and a file of random weights for benchmarks and tests. The same seed gives the
 * same bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/write/new_model.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "formats/safetensors.h"
#include "model/clip_text/text_tower.h"
#include "model/common/arch.h"
#include "model/common/tensor_names.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEVIATION 0.02     /* of timm's trunc_normal_ */
#define LOGIT_SCALE 100.0f /* of OpenAI's models */
#define SIGLIP_SCALE 10.0  /* and bias: the first values of a training of SigLIP */
#define SIGLIP_BIAS (-10.0f)

enum { MAX_DIM = 1 << 14, MAX_MLP = 1 << 16, MAX_CLASSES = 1 << 20 };

/* ---- configuration ------------------------------------------------------------------------- */

static renyi_status check_sizes(const ry_arch *a, uint32_t n_classes, renyi_error *err)
{
    if (a->dim > MAX_DIM || a->mlp_dim > MAX_MLP || n_classes > MAX_CLASSES ||
        a->n_blocks > RY_MAX_BLOCKS)
        return ry_fail(
            err, RENYI_ERR_LIMIT, -1,
            "width %u, MLP width %u, %u blocks, %u classes; at most %d, %d, %d, %d are allowed",
            a->dim, a->mlp_dim, a->n_blocks, n_classes, MAX_DIM, MAX_MLP, RY_MAX_BLOCKS,
            MAX_CLASSES);
    if (!a->n_heads || a->dim % a->n_heads)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%u heads do not divide dim %u; set n_heads (--heads)", a->n_heads, a->dim);
    return RENYI_OK;
}

/* Sizes that the caller sets; in a CLIP they apply to both towers and the embeddings. */
static void apply_options(ry_arch *a, const renyi_init_options *opt)
{
    if (opt->n_blocks) a->n_blocks = a->text_blocks = opt->n_blocks;
    if (opt->dim) {
        a->dim = a->text_dim = a->embed_dim = opt->dim;
        a->mlp_dim = opt->dim <= MAX_DIM ? 4 * opt->dim : opt->dim;
        a->n_heads = a->text_heads = ry_arch_heads(opt->dim);
    }
    if (opt->n_heads) a->n_heads = a->text_heads = opt->n_heads;
    if (opt->mlp_dim) a->mlp_dim = opt->mlp_dim;
}

static renyi_status read_arch(ry_arch *out, const char *architecture, const renyi_init_options *opt,
                              renyi_error *err)
{
    if (!ry_arch_parse(out, architecture))
        return ry_fail(err, RENYI_ERR_ARG, -1, "architecture '%.60s' is not known; %s",
                       architecture, ry_arch_allowed());
    if (opt) apply_options(out, opt);
    return RENYI_OK;
}

renyi_status ry_new_model_config(ry_vit_config *out, const char *architecture,
                                 const renyi_init_options *opt, renyi_error *err)
{
    const ry_checkpoint nothing = {0};
    uint32_t n_classes = opt && opt->n_classes ? opt->n_classes : 1000;
    ry_arch a;
    *out = (ry_vit_config){0};
    RY_TRY(read_arch(&a, architecture, opt, err));
    if (a.has_texts || ((a.is_dino || a.is_dino3 || a.is_siglip) && !(opt && opt->n_classes)))
        n_classes = 0;
    RY_TRY(check_sizes(&a, n_classes, err));
    *out = (ry_vit_config){.layout = a.has_texts ? RY_LAYOUT_HF : RY_LAYOUT_TIMM,
                           .family = a.is_clip        ? "clip"
                                     : a.is_siglip    ? "siglip"
                                     : a.is_distilled ? "deit-distilled"
                                     : a.is_deit3     ? "deit3"
                                     : a.is_dino      ? "dinov2"
                                     : a.is_dino3     ? "dinov3"
                                     : a.is_deit      ? "deit"
                                                      : "vit",
                           .is_clip = a.is_clip,
                           .is_siglip = a.is_siglip && a.has_texts,
                           .pre_norm = a.pre_norm,
                           .proj_dim = a.embed_dim,
                           .image_size = a.image_size,
                           .patch_size = a.patch_size,
                           .dim = a.dim,
                           .n_blocks = a.n_blocks,
                           .n_heads = a.n_heads,
                           .mlp_dim = a.mlp_dim,
                           .n_classes = n_classes,
                           .n_prefix = a.n_prefix,
                           .n_registers = a.n_registers,
                           .is_distilled = a.is_distilled,
                           .n_placed = a.n_placed,
                           .layer_scale = a.layer_scale,
                           .gated = a.gated,
                           .n_qkv_bias = a.n_qkv_bias,
                           .rope_theta = a.rope_theta,
                           .pool = a.is_siglip                  ? RY_POOL_ATTENTION
                                   : a.n_prefix > a.n_registers ? RY_POOL_TOKEN
                                                                : RY_POOL_MEAN,
                           .norm_eps = a.pre_norm || a.is_dino3 ? 1e-5 : 1e-6};
    ry_arch_write(out->architecture, sizeof out->architecture, &a);
    out->activation = a.is_clip        ? RY_EPI_QUICKGELU
                      : out->is_siglip ? RY_EPI_GELU_TANH
                                       : ry_timm_activation(out->architecture);
    return ry_preprocess_configure(out, &nothing, err);
}

/* SigLIP's: T5's vocabulary; the embedding is as wide as that of images. */
static void become_siglip(ry_text_config *t, const ry_arch *a)
{
    t->mlp_dim = t->dim == a->dim ? a->mlp_dim : t->dim == 1152 ? 4304 : 4 * t->dim;
    t->vocab = 32000;
    t->context = 64;
    t->embed_dim = a->dim;
    t->norm_eps = 1e-6;
    t->logit_scale = SIGLIP_SCALE;
    t->logit_bias = SIGLIP_BIAS;
    t->is_sigmoid = t->sees_all = 1;
    t->pool = RY_TEXT_POOL_LAST;
    t->activation = RY_EPI_GELU_TANH;
}

/* The text tower of a CLIP or SigLIP whose name ry_new_model_config has accepted. */
static renyi_status new_text_config(ry_text_config *out, const char *architecture,
                                    const renyi_init_options *opt, renyi_error *err)
{
    ry_arch a;
    *out = (ry_text_config){0};
    RY_TRY(read_arch(&a, architecture, opt, err));
    *out = (ry_text_config){
        .layout = RY_LAYOUT_HF,
        .dim = a.text_dim,
        .n_blocks = a.text_blocks,
        .n_heads = a.text_heads,
        .mlp_dim = opt && opt->mlp_dim ? opt->mlp_dim : 4 * a.text_dim,
        .vocab = 49408, /* this and the context are the same in every published CLIP */
        .context = 77,
        .embed_dim = a.embed_dim,
        .norm_eps = 1e-5,
        .logit_scale = LOGIT_SCALE,
        .activation = RY_EPI_QUICKGELU};
    if (a.is_siglip) become_siglip(out, &a);
    return RENYI_OK;
}

/* ---- config.json --------------------------------------------------------------------------- */

static json_t *label_list(const ry_vit_config *c, const char *const *labels)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < c->n_classes; i++) {
        char placeholder[24]; /* counts as no name (ry_labels_read) */
        snprintf(placeholder, sizeof placeholder, "LABEL_%u", i);
        json_t *name = labels[i] ? json_string(labels[i]) : NULL;
        if (!json_array_append_new(list, name ? name : json_string(placeholder))) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

/* timm's names of activations */
static const char *timm_activation(ry_epilogue activation)
{
    return activation == RY_EPI_GELU_TANH ? "gelu_tanh" : ry_activation_name(activation);
}

static json_t *model_args(const ry_vit_config *c)
{
    const double inside = (c->gated ? 2.0 : 1.0) * c->mlp_dim; /* timm counts gate and up */
    json_t *args =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:f}", "img_size", (int)c->image_size, "patch_size",
                  (int)c->patch_size, "embed_dim", (int)c->dim, "depth", (int)c->n_blocks,
                  "num_heads", (int)c->n_heads, "mlp_ratio", inside / c->dim);
    if (args && !(c->rope_theta > 0.0)) (void)json_object_set_new(args, "qkv_bias", json_true());
    if (args && c->activation != RY_EPI_GELU)
        (void)json_object_set_new(args, "act_layer", json_string(timm_activation(c->activation)));
    if (args && c->pre_norm) (void)json_object_set_new(args, "pre_norm", json_true());
    if (args && c->pool == RY_POOL_NORM_MEAN)
        (void)json_object_set_new(args, "fc_norm", json_false());
    if (args && c->rope_theta > 0.0)
        (void)json_object_set_new(args, "rope_temperature", json_real(c->rope_theta));
    if (args && c->n_registers)
        (void)json_object_set_new(args, c->rope_theta > 0.0 ? "num_reg_tokens" : "reg_tokens",
                                  json_integer(c->n_registers));
    if (args && c->layer_scale)
        (void)json_object_set_new(args, "init_values", json_real(ry_vit_first_scale(c)));
    if (args && c->n_prefix && !c->n_placed && !(c->rope_theta > 0.0))
        (void)json_object_set_new(args, "no_embed_class", json_true());
    if (args && !ry_vit_class_rows(c)) (void)json_object_set_new(args, "class_token", json_false());
    return args;
}

static json_t *pretrained_cfg(const ry_vit_config *c)
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

static json_t *label_table(const ry_vit_config *c, const char *const *labels)
{
    json_t *list = label_list(c, labels), *table = list ? json_object() : NULL;
    for (uint32_t i = 0; table && i < c->n_classes; i++) {
        char index[16];
        snprintf(index, sizeof index, "%u", i);
        if (!json_object_set(table, index, json_array_get(list, i))) continue;
        json_decref(table);
        table = NULL;
    }
    json_decref(list);
    return table;
}

/* transformers' mlp_ratio, a whole number. It makes the width of a gated MLP from 2/3 of it,
 * rounded up to a multiple of 8. */
static json_t *dinov2_mlp_ratio(const ry_vit_config *c)
{
    const double ratio = (c->gated ? 1.5 : 1.0) * c->mlp_dim / c->dim, whole = floor(ratio);
    const uint32_t gated = ((uint32_t)(c->dim * whole * 2.0 / 3.0) + 7) / 8 * 8;
    const int fits = c->gated ? gated == c->mlp_dim : whole == ratio;
    return fits ? json_integer((json_int_t)whole) : json_real(ratio);
}

/* config.json of a DINOv2 classifier for transformers and this library. */
static json_t *dinov2_config_json(const ry_vit_config *c, const char *const *labels)
{
    const int regs = c->n_registers != 0;
    json_t *config = json_pack(
        "{s:s, s:s, s:[s], s:i, s:i, s:i, s:i, s:i, s:f, s:s, s:b, s:o, s:o}", "architecture",
        c->architecture, "model_type", regs ? "dinov2_with_registers" : "dinov2", "architectures",
        regs ? "Dinov2WithRegistersForImageClassification" : "Dinov2ForImageClassification",
        "hidden_size", (int)c->dim, "num_hidden_layers", (int)c->n_blocks, "num_attention_heads",
        (int)c->n_heads, "image_size", (int)c->image_size, "patch_size", (int)c->patch_size,
        "layer_norm_eps", c->norm_eps, "hidden_act", ry_activation_name(c->activation),
        "use_swiglu_ffn", c->gated, "mlp_ratio", dinov2_mlp_ratio(c), "pretrained_cfg",
        pretrained_cfg(c));
    if (config && regs)
        (void)json_object_set_new(config, "num_register_tokens", json_integer(c->n_registers));
    if (config && !labels)
        (void)json_object_set_new(config, "num_labels", json_integer(c->n_classes));
    if (config && labels && json_object_set_new(config, "id2label", label_table(c, labels))) {
        json_decref(config);
        return NULL;
    }
    return config;
}

json_t *ry_config_json(const ry_vit_config *c, const char *const *labels)
{
    if (c->pool == RY_POOL_CLASS_MEAN) return dinov2_config_json(c, labels);
    /* json_pack takes over the parts even if it fails */
    json_t *config =
        json_pack("{s:s, s:i, s:i, s:s, s:f, s:o, s:o}", "architecture", c->architecture,
                  "num_classes", (int)c->n_classes, "num_features", (int)c->dim, "global_pool",
                  c->pool == RY_POOL_TOKEN       ? "token"
                  : c->pool == RY_POOL_ATTENTION ? "map"
                                                 : "avg",
                  "layer_norm_eps", c->norm_eps, "model_args", model_args(c), "pretrained_cfg",
                  pretrained_cfg(c));
    if (config && labels && json_object_set_new(config, "label_names", label_list(c, labels))) {
        json_decref(config);
        return NULL;
    }
    return config;
}

/* What config.json says of each tower of a CLIP. */
typedef struct tower_config {
    const char *type;
    uint32_t dim, mlp_dim, n_heads, n_blocks, embed_dim;
    double norm_eps;
    ry_epilogue activation;
} tower_config;

static json_t *tower_json(const tower_config *t)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:s}", "model_type", t->type,
                     "hidden_size", (int)t->dim, "intermediate_size", (int)t->mlp_dim,
                     "num_attention_heads", (int)t->n_heads, "num_hidden_layers", (int)t->n_blocks,
                     "projection_dim", (int)t->embed_dim, "layer_norm_eps", t->norm_eps,
                     "hidden_act", ry_activation_name(t->activation));
}

/* config.json of both towers, as Hugging Face has it; NULL if there is no memory. */
static json_t *clip_config_json(const ry_vit_config *c, const ry_text_config *text)
{
    const int is_siglip = c->is_siglip;
    const tower_config image_tower = {is_siglip ? "siglip_vision_model" : "clip_vision_model",
                                      c->dim,
                                      c->mlp_dim,
                                      c->n_heads,
                                      c->n_blocks,
                                      c->proj_dim,
                                      c->norm_eps,
                                      c->activation};
    const tower_config text_tower = {is_siglip ? "siglip_text_model" : "clip_text_model",
                                     text->dim,
                                     text->mlp_dim,
                                     text->n_heads,
                                     text->n_blocks,
                                     text->embed_dim,
                                     text->norm_eps,
                                     text->activation};
    json_t *vision = tower_json(&image_tower), *texts = tower_json(&text_tower);
    if (!vision || json_object_set_new(vision, "image_size", json_integer(c->image_size)) ||
        json_object_set_new(vision, "patch_size", json_integer(c->patch_size)) || !texts ||
        json_object_set_new(texts, "vocab_size", json_integer(text->vocab)) ||
        json_object_set_new(texts, "max_position_embeddings", json_integer(text->context))) {
        json_decref(vision);
        json_decref(texts);
        return NULL;
    }
    return json_pack("{s:s, s:i, s:o, s:o}", "model_type", is_siglip ? "siglip" : "clip",
                     "projection_dim", (int)c->proj_dim, "vision_config", vision, "text_config",
                     texts);
}

/* ---- random tensors ------------------------------------------------------------------------ */

typedef char name_text[RY_NAME_MAX];

typedef struct tensor_plan {
    ry_tensor *tensors;
    name_text *names;
    float *value; /* the value of all elements of a tensor: LayerNorm weights are 1; NAN = random */
    size_t n_tensors;
    uint64_t extents[RY_X_COUNT];
    uint64_t seed;
    float first_scale;        /* of layer scale */
    float logit_scale;        /* of a CLIP or SigLIP: the logarithm */
    const ry_tensor *current; /* the one being filled, from rng */
    ry_rng rng;
} tensor_plan;

static int is_norm(ry_tensor_role role)
{
    return role == RY_NORM_W || role == RY_NORM1_W || role == RY_NORM2_W || role == RY_PRE_NORM_W ||
           role == RY_POOL_NORM_W;
}

static void plan_add(void *user, const ry_tensor_naming *n, const ry_tensor_name *row,
                     uint32_t block)
{
    tensor_plan *p = user;
    const size_t i = p->n_tensors++;
    ry_tensor_name_write(p->names[i], n, row, block);
    p->tensors[i] = (ry_tensor){.name = p->names[i], .dtype = RY_F32};
    for (; p->tensors[i].n_dims < 4 && row->shape[p->tensors[i].n_dims]; p->tensors[i].n_dims++)
        p->tensors[i].shape[p->tensors[i].n_dims] = p->extents[row->shape[p->tensors[i].n_dims]];
    const int is_scale = row->role == RY_SCALE1 || row->role == RY_SCALE2;
    p->value[i] = is_norm(row->role)            ? 1.0f
                  : row->role == RY_LOGIT_SCALE ? p->logit_scale
                  : row->role == RY_LOGIT_BIAS  ? SIGLIP_BIAS
                  : is_scale                    ? p->first_scale
                                                : NAN;
}

static void plan_free(tensor_plan *p)
{
    ry_free(NULL, p->tensors);
    ry_free(NULL, p->names);
    ry_free(NULL, p->value);
}

/* text: of a CLIP or SigLIP, else it has 0 blocks. */
static renyi_status plan_tensors(tensor_plan *p, const ry_vit_config *c, const ry_text_config *text,
                                 renyi_error *err)
{
    const ry_tensor_naming n = c->is_clip     ? ry_vit_naming_clip(c->n_blocks)
                               : c->is_siglip ? ry_vit_naming_siglip(c->n_blocks)
                                              : ry_vit_naming_timm(c);
    const ry_tensor_naming t = ry_text_naming_hf(text->n_blocks, c->is_siglip);
    const size_t most = n.n_names * ((size_t)c->n_blocks + 1) + t.n_names * text->n_blocks;
    p->tensors = ry_alloc(NULL, most, sizeof *p->tensors);
    p->names = ry_alloc(NULL, most, sizeof *p->names);
    p->value = ry_alloc(NULL, most, sizeof *p->value);
    if (!p->tensors || !p->names || !p->value) return ry_fail_nomem(err, most * sizeof *p->names);
    ry_vit_extents(p->extents, c);
    p->first_scale = (float)ry_vit_first_scale(c);
    p->logit_scale = text->n_blocks ? (float)log(text->logit_scale) : 0.0f;
    ry_tensor_names_each(&n, plan_add, p);
    if (!text->n_blocks) return RENYI_OK;
    ry_text_extents(p->extents, text);
    ry_tensor_names_each(&t, plan_add, p);
    return RENYI_OK;
}

/* ry_safetensors_fill. Each tensor has its own generator, seeded from the caller's seed and its
 * index. */
static renyi_status fill_tensor(void *user, const ry_tensor *t, uint64_t at, void *out, size_t n,
                                renyi_error *err)
{
    tensor_plan *p = user;
    const size_t index = (size_t)(t - p->tensors);
    (void)at;
    (void)err;
    if (p->current != t) {
        ry_rng mix = ry_rng_new(p->seed);
        p->rng = ry_rng_new(ry_rng_next(&mix) ^ (index * 0x9e3779b97f4a7c15u));
        p->current = t;
    }
    for (size_t i = 0; i + sizeof(float) <= n; i += sizeof(float)) {
        const float x = isnan(p->value[index])
                            ? (float)(ry_rng_truncated_normal(&p->rng) * DEVIATION)
                            : p->value[index];
        memcpy((char *)out + i, &x, sizeof x);
    }
    return RENYI_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* config: the text of a config.json that the file needs, else NULL: that of a CLIP knows the heads
 * of both towers, that of a model with rotary positions the input side. */
static renyi_status write_model(const char *path, tensor_plan *p, const ry_vit_config *c,
                                const char *config, renyi_error *err)
{
    char seed[24], heads[16];
    snprintf(seed, sizeof seed, "%" PRIu64, p->seed);
    snprintf(heads, sizeof heads, "%u", c->n_heads);
    const char *const meta[] = {"format",
                                "pt",
                                "architecture",
                                c->architecture,
                                config ? "config.json" : "num_heads",
                                config ? config : heads,
                                "generator",
                                "renyi init",
                                "seed",
                                seed,
                                NULL};
    const ry_safetensors_content content = {p->tensors, p->n_tensors, meta, fill_tensor, p};
    return ry_safetensors_write(path, &content, NULL, err);
}

static renyi_status write_with_config(const char *path, tensor_plan *p, const ry_vit_config *c,
                                      json_t *json, renyi_error *err)
{
    char *config = NULL;
    if (!json) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for the config");
    RY_TRY(ry_json_text(&config, json, NULL, err));
    const renyi_status st = write_model(path, p, c, config, err);
    ry_free(NULL, config);
    return st;
}

renyi_status renyi_model_init_file(const char *path, const char *architecture,
                                   const renyi_init_options *options, renyi_error *err)
{
    renyi_init_options opt;
    ry_vit_config config;
    ry_text_config text = {0};
    if (!path || !architecture)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_init_file: %s is NULL",
                       path ? "architecture" : "path");
    RY_TRY(ry_struct_read(&opt, sizeof opt, options, "renyi_init_options", err));
    RY_TRY(ry_new_model_config(&config, architecture, &opt, err));
    const int has_texts = config.is_clip || config.is_siglip;
    if (has_texts) {
        if (opt.n_classes)
            return ry_fail(err, RENYI_ERR_ARG, -1, "%u classes, but a %s has none", opt.n_classes,
                           config.is_clip ? "CLIP" : "SigLIP");
        RY_TRY(new_text_config(&text, architecture, &opt, err));
    }
    tensor_plan p = {.seed = opt.seed};
    renyi_status st = plan_tensors(&p, &config, &text, err);
    if (st == RENYI_OK && has_texts)
        st = write_with_config(path, &p, &config, clip_config_json(&config, &text), err);
    else if (st == RENYI_OK && config.rope_theta > 0.0)
        st = write_with_config(path, &p, &config, ry_config_json(&config, NULL), err);
    else if (st == RENYI_OK)
        st = write_model(path, &p, &config, NULL, err);
    plan_free(&p);
    return st;
}
