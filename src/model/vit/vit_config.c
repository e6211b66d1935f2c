/* vit_config.c - reads a ry_vit_config from a checkpoint: sizes from the shapes, the rest from the
 * configs beside the weights or from the defaults of the family.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"
#include "base/json.h"
#include "base/status.h"
#include "model/common/arch.h"
#include "model/common/other_families.h"
#include "model/common/tensor_names.h"
#include "model/common/tensor_quant.h"
#include "model/vit/input_size.h"
#include "model/vit/open_clip_config.h"
#include "model/vit/rotary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_FILE "config.json"
#define NONE_KEY "renyi.none_below"
#define DINOV3_THETA 100.0
#define DINOV3_REGISTERS 4

/* Larger sizes are refused. The limits also keep every later product within 64 bits. */
enum {
    MAX_DIM = 1 << 16,
    MAX_MLP = 1 << 20,
    MAX_CLASSES = 1 << 24,
    MAX_PATCH = 512,
    MAX_REGISTERS = 256
};

/* ---- sizes --------------------------------------------------------------------------------- */

/* A gated MLP has two matrices of the width that fc2 reads, or one with the rows of both. */
static void read_mlp_extents(uint64_t x[RY_X_COUNT], const ry_tensor_naming *n,
                             const ry_tensors *set)
{
    const uint64_t rows = ry_tensor_size(n, set, RY_FC1_W, 2, 0),
                   inside = ry_tensor_size(n, set, RY_FC2_W, 2, 1);
    const int packed = inside && rows == 2 * inside && !ry_tensor_of_role(n, set, RY_UP_W, 0);
    x[RY_X_MLP] = packed || (n->groups & RY_GROUP_GATED) ? inside : rows;
    x[RY_X_MLP_IN] = packed ? rows : n->groups & RY_GROUP_GATED ? 2 * inside : rows;
}

static void read_extents(uint64_t x[RY_X_COUNT], const ry_tensor_naming *n, const ry_tensors *set)
{
    memset(x, 0, RY_X_COUNT * sizeof *x);
    x[RY_X_1] = 1;
    x[RY_X_RGB] = 3;
    x[RY_X_DIM] = ry_tensor_size(n, set, RY_PATCH_W, 4, 0);
    x[RY_X_PATCH] = ry_tensor_size(n, set, RY_PATCH_W, 4, 2);
    x[RY_X_TOKENS] = n->is_clip || n->is_siglip ? ry_tensor_size(n, set, RY_POS_EMBED, 2, 0)
                                                : ry_tensor_size(n, set, RY_POS_EMBED, 3, 1);
    read_mlp_extents(x, n, set);
    x[RY_X_REGISTERS] = ry_tensor_size(n, set, RY_REGISTERS, 3, 1);
    x[RY_X_CLASSES] = ry_tensor_size(n, set, RY_HEAD_W, 2, 0);
    x[RY_X_EMBED] = ry_tensor_size(n, set, RY_EMBED_W, 2, n->layout == RY_LAYOUT_OPENAI ? 1 : 0);
    if (x[RY_X_DIM] > MAX_DIM) return;
    x[RY_X_2DIM] = 2 * x[RY_X_DIM];
    x[RY_X_3DIM] = 3 * x[RY_X_DIM];
}

static renyi_status check_extents(const uint64_t x[RY_X_COUNT], renyi_error *err)
{
    static const ry_extent_limit limits[] = {
        {RY_X_DIM, MAX_DIM, "width"},
        {RY_X_MLP, MAX_MLP, "MLP width"},
        {RY_X_MLP_IN, 2 * MAX_MLP, "MLP width"},
        {RY_X_REGISTERS, MAX_REGISTERS, "number of registers"},
        {RY_X_CLASSES, MAX_CLASSES, "number of classes"},
        {RY_X_EMBED, MAX_DIM, "width of the embedding"},
        {RY_X_PATCH, MAX_PATCH, "patch size"},
        {RY_X_TOKENS, (uint64_t)RY_MAX_IMAGE * RY_MAX_IMAGE, "number of positions"}};
    return ry_tensor_check_extents(x, limits, sizeof limits / sizeof *limits, "", err);
}

