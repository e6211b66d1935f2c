/* text_tower_config.c - the names of a text tower's tensors, and its configuration.
 *
 * Sizes come from the shapes. The rest comes from config.json (Hugging Face) or
 * open_clip_config.json (OpenCLIP) beside the weights, or from the defaults of the published
 * models: those of OpenAI's CLIP, or SigLIP's if the tower has SigLIP's head.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "model/clip_text/text_tower.h"
#include "model/common/clip_layer_names.h"
#include "model/common/tensor_quant.h"

#include <math.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------------------- */

#define SHAPE_DIM \
    {             \
        RY_X_DIM  \
    }
#define SHAPE_EMBED \
    {               \
        RY_X_EMBED  \
    }

/* clang-format off: a table reads by columns */
#define LOGIT_ROWS                                                                     \
    {RY_LOGIT_SCALE, RY_GROUP_HEAD, "logit_scale", {RY_X_END}}, /* of a whole model */ \
    {                                                                                  \
        RY_LOGIT_BIAS, RY_GROUP_LOGIT_BIAS, "logit_bias", { RY_X_END }                 \
    }

static const ry_tensor_name hf_names[] = {
    {RY_TOKEN_EMBED, RY_GROUP_CORE, "embeddings.token_embedding.weight", {RY_X_VOCAB, RY_X_DIM}},
    {RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embedding.weight", {RY_X_TOKENS, RY_X_DIM}},
    RY_CLIP_HF_LAYER("encoder.layers.#."),
    {RY_NORM_W, RY_GROUP_CORE, "final_layer_norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_CORE, "final_layer_norm.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_EMBED, "text_projection.weight", {RY_X_EMBED, RY_X_DIM}}, /* CLIP */
    {RY_TEXT_HEAD_W, RY_GROUP_TEXT_HEAD, "head.weight", {RY_X_EMBED, RY_X_DIM}},    /* SigLIP */
    {RY_TEXT_HEAD_B, RY_GROUP_TEXT_HEAD, "head.bias", SHAPE_EMBED},
    LOGIT_ROWS,
};

/* x * projection, or a linear layer with a bias; `t` is the prefix of CustomTextCLIP, or "". */
#define OPENAI_NAMES(t)                                                                           \
    {RY_TOKEN_EMBED, RY_GROUP_CORE, t "token_embedding.weight", {RY_X_VOCAB, RY_X_DIM}},          \
        {RY_POS_EMBED, RY_GROUP_CORE, t "positional_embedding", {RY_X_TOKENS, RY_X_DIM}},         \
        RY_CLIP_OPENAI_LAYER(t "transformer.resblocks.#."),                                       \
        {RY_NORM_W, RY_GROUP_CORE, t "ln_final.weight", SHAPE_DIM},                               \
        {RY_NORM_B, RY_GROUP_CORE, t "ln_final.bias", SHAPE_DIM},                                 \
        {RY_EMBED_W, RY_GROUP_EMBED, t "text_projection", {RY_X_DIM, RY_X_EMBED}},                \
        {RY_TEXT_HEAD_W, RY_GROUP_TEXT_HEAD, t "text_projection.weight", {RY_X_EMBED, RY_X_DIM}}, \
        {RY_TEXT_HEAD_B, RY_GROUP_TEXT_HEAD, t "text_projection.bias", SHAPE_EMBED}, LOGIT_ROWS,
static const ry_tensor_name openai_names[] = {OPENAI_NAMES("")};
static const ry_tensor_name custom_names[] = {OPENAI_NAMES("text.")};
/* clang-format on */

static const char *const hf_others[] = {"vision_model.", "visual_projection.", NULL};
static const char *const openai_others[] = {"visual.", "input_resolution", "context_length",
                                            "vocab_size", NULL};

/* OpenAI's first name is the end of the others, so the longer ones come first. */
#define TABLE(names) names, sizeof names / sizeof names[0]
static const ry_tensor_layout layouts[] = {
    {RY_LAYOUT_HF, 1, "Hugging Face", TABLE(hf_names), 1, hf_others, "a text tower", NULL, 0, NULL,
     NULL, 0},
    {RY_LAYOUT_OPENAI, 1, "OpenCLIP", TABLE(custom_names), 0, openai_others, "a text tower", NULL,
     0, NULL, NULL, 0},
    {RY_LAYOUT_OPENAI, 1, "OpenAI", TABLE(openai_names), 0, openai_others, "a text tower", NULL, 0,
     NULL, NULL, 0},
};

int ry_text_naming_find(ry_tensor_naming *out, const ry_tensors *set)
{
    if (!ry_tensor_naming_among(out, set, layouts, sizeof layouts / sizeof layouts[0])) return 0;
    if (!(out->groups & RY_GROUP_TEXT_HEAD)) out->groups |= RY_GROUP_EMBED; /* it needs one */
    return 1;
}

ry_tensor_naming ry_text_naming_hf(uint32_t n_blocks, int is_siglip)
{
    const unsigned end =
        is_siglip ? RY_GROUP_TEXT_HEAD | RY_GROUP_LOGIT_BIAS : (unsigned)RY_GROUP_EMBED;
    return (ry_tensor_naming){.layout = RY_LAYOUT_HF,
                              .is_clip = 1,
                              .of = &layouts[0],
                              .table = layouts[0].names,
                              .n_names = layouts[0].count,
                              .prefix = "text_model.",
                              .n_blocks = n_blocks,
                              .groups = RY_GROUP_CORE | end | RY_GROUP_HEAD};
}

void ry_text_extents(uint64_t out[RY_X_COUNT], const ry_text_config *c)
{
    const uint64_t extents[RY_X_COUNT] = {
        [RY_X_TOKENS] = c->context, [RY_X_DIM] = c->dim,         [RY_X_3DIM] = 3 * (uint64_t)c->dim,
        [RY_X_MLP] = c->mlp_dim,    [RY_X_EMBED] = c->embed_dim, [RY_X_VOCAB] = c->vocab};
    for (int i = 0; i < RY_X_COUNT; i++) out[i] = extents[i];
}

/* Larger sizes are refused. */
enum { MAX_DIM = 1 << 14, MAX_MLP = 1 << 16, MAX_VOCAB = 1 << 20, MAX_CONTEXT = 1 << 12 };

/* ---- sizes --------------------------------------------------------------------------------- */

static void read_extents(uint64_t x[RY_X_COUNT], const ry_tensor_naming *n, const ry_tensors *set)
{
    const int has_head = (n->groups & RY_GROUP_TEXT_HEAD) != 0;
    memset(x, 0, RY_X_COUNT * sizeof *x);
    x[RY_X_VOCAB] = ry_tensor_size(n, set, RY_TOKEN_EMBED, 2, 0);
    x[RY_X_DIM] = ry_tensor_size(n, set, RY_TOKEN_EMBED, 2, 1);
    x[RY_X_TOKENS] = ry_tensor_size(n, set, RY_POS_EMBED, 2, 0);
    x[RY_X_MLP] = ry_tensor_size(n, set, RY_FC1_W, 2, 0);
    x[RY_X_EMBED] = ry_tensor_size(n, set, has_head ? RY_TEXT_HEAD_W : RY_EMBED_W, 2,
                                   !has_head && n->layout == RY_LAYOUT_OPENAI ? 1 : 0);
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
                       "need a whole CLIP or SigLIP, such as openai/clip-vit-base-patch16");
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

/* The part of a config that describes the text tower, and how its keys are named. */
typedef struct config_view {
    const json_t *text; /* NULL = no config */
    const json_t *norm; /* the object with the epsilon */
    const char *file, *part;
    const char *dim, *heads, *vocab, *context, *eps, *eos, *blocks, *mlp;
    int is_open_clip;
} config_view;

static config_view view_config(const ry_checkpoint *ckpt, const ry_text_config *c)
{
    const json_t *text = ry_json_object(ckpt->config, "text_config");
    const json_t *model = ry_json_object(ckpt->open_clip_config, "model_cfg");
    if (c->layout == RY_LAYOUT_OPENAI && model) {
        text = ry_json_object(model, "text_cfg");
        return (config_view){text,
                             ry_json_object(text, "norm_kwargs"),
                             "open_clip_config.json",
                             "text_cfg",
                             "width",
                             "heads",
                             "vocab_size",
                             "context_length",
                             "eps",
                             "eos_id",
                             "layers",
                             NULL,
                             1};
    }
    if (!text && !ry_json_object(ckpt->config, "vision_config")) text = ckpt->config;
    return (config_view){text,
                         text,
                         "config.json",
                         "text_config",
                         "hidden_size",
                         "num_attention_heads",
                         "vocab_size",
                         "max_position_embeddings",
                         "layer_norm_eps",
                         "eos_token_id",
                         "num_hidden_layers",
                         "intermediate_size",
                         0};
}

/* A size that the config repeats must be that of the tensors. */
static renyi_status check_size(const config_view *v, const char *key, uint32_t is, renyi_error *err)
{
    uint32_t said = is;
    RY_TRY(ry_json_uint(v->text, key, &said, v->file, err));
    if (said == is) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: %s.%s is %u, but the tensors have %u; is it the config of another model?",
                   v->file, v->part, key, said, is);
}

