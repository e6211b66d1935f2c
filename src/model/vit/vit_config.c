/* vit_config.c - reads a ry_vit_config from a checkpoint: sizes from the shapes, the rest from the
 * configs beside the weights or from the defaults of the family.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"
#include "base/json.h"
#include "base/status.h"
#include "model/common/arch.h"
#include "model/common/tensor_names.h"
#include "model/common/tensor_quant.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_FILE "config.json"
#define NONE_KEY "renyi.none_below"

/* Larger sizes are refused. The limits also keep every later product within 64 bits. */
enum {
    MAX_DIM = 1 << 16,
    MAX_MLP = 1 << 20,
    MAX_CLASSES = 1 << 24,
    MAX_PATCH = 512,
    MAX_IMAGE = 4096
};

/* ---- sizes --------------------------------------------------------------------------------- */

static void read_extents(uint64_t x[RY_X_COUNT], const ry_tensor_naming *n, const ry_tensors *set)
{
    memset(x, 0, RY_X_COUNT * sizeof *x);
    x[RY_X_1] = 1;
    x[RY_X_RGB] = 3;
    x[RY_X_DIM] = ry_tensor_size(n, set, RY_PATCH_W, 4, 0);
    x[RY_X_PATCH] = ry_tensor_size(n, set, RY_PATCH_W, 4, 2);
    x[RY_X_TOKENS] = n->is_clip ? ry_tensor_size(n, set, RY_POS_EMBED, 2, 0)
                                : ry_tensor_size(n, set, RY_POS_EMBED, 3, 1);
    x[RY_X_MLP] = ry_tensor_size(n, set, RY_FC1_W, 2, 0);
    x[RY_X_CLASSES] = ry_tensor_size(n, set, RY_HEAD_W, 2, 0);
    x[RY_X_EMBED] = ry_tensor_size(n, set, RY_EMBED_W, 2, n->layout == RY_LAYOUT_OPENAI ? 1 : 0);
    if (x[RY_X_DIM] <= MAX_DIM) x[RY_X_3DIM] = 3 * x[RY_X_DIM];
}

static renyi_status check_extents(const uint64_t x[RY_X_COUNT], renyi_error *err)
{
    static const ry_extent_limit limits[] = {
        {RY_X_DIM, MAX_DIM, "width"},
        {RY_X_MLP, MAX_MLP, "MLP width"},
        {RY_X_CLASSES, MAX_CLASSES, "number of classes"},
        {RY_X_EMBED, MAX_DIM, "width of the embedding"},
        {RY_X_PATCH, MAX_PATCH, "patch size"},
        {RY_X_TOKENS, (uint64_t)MAX_IMAGE * MAX_IMAGE, "number of positions"}};
    return ry_tensor_check_extents(x, limits, sizeof limits / sizeof *limits, "", err);
}

/* Everything that the tensors alone define; checks all of them. */
static renyi_status read_sizes(ry_vit_config *c, ry_tensor_naming *n, uint64_t *n_positions,
                               const ry_tensors *set, renyi_error *err)
{
    uint64_t x[RY_X_COUNT];
    if (!ry_vit_naming_find(n, set)) return ry_vit_not_found(set, err);
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
    c->dim = (uint32_t)x[RY_X_DIM];
    c->patch_size = (uint32_t)x[RY_X_PATCH];
    c->mlp_dim = (uint32_t)x[RY_X_MLP];
    c->n_classes = (uint32_t)x[RY_X_CLASSES];
    c->proj_dim = (uint32_t)x[RY_X_EMBED];
    c->n_blocks = n->n_blocks;
    c->n_prefix = (n->groups & RY_GROUP_CLASS ? 1 : 0) + (n->groups & RY_GROUP_DISTILLED ? 1 : 0);
    *n_positions = x[RY_X_TOKENS];
    return RENYI_OK;
}

/* ---- input size ---------------------------------------------------------------------------- */