static uint32_t count_qkv_biases(const ry_tensor_naming *n, const ry_tensors *set)
{
    static const ry_tensor_role each[] = {RY_Q_B, RY_K_B, RY_V_B};
    uint32_t count = ry_tensor_of_role(n, set, RY_QKV_B, 0) ? 3 : 0;
    for (int i = 0; i < 3; i++) count += ry_tensor_of_role(n, set, each[i], 0) != NULL;
    return count;
}

/* Everything that the tensors alone define; checks all of them. */
static renyi_status read_sizes(ry_vit_config *c, ry_tensor_naming *n, uint64_t *n_positions,
                               const ry_checkpoint *ckpt, renyi_error *err)
{
    const ry_tensors *set = ckpt->tensors;
    uint64_t x[RY_X_COUNT];
    if (!ry_vit_naming_find(n, set)) return ry_vit_not_found(set, ry_config_family(ckpt), err);
    RY_TRY(ry_vit_check_family(n, set, err));
    if (n->n_blocks > RY_MAX_BLOCKS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a tensor of block %u; at most %d blocks accepted",
                       n->n_blocks - 1, RY_MAX_BLOCKS);
    read_extents(x, n, set);
    RY_TRY(check_extents(x, err));
    RY_TRY(ry_tensor_check_all(n, x, set, err));
    RY_TRY(ry_vit_quant_describe(c, n, set, err));
    c->layout = n->layout;
    c->is_clip = n->is_clip;
    c->is_siglip = n->is_siglip;
    c->dim = (uint32_t)x[RY_X_DIM];
    c->patch_size = (uint32_t)x[RY_X_PATCH];
    c->mlp_dim = (uint32_t)x[RY_X_MLP];
    c->n_classes = (uint32_t)x[RY_X_CLASSES];
    c->proj_dim = (uint32_t)x[RY_X_EMBED];
    c->n_blocks = n->n_blocks;
    c->n_registers = (uint32_t)x[RY_X_REGISTERS];
    c->is_distilled = (n->groups & RY_GROUP_DISTILLED) != 0;
    c->n_prefix = (n->groups & RY_GROUP_CLASS ? 1 : 0) + (uint32_t)c->is_distilled + c->n_registers;
    c->pre_norm = ry_tensor_of_role(n, set, RY_PRE_NORM_W, 0) != NULL;
    c->layer_scale = ry_tensor_of_role(n, set, RY_SCALE1, 0) != NULL;
    c->gated = x[RY_X_MLP_IN] == 2 * x[RY_X_MLP];
    c->rope_theta = n->of->is_rotary ? DINOV3_THETA : 0.0;
    c->n_qkv_bias = count_qkv_biases(n, set);
    *n_positions = x[RY_X_TOKENS];
    return RENYI_OK;
}

/* ---- what only the configs know ------------------------------------------------------------ */

/* The part of the config for the image tower: vision_config in a whole CLIP or SigLIP. */
static const json_t *tower_config(const ry_tensor_naming *n, const json_t *config)
{
    const int has_towers = n->is_clip || n->is_siglip;
    const json_t *vision = has_towers ? ry_json_object(config, "vision_config") : NULL;
    return vision ? vision : config;
}

/* A config of other weights would silently give the wrong number of heads. native: the input size
 * that the positions are made for; Hugging Face's configs repeat it. */
