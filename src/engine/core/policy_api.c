/* policy_api.c - policies of the public API: parsed and checked for a model, printed in full, made
 * into a pruner, and their cost block by block, which follows from token counts alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/policy_api.h"

#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/model_handle.h"
#include "engine/write/new_model.h"
#include "model/vit/token_cut.h"
#include "prune/policy/cost.h"

#include <string.h>

_Static_assert(RENYI_POLICY_MAX == RY_MAX_POLICY_TEXT, "the header promises this size");

/* ---- text to policy ------------------------------------------------------------------------ */

static ry_policy_shape shape_of(const ry_vit_config *c, uint32_t n_patches)
{
    return (ry_policy_shape){.n_blocks = c->n_blocks,
                             .n_patches = n_patches,
                             .n_prefix = c->n_prefix,
                             .n_registers = c->n_registers,
                             .pools = c->pool == RY_POOL_ATTENTION && !ry_vit_class_rows(c),
                             .grid = c->image_size / c->patch_size};
}

/* own: rules of a model; NULL = no model. */
static renyi_status parse_and_check(ry_policy *out, const char *text, const ry_policy_shape *shape,
                                    const ry_own_rules *own, renyi_error *err)
{
    RY_TRY(ry_policy_parse_own(out, text ? text : "none", own, err));
    return ry_policy_check(out, shape, err);
}

renyi_status ry_policy_for_model(ry_policy *out, const char *text, const renyi_model *m,
                                 renyi_error *err)
{
    const ry_policy_shape shape = shape_of(&m->vit.config, m->vit.n_patches);
    return parse_and_check(out, text, &shape, &m->rules, err);
}

renyi_status ry_cascade_for_model(ry_cascade *out, const char *text, const renyi_model *m,
                                  renyi_error *err)
{
    const ry_policy_shape shape = shape_of(&m->vit.config, m->vit.n_patches);
    RY_TRY(ry_cascade_parse(out, text ? text : "none", &m->rules, err));
    return ry_cascade_check(out, &shape, err);
}

renyi_status ry_policy_for(ry_policy *out, const char *text, const ry_vit_config *config,
                           uint32_t n_patches, renyi_error *err)
{
    const ry_policy_shape shape = shape_of(config, n_patches);
    return parse_and_check(out, text, &shape, NULL, err);
}

renyi_status ry_policy_for_visual(ry_policy *out, const char *text, const ry_vit_config *config,
                                  uint32_t n_patches, uint32_t n_squares, renyi_error *err)
{
    ry_policy_shape shape = shape_of(config, n_patches);
    shape.visual = 1;
    shape.n_squares = n_squares;
    return parse_and_check(out, text, &shape, NULL, err);
}

renyi_status ry_policy_pruner(ry_pruner **out, const ry_policy *policy, const ry_vit_config *config,
                              uint32_t n_patches, uint32_t max_batch, renyi_cpu level,
                              const renyi_allocator *al, renyi_error *err)
{
    const ry_pruner_spec spec = {.policy = policy,
                                 .shape = shape_of(config, n_patches),
                                 .dim = config->dim,
                                 .n_heads = config->n_heads,
                                 .max_batch = max_batch,
                                 .level = level};
    *out = NULL;
    if (policy->rule == RY_RULE_NONE || ry_policy_is_visual(policy)) return RENYI_OK;
    return ry_pruner_new(out, &spec, al, err);
}

renyi_status renyi_policy_check(const char *text, const renyi_model *m, char *full, size_t size,
                                renyi_error *err)
{
    ry_cascade policy;
    char print[RY_MAX_POLICY_TEXT];
    if (!text) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_policy_check: NULL argument");
    if (m)
        RY_TRY(ry_cascade_for_model(&policy, text, m, err));
    else
        RY_TRY(ry_cascade_parse(&policy, text, NULL, err));
    if (!full) return RENYI_OK;
    ry_cascade_print(print, &policy);
    if (strlen(print) >= size)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_policy_check: %zu bytes, %zu needed", size,
                       strlen(print) + 1);
    memcpy(full, print, strlen(print) + 1);
    return RENYI_OK;
}

size_t renyi_preset_count(void)
{
    size_t count;
    ry_presets(&count);
    return count;
}

void renyi_preset_get(size_t i, renyi_preset *out)
{
    size_t count;
    const ry_preset *presets = ry_presets(&count);
    *out = i < count ? (renyi_preset){presets[i].name, presets[i].text, presets[i].about}
                     : (renyi_preset){NULL, NULL, NULL};
}

renyi_status renyi_model_add_rule(renyi_model *m, const renyi_rule *rule, renyi_error *err)
{
    renyi_rule r;
    if (!m || !rule) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_add_rule: NULL argument");
    RY_TRY(ry_struct_read(&r, sizeof r, rule, "renyi_rule", err));
    return ry_own_rules_add(&m->rules, &r, &m->al, err);
}

/* ---- cost ---------------------------------------------------------------------------------- */

