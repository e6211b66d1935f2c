/* cost.c - adds up multiply-accumulates block by block, by the formula of docs/PRUNING.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/cost.h"

#define NORM_PER_ELEMENT 5.0

/* Keys and values of all tokens, query and projection of the probe, its attention, the MLP. */
static double pool_macs(const ry_cost_shape *s, double n)
{
    const double d = s->dim;
    return 2.0 * n * d * d + 2.0 * d * d + 2.0 * n * d + 2.0 * d * s->mlp_dim;
}

ry_cost ry_cost_ends(const ry_cost_shape *s, uint32_t last)
{
    const double d = s->dim;
    return (ry_cost){.patch_embed = (double)s->n_patches * s->patch_in * d,
                     .head = (double)s->head_out * d,
                     .pool = s->pools ? pool_macs(s, last) : 0.0,
                     .norm = NORM_PER_ELEMENT * d * (last + (s->pools ? 1.0 : 0.0)),
                     .pre_norm = NORM_PER_ELEMENT * d * s->pre_norm};
}

/* One block: n tokens in the attention, m tokens in the MLP. */
static void add_block(ry_cost *c, const ry_cost_shape *s, double n, double m)
{
    const double d = s->dim;
    c->projections += 4.0 * n * d * d; /* q, k, v, out */
    c->attention += 2.0 * n * n * d;   /* Q K^T and A V, all heads together */
    c->mlp += (s->gated ? 3.0 : 2.0) * m * d * s->mlp_dim;
    c->norm += NORM_PER_ELEMENT * d * (n + m);
}

ry_cost ry_cost_block(const ry_cost_shape *s, uint32_t attn, uint32_t mlp)
{
    ry_cost c = {0};
    add_block(&c, s, attn, mlp);
    return c;
}

ry_cost ry_cost_of(const ry_cost_shape *s, const ry_cost_tokens *t)
{
    ry_cost c = ry_cost_ends(s, t->last);
    for (uint32_t l = 0; l < s->n_blocks; l++) add_block(&c, s, t->attn[l], t->mlp[l]);
    return c;
}

ry_cost ry_cost_dense(const ry_cost_shape *s, uint32_t n_tokens)
{
    ry_cost c = ry_cost_ends(s, n_tokens);
    for (uint32_t l = 0; l < s->n_blocks; l++) add_block(&c, s, n_tokens, n_tokens);
    return c;
}

double ry_cost_macs(const ry_cost *c)
{
    return c->patch_embed + c->projections + c->attention + c->mlp + c->head + c->pool;
}

double ry_cost_macs_with_norm(const ry_cost *c) { return ry_cost_macs(c) + c->norm + c->pre_norm; }