static renyi_status check_sizes(const ry_vit_config *c, const json_t *config, uint32_t native,
                                renyi_error *err)
{
    const json_t *args = ry_json_object(config, "model_args");
    const int has_side = c->is_clip || c->is_siglip || c->layout == RY_LAYOUT_HF;
    const json_t *sided = has_side && c->rope_theta == 0.0 ? config : NULL;
    const struct {
        const json_t *in;
        const char *key;
        uint32_t is;
    } sizes[] = {{config, "hidden_size", c->dim},
                 {config, "num_features", c->dim},
                 {config, "num_hidden_layers", c->n_blocks},
                 {config, "num_register_tokens", c->n_registers},
                 {args, "embed_dim", c->dim},
                 {args, "depth", c->n_blocks},
                 {args, "reg_tokens", c->n_registers},
                 {args, "num_reg_tokens", c->n_registers},
                 {config, "patch_size", c->patch_size},
                 {config, "intermediate_size", c->mlp_dim},
                 {args, "patch_size", c->patch_size}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t said = sizes[i].is;
        RY_TRY(ry_json_uint(sizes[i].in, sizes[i].key, &said, CONFIG_FILE, err));
        if (said != sizes[i].is)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           CONFIG_FILE ": %s is %u, but the tensors have %u; is it the config of "
                                       "another model?",
                           sizes[i].key, said, sizes[i].is);
    }
    uint32_t side = native;
    RY_TRY(ry_json_uint(sided, "image_size", &side, CONFIG_FILE, err));
    if (side / c->patch_size != native / c->patch_size) /* So400m/14: 384 pixels, 27 patches */
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": image_size is %u, but the tensors have positions for %u; is "
                                   "it the config of another model?",
                       side, native);
    int gated = c->gated;
    RY_TRY(ry_json_bool(config, "use_swiglu_ffn", &gated, CONFIG_FILE, err));
    if (gated == c->gated) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   CONFIG_FILE ": use_swiglu_ffn is %s, but the MLPs of the tensors are %s; is it "
                               "the config of another model?",
                   gated ? "true" : "false", c->gated ? "gated" : "not");
}

/* timm's names have the number of registers: "_reg4_", and 4 of every DINOv3. */
static renyi_status check_registers(const ry_vit_config *c, const json_t *config, const char *name,
                                    renyi_error *err)
{
    const json_t *args = ry_json_object(config, "model_args");
    const char *reg = name ? strstr(name, "_reg") : NULL;
    unsigned long said = c->n_registers;
    if (c->layout != RY_LAYOUT_TIMM || !name || json_object_get(args, "reg_tokens") ||
        json_object_get(args, "num_reg_tokens"))
        return RENYI_OK;
    if (reg && reg[4] >= '1' && reg[4] <= '9')
        said = strtoul(reg + 4, NULL, 10);
    else if (strstr(name, "_dinov3"))
        said = DINOV3_REGISTERS;
    if (said == c->n_registers) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "the architecture '%.80s' has %lu registers, but the tensors (reg_token) have "
                   "%u; take the weights and the " CONFIG_FILE " of one model",
                   name, said, c->n_registers);
}

/* source: what gave the number; NULL = nothing did, and the width is no multiple of 64. */
static renyi_status fail_heads(const ry_vit_config *c, const char *source, renyi_error *err)
{
    if (source)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%u heads, from %s, do not divide the width %u; is it the config of another "
                       "model?",
                       c->n_heads, source, c->dim);
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "the number of heads is in no config, and heads of 64 values do not divide the "
                   "width %u; write %s",
                   c->dim,
                   c->open_clip ? "timm_model_name into " RY_OPEN_CLIP_FILE
                                : "num_attention_heads into the " CONFIG_FILE " beside the file");
}