/* An encoder, with or without weights. */
typedef struct encoder {
    ry_vit_config config;
    uint32_t n_patches;
} encoder;

static renyi_status find_encoder(encoder *out, const char *architecture, renyi_error *err)
{
    RY_TRY(ry_new_model_config(&out->config, architecture, NULL, err));
    const uint32_t side = out->config.image_size / out->config.patch_size;
    out->n_patches = side * side;
    return RENYI_OK;
}

static ry_cost_shape cost_shape(const ry_vit_config *c, uint32_t n_patches)
{
    return (ry_cost_shape){.n_patches = n_patches,
                           .patch_in = 3 * c->patch_size * c->patch_size,
                           .dim = c->dim,
                           .mlp_dim = c->mlp_dim,
                           .gated = c->gated,
                           .n_blocks = c->n_blocks,
                           .head_out = ry_vit_head_width(c),
                           .pre_norm = c->pre_norm ? n_patches + c->n_prefix : 0,
                           .pools = c->pool == RY_POOL_ATTENTION};
}

double ry_dense_macs(const ry_vit_config *config, uint32_t n_patches)
{
    const ry_cost_shape shape = cost_shape(config, n_patches);
    const ry_cost cost = ry_cost_dense(&shape, n_patches + config->n_prefix);
    return ry_cost_macs(&cost);
}

static renyi_layer_cost block_cost(const encoder *e, const ry_block_rows *r)
{
    const ry_cost_shape shape = cost_shape(&e->config, e->n_patches);
    const uint32_t mlp = r->needs.place == RY_CUT_END ? r->in : r->out;
    const ry_cost cost = ry_cost_block(&shape, r->in, mlp);
    const uint64_t C = e->config.dim, M = e->config.mlp_dim;
    const uint64_t mlp_params = e->config.gated ? 3 * C * M + 2 * M + C : 2 * C * M + M + C;
    const uint64_t gammas = e->config.layer_scale ? 2 * C : 0;
    return (renyi_layer_cost){.tokens_in = r->in,
                              .tokens_out = r->out,
                              .tokens_mlp = mlp,
                              .n_params = 4 * C * C + (e->config.n_qkv_bias + 1) * C + mlp_params +
                                          4 * C + gammas,
                              .macs_paper = ry_cost_macs_with_norm(&cost),
                              .macs = ry_cost_macs(&cost),
                              .macs_executed = ry_block_rows_macs(r, &e->config)};
}

/* What an anchor (one extra key and value) adds to a block. As papers count: one more token in
 * attention's products and LayerNorm. As executed: less, since an anchor has no query and its row
 * is not projected. */
static renyi_layer_cost anchor_cost(const encoder *e, const ry_block_rows *r)
{
    const ry_cost_shape shape = cost_shape(&e->config, e->n_patches);
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

/* Cost of the patch embedding and of the head. last: tokens that leave the last block. */
static void end_costs(const encoder *e, renyi_cost *out, uint32_t last)
{
    const ry_cost_shape shape = cost_shape(&e->config, e->n_patches);
    /* CLIP and mean pooling normalize one row at the end, the others all tokens. */
    const int clip = e->config.is_clip, one = clip || e->config.pool == RY_POOL_MEAN;
    const ry_cost ends = ry_cost_ends(&shape, one ? 1 : last);
    const uint64_t C = e->config.dim, tokens = e->n_patches + e->config.n_prefix;
    const uint64_t positions = e->config.rope_theta > 0.0 ? 0 : e->n_patches + e->config.n_placed;
    const uint32_t first = (uint32_t)tokens;
    /* of a zero-shot model; the head of CLIP that papers count is its projection */
    const double class_rows = (double)e->config.proj_dim * e->config.n_classes;
    out->embed = (renyi_layer_cost){
        .tokens_in = e->n_patches,
        .tokens_mlp = first,
        .tokens_out = first,
        .n_params = shape.patch_in * C + !(clip || e->config.pre_norm) * C +
                    2 * (uint64_t)e->config.pre_norm * C + positions * C + e->config.n_prefix * C,
        .macs_paper = ends.patch_embed + ends.pre_norm,
        .macs = ends.patch_embed,
        .macs_executed = ends.patch_embed};
    const uint64_t M = e->config.mlp_dim, pool = 4 * C * C + 2 * C * M + 8 * C + M; /* probe too */
    out->head = (renyi_layer_cost){
        .tokens_in = last,
        .tokens_mlp = last,
        .tokens_out = last,
        .n_params = 2 * C + shape.head_out * (C + !clip) + (shape.pools ? pool : 0),
        .macs_paper = ends.head + ends.pool + ends.norm,
        .macs = ends.head + ends.pool,
        .macs_executed = ends.head + class_rows + ry_vit_pool_macs(&e->config, last)};
}

static void add_cost(renyi_layer_cost *sum, const renyi_layer_cost *c)
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
    add_cost(&out->total, &out->embed);
    for (uint32_t i = 0; i < L; i++) {
        const renyi_layer_cost c = block_cost(e, &rows[i]);
        if (layers && i < max_layers) layers[i] = c;
        add_cost(&out->total, &c);
        if (!i || rows[i].needs.place == RY_CUT_NONE) continue; /* as tca_adapt.c places anchors */
        const renyi_layer_cost anchor = anchor_cost(e, &rows[i]);
        add_cost(&out->anchors, &anchor);
    }
    add_cost(&out->total, &out->head);
    out->total.tokens_in = rows[0].in;
    out->total.tokens_out = out->total.tokens_mlp = rows[L - 1].out;
}

