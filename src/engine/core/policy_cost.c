/* policy_cost.c - renyi_policy_cost: what a policy costs on a model or an architecture, block by
 * block, from token counts alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/core/policy_api.h"
#include "model/common/arch.h"
#include "model/vit/vit_rows.h"
#include "prune/policy/cost.h"

#include <string.h>

/* The encoder whose costs are asked for, with or without weights. */
typedef struct encoder {
    ry_vit_config config;
    uint32_t n_patches;
} encoder;

static renyi_status find_encoder(encoder *out, const renyi_model *m, const char *architecture,
                                 renyi_error *err)
{
    ry_arch arch;
    memset(out, 0, sizeof *out);
    if (m) {
        out->config = m->vit.config;
        out->n_patches = m->vit.n_patches;
        return RENYI_OK;
    }
    if (!architecture || !ry_arch_parse(&arch, architecture))
        return ry_fail(err, RENYI_ERR_ARG, -1, "architecture '%.60s' is not known; %s",
                       architecture ? architecture : "", ry_arch_allowed());
    out->config = (ry_vit_config){.image_size = arch.image_size,
                                  .patch_size = arch.patch_size,
                                  .dim = arch.dim,
                                  .n_blocks = arch.n_blocks,
                                  .n_heads = arch.n_heads,
                                  .mlp_dim = arch.mlp_dim,
                                  .n_classes = arch.is_clip ? 0 : 1000,
                                  .n_prefix = arch.n_prefix,
                                  .is_clip = arch.is_clip,
                                  .proj_dim = arch.embed_dim,
                                  .pool = arch.n_prefix ? RY_POOL_TOKEN : RY_POOL_MEAN};
    out->n_patches = (arch.image_size / arch.patch_size) * (arch.image_size / arch.patch_size);
    return RENYI_OK;
}

static ry_cost_shape cost_shape(const encoder *e)
{
    const ry_vit_config *c = &e->config;
    return (ry_cost_shape){.n_patches = e->n_patches,
                           .patch_in = 3 * c->patch_size * c->patch_size,
                           .dim = c->dim,
                           .mlp_dim = c->mlp_dim,
                           .n_blocks = c->n_blocks,
                           .head_out = ry_vit_head_width(c),
                           .pre_norm = c->is_clip ? e->n_patches + c->n_prefix : 0};
}

static renyi_layer_cost block_cost(const encoder *e, const ry_block_rows *r)
{
    const ry_cost_shape shape = cost_shape(e);
    const uint32_t mlp = r->needs.place == RY_CUT_END ? r->in : r->out;
    const ry_cost cost = ry_cost_block(&shape, r->in, mlp);
    const uint64_t C = e->config.dim, M = e->config.mlp_dim;
    return (renyi_layer_cost){.tokens_in = r->in,
                              .tokens_out = r->out,
                              .tokens_mlp = mlp,
                              .n_params = 4 * C * C + 4 * C + 2 * C * M + M + C + 4 * C,
                              .macs_paper = ry_cost_macs_with_norm(&cost),
                              .macs = ry_cost_macs(&cost),
                              .macs_executed = ry_block_rows_macs(r, &e->config)};
}

/* What an anchor adds to a block: as papers count, a token of attention's products and LayerNorm;
 * as it is run, its query asks nothing and its row is not projected. */
static renyi_layer_cost anchor_cost(const encoder *e, const ry_block_rows *r)
{
    const ry_cost_shape shape = cost_shape(e);
    const ry_cost with = ry_cost_block(&shape, r->in + 1, 0),
                  without = ry_cost_block(&shape, r->in, 0);
    ry_block_rows anchored = *r;
    anchored.anchored = 1;
    return (renyi_layer_cost){.macs_paper =
                                  ry_cost_macs_with_norm(&with) - ry_cost_macs_with_norm(&without),
                              .macs = ry_cost_macs(&with) - ry_cost_macs(&without),
                              .macs_executed = ry_block_rows_macs(&anchored, &e->config) -
                                               ry_block_rows_macs(r, &e->config)};
}