/* name: of the architecture, or NULL. */
static renyi_status choose_heads(ry_vit_config *c, const ry_checkpoint *ckpt, const json_t *config,
                                 const char *name, renyi_error *err)
{
    const char *source = CONFIG_FILE " (num_attention_heads)";
    const char *meta = ry_tensors_meta(ckpt->tensors, "num_heads");
    c->n_heads = 0;
    RY_TRY(ry_json_uint(config, "num_attention_heads", &c->n_heads, CONFIG_FILE, err));
    if (!c->n_heads) {
        source = CONFIG_FILE " (model_args.num_heads)";
        RY_TRY(ry_json_uint(ry_json_object(config, "model_args"), "num_heads", &c->n_heads,
                            CONFIG_FILE, err));
    }
    if (!c->n_heads && meta) {
        source = "__metadata__ (num_heads)";
        const unsigned long n = strtoul(meta, NULL, 10);
        c->n_heads = n > MAX_DIM ? MAX_DIM + 1u : (uint32_t)n;
    }
    if (!c->n_heads && name) {
        source = "the name of the architecture";
        c->n_heads = ry_arch_named_heads(name, c->dim);
    }
    if (!c->n_heads) {
        source = NULL;
        c->n_heads = ry_arch_heads(c->dim);
    }
    return c->n_heads && c->dim % c->n_heads == 0 ? RENYI_OK : fail_heads(c, source, err);
}

static const struct activation {
    const char *name;
    ry_epilogue is;
} activations[] = {
    {"gelu", RY_EPI_GELU},
    {"quick_gelu", RY_EPI_QUICKGELU},
    {"gelu_pytorch_tanh", RY_EPI_GELU_TANH},
    {"quickgelu", RY_EPI_QUICKGELU}, /* other names of the same */
    {"gelu_tanh", RY_EPI_GELU_TANH},
    {"gelu_new", RY_EPI_GELU_TANH},
};

int ry_activation_parse(ry_epilogue *out, const char *name)
{
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++)
        if (strcmp(name, activations[i].name) == 0) {
            *out = activations[i].is;
            return 1;
        }
    return 0;
}

ry_epilogue ry_timm_activation(const char *architecture)
{
    static const char *const tanh_names[] = {
        "vit_base_patch32_siglip_", "vit_large_patch16_siglip_512",
        "vit_large_patch16_siglip_gap_512", "vit_so400m_patch16_siglip_",
        "vit_giantopt_patch16_siglip_"};
    if (strstr(architecture, "_quickgelu_")) return RY_EPI_QUICKGELU;
    for (size_t i = 0; i < sizeof tanh_names / sizeof tanh_names[0]; i++)
        if (strncmp(architecture, tanh_names[i], strlen(tanh_names[i])) == 0)
            return RY_EPI_GELU_TANH;
    return RY_EPI_GELU;
}

static renyi_status choose_activation(ry_vit_config *c, const ry_tensor_naming *n,
                                      const json_t *config, renyi_error *err)
{
    const char *name = n->is_clip     ? "quick_gelu"
                       : n->is_siglip ? "gelu_pytorch_tanh"
                                      : ry_activation_name(ry_timm_activation(c->architecture));
    c->activation = RY_EPI_GELU;
    if (c->gated) return RENYI_OK; /* SwiGLU has its own */
    RY_TRY(ry_json_string(config, "hidden_act", &name, CONFIG_FILE, err));
    RY_TRY(
        ry_json_string(ry_json_object(config, "model_args"), "act_layer", &name, CONFIG_FILE, err));
    if (!ry_activation_parse(&c->activation, name))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": activation '%.40s'; this build runs " RY_ACTIVATIONS, name);
    return RENYI_OK;
}

/* An attention-pooling head is read if it is there, except by SiglipForImageClassification, whose
 * classifier reads the mean. SiglipVisionModel has one unless the config says no. */
static renyi_status choose_siglip_pooling(ry_vit_config *c, const ry_tensor_naming *n,
                                          const json_t *config, renyi_error *err)
{
    int has_head = 1;
    RY_TRY(ry_json_bool(config, "vision_use_head", &has_head, CONFIG_FILE, err));
    c->pool = n->groups & RY_GROUP_POOL && !c->n_classes ? RY_POOL_ATTENTION : RY_POOL_NORM_MEAN;
    if (c->n_classes || has_head == (c->pool == RY_POOL_ATTENTION)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   has_head ? "the attention-pooling head is missing: %shead.probe and the other "
                              "tensors of %shead; if the model has none, its " CONFIG_FILE
                              " must say \"vision_use_head\": false"
                            : CONFIG_FILE ": vision_use_head is false, but %shead.probe is there "
                                          "(%shead)",
                   n->prefix, n->prefix);
}

