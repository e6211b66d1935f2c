/* preprocess_config.c - reads how images are resized and normalized: timm's pretrained_cfg or
 * Hugging Face's preprocessor_config.json, both as renyi_preprocess.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "model/vit/open_clip_config.h"
#include "model/vit/vit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SIDE = 4096 };

#define TIMM_FILE "config.json (pretrained_cfg)"
#define HF_FILE "preprocessor_config.json"
#define OPEN_CLIP_FILE RY_OPEN_CLIP_FILE " (preprocess_cfg)"

#define IMAGENET_MEAN       \
    {                       \
        0.485, 0.456, 0.406 \
    }
#define IMAGENET_STD        \
    {                       \
        0.229, 0.224, 0.225 \
    }
#define HALF          \
    {                 \
        0.5, 0.5, 0.5 \
    }

/* Defaults of the families; size is set later. */
static const renyi_preprocess timm_vit = {0, RENYI_CROP_CENTER, RENYI_BICUBIC, 0.9, HALF, HALF};
static const renyi_preprocess timm_deit = {0,   RENYI_CROP_CENTER, RENYI_BICUBIC,
                                           0.9, IMAGENET_MEAN,     IMAGENET_STD};
static const renyi_preprocess clip = {0,
                                      RENYI_CROP_CENTER,
                                      RENYI_BICUBIC,
                                      1.0,
                                      {0.48145466, 0.4578275, 0.40821073},
                                      {0.26862954, 0.26130258, 0.27577711}};
static const renyi_preprocess dinov2 = {0,   RENYI_CROP_CENTER, RENYI_BICUBIC,
                                        1.0, IMAGENET_MEAN,     IMAGENET_STD};
static const renyi_preprocess hf_dinov3 = {0,   RENYI_CROP_SQUASH, RENYI_BILINEAR,
                                           1.0, IMAGENET_MEAN,     IMAGENET_STD};
static const renyi_preprocess siglip = {0, RENYI_CROP_SQUASH, RENYI_BICUBIC, 1.0, HALF, HALF};
static const renyi_preprocess hf_vit = {0, RENYI_CROP_SQUASH, RENYI_BILINEAR, 1.0, HALF, HALF};

/* A name in a config and the value it means. */
typedef struct named_value {
    const char *name;
    int value;
} named_value;

static const named_value timm_filters[] = {{"bicubic", RENYI_BICUBIC},
                                           {"bilinear", RENYI_BILINEAR},
                                           {"lanczos", RENYI_LANCZOS},
                                           {NULL, 0}};
static const named_value timm_crops[] = {{"center", RENYI_CROP_CENTER},
                                         {"squash", RENYI_CROP_SQUASH},
                                         {"border", RENYI_CROP_BORDER},
                                         {NULL, 0}};
static const named_value open_clip_crops[] = {
    {"shortest", RENYI_CROP_CENTER}, {"squash", RENYI_CROP_SQUASH}, {NULL, 0}};

/* Member `key`, one of the names, into *value; absent keeps *value. */
static renyi_status read_name(const json_t *obj, const char *key, const named_value *names,
                              int *value, const char *file, renyi_error *err)
{
    const char *text = NULL;
    char known[64] = "";
    RY_TRY(ry_json_string(obj, key, &text, file, err));
    if (!text) return RENYI_OK;
    for (const named_value *n = names; n->name; n++) {
        if (strcmp(text, n->name) == 0) {
            *value = n->value;
            return RENYI_OK;
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s",
                 !used       ? ""
                 : n[1].name ? ", "
                             : " or ",
                 n->name);
    }
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "%s: %s is '%.40s'; %s known", file, key, text,
                   known);
}

/* Refuses values that would divide by zero or overflow. */
static renyi_status check_mean_std(const renyi_preprocess *p, const char *file,
                                   const char *mean_key, const char *std_key, renyi_error *err)
{
    for (int c = 0; c < 3; c++) {
        if (!(fabs(p->mean[c]) <= 1e3))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s[%d] is %g; within +-1000 expected",
                           file, mean_key, c, p->mean[c]);
        if (!(p->std[c] >= 1e-6 && p->std[c] <= 1e6))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s[%d] is %g; above 0 expected", file,
                           std_key, c, p->std[c]);
    }
    return RENYI_OK;
}

/* ---- timm ---------------------------------------------------------------------------------- */

static renyi_status check_input_size(const json_t *cfg, renyi_error *err)
{
    const json_t *size = json_object_get(cfg, "input_size");
    if (!size || json_is_null(size)) return RENYI_OK;
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_array_get(size, i);
        const json_int_t n = json_integer_value(v);
        if (json_array_size(size) != 3 || !json_is_integer(v) || n < 1 || n > MAX_SIDE)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           TIMM_FILE ": input_size is not [3, side, side] with sides 1 to %d",
                           MAX_SIDE);
    }
    return RENYI_OK;
}

