/* llama_config.c - the configuration of a Llama: sizes from the shapes of its tensors, the rest
 * from config.json, or from the values of a GGUF.
 *
 * Missing keys of config.json have the defaults of transformers; files of llava-hf leave those out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "model/llama/llama_tensors.h"

#include <string.h>

#define CONFIG_FILE "config.json"

/* Larger sizes are refused. */
enum { MAX_DIM = 1 << 14, MAX_MLP = 1 << 17, MAX_VOCAB = 1 << 20, MAX_CONTEXT = 1 << 20 };

/* Names of the settings; `file` begins messages. */
typedef struct config_keys {
    const char *file, *dim, *heads, *kv_heads, *head_dim, *theta, *eps, *context, *bos, *eos;
} config_keys;
static const config_keys hf_keys = {.file = CONFIG_FILE,
                                    .dim = "hidden_size",
                                    .heads = "num_attention_heads",
                                    .kv_heads = "num_key_value_heads",
                                    .head_dim = "head_dim",
                                    .theta = "rope_theta",
                                    .eps = "rms_norm_eps",
                                    .context = "max_position_embeddings",
                                    .bos = "bos_token_id",
                                    .eos = "eos_token_id"};
#define LLAMA "llama."
static const config_keys gguf_keys = {.file = "values",
                                      .dim = LLAMA "embedding_length",
                                      .heads = LLAMA "attention.head_count",
                                      .kv_heads = LLAMA "attention.head_count_kv",
                                      .head_dim = LLAMA "attention.key_length",
                                      .theta = LLAMA "rope.freq_base",
                                      .eps = LLAMA "attention.layer_norm_rms_epsilon",
                                      .context = LLAMA "context_length",
                                      .bos = "tokenizer.ggml.bos_token_id",
                                      .eos = "tokenizer.ggml.eos_token_id"};

/* ---- sizes --------------------------------------------------------------------------------- */

static int is_stored(const ry_tensor_naming *n)
{
    return strcmp(n->of->vendor, RY_STORED_LAYOUT) == 0;
}

static renyi_status read_extents(uint64_t x[RY_X_COUNT], const ry_tensor_naming *n,
                                 const ry_tensors *set, renyi_error *err)
{
    static const ry_extent_limit limits[] = {{RY_X_DIM, MAX_DIM, "width"},
                                             {RY_X_MLP, MAX_MLP, "MLP width"},
                                             {RY_X_Q, MAX_DIM, "width of the queries"},
                                             {RY_X_KV, MAX_DIM, "width of the keys"},
                                             {RY_X_VOCAB, MAX_VOCAB, "vocabulary"}};
    memset(x, 0, RY_X_COUNT * sizeof *x);
    x[RY_X_VOCAB] = ry_tensor_size(n, set, RY_TOKEN_EMBED, 2, 0);
    x[RY_X_DIM] = ry_tensor_size(n, set, RY_TOKEN_EMBED, 2, 1);
    x[RY_X_MLP] = is_stored(n) ? ry_llama_stored_mlp(set) : ry_tensor_size(n, set, RY_FC1_W, 2, 0);
    x[RY_X_Q] = ry_tensor_size(n, set, RY_Q_W, 2, 0);
    x[RY_X_KV] = ry_tensor_size(n, set, RY_K_W, 2, 0);
    return ry_tensor_check_extents(x, limits, sizeof limits / sizeof *limits,
                                   "language model: ", err);
}

static renyi_status find_layout(ry_llama_config *c, ry_tensor_naming *n, const ry_checkpoint *ckpt,
                                renyi_error *err)
{
    const json_t *family = json_object_get(ckpt->config, "general.architecture");
    if (ckpt->is_gguf && json_is_string(family) && !strcmp(json_string_value(family), "clip"))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "no language model in it: an mmproj file (general.architecture 'clip'); "
                       "give it with --mmproj, beside the file of the language model");
    if (!ry_llama_naming_find(n, ckpt->tensors))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "no Llama in it: neither model.embed_tokens.weight nor LLaVA's "
                       "language_model.model.embed_tokens.weight or "
                       "model.language_model.embed_tokens.weight or, of a GGUF, token_embd.weight "
                       "is there");
    c->layout = n->of->vendor;
    c->paired = strcmp(c->layout, RY_GGUF_LAYOUT) == 0;
    return RENYI_OK;
}