/* fc_norm means a mean, attn_pool attention pooling, and without a class token only these are
 * possible. Where a class token and a mean are possible the config decides. */
static renyi_status choose_pooling(ry_vit_config *c, const ry_tensor_naming *n,
                                   const ry_tensors *set, const json_t *config, renyi_error *err)
{
    const int reads_both = ry_tensor_size(n, set, RY_HEAD_W, 2, 1) == 2 * (uint64_t)c->dim;
    static const char *const allowed[] = {"'avg'", "'token' and 'avg'", "'token'"};
    const int fc_norm = (n->groups & RY_GROUP_FC_NORM) != 0;
    const uint32_t class_rows = ry_vit_class_rows(c);
    const int map = (n->groups & RY_GROUP_POOL) != 0;
    const char *usual = map ? "map" : class_rows && !fc_norm ? "token" : "avg", *pool = usual;
    if (n->is_siglip) return choose_siglip_pooling(c, n, config, err);
    RY_TRY(ry_json_string(config, "global_pool", &pool, CONFIG_FILE, err));
    RY_TRY(ry_json_string(ry_json_object(config, "model_args"), "global_pool", &pool, CONFIG_FILE,
                          err));
    if (map != (strcmp(pool, "map") == 0))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": global_pool is '%.40s', but the tensors of an "
                                   "attention-pooling head (%sattn_pool.latent, ...) are %s",
                       pool, n->prefix, map ? "there" : "missing");
    if (!c->n_classes) pool = usual; /* without a head nothing is pooled */
    if (map)
        c->pool = RY_POOL_ATTENTION;
    else if (reads_both)
        c->pool = RY_POOL_CLASS_MEAN;
    else if (strcmp(pool, "token") == 0 && class_rows)
        c->pool = RY_POOL_TOKEN;
    else if (strcmp(pool, "avg") == 0 && class_rows < 2)
        c->pool = fc_norm ? RY_POOL_MEAN : RY_POOL_NORM_MEAN;
    else
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": global_pool '%.40s'; of a model with %u token%s before its "
                                   "patches this build runs %s",
                       pool, class_rows, class_rows == 1 ? "" : "s", allowed[class_rows]);
    return RENYI_OK;
}

/* Meta uses the offset only without registers (dinov2/hub/backbones.py), and transformers filters
 * only with them. */
ry_pos_filter ry_vit_pos_filter(ry_layout layout, uint32_t n_registers)
{
    if (layout == RY_LAYOUT_TIMM || n_registers) return RY_POS_ANTIALIAS;
    return layout == RY_LAYOUT_META ? RY_POS_OFFSET : RY_POS_PLAIN;
}

static renyi_status choose_eps(ry_vit_config *c, const json_t *config, renyi_error *err)
{
    const int is_hf_vit = c->layout == RY_LAYOUT_HF && !c->layer_scale && !c->is_siglip;
    c->norm_eps = c->pre_norm || c->rope_theta > 0.0 ? 1e-5 : is_hf_vit ? 1e-12 : 1e-6;
    RY_TRY(ry_json_double(config, "layer_norm_eps", &c->norm_eps, CONFIG_FILE, err));
    if (!(c->norm_eps >= 0.0 && c->norm_eps < 1.0))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": layer_norm_eps is %g; 0 <= layer_norm_eps < 1 expected",
                       c->norm_eps);
    return RENYI_OK;
}

/* Only the metadata can have it: it belongs to these weights, not to the architecture. */
static renyi_status read_none_below(ry_vit_config *c, const ry_tensors *set, renyi_error *err)
{
    const char *text = ry_tensors_meta(set, NONE_KEY);
    c->none_below = NAN;
    if (!text || !c->n_classes || ry_read_decimal(text, strlen(text), &c->none_below))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "__metadata__ (" NONE_KEY ") is '%.40s'; a decimal number is expected", text);
}