static renyi_status check_sizes(const ry_text_config *c, const config_view *v, renyi_error *err)
{
    RY_TRY(check_size(v, v->dim, c->dim, err));
    RY_TRY(check_size(v, v->vocab, c->vocab, err));
    RY_TRY(check_size(v, v->blocks, c->n_blocks, err));
    if (v->mlp) RY_TRY(check_size(v, v->mlp, c->mlp_dim, err));
    return check_size(v, v->context, c->context, err);
}

static renyi_status choose_heads(ry_text_config *c, const config_view *v, int is_siglip,
                                 renyi_error *err)
{
    const int is_said = json_object_get(v->text, v->heads) != NULL;
    c->n_heads = c->dim / 64;                                      /* of every published CLIP */
    if (is_siglip && v->text && !v->is_open_clip) c->n_heads = 12; /* what the config leaves out */
    if (v->is_open_clip) c->n_heads = 8;
    RY_TRY(ry_json_uint(v->text, v->heads, &c->n_heads, v->file, err));
    if (!c->n_heads || c->dim % c->n_heads)
        return ry_fail(
            err, RENYI_ERR_FORMAT, -1,
            "text tower: %u heads%s do not divide the width %u; %s %s.%s in the %s beside "
            "the file",
            c->n_heads, is_said ? "" : " (the default)", c->dim, is_said ? "correct" : "write",
            v->part, v->heads, v->file);
    return RENYI_OK;
}

