/* new_llava.c - see new_llava.h: sizes and configs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/write/new_llava.h"
#include "base/status.h"
#include "engine/write/new_model.h"
#include "model/common/arch.h"

#include <string.h>

enum { MAX_DIM = 1 << 14, MAX_MLP = 1 << 17, MAX_LAYERS = 1024 };

static const struct published {
    const char *name;
    uint32_t dim, n_layers, n_heads, mlp_dim;
} published[] = {{"llava-1.5-7b", 4096, 32, 32, 11008}, {"llava-1.5-13b", 5120, 40, 40, 13824}};

static uint32_t given(uint32_t value, uint32_t otherwise) { return value ? value : otherwise; }
static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static renyi_status lm_config(ry_llama_config *c, const struct published *p,
                              const renyi_lvlm_init_options *opt, renyi_error *err)
{
    *c = (ry_llama_config){.layout = "llava-hf",
                           .dim = given(opt->dim, p->dim),
                           .n_layers = given(opt->n_layers, p->n_layers),
                           .n_heads = given(opt->n_heads, p->n_heads),
                           .mlp_dim = given(opt->mlp_dim, p->mlp_dim),
                           .vocab = 32064, /* of llava-hf: 32000 and some, padded */
                           .context = 4096,
                           .bos = 1,
                           .eos = 2,
                           .image = 32000,
                           .rope_theta = 10000.0,
                           .norm_eps = 1e-5};
    if (c->dim > MAX_DIM || c->mlp_dim > MAX_MLP || c->n_layers > MAX_LAYERS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "dim %u, mlp_dim %u, n_layers %u; at most %d, %d, %d accepted", c->dim,
                       c->mlp_dim, c->n_layers, MAX_DIM, MAX_MLP, MAX_LAYERS);
    if (c->dim % c->n_heads || c->dim / c->n_heads % 2)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%u heads do not divide dim %u into even parts; set n_heads", c->n_heads,
                       c->dim);
    c->n_kv_heads = c->n_heads;
    c->head_dim = c->dim / c->n_heads;
    return RENYI_OK;
}

renyi_status ry_new_llava_config(ry_new_llava *out, const char *architecture,
                                 const renyi_lvlm_init_options *opt, renyi_error *err)
{
    const char *const clip = "clip_vit_large_patch14_336";
    const size_t n = sizeof published / sizeof *published;
    size_t i = 0;
    ry_vit_config large;
    while (i < n && strcmp(architecture, published[i].name) != 0) i++;
    if (i == n)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "architecture '%.60s' is not known; llava-1.5-7b and llava-1.5-13b are",
                       architecture);
    *out = (ry_new_llava){0};
    RY_TRY(lm_config(&out->lm, &published[i], opt, err));
    RY_TRY(ry_new_model_config(&large, clip, NULL, err));
    renyi_init_options tower = {.struct_size = sizeof tower,
                                .dim = least(large.dim, out->lm.dim),
                                .n_blocks = least(large.n_blocks, out->lm.n_layers)};
    if (tower.dim < large.dim) tower.n_heads = out->lm.n_heads;
    RY_TRY(ry_new_model_config(&out->tower, clip, &tower, err));
    out->mid_dim = out->lm.dim;
    return RENYI_OK;
}

json_t *ry_new_llava_json(const ry_new_llava *m)
{
    const ry_llama_config *c = &m->lm;
    const ry_vit_config *t = &m->tower;
    json_t *text = json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:i, s:i}", "model_type",
        "llama", "hidden_act", "silu", "hidden_size", (int)c->dim, "intermediate_size",
        (int)c->mlp_dim, "num_hidden_layers", (int)c->n_layers, "num_attention_heads",
        (int)c->n_heads, "num_key_value_heads", (int)c->n_kv_heads, "head_dim", (int)c->head_dim,
        "vocab_size", (int)c->vocab, "max_position_embeddings", (int)c->context, "rms_norm_eps",
        c->norm_eps, "rope_theta", c->rope_theta, "bos_token_id", (int)c->bos, "eos_token_id",
        (int)c->eos);
    json_t *vision =
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f}", "model_type",
                  "clip_vision_model", "hidden_act", "quick_gelu", "hidden_size", (int)t->dim,
                  "intermediate_size", (int)t->mlp_dim, "num_hidden_layers", (int)t->n_blocks,
                  "num_attention_heads", (int)t->n_heads, "image_size", (int)t->image_size,
                  "patch_size", (int)t->patch_size, "layer_norm_eps", t->norm_eps);
    /* json_pack takes over the parts, also when it fails */
    return json_pack("{s:s, s:[s], s:i, s:i, s:s, s:s, s:b, s:o, s:o}", "model_type", "llava",
                     "architectures", "LlavaForConditionalGeneration", "image_token_index",
                     (int)c->image, "vision_feature_layer", -2, "vision_feature_select_strategy",
                     "default", "projector_hidden_act", "gelu", "tie_word_embeddings", 0,
                     "text_config", text, "vision_config", vision);
}

json_t *ry_new_llava_preprocessor_json(const ry_new_llava *m)
{
    const renyi_preprocess *p = &m->tower.preprocess;
    const int side = (int)m->tower.image_size;
    return json_pack("{s:s, s:{s:i}, s:{s:i, s:i}, s:i, s:b, s:b, s:b, s:b, s:[f, f, f], "
                     "s:[f, f, f]}",
                     "image_processor_type", "CLIPImageProcessor", "size", "shortest_edge", side,
                     "crop_size", "height", side, "width", side, "resample", 3, "do_resize", 1,
                     "do_center_crop", 1, "do_normalize", 1, "do_convert_rgb", 1, "image_mean",
                     p->mean[0], p->mean[1], p->mean[2], "image_std", p->std[0], p->std[1],
                     p->std[2]);
}
