/* tome.c - Token Merging (Bolya et al. 2023), a baseline: tokens at even positions may merge
 * into tokens at odd positions; the r pairs with the most similar keys are merged, and attention is
 * weighted by how many patches a token stands for.
 *
 * Prefix tokens are neither merged away nor merged into. The score of a token at an even
 * position is the cosine with its best partner (the r largest are merged); 0 for all others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "prune/rules/reduce.h"
#include "prune/rules/rule.h"
#include "prune/rules/select.h"

#include <string.h>

enum { PHASE_LIST, PHASE_KEYS, PHASE_MATCH, PHASE_MERGE };

/* One image's memory. */
typedef struct memory {
    uint64_t *radix; /* [2 * even] */
    uint32_t *order; /* [even] by similarity */
    uint8_t *merged; /* [even] */
    float *sum;      /* [n_out] */
    ry_keys keys;    /* of the tokens after the prefix: odd positions, then even ones */
} memory;

static size_t layout(const ry_pruner *p, void *base, memory *m)
{
    const size_t n = (size_t)p->shape.n_prefix + p->shape.n_patches;
    ry_arena a = {base, 0, base ? p->scratch_each : 0, 0};
    m->radix = RY_TAKE(&a, 2 * n, uint64_t);
    m->order = RY_TAKE(&a, n, uint32_t);
    m->merged = RY_TAKE(&a, n, uint8_t);
    m->sum = RY_TAKE(&a, n, float);
    m->keys = ry_keys_layout(&a, &p->kernels, n, p->dim / p->n_heads);
    return a.overflow ? SIZE_MAX : a.used;
}

static size_t scratch(const ry_pruner *p)
{
    memory m;
    return layout(p, NULL, &m);
}

/* Tokens at even and odd positions of [n_prefix, n). */
static uint32_t n_even(uint32_t n, uint32_t n_prefix) { return (n + 1) / 2 - (n_prefix + 1) / 2; }
static uint32_t n_odd(uint32_t n, uint32_t n_prefix) { return n / 2 - n_prefix / 2; }

static void needs(const ry_pruner *p, uint32_t cut, ry_block_needs *out)
{
    const uint32_t n = p->tokens_in[cut], first = p->shape.n_prefix;
    out->sizes = 1;
    out->macs = (double)n_even(n, first) * n_odd(n, first) * (p->dim / p->n_heads);
}

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    const uint32_t first = p->shape.n_prefix, n = n_tokens - first;
    (void)cut;
    switch (phase) {
    case PHASE_LIST: return 1;
    case PHASE_KEYS: return ry_keys_fill_tiles(n);
    case PHASE_MATCH: return ry_keys_match_tiles(&p->kernels, n, n_odd(n_tokens, first));
    case PHASE_MERGE: return 1;
    default: return 0;
    }
}

static void list_tokens(const memory *m, const ry_block_view *v)
{
    uint32_t k = 0;
    for (uint32_t j = v->n_prefix | 1; j < v->n_tokens; j += 2) m->keys.list[k++] = j;
    for (uint32_t j = v->n_prefix + v->n_prefix % 2; j < v->n_tokens; j += 2) m->keys.list[k++] = j;
}

static void place(ry_cut *out, uint32_t token, uint32_t row)
{
    out->source[row] = token;
    out->target[token] = row;
}

/* Rows: the prefix, the even tokens that stay, all odd ones. */
static void merge(const memory *m, const ry_block_view *v, ry_cut *out)
{
    const uint32_t even = n_even(v->n_tokens, v->n_prefix), odd = n_odd(v->n_tokens, v->n_prefix);
    const uint32_t r = v->n_tokens - out->n_out, first_odd = v->n_prefix + even - r;
    ry_rank(m->order, m->keys.similarity, even, m->radix);
    memset(m->merged, 0, even);
    for (uint32_t i = 0; i < r; i++) m->merged[m->order[i]] = 1;
    memset(out->rescued, 0, v->n_tokens);
    memset(out->score, 0, v->n_tokens * sizeof *out->score);

    uint32_t row = 0;
    for (; row < v->n_prefix; row++) place(out, row, row);
    for (uint32_t i = 0; i < even; i++) {
        const uint32_t token = m->keys.list[odd + i];
        out->score[token] = m->keys.similarity[i];
        if (m->merged[i])
            out->target[token] = first_odd + m->keys.partner[i];
        else
            place(out, token, row++);
    }
    for (uint32_t i = 0; i < odd; i++) place(out, m->keys.list[i], row++);
    ry_reduce_mean(v, out, m->sum);
}

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *v, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    const uint32_t n = v->n_tokens - v->n_prefix, odd = n_odd(v->n_tokens, v->n_prefix);
    memory m;
    (void)cut;
    (void)layout(p, ry_pruner_scratch(p, v->image), &m);
    switch (phase) {
    case PHASE_LIST: list_tokens(&m, v); break;
    case PHASE_KEYS: ry_keys_fill(&m.keys, v, n, tile); break;
    case PHASE_MATCH: ry_keys_match(&m.keys, &p->kernels, n, odd, tile); break;
    default: merge(&m, v, out); break;
    }
}

const ry_rule_ops ry_rule_tome = {needs, tiles, work, scratch};