/* Before the blocks and after them. */
static void end_costs(const encoder *e, renyi_cost *out, uint32_t last)
{
    const ry_cost_shape shape = cost_shape(e);
    /* rows that the final LayerNorm sees */
    const int clip = e->config.is_clip, one = clip || e->config.pool == RY_POOL_MEAN;
    const ry_cost ends = ry_cost_ends(&shape, one ? 1 : last);
    const uint64_t C = e->config.dim, tokens = e->n_patches + e->config.n_prefix;
    const uint32_t first = (uint32_t)tokens;
    out->embed =
        (renyi_layer_cost){.tokens_in = e->n_patches,
                           .tokens_mlp = first,
                           .tokens_out = first,
                           .n_params = shape.patch_in * C + (clip ? 2 : 1) * C + tokens * C +
                                       e->config.n_prefix * C, /* two of LayerNorm, or a bias */
                           .macs_paper = ends.patch_embed + ends.pre_norm,
                           .macs = ends.patch_embed,
                           .macs_executed = ends.patch_embed};
    out->head = (renyi_layer_cost){.tokens_in = last,
                                   .tokens_mlp = last,
                                   .tokens_out = last,
                                   .n_params = 2 * C + shape.head_out * (C + !clip),
                                   .macs_paper = ends.head + ends.norm,
                                   .macs = ends.head,
                                   .macs_executed = ends.head};
}

static void add(renyi_layer_cost *sum, const renyi_layer_cost *c)
{
    sum->n_params += c->n_params;
    sum->macs_paper += c->macs_paper;
    sum->macs += c->macs;
    sum->macs_executed += c->macs_executed;
}

static void sum_up(const encoder *e, const ry_block_rows *rows, renyi_cost *out,
                   renyi_layer_cost *layers, size_t max_layers)
{
    const uint32_t L = e->config.n_blocks;
    end_costs(e, out, rows[L - 1].out);
    out->n_blocks = L;
    add(&out->total, &out->embed);
    for (uint32_t i = 0; i < L; i++) {
        const renyi_layer_cost c = block_cost(e, &rows[i]);
        if (layers && i < max_layers) layers[i] = c;
        add(&out->total, &c);
        if (!i || rows[i].needs.place == RY_CUT_NONE) continue; /* as tca_session.c has it */
        const renyi_layer_cost anchor = anchor_cost(e, &rows[i]);
        add(&out->anchors, &anchor);
    }
    add(&out->total, &out->head);
    out->total.tokens_in = rows[0].in;
    out->total.tokens_out = out->total.tokens_mlp = rows[L - 1].out;
}

renyi_status renyi_policy_cost(const renyi_model *m, const char *architecture, const char *policy,
                               renyi_cost *out, renyi_layer_cost *layers, size_t max_layers,
                               renyi_error *err)
{
    encoder e;
    ry_policy parsed;
    ry_pruner *pruner = NULL;
    if (!out || (!m && !architecture))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_policy_cost: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(find_encoder(&e, m, architecture, err));
    RY_TRY(ry_policy_for(&parsed, policy, &e.config, e.n_patches, err));
    const renyi_allocator *al = m ? &m->al : NULL;
    RY_TRY(
        ry_policy_pruner(&pruner, &parsed, &e.config, e.n_patches, 0, RENYI_CPU_SCALAR, al, err));
    ry_block_rows *rows = ry_calloc(al, e.config.n_blocks, sizeof *rows);
    if (rows) {
        const ry_token_hook hook = pruner ? ry_pruner_hook(pruner) : (ry_token_hook){0};
        const ry_rows_options opt = {pruner ? &hook : NULL, 0};
        ry_vit_rows(rows, &e.config, e.n_patches, &opt);
        sum_up(&e, rows, out, layers, max_layers);
        if (m) out->total.n_params = m->vit.n_params; /* what the file really has */
    }
    ry_pruner_free(pruner, al);
    ry_free(al, rows);
    return rows ? RENYI_OK : ry_fail_nomem(err, e.config.n_blocks * sizeof *rows);
}
