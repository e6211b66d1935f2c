/* prune_fixture.h - a block that pruning rules look at, in plain arrays: attention of every head in
 * doubles, random queries, keys and values; and a run of one cut over it without a model.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PRUNE_FIXTURE_H
#define PRUNE_FIXTURE_H

#include "base/rng.h"
#include "prune/pruner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_TOKENS = 200, MAX_HEADS = 4, MAX_HEAD = 20, MAX_DIM = MAX_HEADS * MAX_HEAD };

typedef struct plain_block {
    uint32_t n, prefix, heads, head;
    double a[MAX_HEADS][MAX_TOKENS][MAX_TOKENS]; /* row = query */
    float qkv[MAX_TOKENS][3 * MAX_DIM];
    float class_row[MAX_TOKENS], columns[MAX_TOKENS], sizes[MAX_TOKENS];
    int sized;
} plain_block;

typedef struct decision {
    ry_block_needs needs;
    ry_cut cut;
    uint32_t source[MAX_TOKENS], target[MAX_TOKENS];
    float weight[MAX_TOKENS], score[MAX_TOKENS];
    uint8_t rescued[MAX_TOKENS];
} decision;

/* Rows of softmax over normal logits; keys and values normal. */
static inline void block_random(plain_block *b, uint32_t n, uint32_t prefix, uint32_t heads,
                                uint32_t head, uint64_t seed)
{
    ry_rng r = ry_rng_new(seed);
    b->n = n, b->prefix = prefix, b->heads = heads, b->head = head, b->sized = 0;
    for (uint32_t h = 0; h < heads; h++)
        for (uint32_t i = 0; i < n; i++) {
            double sum = 0.0;
            for (uint32_t j = 0; j < n; j++) sum += b->a[h][i][j] = exp(ry_rng_normal(&r));
            for (uint32_t j = 0; j < n; j++) b->a[h][i][j] /= sum;
        }
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t i = 0; i < 3 * heads * head; i++) b->qkv[j][i] = (float)ry_rng_normal(&r);
}

/* The statistic of one column of one matrix, by its definition. */
static inline double column_of(const plain_block *b, const ry_column_spec *s, uint32_t j, int head)
{
    double mass = 0.0, sum = 0.0, most = 0.0, shannon = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = (uint32_t)s->skip_rows; i < b->n; i++) {
            double a = 0.0;
            if (s->skip_diagonal && i == j) continue;
            for (uint32_t h = 0; h < b->heads; h++)
                a += head < 0 ? b->a[h][i][j] / b->heads : (int)h == head ? b->a[h][i][j] : 0.0;
            if (!pass) {
                mass += a;
                continue;
            }
            if (s->kind == RY_COLUMN_ENTROPY) a /= mass;
            sum += pow(a, s->order);
            most = a > most ? a : most;
            shannon -= a == 0.0 ? 0.0 : a * log(a);
        }
    if (s->kind == RY_COLUMN_ENTROPY)
        return s->order == 1.0   ? shannon
               : isinf(s->order) ? -log(most)
                                 : log(sum) / (1.0 - s->order);
    if (s->kind == RY_COLUMN_POWER) return sum;
    return isinf(s->order) ? most : pow(sum, 1.0 / s->order);
}

/* What the block has to show for these needs; what nobody asked for is NaN. */
static inline void block_show(plain_block *b, const ry_block_needs *needs)
{
    for (uint32_t j = 0; j < b->n; j++) {
        double row = 0.0, column = 0.0;
        for (uint32_t h = 0; h < b->heads; h++) row += b->a[h][0][j] / b->heads;
        if (needs->columns.each_head)
            for (uint32_t h = 0; h < b->heads; h++)
                column += column_of(b, &needs->columns, j, (int)h) / b->heads;
        else
            column = column_of(b, &needs->columns, j, -1);
        b->class_row[j] = needs->what & RY_NEED_CLASS_ROW ? (float)row : NAN;
        b->columns[j] = needs->what & RY_NEED_COLUMNS ? (float)column : NAN;
    }
}