static renyi_status refuse_image_size(uint32_t wanted, uint32_t patch, renyi_error *err)
{
    const uint32_t below = wanted / patch * patch, top = MAX_IMAGE / patch * patch;
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

/* `wanted` 0 = the size that the positions were made for; *native is set to that size. */
static renyi_status choose_image_size(ry_vit_config *c, uint64_t n_positions, uint32_t wanted,
                                      uint32_t *native, renyi_error *err)
{
    const uint64_t patches = n_positions > c->n_prefix ? n_positions - c->n_prefix : 0;
    uint64_t side = 0;
    while ((side + 1) * (side + 1) <= patches) side++;
    if (!side || side * side != patches)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%" PRIu64 " positions, %u of them for prefix tokens: the other %" PRIu64
                       " do not form a square, and only square inputs are supported",
                       n_positions, c->n_prefix, patches);
    if (side * c->patch_size > MAX_IMAGE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "positions for an input of %" PRIu64 " pixels; at most %d accepted",
                       side * c->patch_size, MAX_IMAGE);
    *native = (uint32_t)side * c->patch_size;
    if (wanted && (wanted % c->patch_size || wanted > MAX_IMAGE))
        return refuse_image_size(wanted, c->patch_size, err);
    c->image_size = wanted ? wanted : *native;
    return RENYI_OK;
}

/* ---- what only the configs know ------------------------------------------------------------ */

/* The part of the config for the image tower: vision_config in a whole CLIP. */
static const json_t *tower_config(const ry_vit_config *c, const json_t *config)
{
    const json_t *vision = c->is_clip ? ry_json_object(config, "vision_config") : NULL;
    return vision ? vision : config;
}

/* A config of other weights would silently give the wrong number of heads. */
static renyi_status check_width(const ry_vit_config *c, const json_t *config, renyi_error *err)
{
    static const char *const keys[] = {"hidden_size", "num_features"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        uint32_t dim = c->dim;
        RY_TRY(ry_json_uint(config, keys[i], &dim, CONFIG_FILE, err));
        if (dim != c->dim)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           CONFIG_FILE ": %s is %u, but the tensors have %u; is it the config of "
                                       "another model?",
                           keys[i], dim, c->dim);
    }
    return RENYI_OK;
}

static renyi_status choose_heads(ry_vit_config *c, const ry_checkpoint *ckpt, const json_t *config,
                                 renyi_error *err)
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
    if (!c->n_heads) {
        source = "the rule of 64 values a head";
        c->n_heads = ry_arch_heads(c->dim);
    }
    if (!c->n_heads || c->dim % c->n_heads)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%u heads, from %s, do not divide the width %u; a " CONFIG_FILE
                       " with num_attention_heads is needed",
                       c->n_heads, source, c->dim);
    return RENYI_OK;
}

static renyi_status choose_activation(ry_vit_config *c, const json_t *config, renyi_error *err)
{
    const char *name = c->is_clip ? "quick_gelu" : "gelu";
    RY_TRY(ry_json_string(config, "hidden_act", &name, CONFIG_FILE, err));
    RY_TRY(
        ry_json_string(ry_json_object(config, "model_args"), "act_layer", &name, CONFIG_FILE, err));
    if (strcmp(name, "gelu") == 0)
        c->activation = RY_EPI_GELU;
    else if (strcmp(name, "quick_gelu") == 0 || strcmp(name, "quickgelu") == 0)
        c->activation = RY_EPI_QUICKGELU;
    else
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": activation '%.40s'; this build runs gelu and quick_gelu",
                       name);
    return RENYI_OK;
}

/* fc_norm means a mean, and without a class token only a mean is possible. Where both are possible
 * the config decides. */