static renyi_status open_clip_activation(ry_text_config *c, const config_view *v,
                                         const json_t *model, renyi_error *err)
{
    int is_quick = 0;
    const char *approximate = "none";
    RY_TRY(ry_json_bool(model, "quick_gelu", &is_quick, v->file, err));
    RY_TRY(ry_json_string(ry_json_object(v->text, "act_kwargs"), "approximate", &approximate,
                          v->file, err));
    c->activation = is_quick                       ? RY_EPI_QUICKGELU
                    : !strcmp(approximate, "tanh") ? RY_EPI_GELU_TANH
                                                   : RY_EPI_GELU;
    return RENYI_OK;
}

static renyi_status choose_activation(ry_text_config *c, const config_view *v, int is_siglip,
                                      renyi_error *err)
{
    static const struct {
        const char *name;
        ry_epilogue activation;
    } known[] = {{"quick_gelu", RY_EPI_QUICKGELU},
                 {"gelu", RY_EPI_GELU},
                 {"gelu_pytorch_tanh", RY_EPI_GELU_TANH},
                 {"gelu_new", RY_EPI_GELU_TANH}};
    const char *name = is_siglip ? "gelu_pytorch_tanh" : "quick_gelu";
    RY_TRY(ry_json_string(v->text, "hidden_act", &name, v->file, err));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) != 0) continue;
        c->activation = known[i].activation;
        return RENYI_OK;
    }
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "%s: %s.hidden_act '%.40s'; this build runs gelu, gelu_pytorch_tanh and "
                   "quick_gelu",
                   v->file, v->part, name);
}