/* ---- names --------------------------------------------------------------------------------- */

/* "deit" in the last two parts of a path: the only difference between a DeiT .pth and a ViT. */
static int path_says_deit(const char *path)
{
    const char *tail = path + strlen(path);
    for (int slashes = 0; tail > path; tail--)
        if (tail[-1] == '/' && ++slashes == 2) break;
    for (; *tail; tail++)
        if ((tail[0] | 32) == 'd' && (tail[1] | 32) == 'e' && (tail[2] | 32) == 'i' &&
            (tail[3] | 32) == 't')
            return 1;
    return 0;
}

/* "dinov2" in the model type or in the name of the architecture. Layer scale and a class token
 * without a position mean DeiT-III; Meta's names and Hugging Face's layer scale mean DINOv2. */
static const char *family_of(const ry_vit_config *c, const ry_checkpoint *ckpt, const char *name,
                             const char *type)
{
    const int dino = c->layout == RY_LAYOUT_META || (c->layer_scale && c->layout == RY_LAYOUT_HF) ||
                     (type && strncmp(type, "dinov2", 6) == 0) || (name && strstr(name, "dinov2"));
    const int is_deit = (type && strcmp(type, "deit") == 0) ||
                        (name ? strstr(name, "deit") != NULL
                              : ckpt->tensors_path && path_says_deit(ckpt->tensors_path));
    const int one_class = c->n_prefix == 1 && !c->n_registers;
    if (c->is_clip) return "clip";
    if (c->is_siglip || c->pool == RY_POOL_ATTENTION) return "siglip";
    if (c->is_distilled) return "deit-distilled";
    if (c->rope_theta > 0.0) return "dinov3";
    if (dino) return "dinov2";
    if (c->layer_scale && one_class && !c->n_placed) return "deit3";
    return is_deit ? "deit" : "vit";
}

void ry_vit_write_name(ry_vit_config *c, uint32_t image_size)
{
    ry_arch_write(c->architecture, sizeof c->architecture,
                  &(ry_arch){.is_deit = strncmp(c->family, "deit", 4) == 0,
                             .is_deit3 = strcmp(c->family, "deit3") == 0,
                             .is_dino = strcmp(c->family, "dinov2") == 0,
                             .is_dino3 = c->rope_theta > 0.0,
                             .n_qkv_bias = c->n_qkv_bias,
                             .is_clip = c->is_clip,
                             .is_siglip = c->is_siglip || c->pool == RY_POOL_ATTENTION,
                             .has_texts = c->is_clip || c->is_siglip,
                             .n_prefix = c->n_prefix,
                             .n_registers = c->n_registers,
                             .is_distilled = c->is_distilled,
                             .gated = c->gated,
                             .pre_norm = c->pre_norm,
                             .quick_gelu = c->activation == RY_EPI_QUICKGELU,
                             .dim = c->dim,
                             .n_blocks = c->n_blocks,
                             .n_heads = c->n_heads,
                             .mlp_dim = c->mlp_dim,
                             .patch_size = c->patch_size,
                             .image_size = image_size});
}

/* The name of the architecture, if a config or the metadata has it; else NULL. */
static renyi_status find_name(const char **out, const ry_vit_config *c, const ry_checkpoint *ckpt,
                              renyi_error *err)
{
    *out = ry_tensors_meta(ckpt->tensors, "architecture");
    if (c->open_clip) return ry_open_clip_architecture(ckpt, out, err);
    return ry_json_string(ckpt->config, "architecture", out, CONFIG_FILE, err);
}

/* Fills architecture and family. */
static renyi_status choose_names(ry_vit_config *c, const ry_checkpoint *ckpt, const char *name,
                                 uint32_t native, renyi_error *err)
{
    const char *type = NULL;
    RY_TRY(ry_json_string(ckpt->config, "model_type", &type, CONFIG_FILE, err));
    c->family = family_of(c, ckpt, name, type);
    if (name)
        snprintf(c->architecture, sizeof c->architecture, "%s", name);
    else
        ry_vit_write_name(c, native);
    return RENYI_OK;
}

