/* text_tower.c - reads the configuration of CLIP's text tower from a checkpoint and loads its
 * weights.
 *
 * Sizes come from the shapes, the rest from the config beside the weights or from the defaults of
 * the published CLIP models.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/clip_text/text_tower.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/status.h"
#include "model/common/clip_layer_names.h"
#include "model/common/tensor_quant.h"
#include "model/common/weight_loader.h"

#include <math.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------------------- */

#define SHAPE_DIM \
    {             \
        RY_X_DIM  \
    }

/* clang-format off: a table reads by columns */
static const ry_tensor_name hf_names[] = {
    {RY_TOKEN_EMBED, RY_GROUP_CORE, "embeddings.token_embedding.weight", {RY_X_VOCAB, RY_X_DIM}},
    {RY_POS_EMBED, RY_GROUP_CORE, "embeddings.position_embedding.weight", {RY_X_TOKENS, RY_X_DIM}},
    RY_CLIP_HF_LAYER("encoder.layers.#."),
    {RY_NORM_W, RY_GROUP_CORE, "final_layer_norm.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_CORE, "final_layer_norm.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_CORE, "text_projection.weight", {RY_X_EMBED, RY_X_DIM}},
    {RY_LOGIT_SCALE, RY_GROUP_HEAD, "logit_scale", {RY_X_END}}, /* only in a whole CLIP */
};

static const ry_tensor_name openai_names[] = {
    {RY_TOKEN_EMBED, RY_GROUP_CORE, "token_embedding.weight", {RY_X_VOCAB, RY_X_DIM}},
    {RY_POS_EMBED, RY_GROUP_CORE, "positional_embedding", {RY_X_TOKENS, RY_X_DIM}},
    RY_CLIP_OPENAI_LAYER("transformer.resblocks.#."),
    {RY_NORM_W, RY_GROUP_CORE, "ln_final.weight", SHAPE_DIM},
    {RY_NORM_B, RY_GROUP_CORE, "ln_final.bias", SHAPE_DIM},
    {RY_EMBED_W, RY_GROUP_CORE, "text_projection", {RY_X_DIM, RY_X_EMBED}}, /* x * projection */
    {RY_LOGIT_SCALE, RY_GROUP_HEAD, "logit_scale", {RY_X_END}},
};
/* clang-format on */

static const char *const hf_others[] = {"vision_model.", "visual_projection.", NULL};
static const char *const openai_others[] = {"visual.", "input_resolution", "context_length",
                                            "vocab_size", NULL};

/* OpenAI's first name is the end of Hugging Face's, so the longer one comes first. */
static const ry_tensor_layout layouts[] = {
    {RY_LAYOUT_HF, 1, "Hugging Face", hf_names, sizeof hf_names / sizeof hf_names[0], 1, hf_others,
     NULL},
    {RY_LAYOUT_OPENAI, 1, "OpenAI", openai_names, sizeof openai_names / sizeof openai_names[0], 0,
     openai_others, NULL},
};

int ry_text_naming_find(ry_tensor_naming *out, const ry_tensors *set)
{
    return ry_tensor_naming_among(out, set, layouts, sizeof layouts / sizeof layouts[0]);
}

ry_tensor_naming ry_text_naming_hf(uint32_t n_blocks)
{
    return (ry_tensor_naming){.layout = RY_LAYOUT_HF,
                              .is_clip = 1,
                              .of = &layouts[0],
                              .table = layouts[0].names,
                              .n_names = layouts[0].count,
                              .prefix = "text_model.",
                              .n_blocks = n_blocks,
                              .groups = RY_GROUP_CORE | RY_GROUP_HEAD};
}

void ry_text_extents(uint64_t out[RY_X_COUNT], const ry_text_config *c)
{
    const uint64_t extents[RY_X_COUNT] = {
        [RY_X_TOKENS] = c->context, [RY_X_DIM] = c->dim,         [RY_X_3DIM] = 3 * (uint64_t)c->dim,
        [RY_X_MLP] = c->mlp_dim,    [RY_X_EMBED] = c->embed_dim, [RY_X_VOCAB] = c->vocab};
    for (int i = 0; i < RY_X_COUNT; i++) out[i] = extents[i];
}

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
                       " with text_config.num_attention_heads is needed",
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
                   CONFIG_FILE
                   ": text_config.layer_norm_eps is %g; 0 <= layer_norm_eps < 1 expected",
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
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "tensor '%.120s' is %g; -20 to 20 expected",
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

/* ---- fingerprint --------------------------------------------------------------------------- */