static renyi_status choose_eps(ry_text_config *c, const config_view *v, int is_siglip,
                               renyi_error *err)
{
    c->norm_eps = is_siglip && !v->is_open_clip ? 1e-6 : 1e-5;
    RY_TRY(ry_json_double(v->norm, v->eps, &c->norm_eps, v->file, err));
    if (c->norm_eps >= 0.0 && c->norm_eps < 1.0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s.%s is %g; 0 <= %s < 1 expected", v->file,
                   v->part, v->eps, c->norm_eps, v->eps);
}

/* Old configs say 2, which is not CLIP's end of text: transformers then takes the largest id, and
 * so do files without the key. */
static renyi_status choose_hf_pool(ry_text_config *c, const config_view *v, int is_siglip,
                                   renyi_error *err)
{
    uint32_t eos = 2;
    c->sees_all = is_siglip;
    c->pool = is_siglip ? RY_TEXT_POOL_LAST : RY_TEXT_POOL_LARGEST;
    if (is_siglip) return RENYI_OK;
    RY_TRY(ry_json_uint(v->text, v->eos, &eos, v->file, err));
    if (eos == 2) return RENYI_OK;
    c->pool = RY_TEXT_POOL_EOS;
    c->eos = eos;
    return RENYI_OK;
}

static renyi_status choose_open_clip_pool(ry_text_config *c, const config_view *v, renyi_error *err)
{
    static const char *const names[] = {"argmax", "eos", "last", "first"}; /* by ry_text_pool */
    const char *pool = "argmax";
    int no_mask = 0;
    c->eos = 2;
    RY_TRY(ry_json_bool(v->text, "no_causal_mask", &no_mask, v->file, err));
    RY_TRY(ry_json_string(v->text, "pool_type", &pool, v->file, err));
    RY_TRY(ry_json_uint(v->text, v->eos, &c->eos, v->file, err));
    c->sees_all = no_mask;
    for (int i = 0; i < 4; i++) {
        if (strcmp(pool, names[i]) != 0) continue;
        c->pool = (ry_text_pool)i;
        return RENYI_OK;
    }
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "%s: %s.pool_type '%.40s'; argmax, eos, last and first are supported", v->file,
                   v->part, pool);
}

/* Parts of OpenCLIP's text towers that renyi does not run. Most have tensors of their own,
 * but the config says best what they are. */
static renyi_status check_open_clip(const config_view *v, renyi_error *err)
{
    static const char *const flags[] = {"embed_cls",   "qk_norm",          "scaled_cosine_attn",
                                        "scale_heads", "scale_attn_inner", "scale_attn",
                                        "scale_fc",    "use_pad_mask"};
    const char *other = NULL;
    double layer_scale = 0;
    RY_TRY(ry_json_string(v->text, "hf_model_name", &other, v->file, err));
    if (other)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "%s: the text tower is %.60s (hf_model_name); only OpenCLIP's own text "
                       "transformer is supported",
                       v->file, other);
    RY_TRY(ry_json_double(v->text, "ls_init_value", &layer_scale, v->file, err));
    for (size_t i = 0; i <= sizeof flags / sizeof *flags; i++) {
        int is_on = layer_scale != 0;
        const char *flag = i < sizeof flags / sizeof *flags ? flags[i] : "ls_init_value";
        if (i < sizeof flags / sizeof *flags) {
            is_on = 0;
            RY_TRY(ry_json_bool(v->text, flag, &is_on, v->file, err));
        }
        if (is_on)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "%s: %s.%s is set, which renyi does not run", v->file, v->part, flag);
    }
    return RENYI_OK;
}