static renyi_status sizes_from_tensors(ry_llama_config *c, uint64_t x[RY_X_COUNT],
                                       const ry_tensor_naming *naming, const ry_tensors *set,
                                       renyi_error *err)
{
    const ry_tensor_naming n = *naming;
    if (n.n_blocks > RY_MAX_BLOCKS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a tensor of layer %u; at most %d layers accepted",
                       n.n_blocks - 1, RY_MAX_BLOCKS);
    RY_TRY(read_extents(x, &n, set, err));
    RY_TRY(ry_tensor_check_all(&n, x, set, err));
    c->dim = (uint32_t)x[RY_X_DIM];
    c->mlp_dim = (uint32_t)x[RY_X_MLP];
    c->vocab = (uint32_t)x[RY_X_VOCAB];
    c->n_layers = n.n_blocks;
    c->tied = !is_stored(&n) && !(n.groups & RY_GROUP_HEAD);
    c->stored =
        is_stored(&n) ? RENYI_DTYPE_INT8 : RENYI_DTYPE_DEFAULT; /* or int4: ry_llama_stored_check */
    return RENYI_OK;
}

/* ---- what only the config knows ------------------------------------------------------------ */

/* Model types that compute exactly this; others have the same tensors but differ. */
static renyi_status check_family(const json_t *config, renyi_error *err)
{
    static const char *const known[] = {"llama", "llava", "llava_llama"};
    const char *type = known[0], *act = "silu";
    RY_TRY(ry_json_string(config, "model_type", &type, CONFIG_FILE, err));
    RY_TRY(ry_json_string(config, "hidden_act", &act, CONFIG_FILE, err));
    size_t i = 0;
    while (i < sizeof known / sizeof known[0] && strcmp(type, known[i]) != 0) i++;
    if (i == sizeof known / sizeof known[0])
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       CONFIG_FILE ": model_type '%.40s'; this build runs llama, alone or in llava",
                       type);
    if (strcmp(act, "silu") == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   CONFIG_FILE ": hidden_act '%.40s'; this build runs silu", act);
}

static renyi_status choose_heads(ry_llama_config *c, const uint64_t x[RY_X_COUNT],
                                 const config_keys *keys, const json_t *config, renyi_error *err)
{
    uint32_t dim = c->dim;
    RY_TRY(ry_json_uint(config, keys->dim, &dim, keys->file, err));
    if (dim != c->dim)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: %s is %u, but the tensors have %u; is it the config of another model?",
                       keys->file, keys->dim, dim, c->dim);
    c->n_heads = 32;
    RY_TRY(ry_json_uint(config, keys->heads, &c->n_heads, keys->file, err));
    c->n_kv_heads = c->n_heads;
    RY_TRY(ry_json_uint(config, keys->kv_heads, &c->n_kv_heads, keys->file, err));
    c->head_dim = c->n_heads ? c->dim / c->n_heads : 0;
    RY_TRY(ry_json_uint(config, keys->head_dim, &c->head_dim, keys->file, err));
    if (c->n_heads > MAX_DIM || c->n_kv_heads > MAX_DIM || c->head_dim > MAX_DIM || !c->n_kv_heads)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: %u heads and %u of keys, %u wide; 1 to %d accepted", keys->file,
                       c->n_heads, c->n_kv_heads, c->head_dim, MAX_DIM);
    if (!c->stored && ((uint64_t)c->n_heads * c->head_dim != x[RY_X_Q] ||
                       (uint64_t)c->n_kv_heads * c->head_dim != x[RY_X_KV]))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: %u heads and %u of keys, %u wide, but the matrix of queries has %u "
                       "rows and that of keys %u; %s, %s and %s must fit",
                       keys->file, c->n_heads, c->n_kv_heads, c->head_dim, (unsigned)x[RY_X_Q],
                       (unsigned)x[RY_X_KV], keys->heads, keys->kv_heads, keys->head_dim);
    if (c->head_dim % 2 == 0 && c->n_heads % c->n_kv_heads == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: %u heads, %u of keys, %u wide; the second must divide the first, and the "
                   "width be even",
                   keys->file, c->n_heads, c->n_kv_heads, c->head_dim);
}