typedef struct tower_hash {
    const ry_tensors *set;
    uint64_t hash;
} tower_hash;

static void mix_number(uint64_t *hash, uint64_t value)
{
    ry_rng r = ry_rng_new(*hash ^ value);
    *hash = ry_rng_next(&r);
}

static void mix_tensor(void *user, const ry_tensor_naming *n, const ry_tensor_name *row,
                       uint32_t block)
{
    tower_hash *p = user;
    char name[RY_NAME_MAX];
    ry_tensor_name_write(name, n, row, block);
    const ry_tensor *t = ry_tensors_find(p->set, name);
    if (!t) return;
    mix_number(&p->hash, (uint64_t)row->role << 32 | block);
    mix_number(&p->hash, (uint64_t)t->dtype);
    mix_number(&p->hash, ry_hash(t->data, (size_t)t->bytes));
}

/* Equal for equal towers. Of the configuration only what the shapes do not say. */
static uint64_t fingerprint(const ry_text_config *c, const ry_tensor_naming *n,
                            const ry_tensors *set)
{
    tower_hash p = {set, ry_hash(&c->norm_eps, sizeof c->norm_eps)};
    mix_number(&p.hash, c->n_heads);
    mix_number(&p.hash, (uint64_t)c->activation);
    ry_tensor_names_each(n, mix_tensor, &p);
    return p.hash;
}

/* ---- weights ------------------------------------------------------------------------------- */

static renyi_status load_all(ry_loader *ld, ry_text *t, renyi_dtype dtype, size_t piece)
{
    const ry_text_config *c = &t->config;
    const ry_block_shape shape = {c->dim, c->mlp_dim, c->activation, dtype};
    const ry_linear_source projection = {.w = {RY_EMBED_W},
                                         .b = {RY_EMBED_B},
                                         .parts = 1,
                                         .n_out = c->embed_dim,
                                         .n_in = c->dim,
                                         .epilogue = RY_EPI_NONE,
                                         .dtype = RENYI_DTYPE_F32,
                                         .transposed = c->layout == RY_LAYOUT_OPENAI};
    t->fingerprint = fingerprint(c, &ld->naming, ld->set);
    t->blocks = ry_calloc(ld->al, c->n_blocks, sizeof *t->blocks);
    if (!t->blocks) return ry_fail_nomem(ld->err, c->n_blocks * sizeof *t->blocks);
    RY_TRY(ry_token_table_load(&t->tokens, ld, piece));
    RY_TRY(ry_loader_vector(ld, RY_POS_EMBED, 0, &t->pos));
    for (uint32_t i = 0; i < c->n_blocks; i++)
        RY_TRY(ry_loader_block(ld, &shape, i, &t->blocks[i]));
    RY_TRY(ry_loader_vector(ld, RY_NORM_W, 0, &t->norm_w));
    RY_TRY(ry_loader_vector(ld, RY_NORM_B, 0, &t->norm_b));
    return ry_loader_linear(ld, &projection, &t->projection);
}

renyi_status ry_text_load(ry_text *out, const ry_text_config *config, const ry_checkpoint *ckpt,
                          const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                          renyi_error *err)
{
    ry_loader ld = {
        .set = ckpt->tensors, .opt = opt, .al = &opt->allocator, .level = level, .err = err};
    const size_t block = ry_loader_block_floats(config->dim, config->mlp_dim);
    const size_t end = ry_loader_floats(config->embed_dim, config->dim);
    const size_t scratch = block > end ? block : end;
    *out = (ry_text){.config = *config};
    if (!ry_text_naming_find(&ld.naming, ckpt->tensors)) /* ry_text_configure found it */
        return ry_fail(err, RENYI_ERR_ARG, -1, "the configuration belongs to another checkpoint");
    RY_TRY(ry_loader_begin(&ld, scratch));
    const renyi_status st = load_all(&ld, out, dtype, scratch);
    ry_loader_end(&ld);
    out->n_params = ld.n_params;
    if (st != RENYI_OK) ry_text_free(out, ld.al);
    return st;
}

void ry_text_free(ry_text *t, const renyi_allocator *al)
{
    for (uint32_t i = 0; t->blocks && i < t->config.n_blocks; i++)
        ry_block_weights_free(&t->blocks[i], al);
    ry_free(al, t->blocks);
    ry_token_table_free(&t->tokens, al);
    float *const vectors[] = {t->pos, t->norm_w, t->norm_b};
    for (int k = 0; k < 3; k++) ry_free(al, vectors[k]);
    ry_linear_free(t->projection, al);
    *t = (ry_text){0};
}