/* The number in a tensor of one element; *out keeps its value without one. */
static renyi_status read_number(double *out, const ry_tensor_naming *n, const ry_tensors *set,
                                ry_tensor_role role, double most, renyi_error *err)
{
    const ry_tensor *t = ry_tensor_of_role(n, set, role, 0);
    float value;
    if (!t) return RENYI_OK;
    RY_TRY(ry_tensor_read(&value, t, set, err));
    if (!(fabs((double)value) < most))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "tensor '%.120s' is %g; -%g to %g expected",
                       t->name, (double)value, most, most);
    *out = (double)value;
    return RENYI_OK;
}

/* A SigLIP without its bias would be taken for a CLIP. A tower alone has neither. */
static renyi_status check_logit_pair(const ry_tensor_naming *n, const ry_tensors *set,
                                     renyi_error *err)
{
    const int has_scale = ry_tensor_of_role(n, set, RY_LOGIT_SCALE, 0) != NULL;
    const int has_bias = ry_tensor_of_role(n, set, RY_LOGIT_BIAS, 0) != NULL;
    if (has_scale == has_bias) return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_FORMAT, -1, "a SigLIP with %s and without %s; download the weights again",
        has_scale ? "logit_scale" : "logit_bias", has_scale ? "logit_bias" : "logit_scale");
}

/* Training caps CLIP's scale at 100, which is also the default for a tower without one. */
static renyi_status read_scale(ry_text_config *c, const ry_tensor_naming *n, const ry_tensors *set,
                               renyi_error *err)
{
    double log_scale = log(100.0);
    RY_TRY(read_number(&log_scale, n, set, RY_LOGIT_SCALE, 20.0, err));
    RY_TRY(read_number(&c->logit_bias, n, set, RY_LOGIT_BIAS, 1e4, err));
    c->logit_scale = exp(log_scale);
    c->is_sigmoid = (n->groups & RY_GROUP_LOGIT_BIAS) != 0;
    return RENYI_OK;
}

renyi_status ry_text_configure(ry_text_config *out, const ry_checkpoint *ckpt, renyi_error *err)
{
    ry_tensor_naming naming;
    *out = (ry_text_config){.layout = RY_LAYOUT_OPENAI};
    if (!ry_text_naming_find(&naming, ckpt->tensors)) { /* another library's text tower? */
        const config_view other = view_config(ckpt, out);
        if (other.is_open_clip) RY_TRY(check_open_clip(&other, err));
    }
    RY_TRY(sizes_from_tensors(out, &naming, ckpt->tensors, err));
    const config_view v = view_config(ckpt, out);
    const int is_siglip = (naming.groups & RY_GROUP_TEXT_HEAD) != 0;
    RY_TRY(check_sizes(out, &v, err));
    RY_TRY(choose_heads(out, &v, is_siglip, err));
    RY_TRY(choose_eps(out, &v, is_siglip, err));
    if (v.is_open_clip) {
        const json_t *model = ry_json_object(ckpt->open_clip_config, "model_cfg");
        RY_TRY(check_open_clip(&v, err));
        RY_TRY(open_clip_activation(out, &v, model, err));
        RY_TRY(choose_open_clip_pool(out, &v, err));
    } else {
        RY_TRY(choose_activation(out, &v, is_siglip, err));
        RY_TRY(choose_hf_pool(out, &v, is_siglip, err));
    }
    if (out->pool == RY_TEXT_POOL_EOS && out->eos >= out->vocab)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: %s.%s is %u, but there are %u token ids; is it the config of another "
                       "model?",
                       v.file, v.part, v.eos, out->eos, out->vocab);
    if (is_siglip && !v.is_open_clip) RY_TRY(check_logit_pair(&naming, ckpt->tensors, err));
    return read_scale(out, &naming, ckpt->tensors, err);
}