static renyi_status read_timm(renyi_preprocess *p, const json_t *cfg, renyi_error *err)
{
    int filter = p->interpolation, crop = p->crop_mode;
    RY_TRY(ry_json_double3(cfg, "mean", p->mean, TIMM_FILE, err));
    RY_TRY(ry_json_double3(cfg, "std", p->std, TIMM_FILE, err));
    RY_TRY(ry_json_double(cfg, "crop_pct", &p->crop_pct, TIMM_FILE, err));
    RY_TRY(read_name(cfg, "interpolation", timm_filters, &filter, TIMM_FILE, err));
    RY_TRY(read_name(cfg, "crop_mode", timm_crops, &crop, TIMM_FILE, err));
    RY_TRY(check_input_size(cfg, err));
    p->interpolation = (renyi_interpolation)filter;
    p->crop_mode = (renyi_crop_mode)crop;
    if (!(p->crop_pct > 0.0 && p->crop_pct <= 1.0))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       TIMM_FILE ": crop_pct is %g; 0 < crop_pct <= 1 expected", p->crop_pct);
    return check_mean_std(p, TIMM_FILE, "mean", "std", err);
}

/* ---- open_clip ----------------------------------------------------------------------------- */

static renyi_status read_open_clip(renyi_preprocess *p, const json_t *cfg, renyi_error *err)
{
    int filter = p->interpolation, crop = RENYI_CROP_CENTER;
    RY_TRY(ry_json_double3(cfg, "mean", p->mean, OPEN_CLIP_FILE, err));
    RY_TRY(ry_json_double3(cfg, "std", p->std, OPEN_CLIP_FILE, err));
    RY_TRY(read_name(cfg, "interpolation", timm_filters, &filter, OPEN_CLIP_FILE, err));
    RY_TRY(read_name(cfg, "resize_mode", open_clip_crops, &crop, OPEN_CLIP_FILE, err));
    p->interpolation = (renyi_interpolation)filter;
    p->crop_mode = (renyi_crop_mode)crop;
    p->crop_pct = 1.0;
    return check_mean_std(p, OPEN_CLIP_FILE, "mean", "std", err);
}

/* ---- Hugging Face -------------------------------------------------------------------------- */

typedef struct hf_size {
    uint32_t side;
    int keeps_shape; /* shortest_edge: keeps the aspect ratio; otherwise both sides become `side` */
} hf_size;

/* `key` as 224, {"height": 224, "width": 224} or {"shortest_edge": 224}; absent keeps *out. */
static renyi_status read_hf_size(hf_size *out, const json_t *cfg, const char *key, renyi_error *err)
{
    const json_t *obj = ry_json_object(cfg, key);
    uint32_t side = out->side, width = 0;
    if (!obj) {
        RY_TRY(ry_json_uint(cfg, key, &side, HF_FILE, err));
    } else if (json_object_get(obj, "shortest_edge")) {
        RY_TRY(ry_json_uint(obj, "shortest_edge", &side, HF_FILE, err));
        out->keeps_shape = 1;
    } else {
        side = 0;
        out->keeps_shape = 0;
        RY_TRY(ry_json_uint(obj, "height", &side, HF_FILE, err));
        RY_TRY(ry_json_uint(obj, "width", &width, HF_FILE, err));
        if (side != width)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           HF_FILE ": %s is %u x %u; only squares (height, width) or shortest_edge "
                                   "are supported",
                           key, side, width);
    }
    if (side < 1 || side > MAX_SIDE)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, HF_FILE ": %s is %u; 1 to %d expected", key, side,
                       MAX_SIDE);
    out->side = side;
    return RENYI_OK;
}

/* The largest crop_pct for which floor(crop / crop_pct) is `resize`. */
static double crop_share(uint32_t crop, uint32_t resize)
{
    double share = (double)crop / resize;
    while (floor(crop / share) < resize) share = nextafter(share, 0.0);
    return share;
}

/* Missing keys have the defaults of the processor of CLIP and DINOv2 (keep the aspect ratio, crop)
 * or of ViT's. */
static renyi_status read_hf_geometry(renyi_preprocess *p, const json_t *cfg, const ry_vit_config *c,
                                     renyi_error *err)
{
    const int crops = c->is_clip || strcmp(c->family, "dinov2") == 0;
    hf_size resize = {c->image_size, crops}, crop = {c->image_size, 0};
    int do_resize = 1, do_crop = crops;
    RY_TRY(ry_json_bool(cfg, "do_resize", &do_resize, HF_FILE, err));
    RY_TRY(ry_json_bool(cfg, "do_center_crop", &do_crop, HF_FILE, err));
    if (!do_resize)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       HF_FILE ": do_resize false is not supported");
    RY_TRY(read_hf_size(&resize, cfg, "size", err));
    p->crop_mode = resize.keeps_shape ? RENYI_CROP_CENTER : RENYI_CROP_SQUASH;
    p->crop_pct = 1.0;
    if (!do_crop) return RENYI_OK;
    RY_TRY(read_hf_size(&crop, cfg, "crop_size", err));
    if (crop.side > resize.side)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       HF_FILE ": crop_size %u is larger than size %u; padding is not supported",
                       crop.side, resize.side);
    p->crop_pct = crop_share(crop.side, resize.side);
    return RENYI_OK;
}

