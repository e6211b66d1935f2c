/* text_tower.c - loads the weights of a text tower, and computes their fingerprint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/clip_text/text_tower.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "model/common/weight_loader.h"

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
    mix_number(&p.hash, (uint64_t)c->pool << 32 | (uint64_t)c->eos << 1 | (uint64_t)c->sees_all);
    ry_tensor_names_each(n, mix_tensor, &p);
    return p.hash;
}

/* ---- weights ------------------------------------------------------------------------------- */

static renyi_status load_all(ry_loader *ld, ry_text *t, renyi_dtype dtype)
{
    const ry_text_config *c = &t->config;
    const ry_block_shape shape = {
        .dim = c->dim, .mlp_dim = c->mlp_dim, .activation = c->activation, .dtype = dtype};
    const int has_head = (ld->naming.groups & RY_GROUP_TEXT_HEAD) != 0;
    const ry_linear_source projection = {.w = {has_head ? RY_TEXT_HEAD_W : RY_EMBED_W},
                                         .b = {has_head ? RY_TEXT_HEAD_B : RY_EMBED_B},
                                         .parts = 1,
                                         .n_out = c->embed_dim,
                                         .n_in = c->dim,
                                         .epilogue = RY_EPI_NONE,
                                         .dtype = RENYI_DTYPE_F32,
                                         .transposed = !has_head && c->layout == RY_LAYOUT_OPENAI};
    t->fingerprint = fingerprint(c, &ld->naming, ld->set);
    t->blocks = ry_calloc(ld->al, c->n_blocks, sizeof *t->blocks);
    if (!t->blocks) return ry_fail_nomem(ld->err, c->n_blocks * sizeof *t->blocks);
    RY_TRY(ry_token_table_load(&t->tokens, ld));
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
    enum { SCRATCH = 1 << 16 }; /* floats; the token table is checked in pieces of this size */
    *out = (ry_text){.config = *config};
    if (!ry_text_naming_find(&ld.naming, ckpt->tensors)) /* ry_text_configure found it */
        return ry_fail(err, RENYI_ERR_ARG, -1, "the configuration belongs to another checkpoint");
    RY_TRY(ry_loader_begin(&ld, SCRATCH));
    const renyi_status st = load_all(&ld, out, dtype);
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
