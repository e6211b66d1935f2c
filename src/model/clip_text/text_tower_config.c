/* text_tower_config.c - reads a ry_text_config from a checkpoint: sizes from the shapes, the rest
 * from the config beside the weights or from the defaults of the published CLIP models.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "model/clip_text/text_tower.h"
#include "model/common/tensor_quant.h"

#include <math.h>
#include <string.h>

#define CONFIG_FILE "config.json"

/* Larger sizes are refused. */
enum { MAX_DIM = 1 << 14, MAX_MLP = 1 << 16, MAX_VOCAB = 1 << 20, MAX_CONTEXT = 1 << 12 };

/* ---- sizes --------------------------------------------------------------------------------- */

static void read_extents(uint64_t x[RY_X_COUNT], const ry_tensor_naming *n, const ry_tensors *set)
{
    memset(x, 0, RY_X_COUNT * sizeof *x);
    x[RY_X_VOCAB] = ry_tensor_size(n, set, RY_TOKEN_EMBED, 2, 0);
    x[RY_X_DIM] = ry_tensor_size(n, set, RY_TOKEN_EMBED, 2, 1);
    x[RY_X_TOKENS] = ry_tensor_size(n, set, RY_POS_EMBED, 2, 0);
    x[RY_X_MLP] = ry_tensor_size(n, set, RY_FC1_W, 2, 0);
    x[RY_X_EMBED] = ry_tensor_size(n, set, RY_EMBED_W, 2, n->layout == RY_LAYOUT_OPENAI ? 1 : 0);
    if (x[RY_X_DIM] <= MAX_DIM) x[RY_X_3DIM] = 3 * x[RY_X_DIM];
}

static renyi_status check_extents(const uint64_t x[RY_X_COUNT], renyi_error *err)
{
    static const ry_extent_limit limits[] = {{RY_X_DIM, MAX_DIM, "width"},
                                             {RY_X_MLP, MAX_MLP, "MLP width"},
                                             {RY_X_EMBED, MAX_DIM, "width of an embedding"},
                                             {RY_X_VOCAB, MAX_VOCAB, "vocabulary"},
                                             {RY_X_TOKENS, MAX_CONTEXT, "number of positions"}};
    return ry_tensor_check_extents(x, limits, sizeof limits / sizeof *limits, "text tower: ", err);
}

static int has_8_bits(const ry_tensor_naming *n, const ry_tensors *set)
{
    uint32_t block;
    for (size_t i = 0; i < ry_tensors_count(set); i++) {
        const ry_tensor *t = ry_tensors_at(set, i);
        if (t->dtype == RY_I8 && ry_tensor_name_match(n, t->name, &block)) return 1;
    }
    return 0;
}

static renyi_status sizes_from_tensors(ry_text_config *c, ry_tensor_naming *n,
                                       const ry_tensors *set, renyi_error *err)
{
    uint64_t x[RY_X_COUNT];
    if (!ry_text_naming_find(n, set))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "no text tower in it: neither Hugging Face's text_model.embeddings."
                       "token_embedding.weight nor OpenAI's token_embedding.weight is there. Texts "
                       "need a whole CLIP, such as openai/clip-vit-base-patch16");
    if (n->n_blocks > RY_MAX_BLOCKS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a tensor of block %u; at most %d blocks accepted",
                       n->n_blocks - 1, RY_MAX_BLOCKS);
    read_extents(x, n, set);
    RY_TRY(check_extents(x, err));
    RY_TRY(ry_tensor_check_all(n, x, set, err));
    c->layout = n->layout;
    c->dim = (uint32_t)x[RY_X_DIM];
    c->mlp_dim = (uint32_t)x[RY_X_MLP];
    c->vocab = (uint32_t)x[RY_X_VOCAB];
    c->context = (uint32_t)x[RY_X_TOKENS];
    c->embed_dim = (uint32_t)x[RY_X_EMBED];
    c->n_blocks = n->n_blocks;
    c->quantized = has_8_bits(n, set);
    return RENYI_OK;
}

/* ---- what only the config knows ------------------------------------------------------------ */

static renyi_status choose_heads(ry_text_config *c, const json_t *config, renyi_error *err)
{
    uint32_t dim = c->dim;
    RY_TRY(ry_json_uint(config, "hidden_size", &dim, CONFIG_FILE, err));
    if (dim != c->dim)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE
                       ": text_config.hidden_size is %u, but the tensors have %u; is it "
                       "the config of another model?",
                       dim, c->dim);
    c->n_heads = c->dim / 64; /* of every published CLIP */
    RY_TRY(ry_json_uint(config, "num_attention_heads", &c->n_heads, CONFIG_FILE, err));
    if (!c->n_heads || c->dim % c->n_heads)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "text tower: %u heads do not divide the width %u; a " CONFIG_FILE
                       " with text_config.num_attention_heads would tell",
                       c->n_heads, c->dim);
    return RENYI_OK;
}

static renyi_status choose_activation(ry_text_config *c, const json_t *config, renyi_error *err)
{
    const char *name = "quick_gelu";
    RY_TRY(ry_json_string(config, "hidden_act", &name, CONFIG_FILE, err));
    c->activation = strcmp(name, "gelu") == 0 ? RY_EPI_GELU : RY_EPI_QUICKGELU;
    if (c->activation == RY_EPI_GELU || strcmp(name, "quick_gelu") == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   CONFIG_FILE ": text_config.hidden_act '%.40s'; this build runs gelu and "
                               "quick_gelu",
                   name);
}

static renyi_status choose_eps(ry_text_config *c, const json_t *config, renyi_error *err)
{
    c->norm_eps = 1e-5;
    RY_TRY(ry_json_double(config, "layer_norm_eps", &c->norm_eps, CONFIG_FILE, err));
    if (c->norm_eps >= 0.0 && c->norm_eps < 1.0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   CONFIG_FILE ": text_config.layer_norm_eps is %g; 0 <= layer_norm_eps < 1 wanted",
                   c->norm_eps);
}

/* Training caps the scale at 100, which is also the default for a tower without one. */
static renyi_status read_scale(ry_text_config *c, const ry_tensor_naming *n, const ry_tensors *set,
                               renyi_error *err)
{
    const ry_tensor *t = ry_tensor_of_role(n, set, RY_LOGIT_SCALE, 0);
    float log_scale;
    c->logit_scale = 100.0;
    if (!t) return RENYI_OK;
    RY_TRY(ry_tensor_read(&log_scale, t, set, err));
    if (!(log_scale > -20.0f && log_scale < 20.0f))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "tensor '%.120s' is %g; -20 to 20 wanted",
                       t->name, (double)log_scale);
    c->logit_scale = exp((double)log_scale);
    return RENYI_OK;
}

renyi_status ry_text_configure(ry_text_config *out, const ry_checkpoint *ckpt, renyi_error *err)
{
    ry_tensor_naming naming;
    const json_t *text = ry_json_object(ckpt->config, "text_config");
    *out = (ry_text_config){0};
    if (!text && !ry_json_object(ckpt->config, "vision_config")) text = ckpt->config;
    RY_TRY(sizes_from_tensors(out, &naming, ckpt->tensors, err));
    RY_TRY(choose_heads(out, text, err));
    RY_TRY(choose_activation(out, text, err));
    RY_TRY(choose_eps(out, text, err));
    return read_scale(out, &naming, ckpt->tensors, err);
}
