/* llama.c - reads the configuration of a Llama from a checkpoint and loads its weights.
 *
 * Sizes come from the shapes, the rest from the config beside the weights. Missing keys have the
 * defaults of transformers; files of llava-hf leave those out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "model/common/weight_loader.h"
#include "model/llama/llama_tensors.h"

#include <string.h>

#define CONFIG_FILE "config.json"

/* Larger sizes are refused. */
enum { MAX_DIM = 1 << 14, MAX_MLP = 1 << 17, MAX_VOCAB = 1 << 20, MAX_CONTEXT = 1 << 20 };

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

static renyi_status sizes_from_tensors(ry_llama_config *c, uint64_t x[RY_X_COUNT],
                                       const ry_tensors *set, renyi_error *err)
{
    ry_tensor_naming n;
    if (!ry_llama_naming_find(&n, set))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "no Llama in it: neither model.embed_tokens.weight nor LLaVA's "
                       "language_model.model.embed_tokens.weight or "
                       "model.language_model.embed_tokens.weight is there");
    c->layout = n.of->vendor;
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
                                 const json_t *config, renyi_error *err)
{
    uint32_t dim = c->dim;
    RY_TRY(ry_json_uint(config, "hidden_size", &dim, CONFIG_FILE, err));
    if (dim != c->dim)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": hidden_size is %u, but the tensors have %u; is it the config "
                                   "of another model?",
                       dim, c->dim);
    c->n_heads = 32;
    RY_TRY(ry_json_uint(config, "num_attention_heads", &c->n_heads, CONFIG_FILE, err));
    c->n_kv_heads = c->n_heads;
    RY_TRY(ry_json_uint(config, "num_key_value_heads", &c->n_kv_heads, CONFIG_FILE, err));
    c->head_dim = c->n_heads ? c->dim / c->n_heads : 0;
    RY_TRY(ry_json_uint(config, "head_dim", &c->head_dim, CONFIG_FILE, err));
    if (c->n_heads > MAX_DIM || c->n_kv_heads > MAX_DIM || c->head_dim > MAX_DIM || !c->n_kv_heads)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": %u heads and %u of keys, %u wide; 1 to %d accepted",
                       c->n_heads, c->n_kv_heads, c->head_dim, MAX_DIM);
    if (!c->stored && ((uint64_t)c->n_heads * c->head_dim != x[RY_X_Q] ||
                       (uint64_t)c->n_kv_heads * c->head_dim != x[RY_X_KV]))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": %u heads and %u of keys, %u wide, but q_proj has %u rows and "
                                   "k_proj %u; num_attention_heads, num_key_value_heads and "
                                   "head_dim must fit",
                       c->n_heads, c->n_kv_heads, c->head_dim, (unsigned)x[RY_X_Q],
                       (unsigned)x[RY_X_KV]);
    if (c->head_dim % 2 == 0 && c->n_heads % c->n_kv_heads == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   CONFIG_FILE ": %u heads, %u of keys, %u wide; the second must divide the first, "
                               "and the width be even",
                   c->n_heads, c->n_kv_heads, c->head_dim);
}

/* rope_theta is in the config itself or, since transformers 5, in rope_parameters. */
static renyi_status choose_rope(ry_llama_config *c, const json_t *config, renyi_error *err)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    c->rope_theta = 10000.0;
    RY_TRY(ry_json_double(config, "rope_theta", &c->rope_theta, CONFIG_FILE, err));
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
    return ry_fail(err, RENYI_ERR_FORMAT, -1, CONFIG_FILE ": rope_theta is %g; at least 1 expected",
                   c->rope_theta);
}

static renyi_status choose_eps_and_context(ry_llama_config *c, const json_t *config,
                                           renyi_error *err)
{
    c->norm_eps = 1e-6;
    c->context = 2048;
    RY_TRY(ry_json_double(config, "rms_norm_eps", &c->norm_eps, CONFIG_FILE, err));
    RY_TRY(ry_json_uint(config, "max_position_embeddings", &c->context, CONFIG_FILE, err));
    if (!(c->norm_eps >= 0.0 && c->norm_eps < 1.0))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       CONFIG_FILE ": rms_norm_eps is %g; 0 <= rms_norm_eps < 1 expected",
                       c->norm_eps);
    if (c->context && c->context <= MAX_CONTEXT) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_LIMIT, -1,
                   CONFIG_FILE ": max_position_embeddings is %u; 1 to %d accepted", c->context,
                   MAX_CONTEXT);
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

