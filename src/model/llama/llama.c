/* llama.c - loads the weights of a Llama.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "model/common/weight_loader.h"
#include "model/llama/llama_tensors.h"

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
                              .dtype = dtype,
                              .few_rows = 1};
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
    qkv.paired_head = c->paired ? c->head_dim : 0;
    gate_up.w[1] = RY_UP_W, gate_up.parts = 2;
    proj.epilogue = down.epilogue = RY_EPI_RESIDUAL;
    RY_TRY(ry_loader_vector(ld, RY_NORM1_W, i, &out->norm1));
    RY_TRY(ry_loader_linear(ld, &qkv, &out->qkv));
    RY_TRY(ry_loader_linear(ld, &proj, &out->proj));
    RY_TRY(ry_loader_vector(ld, RY_NORM2_W, i, &out->norm2));
    RY_TRY(ry_loader_linear(ld, &gate_up, &out->gate_up));
    return ry_loader_linear(ld, &down, &out->down);
}

static renyi_status load_ends(ry_loader *ld, ry_llama *m, renyi_dtype dtype)
{
    const ry_llama_config *c = &m->config;
    const ry_tensor_role role = c->tied ? RY_TOKEN_EMBED : RY_HEAD_W;
    const ry_linear_source head = source_of(role, 0, c->vocab, c->dim, dtype);
    RY_TRY(c->stored ? load_stored(ld, c, RY_LLAMA_HEAD, 0, &m->head)
                     : ry_loader_linear(ld, &head, &m->head));
    if (c->tied) ld->done = ld->n_params = 0; /* the table is counted once, below */
    RY_TRY(ry_token_table_load(&m->tokens, ld));
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