/* rope_theta is in the config itself or, since transformers 5, in rope_parameters. */
static renyi_status choose_rope(ry_llama_config *c, const config_keys *keys, const json_t *config,
                                renyi_error *err)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    c->rope_theta = 10000.0;
    RY_TRY(ry_json_double(config, keys->theta, &c->rope_theta, keys->file, err));
    for (int i = 0; i < 2; i++) {
        const json_t *rope = ry_json_object(config, places[i]);
        const char *type = "default";
        RY_TRY(ry_json_double(rope, "rope_theta", &c->rope_theta, CONFIG_FILE, err));
        RY_TRY(ry_json_string(rope, "type", &type, CONFIG_FILE, err));
        RY_TRY(ry_json_string(rope, "rope_type", &type, CONFIG_FILE, err));
        if (strcmp(type, "default") != 0)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           CONFIG_FILE ": %s of type '%.40s'; this build runs unscaled positions "
                                       "('default')",
                           places[i], type);
    }
    if (c->rope_theta >= 1.0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s is %g; at least 1 expected", keys->file,
                   keys->theta, c->rope_theta);
}

static renyi_status choose_eps_and_context(ry_llama_config *c, const config_keys *keys,
                                           const json_t *config, renyi_error *err)
{
    c->norm_eps = 1e-6;
    c->context = 2048;
    RY_TRY(ry_json_double(config, keys->eps, &c->norm_eps, keys->file, err));
    RY_TRY(ry_json_uint(config, keys->context, &c->context, keys->file, err));
    if (!(c->norm_eps >= 0.0 && c->norm_eps < 1.0))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s is %g; at least 0 and below 1 expected",
                       keys->file, keys->eps, c->norm_eps);
    if (c->context && c->context <= MAX_CONTEXT) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: %s is %u; 1 to %d accepted: %s", keys->file,
                   keys->context, c->context, MAX_CONTEXT,
                   keys == &gguf_keys ? "convert the model again" : "correct it");
}

/* A token id, or the first of several; -1 if null or outside the vocabulary. */
static int32_t token_of(const json_t *config, const char *key, int32_t otherwise, uint32_t vocab)
{
    const json_t *v = json_object_get(config, key);
    if (!v) return otherwise;
    if (json_is_array(v)) v = json_array_get(v, 0);
    const json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
    return id >= 0 && id < (json_int_t)vocab ? (int32_t)id : -1;
}

static renyi_status check_tied(const ry_llama_config *c, const json_t *config, const json_t *root,
                               renyi_error *err)
{
    int tied = 0;
    RY_TRY(ry_json_bool(root, "tie_word_embeddings", &tied, CONFIG_FILE, err));
    RY_TRY(ry_json_bool(config, "tie_word_embeddings", &tied, CONFIG_FILE, err));
    if (!c->tied || tied) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "lm_head.weight is missing, and " CONFIG_FILE " does not say that the token "
                   "table replaces it (tie_word_embeddings)");
}

/* ---- what only GGUF has -------------------------------------------------------------------- */

/* Settings that change what is computed, and the one value that this program computes with. */
static renyi_status check_gguf_family(const json_t *values, renyi_error *err)
{
    const char *family = "", *scaling = "none";
    double linear = 1.0;
    RY_TRY(ry_json_string(values, "general.architecture", &family, gguf_keys.file, err));
    if (strcmp(family, "llama") != 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "general.architecture '%.40s'; of language models in GGUF this build runs "
                       "llama: give a Llama or a Vicuna",
                       family);
    RY_TRY(ry_json_string(values, LLAMA "rope.scaling.type", &scaling, gguf_keys.file, err));
    RY_TRY(ry_json_double(values, LLAMA "rope.scale_linear", &linear, gguf_keys.file, err));
    if (strcmp(scaling, "none") == 0 && linear == 1.0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   LLAMA "rope.scaling.type '%.40s', " LLAMA "rope.scale_linear %g; this build "
                         "runs unscaled positions ('none', 1), as of Llama 2 and Vicuna 1.5",
                   scaling, linear);
}