static inline ry_block_view block_view(const plain_block *b, uint32_t block, uint32_t image)
{
    return (ry_block_view){.block = block,
                           .image = image,
                           .n_tokens = b->n,
                           .dim = b->heads * b->head,
                           .n_heads = b->heads,
                           .n_prefix = b->prefix,
                           .class_row = b->class_row,
                           .columns = b->columns,
                           .qkv = b->qkv[0],
                           .qkv_row = 3 * MAX_DIM,
                           .sizes = b->sized ? b->sizes : NULL};
}

/* A policy with one cut at block 0; p tokens go. */
static inline ry_policy plain_policy(ry_rule rule, ry_metric metric, uint32_t p)
{
    return (ry_policy){.rule = rule,
                       .metric = metric,
                       .n = 4.0,
                       .class_row = 1,
                       .diagonal = 1,
                       .budget = RY_BUDGET_DROP,
                       .n_cuts = 1,
                       .cuts = {{.layer = 0, .count = p}}};
}

static renyi_cpu fixture_level = RENYI_CPU_SCALAR; /* of the kernels that rules use */

static inline ry_pruner *pruner_for(const ry_policy *policy, const plain_block *b, uint32_t batch)
{
    ry_pruner *p = NULL;
    const ry_pruner_spec spec = {
        policy,       {12, b->n - b->prefix, b->prefix, 0}, b->heads * b->head, b->heads, batch,
        fixture_level};
    renyi_error err;
    assert_int_equal(ry_pruner_new(&p, &spec, NULL, &err), RENYI_OK);
    return p;
}

/* All phases of the cut at `block`, the tiles of each from the last to the first, since their order
 * must not matter. */
static inline void run_phases(const ry_token_hook *hook, const ry_block_view *view, decision *d)
{
    d->cut = (ry_cut){d->needs.n_after, d->source, d->target, d->weight, d->score, d->rescued};
    memset(d->source, 0xAA, sizeof d->source);
    memset(d->target, 0xAA, sizeof d->target);
    memset(d->rescued, 0xAA, sizeof d->rescued);
    for (uint32_t j = 0; j < MAX_TOKENS; j++) d->weight[j] = d->score[j] = NAN;
    uint32_t tiles;
    for (uint32_t phase = 0; (tiles = hook->tiles(hook->self, view->block, phase)); phase++)
        while (tiles--) hook->work(hook->self, view, &d->cut, phase, tiles);
}

/* Every token has a row or none, every row a token or is the fused one, the prefix is whole. */
static inline void check_decision(const plain_block *b, const decision *d)
{
    uint8_t seen[MAX_TOKENS] = {0};
    for (uint32_t r = 0; r < d->cut.n_out; r++) {
        const uint32_t j = d->source[r];
        if (j == RY_NO_TOKEN) {
            assert_int_equal(r, d->cut.n_out - 1);
            continue;
        }
        assert_in_range(j, 0, b->n - 1);
        assert_false(seen[j]++);
        assert_int_equal(d->target[j], r);
    }
    for (uint32_t j = 0; j < b->n; j++) {
        if (j < b->prefix) {
            assert_int_equal(d->source[j], j);
            assert_true(d->weight[j] == 1.0f);
        }
        if (d->target[j] == RY_NO_TOKEN)
            assert_true(d->weight[j] == 0.0f);
        else
            assert_in_range(d->target[j], j < b->prefix ? j : b->prefix, d->cut.n_out - 1);
        assert_true(d->rescued[j] <= 1);
    }
}

/* One image through the only cut of a policy. */
static inline void decide_with(const ry_policy *policy, plain_block *b, decision *d)
{
    ry_pruner *p = pruner_for(policy, b, 1);
    const ry_token_hook hook = ry_pruner_hook(p);
    hook.needs(hook.self, 0, b->n, &d->needs);
    block_show(b, &d->needs);
    const ry_block_view view = block_view(b, 0, 0);
    run_phases(&hook, &view, d);
    check_decision(b, d);
    ry_pruner_free(p, NULL);
}

#endif