renyi_status ry_llama_configure(ry_llama_config *out, const ry_checkpoint *ckpt, renyi_error *err)
{
    const json_t *root = ckpt->config, *text = ry_json_object(root, "text_config");
    const json_t *config = text ? text : root;
    uint64_t x[RY_X_COUNT];
    *out = (ry_llama_config){0};
    RY_TRY(sizes_from_tensors(out, x, ckpt->tensors, err));
    if (!config)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "no " CONFIG_FILE " beside the weights: the number of heads is unknown");
    RY_TRY(check_family(config, err));
    RY_TRY(choose_heads(out, x, config, err));
    RY_TRY(choose_rope(out, config, err));
    RY_TRY(choose_eps_and_context(out, config, err));
    RY_TRY(check_tied(out, config, root, err));
    out->bos = token_of(config, "bos_token_id", 1, out->vocab);
    out->eos = token_of(config, "eos_token_id", 2, out->vocab);
    out->image = token_of(root, "image_token_index", -1, out->vocab);
    out->image = token_of(root, "image_token_id", out->image, out->vocab);
    return out->stored ? ry_llama_stored_check(out, ckpt->tensors, err) : RENYI_OK;
}

/* ---- weights ------------------------------------------------------------------------------- */

enum { SCRATCH = 1 << 16 }; /* floats; the token table is checked in pieces of this size */

/* A packed matrix. */
static renyi_status load_stored(ry_loader *ld, const ry_llama_config *c, ry_llama_matrix which,
                                uint32_t layer, ry_linear **out)
{
    const ry_matrix_shape s = ry_llama_shape(c, which);
    RY_TRY(ry_llama_stored_linear(out, c, ld->set, which, layer, ld->level, ld->al, ld->err));
    ld->n_params += s.n_out * s.n_in;
    return RENYI_OK;
}

static renyi_status load_stored_layer(ry_loader *ld, const ry_llama_config *c, uint32_t i,
                                      ry_llama_layer *out)
{
    RY_TRY(ry_loader_vector(ld, RY_NORM1_W, i, &out->norm1));
    RY_TRY(ry_loader_vector(ld, RY_NORM2_W, i, &out->norm2));
    RY_TRY(load_stored(ld, c, RY_LLAMA_QKV, i, &out->qkv));
    RY_TRY(load_stored(ld, c, RY_LLAMA_PROJ, i, &out->proj));
    RY_TRY(load_stored(ld, c, RY_LLAMA_GATE_UP, i, &out->gate_up));
    return load_stored(ld, c, RY_LLAMA_DOWN, i, &out->down);
}

/* A matrix of one part; Llama has no biases. */
static ry_linear_source source_of(ry_tensor_role role, uint32_t layer, size_t n_out, size_t n_in,
                                  renyi_dtype dtype)
{
    return (ry_linear_source){.w = {role},
                              .b = {RY_EMBED_B, RY_EMBED_B, RY_EMBED_B},
                              .parts = 1,
                              .block = layer,
                              .n_out = n_out,
                              .n_in = n_in,
                              .epilogue = RY_EPI_NONE,
                              .dtype = dtype};
}

static renyi_status load_layer(ry_loader *ld, const ry_llama_config *c, renyi_dtype dtype,
                               uint32_t i, ry_llama_layer *out)
{
    const size_t C = c->dim, M = c->mlp_dim;
    ry_linear_source qkv = source_of(RY_Q_W, i, ry_llama_qkv(c), C, dtype);
    ry_linear_source proj = source_of(RY_PROJ_W, i, C, ry_llama_q(c), dtype);
    ry_linear_source gate_up = source_of(RY_FC1_W, i, 2 * M, C, dtype);
    ry_linear_source down = source_of(RY_FC2_W, i, C, M, dtype);
    qkv.w[1] = RY_K_W, qkv.w[2] = RY_V_W, qkv.parts = 3;
    gate_up.w[1] = RY_UP_W, gate_up.parts = 2;
    proj.epilogue = down.epilogue = RY_EPI_RESIDUAL;
    RY_TRY(ry_loader_vector(ld, RY_NORM1_W, i, &out->norm1));
    RY_TRY(ry_loader_rows(ld, &qkv, &out->qkv));
    RY_TRY(ry_loader_rows(ld, &proj, &out->proj));
    RY_TRY(ry_loader_vector(ld, RY_NORM2_W, i, &out->norm2));
    RY_TRY(ry_loader_rows(ld, &gate_up, &out->gate_up));
    return ry_loader_rows(ld, &down, &out->down);
}