static renyi_status check_gguf_heads(const ry_llama_config *c, const json_t *values,
                                     renyi_error *err)
{
    uint32_t turned = c->head_dim, value = c->head_dim, layers = c->n_layers;
    if (!json_object_get(values, gguf_keys.heads) || !json_object_get(values, gguf_keys.eps))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "no value %s; convert the model again",
                       json_object_get(values, gguf_keys.heads) ? gguf_keys.eps : gguf_keys.heads);
    RY_TRY(ry_json_uint(values, LLAMA "rope.dimension_count", &turned, gguf_keys.file, err));
    RY_TRY(ry_json_uint(values, LLAMA "attention.value_length", &value, gguf_keys.file, err));
    RY_TRY(ry_json_uint(values, LLAMA "block_count", &layers, gguf_keys.file, err));
    if (layers != c->n_layers)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       LLAMA "block_count is %u, but there are tensors of %u layers; the file is "
                             "damaged: download or convert it again",
                       layers, c->n_layers);
    if (turned == c->head_dim && value == c->head_dim) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "heads %u wide, with values %u wide, of which %u are rotated (" LLAMA
                   "rope.dimension_count); this build runs equal widths",
                   c->head_dim, value, turned);
}

/* Llama 3.1 and later scale the angles by a tensor. */
static renyi_status check_gguf_rope(const ry_tensors *set, renyi_error *err)
{
    if (!ry_tensors_find(set, RY_GGUF_ROPE)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "tensor '" RY_GGUF_ROPE
                   "' scales positions; this build runs unscaled ones, as of Llama 2 "
                   "and Vicuna 1.5");
}

/* ---- all of it ----------------------------------------------------------------------------- */

static renyi_status read_config(ry_llama_config *c, const uint64_t x[RY_X_COUNT],
                                const config_keys *keys, const json_t *config, renyi_error *err)
{
    RY_TRY(choose_heads(c, x, keys, config, err));
    RY_TRY(choose_rope(c, keys, config, err));
    RY_TRY(choose_eps_and_context(c, keys, config, err));
    c->bos = token_of(config, keys->bos, 1, c->vocab);
    c->eos = token_of(config, keys->eos, 2, c->vocab);
    return RENYI_OK;
}

static renyi_status configure_gguf(ry_llama_config *c, const ry_tensor_naming *n,
                                   const ry_checkpoint *ckpt, renyi_error *err)
{
    uint64_t x[RY_X_COUNT];
    RY_TRY(check_gguf_family(ckpt->config, err));
    RY_TRY(check_gguf_rope(ckpt->tensors, err));
    RY_TRY(sizes_from_tensors(c, x, n, ckpt->tensors, err));
    RY_TRY(read_config(c, x, &gguf_keys, ckpt->config, err));
    c->image = -1;
    return check_gguf_heads(c, ckpt->config, err);
}

renyi_status ry_llama_configure(ry_llama_config *out, const ry_checkpoint *ckpt, renyi_error *err)
{
    const json_t *root = ckpt->config, *text = ry_json_object(root, "text_config");
    const json_t *config = text ? text : root;
    uint64_t x[RY_X_COUNT];
    ry_tensor_naming n;
    *out = (ry_llama_config){0};
    RY_TRY(find_layout(out, &n, ckpt, err));
    if (out->paired) return configure_gguf(out, &n, ckpt, err);
    RY_TRY(sizes_from_tensors(out, x, &n, ckpt->tensors, err));
    if (!config)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "no " CONFIG_FILE " beside the weights: the number of heads is unknown");
    RY_TRY(check_family(config, err));
    RY_TRY(read_config(out, x, &hf_keys, config, err));
    RY_TRY(check_tied(out, config, root, err));
    out->image = token_of(root, "image_token_index", -1, out->vocab);
    out->image = token_of(root, "image_token_id", out->image, out->vocab);
    return out->stored ? ry_llama_stored_check(out, ckpt->tensors, err) : RENYI_OK;
}
