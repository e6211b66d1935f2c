/* open_clip_config.c - reads open_clip_config.json: what it says of the image tower, checked
 * against the tensors.
 *
 *   {"model_cfg": {"embed_dim": 512, "quick_gelu": false, "vision_cfg": {"width": 768, ...}, ...},
 *    "preprocess_cfg": {...}}
 *
 * Keys that are absent have open_clip's defaults, where the tensors do not tell.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/open_clip_config.h"

#include "base/json.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

#define FILE_NAME RY_OPEN_CLIP_FILE

static const json_t *vision_cfg(const ry_checkpoint *ckpt)
{
    return ry_json_object(ry_json_object(ckpt->open_clip_config, "model_cfg"), "vision_cfg");
}

int ry_open_clip_has_config(const ry_tensor_naming *n, const ry_checkpoint *ckpt)
{
    return (n->layout == RY_LAYOUT_OPENAI || n->of->within) && vision_cfg(ckpt);
}

renyi_status ry_open_clip_architecture(const ry_checkpoint *ckpt, const char **out,
                                       renyi_error *err)
{
    return ry_json_string(vision_cfg(ckpt), "timm_model_name", out, FILE_NAME, err);
}

const json_t *ry_open_clip_image_size(const ry_checkpoint *ckpt)
{
    const json_t *size = json_object_get(vision_cfg(ckpt), "image_size");
    return json_is_array(size) ? json_array_get(size, 0) : size;
}

/* ---- sizes --------------------------------------------------------------------------------- */

static renyi_status contradiction(const char *key, uint32_t says, uint32_t is, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   FILE_NAME ": %s is %u, but the tensors have %u; is it the config of another "
                             "model?",
                   key, says, is);
}

static renyi_status check_size(const json_t *cfg, const char *key, uint32_t is, renyi_error *err)
{
    uint32_t says = is;
    RY_TRY(ry_json_uint(cfg, key, &says, FILE_NAME, err));
    return says == is ? RENYI_OK : contradiction(key, says, is, err);
}

/* One number, or [height, width]. */
static renyi_status check_image_size(const json_t *cfg, uint32_t is, renyi_error *err)
{
    const json_t *sides = json_object_get(cfg, "image_size");
    if (!json_is_array(sides)) return check_size(cfg, "image_size", is, err);
    for (size_t i = 0; i < 2; i++) {
        const json_int_t side = json_integer_value(json_array_get(sides, i));
        if (json_array_size(sides) != 2 || side != (json_int_t)is)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           FILE_NAME ": image_size is a list that is not [%u, %u], the size that "
                                     "the positions fit",
                           is, is);
    }
    return RENYI_OK;
}

static renyi_status check_mlp(const ry_vit_config *c, const json_t *cfg, renyi_error *err)
{
    double ratio = 4.0;
    RY_TRY(ry_json_double(cfg, "mlp_ratio", &ratio, FILE_NAME, err));
    if (floor(c->dim * ratio) == (double)c->mlp_dim) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   FILE_NAME ": mlp_ratio %g of the width %u is not the %u of the tensors; is it "
                             "the config of another model?",
                   ratio, c->dim, c->mlp_dim);
}

static renyi_status check_sizes(const ry_vit_config *c, const ry_checkpoint *ckpt, uint32_t native,
                                renyi_error *err)
{
    const json_t *cfg = vision_cfg(ckpt),
                 *model = ry_json_object(ckpt->open_clip_config, "model_cfg");
    RY_TRY(check_image_size(cfg, native, err));
    RY_TRY(check_size(model, "embed_dim", c->proj_dim ? c->proj_dim : c->dim, err));
    if (json_object_get(cfg, "timm_model_name")) return RENYI_OK; /* its name has the sizes */
    RY_TRY(check_size(cfg, "width", c->dim, err));
    RY_TRY(check_size(cfg, "layers", c->n_blocks, err));
    RY_TRY(check_size(cfg, "patch_size", c->patch_size, err));
    return check_mlp(c, cfg, err);
}