/* The input side of Hugging Face's processor, which crops DINOv2's images to less than the
 * positions are made for; 0 if it says none. */
static renyi_status cropped_size(const ry_checkpoint *ckpt, uint32_t *out, renyi_error *err)
{
    const json_t *crop = ry_json_object(ckpt->preprocessor_config, "crop_size");
    *out = 0;
    return ry_json_uint(crop, "height", out, "preprocessor_config.json", err);
}

/* CLIP's towers have a LayerNorm before the blocks, unless a config of open_clip says no. */
static renyi_status check_pre_norm(const ry_vit_config *c, renyi_error *err)
{
    if (!c->is_clip || c->pre_norm) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "visual.ln_pre.weight and visual.ln_pre.bias are missing; only "
                   "an " RY_OPEN_CLIP_FILE " with no_ln_pre may leave them out");
}

/* Heads, pooling, epsilon, names and activation. config: of the image tower; NULL if open_clip's
 * takes its place. */
static renyi_status choose_all(ry_vit_config *c, const ry_tensor_naming *n,
                               const ry_checkpoint *ckpt, const json_t *config, uint32_t native,
                               renyi_error *err)
{
    const int told = c->open_clip && n->layout == RY_LAYOUT_OPENAI; /* its config has them all */
    const char *name = NULL;
    RY_TRY(find_name(&name, c, ckpt, err));
    RY_TRY(check_registers(c, config, name, err));
    if (c->open_clip) RY_TRY(ry_open_clip_configure(c, ckpt, native, err));
    if (!told) {
        RY_TRY(check_pre_norm(c, err));
        RY_TRY(choose_heads(c, ckpt, config, name, err));
        if (c->rope_theta > 0.0) RY_TRY(ry_rotary_configure(c, n, ckpt, name, err));
        RY_TRY(choose_pooling(c, n, ckpt->tensors, config, err));
        RY_TRY(choose_eps(c, config, err));
    }
    RY_TRY(choose_names(c, ckpt, name, native, err));
    return told ? RENYI_OK : choose_activation(c, n, config, err);
}

renyi_status ry_vit_configure(ry_vit_config *out, const ry_checkpoint *ckpt, uint32_t image_size,
                              renyi_error *err)
{
    ry_tensor_naming naming;
    uint64_t n_positions = 0;
    uint32_t native = 0;
    *out = (ry_vit_config){0};
    RY_TRY(ry_vit_refuse_others(ckpt, err));
    RY_TRY(read_sizes(out, &naming, &n_positions, ckpt, err));
    out->open_clip = ry_open_clip_has_config(&naming, ckpt);
    out->is_assumed = out->layout == RY_LAYOUT_TIMM && !out->open_clip && !ckpt->config &&
                      !ry_tensors_meta(ckpt->tensors, "architecture");
    const json_t *config = out->open_clip ? NULL : tower_config(&naming, ckpt->config);
    const int hf_dino = out->layout == RY_LAYOUT_HF && out->layer_scale;
    if (!image_size && hf_dino) RY_TRY(cropped_size(ckpt, &image_size, err));
    RY_TRY(ry_vit_count_placed(out, config, n_positions, err));
    RY_TRY(ry_vit_choose_image_size(out, ckpt, config, n_positions, image_size, &native, err));
    RY_TRY(check_sizes(out, config, native, err));
    RY_TRY(choose_all(out, &naming, ckpt, config, native, err));
    RY_TRY(read_none_below(out, ckpt->tensors, err));
    out->pos_filter =
        out->open_clip ? RY_POS_ANTIALIAS : ry_vit_pos_filter(out->layout, out->n_registers);
    return ry_preprocess_configure(out, ckpt, err);
}