/* al: of the scratch memory. plain: blocks before the first cut, or NULL. */
static renyi_status count_cost(const encoder *e, const ry_policy *policy, const renyi_allocator *al,
                               renyi_cost *out, renyi_layer_cost *layers, size_t max_layers,
                               uint32_t *plain, renyi_error *err)
{
    const ry_vit_config *c = &e->config;
    ry_pruner *pruner = NULL;
    memset(out, 0, sizeof *out);
    RY_TRY(ry_policy_pruner(&pruner, policy, c, e->n_patches, 0, RENYI_CPU_SCALAR, al, err));
    ry_block_rows *rows = ry_calloc(al, c->n_blocks, sizeof *rows);
    if (rows) {
        const ry_token_hook hook = pruner ? ry_pruner_hook(pruner) : (ry_token_hook){0};
        const ry_rows_options opt = {pruner ? &hook : NULL, 0, RENYI_OUTPUT_AUTO};
        ry_vit_rows(rows, c, e->n_patches, &opt);
        sum_up(e, rows, out, layers, max_layers);
        if (plain) *plain = ry_plain_blocks(rows, c->n_blocks);
    }
    ry_pruner_free(pruner, al);
    ry_free(al, rows);
    return rows ? RENYI_OK : ry_fail_nomem(err, c->n_blocks * sizeof *rows);
}

/* What the second pass of a cascade adds: without the embedding and the blocks that the first has
 * computed already. plain: blocks before the first cut of the first pass. */
static renyi_status add_second(const encoder *e, const ry_policy *second, uint32_t plain,
                               const renyi_allocator *al, renyi_cost *out, renyi_error *err)
{
    const uint32_t L = e->config.n_blocks;
    uint32_t shared = 0;
    renyi_cost cost;
    renyi_layer_cost *layers = ry_calloc(al, L, sizeof *layers);
    if (!layers) return ry_fail_nomem(err, L * sizeof *layers);
    const renyi_status st = count_cost(e, second, al, &cost, layers, L, &shared, err);
    out->second = cost.head;
    for (uint32_t i = shared < plain ? shared : plain; i < L; i++)
        add_cost(&out->second, &layers[i]);
    out->second.tokens_in = cost.total.tokens_in;
    out->second.n_params = 0; /* those of the first pass */
    add_cost(&out->total, &out->second);
    ry_free(al, layers);
    return st;
}

static renyi_status cascade_cost(const encoder *e, const ry_cascade *c, const renyi_allocator *al,
                                 renyi_cost *out, renyi_layer_cost *layers, size_t max_layers,
                                 renyi_error *err)
{
    uint32_t plain = 0;
    RY_TRY(count_cost(e, &c->first, al, out, layers, max_layers, &plain, err));
    return c->is_cascade ? add_second(e, &c->second, plain, al, out, err) : RENYI_OK;
}

renyi_status ry_policy_cost(const renyi_model *m, const ry_policy *policy, renyi_cost *out,
                            renyi_layer_cost *layers, size_t max_layers, renyi_error *err)
{
    const encoder e = {m->vit.config, m->vit.n_patches};
    RY_TRY(count_cost(&e, policy, &m->al, out, layers, max_layers, NULL, err));
    out->total.n_params = m->vit.n_params; /* of the file, which may have more */
    return RENYI_OK;
}

renyi_status renyi_policy_cost(const renyi_model *m, const char *architecture, const char *policy,
                               renyi_cost *out, renyi_layer_cost *layers, size_t max_layers,
                               renyi_error *err)
{
    encoder e;
    ry_cascade parsed;
    if (!out || (!m && !architecture))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_policy_cost: NULL argument");
    memset(out, 0, sizeof *out);
    if (m) {
        e = (encoder){m->vit.config, m->vit.n_patches};
        RY_TRY(ry_cascade_for_model(&parsed, policy, m, err));
        RY_TRY(cascade_cost(&e, &parsed, &m->al, out, layers, max_layers, err));
        out->total.n_params = m->vit.n_params; /* of the file, which may have more */
        return RENYI_OK;
    }
    RY_TRY(find_encoder(&e, architecture, err));
    const ry_policy_shape shape = shape_of(&e.config, e.n_patches);
    RY_TRY(ry_cascade_parse(&parsed, policy ? policy : "none", NULL, err));
    RY_TRY(ry_cascade_check(&parsed, &shape, err));
    return cascade_cost(&e, &parsed, NULL, out, layers, max_layers, err);
}