static renyi_status read_hf_filter(renyi_preprocess *p, const json_t *cfg, renyi_error *err)
{
    uint32_t code = UINT32_MAX; /* Pillow's numbers */
    RY_TRY(ry_json_uint(cfg, "resample", &code, HF_FILE, err));
    switch (code) {
    case UINT32_MAX: return RENYI_OK;
    case 1: p->interpolation = RENYI_LANCZOS; return RENYI_OK;
    case 2: p->interpolation = RENYI_BILINEAR; return RENYI_OK;
    case 3: p->interpolation = RENYI_BICUBIC; return RENYI_OK;
    default:
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       HF_FILE ": resample is %u; 1 (lanczos), 2 (bilinear) or 3 (bicubic) known",
                       code);
    }
}

static renyi_status read_hf(renyi_preprocess *p, const json_t *cfg, const ry_vit_config *c,
                            renyi_error *err)
{
    int rescale = 1, normalize = 1;
    double factor = 1.0 / 255.0;
    RY_TRY(ry_json_bool(cfg, "do_rescale", &rescale, HF_FILE, err));
    RY_TRY(ry_json_double(cfg, "rescale_factor", &factor, HF_FILE, err));
    if (!rescale || fabs(factor * 255.0 - 1.0) > 1e-6)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       HF_FILE
                       ": pixels must be rescaled by 1/255 (do_rescale %s, rescale_factor %g)",
                       rescale ? "true" : "false", factor);
    RY_TRY(ry_json_bool(cfg, "do_normalize", &normalize, HF_FILE, err));
    RY_TRY(ry_json_double3(cfg, "image_mean", p->mean, HF_FILE, err));
    RY_TRY(ry_json_double3(cfg, "image_std", p->std, HF_FILE, err));
    if (!normalize)
        for (int i = 0; i < 3; i++) {
            p->mean[i] = 0.0;
            p->std[i] = 1.0;
        }
    RY_TRY(read_hf_filter(p, cfg, err));
    RY_TRY(read_hf_geometry(p, cfg, c, err));
    return check_mean_std(p, HF_FILE, "image_mean", "image_std", err);
}

/* ---- choosing ------------------------------------------------------------------------------ */

/* Preprocessing of a family without a config, and where it is from. */
typedef struct family_default {
    const renyi_preprocess *spec;
    const char *source;
} family_default;

static family_default default_of(const ry_vit_config *c)
{
    /* A class token but the mean through fc_norm: a fine-tuned MAE, normalized like DeiT. */
    const int is_mae = c->pool == RY_POOL_MEAN && ry_vit_class_rows(c) > 0;
    if (c->is_clip) return (family_default){&clip, "CLIP's default (no preprocessor_config.json)"};
    if (c->is_siglip)
        return (family_default){&siglip, "SigLIP's default (no preprocessor_config.json)"};
    if (strcmp(c->family, "dinov2") == 0)
        return (family_default){&dinov2, "timm's default for DINOv2 (no config of preprocessing)"};
    if (c->rope_theta > 0.0 && c->layout == RY_LAYOUT_HF)
        return (family_default){&hf_dinov3, "Hugging Face's default for DINOv3 (no "
                                            "preprocessor_config.json)"};
    if (c->rope_theta > 0.0)
        return (family_default){&dinov2, "timm's default for DINOv3 (no pretrained_cfg in "
                                         "config.json)"};
    if (c->layout == RY_LAYOUT_HF)
        return (family_default){&hf_vit, "Hugging Face's default for ViT (no "
                                         "preprocessor_config.json)"};
    if (is_mae)
        return (family_default){&timm_deit,
                                "timm's default for MAE (no pretrained_cfg in config.json)"};
    if (strncmp(c->family, "deit", 4) == 0)
        return (family_default){&timm_deit,
                                "timm's default for DeiT (no pretrained_cfg in config.json)"};
    return (family_default){&timm_vit, "timm's default for ViT (no pretrained_cfg in config.json)"};
}

renyi_status ry_preprocess_configure(ry_vit_config *c, const ry_checkpoint *ckpt, renyi_error *err)
{
    const json_t *timm = ry_json_object(ckpt->config, "pretrained_cfg");
    const json_t *open_clip = c->open_clip ? ckpt->open_clip_config : NULL;
    const family_default usual = default_of(c);
    renyi_preprocess p = *usual.spec;
    if (!timm && json_object_get(ckpt->config, "mean")) timm = ckpt->config; /* before timm 0.9 */

    c->preprocess_source = usual.source;
    if (open_clip) {
        p = clip;
        RY_TRY(read_open_clip(&p, ry_json_object(open_clip, "preprocess_cfg"), err));
        c->preprocess_source = OPEN_CLIP_FILE;
    } else if ((c->layout == RY_LAYOUT_HF || c->is_clip) && ckpt->preprocessor_config) {
        RY_TRY(read_hf(&p, ckpt->preprocessor_config, c, err));
        c->preprocess_source = HF_FILE;
    } else if (timm) {
        RY_TRY(read_timm(&p, timm, err));
        c->preprocess_source = TIMM_FILE;
    }
    p.size = c->image_size;
    c->preprocess = p;
    return RENYI_OK;
}
