/* rotary.c - reads the configs of a DINOv3 and computes the angles of its rotary positions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/rotary.h"

#include "base/json.h"
#include "base/status.h"
#include "kernels/rows/rows.h"
#include "model/common/arch.h"

#include <math.h>
#include <string.h>

#define CONFIG_FILE "config.json"
#define MAX_THETA 1e9

enum {
    HF_SIDE = 224, /* of the published models */
    TIMM_SIDE = 256,
    MAX_GRID = 256 /* patches along a side: no tensor limits what a config says */
};

/* ---- configs ------------------------------------------------------------------------------- */

renyi_status ry_rotary_image_size(uint32_t *out, const ry_vit_config *c, const ry_checkpoint *ckpt,
                                  renyi_error *err)
{
    const json_t *timm = ry_json_object(ckpt->config, "pretrained_cfg");
    const json_t *input = json_array_get(json_object_get(timm, "input_size"), 1);
    const char *name = ry_tensors_meta(ckpt->tensors, "architecture");
    ry_arch arch;
    *out = c->layout == RY_LAYOUT_HF ? HF_SIDE : TIMM_SIDE;
    RY_TRY(ry_json_string(ckpt->config, "architecture", &name, CONFIG_FILE, err));
    if (name && ry_arch_parse(&arch, name)) *out = arch.image_size;
    if (json_is_integer(input) && json_integer_value(input) > 0 &&
        json_integer_value(input) <= UINT32_MAX)
        *out = (uint32_t)json_integer_value(input);
    RY_TRY(ry_json_uint(ckpt->config, "image_size", out, CONFIG_FILE, err));
    RY_TRY(ry_json_uint(ry_json_object(ckpt->config, "model_args"), "img_size", out, CONFIG_FILE,
                        err));
    if (*out <= MAX_GRID * c->patch_size) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_LIMIT, -1,
                   CONFIG_FILE ": images of %u pixels in patches of %u; at most %d patches a side "
                               "accepted",
                   *out, c->patch_size, MAX_GRID);
}

/* Parts that a config says are there or not. */
static renyi_status check_parts(const ry_vit_config *c, const ry_tensor_naming *n,
                                const json_t *config, const json_t *args, renyi_error *err)
{
    const int qkv_bias = (n->groups & RY_GROUP_QKV_BIAS) != 0;
    const struct {
        const json_t *in;
        const char *key;
        int is;
    } parts[] = {{config, "query_bias", qkv_bias},
                 {config, "value_bias", qkv_bias},
                 {config, "key_bias", (n->groups & RY_GROUP_KEY_BIAS) != 0},
                 {config, "use_gated_mlp", c->gated},
                 {args, "qkv_bias", qkv_bias},
                 {args, "swiglu_mlp", c->gated},
                 {args, "rope_rotate_half", 1}, /* another order of the pairs */
                 {args, "use_abs_pos_emb", 0}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int said = parts[i].is;
        RY_TRY(ry_json_bool(parts[i].in, parts[i].key, &said, CONFIG_FILE, err));
        if (said != parts[i].is)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           CONFIG_FILE ": %s is %s, which is not what the tensors of this DINOv3 "
                                       "have; is it the config of another model?",
                           parts[i].key, said ? "true" : "false");
    }
    const char *act = "silu";
    if (c->gated) RY_TRY(ry_json_string(config, "hidden_act", &act, CONFIG_FILE, err));
    if (strcmp(act, "silu") == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   CONFIG_FILE ": hidden_act '%.40s' of a gated MLP; this build runs silu", act);
}

/* Several models of timm have rotary positions and these tensors; only the name tells which. */
static renyi_status check_name(const ry_vit_config *c, const json_t *args, const char *name,
                               renyi_error *err)
{
    const char *type = "dinov3";
    RY_TRY(ry_json_string(args, "rope_type", &type, CONFIG_FILE, err));
    if (c->layout != RY_LAYOUT_TIMM || (name && strstr(name, "dinov3") && !strcmp(type, "dinov3")))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "a model of timm with rotary positions named '%.60s' (rope_type '%.20s'): of "
                   "these only DINOv3 is supported; if it is one, the \"architecture\" of "
                   "its " CONFIG_FILE " must contain dinov3",
                   name ? name : "", type);
}

renyi_status ry_rotary_configure(ry_vit_config *c, const ry_tensor_naming *n,
                                 const ry_checkpoint *ckpt, const char *name, renyi_error *err)
{
    const json_t *config = ckpt->config, *args = ry_json_object(config, "model_args");
    const uint32_t head = c->dim / c->n_heads;
    RY_TRY(check_name(c, args, name, err));
    RY_TRY(check_parts(c, n, config, args, err));
    RY_TRY(ry_json_double(config, "rope_theta", &c->rope_theta, CONFIG_FILE, err));
    RY_TRY(ry_json_double(args, "rope_temperature", &c->rope_theta, CONFIG_FILE, err));
    if (!(c->rope_theta >= 1.0 && c->rope_theta <= MAX_THETA))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": rope_theta is %g; 1 to %g expected", c->rope_theta,
                       MAX_THETA);
    if (head % 4)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%u heads of %u numbers: rotary positions in two dimensions need heads of a "
                       "multiple of 4",
                       c->n_heads, head);
    return RENYI_OK;
}

/* ---- angles -------------------------------------------------------------------------------- */

/* Cosine and sine of pair k of `quarter` for patch i of `side` along one side of the image. */
static void set_angle(float *cosine, float *sine, uint32_t i, uint32_t side, size_t k,
                      size_t quarter, double theta)
{
    const float at = 2.0f * (((float)i + 0.5f) / (float)side) - 1.0f; /* -1 to 1 */
    const float frequency = 1.0f / (float)pow(theta, (double)k / (double)quarter);
    const float angle = 6.2831853f * at * frequency;
    *cosine = (float)cos((double)angle);
    *sine = (float)sin((double)angle);
}

/* The cosines and sines of `quarter` pairs from `first` on. */
static void copy_pairs(float *to, const float *from, size_t first, size_t quarter)
{
    memcpy(to + first, from + first, quarter * sizeof *to);
    memcpy(to + 2 * quarter + first, from + 2 * quarter + first, quarter * sizeof *to);
}

void ry_rotary_angles(float *out, uint32_t side, size_t head, double theta)
{
    const size_t quarter = head / 4, half = 2 * quarter, row = ry_rope_floats(head);
    for (uint32_t p = 0; p < side * side; p++, out += row) {
        const uint32_t y = p / side, x = p % side;
        for (size_t k = 0; k < quarter; k++) {
            if (!x) set_angle(out + k, out + half + k, y, side, k, quarter, theta);
            if (!y)
                set_angle(out + quarter + k, out + half + quarter + k, x, side, k, quarter, theta);
        }
        if (x) copy_pairs(out, out - row, 0, quarter);
        if (y) copy_pairs(out, out - side * row, quarter, quarter);
    }
}