static renyi_status choose_pooling(ry_vit_config *c, const ry_tensor_naming *n,
                                   const json_t *config, renyi_error *err)
{
    static const char *const allowed[] = {"'avg'", "'token' and 'avg'", "'token'"};
    const int fc_norm = (n->groups & RY_GROUP_FC_NORM) != 0;
    const char *usual = c->n_prefix && !fc_norm ? "token" : "avg", *pool = usual;
    RY_TRY(ry_json_string(config, "global_pool", &pool, CONFIG_FILE, err));
    RY_TRY(ry_json_string(ry_json_object(config, "model_args"), "global_pool", &pool, CONFIG_FILE,
                          err));
    if (!c->n_classes) pool = usual; /* without a head nothing is pooled */
    if (strcmp(pool, "token") == 0 && c->n_prefix)
        c->pool = RY_POOL_TOKEN;
    else if (strcmp(pool, "avg") == 0 && c->n_prefix < 2)
        c->pool = fc_norm ? RY_POOL_MEAN : RY_POOL_NORM_MEAN;
    else
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": global_pool '%.40s'; of a model with %u token%s before its "
                                   "patches this build runs %s",
                       pool, c->n_prefix, c->n_prefix == 1 ? "" : "s", allowed[c->n_prefix]);
    return RENYI_OK;
}

static renyi_status choose_eps(ry_vit_config *c, const json_t *config, renyi_error *err)
{
    c->norm_eps = c->is_clip ? 1e-5 : c->layout == RY_LAYOUT_HF ? 1e-12 : 1e-6;
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

/* Fills architecture and family; *is_deit also chooses among the defaults of preprocessing. */
static renyi_status choose_names(ry_vit_config *c, const ry_checkpoint *ckpt, uint32_t native,
                                 int *is_deit, renyi_error *err)
{
    const char *name = ry_tensors_meta(ckpt->tensors, "architecture"), *type = NULL;
    RY_TRY(ry_json_string(ckpt->config, "architecture", &name, CONFIG_FILE, err));
    RY_TRY(ry_json_string(ckpt->config, "model_type", &type, CONFIG_FILE, err));
    *is_deit = c->n_prefix == 2 || (type && strcmp(type, "deit") == 0);
    if (name)
        *is_deit |= strstr(name, "deit") != NULL;
    else if (ckpt->tensors_path)
        *is_deit |= path_says_deit(ckpt->tensors_path);
    *is_deit = *is_deit && !c->is_clip;
    if (name)
        snprintf(c->architecture, sizeof c->architecture, "%s", name);
    else
        ry_arch_write(c->architecture, sizeof c->architecture,
                      &(ry_arch){.is_deit = *is_deit,
                                 .is_clip = c->is_clip,
                                 .n_prefix = c->n_prefix,
                                 .dim = c->dim,
                                 .n_blocks = c->n_blocks,
                                 .n_heads = c->n_heads,
                                 .mlp_dim = c->mlp_dim,
                                 .patch_size = c->patch_size,
                                 .image_size = native});
    c->family = c->is_clip         ? "clip"
                : c->n_prefix == 2 ? "deit-distilled"
                : *is_deit         ? "deit"
                                   : "vit";
    return RENYI_OK;
}

renyi_status ry_vit_configure(ry_vit_config *out, const ry_checkpoint *ckpt, uint32_t image_size,
                              renyi_error *err)
{
    ry_tensor_naming naming;
    uint64_t n_positions = 0;
    uint32_t native = 0;
    int is_deit = 0;
    *out = (ry_vit_config){0};
    RY_TRY(read_sizes(out, &naming, &n_positions, ckpt->tensors, err));
    RY_TRY(choose_image_size(out, n_positions, image_size, &native, err));
    const json_t *config = tower_config(out, ckpt->config);
    RY_TRY(check_width(out, config, err));
    RY_TRY(choose_heads(out, ckpt, config, err));
    RY_TRY(choose_activation(out, config, err));
    RY_TRY(choose_pooling(out, &naming, config, err));
    RY_TRY(choose_eps(out, config, err));
    RY_TRY(read_none_below(out, ckpt->tensors, err));
    RY_TRY(choose_names(out, ckpt, native, &is_deit, err));
    return ry_preprocess_configure(out, ckpt, is_deit, err);
}
