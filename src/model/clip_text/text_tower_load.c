/* text_tower_load.c - loads CLIP's text tower from a checkpoint: tables of tensor names, weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "model/clip_text/text_tower.h"
#include "model/common/clip_layer_names.h"
#include "model/common/weight_loader.h"

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
