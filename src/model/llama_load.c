/* llama_load.c - the parts of a Llama from the tensors of a checkpoint, one matrix at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "model/llama.h"
#include "model/llama_names.h"
#include "model/loader.h"
#include "model/token_table.h"

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* A matrix of one part; Llama has no biases. */
static ry_linear_source source_of(ry_vit_role role, uint32_t layer, size_t n_out, size_t n_in,
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
    RY_TRY(ry_loader_linear(ld, &qkv, &out->qkv));
    RY_TRY(ry_loader_linear(ld, &proj, &out->proj));
    RY_TRY(ry_loader_vector(ld, RY_NORM2_W, i, &out->norm2));
    RY_TRY(ry_loader_linear(ld, &gate_up, &out->gate_up));
    return ry_loader_linear(ld, &down, &out->down);
}

/* Floats of scratch that a layer needs. */
static size_t layer_floats(const ry_llama_config *c)
{
    const size_t C = c->dim, M = c->mlp_dim;
    const size_t qkv = ry_loader_floats(ry_llama_qkv(c), C);
    const size_t proj = ry_loader_floats(C, ry_llama_q(c));
    return max_size(max_size(qkv, proj),
                    max_size(ry_loader_floats(2 * M, C), ry_loader_floats(C, M)));
}

/* The largest matrix comes first, when nothing else is there: its scratch is gone again before the
 * layers need theirs. */
static renyi_status load_ends(ry_loader *ld, ry_llama *m, renyi_dtype dtype)
{
    const ry_llama_config *c = &m->config;
    const ry_vit_role role = c->tied ? RY_TOKEN_EMBED : RY_HEAD_W;
    const ry_linear_source head = source_of(role, 0, c->vocab, c->dim, dtype);
    const size_t room = ry_loader_floats(c->vocab, c->dim);
    RY_TRY(ry_loader_begin(ld, room));
    renyi_status st = ry_loader_linear(ld, &head, &m->head);
    if (c->tied) ld->done = ld->n_params = 0; /* the table counts once */
    if (!st) st = ry_token_table_load(&m->tokens, ld, room);
    if (!st) st = ry_loader_vector(ld, RY_NORM_W, 0, &m->norm);
    ry_loader_end(ld);
    return st;
}

static renyi_status load_layers(ry_loader *ld, ry_llama *m, renyi_dtype dtype)
{
    const uint32_t L = m->config.n_layers;
    renyi_status st = RENYI_OK;
    m->layers = ry_calloc(ld->al, L, sizeof *m->layers);
    if (!m->layers) return ry_fail_nomem(ld->err, L * sizeof *m->layers);
    RY_TRY(ry_loader_begin(ld, layer_floats(&m->config)));
    for (uint32_t i = 0; !st && i < L; i++)
        st = load_layer(ld, &m->config, dtype, i, &m->layers[i]);
    ry_loader_end(ld);
    return st;
}

/* Of weights as packed: every element of a matrix has the size of its type. */
static uint64_t bytes_of(const ry_llama *m, renyi_dtype dtype)
{
    const ry_llama_config *c = &m->config;
    const uint64_t C = c->dim, M = c->mlp_dim, q = ry_llama_q(c), qkv = ry_llama_qkv(c);
    const uint64_t size = dtype == RENYI_DTYPE_INT8 ? 1 : dtype == RENYI_DTYPE_BF16 ? 2 : 4;
    const uint64_t layer = C * (qkv + q + 3 * M), head = C * c->vocab;
    return size * (c->n_layers * layer + head) + m->tokens.bytes +
           (2 * c->n_layers + 1) * C * sizeof(float);
}

renyi_status ry_llama_load(ry_llama *out, const ry_llama_config *config, const ry_checkpoint *ckpt,
                           const renyi_options *opt, renyi_cpu level, renyi_dtype dtype,
                           renyi_error *err)
{
    ry_loader ld = {
        .set = ckpt->tensors, .opt = opt, .al = &opt->allocator, .level = level, .err = err};
    *out = (ry_llama){.config = *config};
    if (!ry_llama_naming_find(&ld.naming, ckpt->tensors)) /* configure has found it there */
        return ry_fail(err, RENYI_ERR_ARG, -1, "the configuration is of another checkpoint");
    renyi_status st = load_ends(&ld, out, dtype);
    if (!st) st = load_layers(&ld, out, dtype);
    out->n_params = ld.n_params;
    out->bytes = bytes_of(out, dtype);
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