/* ---- what the tensors do not tell ------------------------------------------------------------ */

static renyi_status read_heads(ry_vit_config *c, const json_t *cfg, renyi_error *err)
{
    uint32_t width = 64;
    RY_TRY(ry_json_uint(cfg, "head_width", &width, FILE_NAME, err));
    if (!width || c->dim % width)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       FILE_NAME
                       ": head_width %u%s does not divide the width %u of the tensors; is it "
                       "the config of another model?",
                       width, json_object_get(cfg, "head_width") ? "" : " (the default)", c->dim);
    c->n_heads = c->dim / width;
    return RENYI_OK;
}

static renyi_status read_activation(ry_vit_config *c, const json_t *cfg, const json_t *model,
                                    renyi_error *err)
{
    const char *form = "none";
    int quick = 0;
    RY_TRY(ry_json_bool(model, "quick_gelu", &quick, FILE_NAME, err));
    RY_TRY(ry_json_string(ry_json_object(cfg, "act_kwargs"), "approximate", &form, FILE_NAME, err));
    c->activation = quick                       ? RY_EPI_QUICKGELU
                    : strcmp(form, "tanh") == 0 ? RY_EPI_GELU_TANH
                                                : RY_EPI_GELU;
    if (c->activation != RY_EPI_GELU || strcmp(form, "none") == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   FILE_NAME ": act_kwargs: approximate is '%.40s'; none and tanh are known", form);
}

/* The projection reads the class token, or the mean of the patches. */
static renyi_status read_pooling(ry_vit_config *c, const json_t *cfg, renyi_error *err)
{
    const char *type = "tok";
    int after = 0;
    RY_TRY(ry_json_string(cfg, "pool_type", &type, FILE_NAME, err));
    RY_TRY(ry_json_bool(cfg, "final_ln_after_pool", &after, FILE_NAME, err));
    if (strcmp(type, "tok") != 0 && strcmp(type, "avg") != 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       FILE_NAME ": pool_type is '%.40s'; tok and avg are known", type);
    c->pool = *type == 't' ? RY_POOL_TOKEN : after ? RY_POOL_MEAN : RY_POOL_NORM_MEAN;
    return RENYI_OK;
}

static renyi_status read_eps(ry_vit_config *c, const json_t *cfg, renyi_error *err)
{
    c->norm_eps = 1e-5;
    RY_TRY(ry_json_double(ry_json_object(cfg, "norm_kwargs"), "eps", &c->norm_eps, FILE_NAME, err));
    if (c->norm_eps >= 0.0 && c->norm_eps < 1.0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   FILE_NAME ": norm_kwargs: eps is %g; 0 <= eps < 1 expected", c->norm_eps);
}

static renyi_status check_pre_norm(const ry_vit_config *c, const json_t *cfg, renyi_error *err)
{
    int none = 0;
    RY_TRY(ry_json_bool(cfg, "no_ln_pre", &none, FILE_NAME, err));
    if (none != c->pre_norm) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   FILE_NAME ": no_ln_pre is %s, but visual.ln_pre.weight is %s",
                   none ? "true" : "false", c->pre_norm ? "there" : "missing");
}

renyi_status ry_open_clip_configure(ry_vit_config *c, const ry_checkpoint *ckpt, uint32_t native,
                                    renyi_error *err)
{
    const json_t *cfg = vision_cfg(ckpt),
                 *model = ry_json_object(ckpt->open_clip_config, "model_cfg");
    RY_TRY(check_sizes(c, ckpt, native, err));
    if (c->layout != RY_LAYOUT_OPENAI) return RENYI_OK;
    RY_TRY(check_pre_norm(c, cfg, err));
    RY_TRY(read_heads(c, cfg, err));
    RY_TRY(read_activation(c, cfg, model, err));
    RY_TRY(read_pooling(c, cfg, err));
    return read_eps(c, cfg, err);
}