static renyi_status load_ends(ry_loader *ld, ry_llama *m, renyi_dtype dtype)
{
    const ry_llama_config *c = &m->config;
    const ry_tensor_role role = c->tied ? RY_TOKEN_EMBED : RY_HEAD_W;
    const ry_linear_source head = source_of(role, 0, c->vocab, c->dim, dtype);
    RY_TRY(c->stored ? load_stored(ld, c, RY_LLAMA_HEAD, 0, &m->head)
                     : ry_loader_rows(ld, &head, &m->head));
    if (c->tied) ld->done = ld->n_params = 0; /* the table is counted once, below */
    RY_TRY(ry_token_table_load(&m->tokens, ld, SCRATCH));
    return ry_loader_vector(ld, RY_NORM_W, 0, &m->norm);
}

static renyi_status load_layers(ry_loader *ld, ry_llama *m, renyi_dtype dtype)
{
    const uint32_t L = m->config.n_layers;
    m->layers = ry_calloc(ld->al, L, sizeof *m->layers);
    if (!m->layers) return ry_fail_nomem(ld->err, L * sizeof *m->layers);
    for (uint32_t i = 0; i < L; i++)
        RY_TRY(m->config.stored ? load_stored_layer(ld, &m->config, i, &m->layers[i])
                                : load_layer(ld, &m->config, dtype, i, &m->layers[i]));
    return RENYI_OK;
}

static uint64_t model_bytes(const ry_llama *m)
{
    const ry_llama_config *c = &m->config;
    uint64_t bytes = m->tokens.bytes + ry_linear_bytes(m->head);
    bytes += (2 * (uint64_t)c->n_layers + 1) * c->dim * sizeof(float); /* norms */
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const ry_llama_layer *l = &m->layers[i];
        const ry_linear *const linears[] = {l->qkv, l->proj, l->gate_up, l->down};
        for (int k = 0; k < 4; k++) bytes += ry_linear_bytes(linears[k]);
    }
    return bytes;
}

renyi_status ry_llama_load(ry_llama *out, const ry_llama_config *config, const ry_checkpoint *ckpt,
                           const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                           renyi_error *err)
{
    ry_loader ld = {
        .set = ckpt->tensors, .opt = opt, .al = &opt->allocator, .level = level, .err = err};
    *out = (ry_llama){.config = *config};
    if (!ry_llama_naming_find(&ld.naming, ckpt->tensors)) /* ry_llama_configure found it */
        return ry_fail(err, RENYI_ERR_ARG, -1, "the configuration belongs to another checkpoint");
    renyi_status st = ry_loader_begin(&ld, SCRATCH);
    if (!st) st = load_ends(&ld, out, dtype);
    if (!st) st = load_layers(&ld, out, dtype);
    ry_loader_end(&ld);
    out->n_params = ld.n_params;
    if (!st) out->bytes = model_bytes(out);
    if (st) ry_llama_free(out, ld.al);
    return st;
}

void ry_llama_free(ry_llama *m, const renyi_allocator *al)
{
    for (uint32_t i = 0; m->layers && i < m->config.n_layers; i++) {
        ry_llama_layer *l = &m->layers[i];
        ry_linear *const linears[] = {l->qkv, l->proj, l->gate_up, l->down};
        for (int k = 0; k < 4; k++) ry_linear_free(linears[k], al);
        ry_free(al, l->norm1);
        ry_free(al, l->norm2);
    }
    ry_free(al, m->layers);
    ry_token_table_free(&m->tokens, al);
    ry_free(al, m->norm);
    ry_linear_free(m->head, al);
    *m = (ry_llama){0};
}
