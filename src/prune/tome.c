/* tome.c - Token Merging (Bolya et al. 2023), a baseline: tokens at even places may go to tokens at
 * odd places; the r pairs with the most similar keys are merged, and attention counts what a token
 * stands for.
 *
 * Prefix tokens are neither merged away nor merged into. The score of a token at an even place is
 * the cosine with its best partner (the r largest go); 0 for all that cannot go.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "prune/reduce.h"
#include "prune/rule.h"
#include "prune/select.h"

#include <string.h>

enum { TILE = 32 };

/* One image's memory; even and odd count the tokens at such places after the prefix. */
typedef struct memory {
    uint64_t *radix;      /* [2 * even] */
    uint32_t *order;      /* [even] by similarity */
    uint32_t *partner;    /* [even] place in odd */
    uint32_t *even, *odd; /* tokens */
    uint8_t *merged;      /* [even] */
    float *alike;         /* [even] cosine with the partner */
    float *sum;           /* [n_out] */
    ry_keys keys;         /* [N] */
} memory;

static size_t layout(const ry_pruner *p, void *base, memory *m)
{
    const size_t n = (size_t)p->shape.n_prefix + p->shape.n_patches;
    ry_arena a = {base, 0, base ? p->scratch_each : 0, 0};
    m->radix = RY_TAKE(&a, uint64_t, 2 * n);
    m->order = RY_TAKE(&a, uint32_t, n);
    m->partner = RY_TAKE(&a, uint32_t, n);
    m->even = RY_TAKE(&a, uint32_t, n);
    m->odd = RY_TAKE(&a, uint32_t, n);
    m->merged = RY_TAKE(&a, uint8_t, n);
    m->alike = RY_TAKE(&a, float, n);
    m->sum = RY_TAKE(&a, float, n);
    m->keys.row = ry_keys_row(p->dim / p->n_heads);
    m->keys.unit = RY_TAKE(&a, float, n * m->keys.row);
    return a.overflow ? SIZE_MAX : a.used;
}

static size_t scratch(const ry_pruner *p)
{
    memory m;
    return layout(p, NULL, &m);
}

/* Tokens at even and at odd places of [n_prefix, n). */
static uint32_t n_even(uint32_t n, uint32_t n_prefix) { return (n + 1) / 2 - (n_prefix + 1) / 2; }
static uint32_t n_odd(uint32_t n, uint32_t n_prefix) { return n / 2 - n_prefix / 2; }

static void needs(const ry_pruner *p, uint32_t cut, ry_block_needs *out)
{
    const uint32_t n = p->tokens_in[cut], first = p->shape.n_prefix;
    out->sizes = 1;
    out->macs = (double)n_even(n, first) * n_odd(n, first) * (p->dim / p->n_heads);
}

static uint32_t tiles_of(uint32_t n) { return (n + TILE - 1) / TILE; }

static uint32_t tiles(const ry_pruner *p, uint32_t cut, uint32_t n_tokens, uint32_t phase)
{
    (void)cut;
    switch (phase) {
    case 0: return tiles_of(n_tokens);
    case 1: return tiles_of(n_even(n_tokens, p->shape.n_prefix));
    case 2: return 1;
    default: return 0;
    }
}

/* Keys of a tile of tokens, and their place in the two lists. */
static void prepare(const memory *m, const ry_block_view *v, uint32_t from, uint32_t to)
{
    const uint32_t even = (v->n_prefix + 1) / 2, odd = v->n_prefix / 2; /* prefix tokens left out */
    ry_keys_fill(&m->keys, v, from, to);
    for (uint32_t j = from < v->n_prefix ? v->n_prefix : from; j < to; j++)
        if (j % 2)
            m->odd[j / 2 - odd] = j;
        else
            m->even[j / 2 - even] = j;
}

static void match(const memory *m, const ry_block_view *v, uint32_t from, uint32_t to)
{
    const uint32_t partners = n_odd(v->n_tokens, v->n_prefix);
    for (uint32_t i = from; i < to; i++)
        m->partner[i] = ry_keys_nearest(&m->keys, m->even[i], m->odd, partners, &m->alike[i]);
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
    ry_rank(m->order, m->alike, even, m->radix);
    memset(m->merged, 0, even);
    for (uint32_t i = 0; i < r; i++) m->merged[m->order[i]] = 1;
    memset(out->rescued, 0, v->n_tokens);
    memset(out->score, 0, v->n_tokens * sizeof *out->score);

    uint32_t row = 0;
    for (; row < v->n_prefix; row++) place(out, row, row);
    for (uint32_t i = 0; i < even; i++) {
        out->score[m->even[i]] = m->alike[i];
        if (m->merged[i])
            out->target[m->even[i]] = first_odd + m->partner[i];
        else
            place(out, m->even[i], row++);
    }
    for (uint32_t i = 0; i < odd; i++) place(out, m->odd[i], row++);
    ry_reduce_mean(v, out, m->sum);
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void work(ry_pruner *p, uint32_t cut, const ry_block_view *v, ry_cut *out, uint32_t phase,
                 uint32_t tile)
{
    (void)cut;
    const uint32_t from = tile * TILE;
    memory m;
    (void)layout(p, ry_pruner_scratch(p, v->image), &m);
    switch (phase) {
    case 0: prepare(&m, v, from, least(from + TILE, v->n_tokens)); break;
    case 1: match(&m, v, from, least(from + TILE, n_even(v->n_tokens, v->n_prefix))); break;
    default: merge(&m, v, out); break;
    }
}

const ry_rule_body ry_rule_tome = {needs, tiles, work, scratch};
