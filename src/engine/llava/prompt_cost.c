/* prompt_cost.c - what the prompt of a conversation costs, from the rows that each layer of the
 * language model holds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "engine/llava/conversation.h"

/* One layer with n rows: the products of every row, and attention of row i over i + 1 rows. */
static double layer_macs(const renyi_lm_info *i, double n)
{
    const double C = i->dim, M = i->mlp_dim, q = (double)i->n_heads * i->head_dim,
                 kv = (double)i->n_kv_heads * i->head_dim;
    return n * (C * (q + 2 * kv) + q * C + 3 * C * M) + n * (n + 1) * q;
}

void ry_conversation_count_cost(renyi_conversation *c)
{
    const renyi_lm_info *i = &c->m->lm_info;
    const uint32_t n_rows = renyi_lm_position(c->lm), n_visual = c->has_image ? c->image.n : 0;
    const uint64_t row_bytes = 2ull * i->n_kv_heads * i->head_dim * renyi_lm_cache_bits(c->lm) / 8;
    renyi_prompt_cost cost = {.n_layers = i->n_layers, .n_rows = n_rows};
    if (c->has_image) {
        cost.tower_macs = c->work.tower_macs;
        cost.projector_macs = c->work.projector_macs;
        cost.choice_ms = c->work.choice_ms;
    }
    for (uint32_t l = 0; l < i->n_layers; l++) {
        const uint32_t n = renyi_lm_cache_rows(c->lm, l);
        cost.lm_macs += layer_macs(i, n);
        cost.cache_bytes += n * row_bytes;
        /* Only rows of the image are ever dropped. */
        cost.visual_tokens += ((double)n_visual - (n_rows - n)) / i->n_layers;
    }
    cost.lm_macs += (double)i->dim * i->vocab + renyi_lm_choice_macs(c->lm);
    c->cost = cost;
}

renyi_status renyi_conversation_get_cost(const renyi_conversation *c, renyi_prompt_cost *out,
                                         renyi_error *err)
{
    if (!c || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_conversation_get_cost: NULL argument");
    if (!c->cost.n_rows)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_conversation_get_cost: no question was asked yet");
    *out = c->cost;
    return RENYI_OK;
}
