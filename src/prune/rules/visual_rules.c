/* visual_rules.c - runs a rule behind the tower: scores, cosines of all pairs, and the phases of
 * a decision.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/visual_rules.h"

#include "base/alloc.h"
#include "base/status.h"
#include "prune/rules/select.h"
#include "prune/rules/visual_rule.h"

#include <math.h>
#include <string.h>

enum { PHASE_UNIT, PHASE_COSINES, PHASE_CHOOSE, PHASE_ROWS };
enum { ROWS = 16 }; /* rows of a tile */

void ry_visual_rule_needs_of(ry_visual_rule_needs *out, const ry_policy *p)
{
    *out = (ry_visual_rule_needs){.behind = p->rule == RY_RULE_PRUMERGE,
                                  .columns = p->metric != RY_METRIC_CLS,
                                  .spec = {.kind = RY_COLUMN_NORM, .order = p->n}};
}

/* ---- making -------------------------------------------------------------------------------- */

static void layout(ry_arena *a, ry_visual_rule *r)
{
    const size_t P = r->n_patches, C = r->dim;
    r->gram_each = (ry_gram_scratch(P, C, r->kernels.gram_rows) + 15) / 16 * 16;
    r->unit = RY_TAKE(a, P * C, float);
    r->cosines = RY_TAKE(a, P * P, float);
    r->gram = RY_TAKE(a, r->n_threads * r->gram_each, float);
    r->score = RY_TAKE(a, P, float);
    r->weight = RY_TAKE(a, P, float);
    r->order = RY_TAKE(a, P, uint32_t);
    r->class_order = RY_TAKE(a, P, uint32_t);
    r->rank = RY_TAKE(a, 2 * P, uint64_t);
    r->taken = RY_TAKE(a, P, uint8_t);
    r->kept = RY_TAKE(a, P + 1, uint32_t);
    r->list = RY_TAKE(a, P, uint32_t);
    r->next = RY_TAKE(a, P, uint32_t);
    r->scratch = RY_TAKE(a, r->n_threads, ry_visual_scratch);
    for (unsigned t = 0; t < r->n_threads; t++) {
        const ry_visual_scratch h = {.list = RY_TAKE(a, P, uint32_t),
                                     .order = RY_TAKE(a, P, uint32_t),
                                     .near = RY_TAKE(a, P, float),
                                     .rank = RY_TAKE(a, 2 * P, uint64_t)};
        if (r->scratch) r->scratch[t] = h;
    }
}

renyi_status ry_visual_rule_new(ry_visual_rule **out, const ry_visual_rule_spec *spec,
                                const renyi_allocator *al, renyi_error *err)
{
    *out = NULL;
    ry_visual_rule *r = ry_calloc(al, 1, sizeof *r);
    if (!r) return ry_fail_nomem(err, sizeof *r);
    r->policy = *spec->policy;
    r->n_patches = spec->n_patches;
    r->dim = spec->dim;
    r->n_threads = spec->n_threads;
    ry_kernels_init(&r->kernels, spec->level);
    ry_arena measure = {0};
    layout(&measure, r);
    r->arena = measure.overflow ? NULL : ry_alloc(al, measure.used, 1);
    if (!r->arena) {
        ry_free(al, r);
        return ry_fail_nomem(err, measure.overflow ? SIZE_MAX : measure.used);
    }
    r->arena_bytes = measure.used;
    ry_arena bind = {r->arena, 0, measure.used, 0};
    layout(&bind, r);
    *out = r;
    return RENYI_OK;
}

void ry_visual_rule_free(ry_visual_rule *a, const renyi_allocator *al)
{
    if (!a) return;
    ry_free(al, a->arena);
    ry_free(al, a);
}

size_t ry_visual_rule_bytes(const ry_visual_rule *a) { return a->arena_bytes; }
uint32_t ry_visual_rule_count(const ry_visual_rule *a) { return a->n_rows; }
const uint32_t *ry_visual_rule_kept(const ry_visual_rule *a) { return a->kept; }
const float *ry_visual_rule_scores(const ry_visual_rule *a) { return a->score; }

uint32_t ry_visual_rule_most(const ry_visual_rule *a)
{
    const ry_policy *p = &a->policy;
    const uint32_t P = a->n_patches, n = ry_policy_visual_count(p, P);
    if (p->rule == RY_RULE_VISPRUNER) return n;
    if (p->plus) return P + 1;
    if (p->budget == RY_BUDGET_ADAPTIVE) /* all above the upper quartile, and one */
        return P - (uint32_t)(0.75 * (double)(P - 1));
    return n + (n < P);
}

/* ---- deciding ------------------------------------------------------------------------------ */

/* y = x scaled to length 1; a zero row stays zero. In double: VisPruner's rounds depend on
 * differences in the seventh digit, and the published code does not round here. */
static void unit_row(float *y, const float *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    const double scale = sum > 0.0 ? 1.0 / sqrt(sum) : 0.0;
    for (size_t i = 0; i < n; i++) y[i] = (float)((double)x[i] * scale);
}

static void unit_rows(ry_visual_rule *a, const ry_visual_rule_view *v, uint32_t tile)
{
    const int keys = a->policy.rule == RY_RULE_PRUMERGE;
    const size_t C = a->dim, row = keys ? v->key_row : C;
    const float *from = keys ? v->keys : v->x;
    for (uint32_t j = tile * ROWS; j < a->n_patches && j < (tile + 1) * ROWS; j++)
        unit_row(a->unit + j * C, from + j * row, C);
}

/* PruMerge divides column norms by their sum over all tokens, class token included. */
static void score(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const ry_policy *p = &a->policy;
    const uint32_t P = a->n_patches;
    const float *by = p->metric == RY_METRIC_CLS ? v->class_row : v->columns;
    double sum = 1.0;
    if (p->metric != RY_METRIC_CLS && p->rule == RY_RULE_PRUMERGE) {
        sum = (double)v->class_column + 1e-6;
        for (uint32_t j = 0; j < P; j++) sum += (double)v->columns[j];
    }
    for (uint32_t j = 0; j < P; j++) {
        a->score[j] = (float)((double)by[j] / sum);
        a->weight[j] = p->metric == RY_METRIC_COL ? a->score[j] : v->class_row[j];
    }
    ry_rank(a->order, a->score, P, a->rank);
    if (p->metric == RY_METRIC_CORRECT) ry_rank(a->class_order, v->class_row, P, a->rank);
}

void ry_visual_rule_choose(ry_visual_rule *a, uint32_t count)
{
    uint32_t by_class = 0, by_column = count;
    if (a->policy.metric == RY_METRIC_CORRECT)
        ry_policy_split(&a->policy, count, &by_class, &by_column);
    ry_select_correct(a->kept, a->taken, a->class_order, by_class, a->order, by_column,
                      a->n_patches);
    a->n_kept = count;
}

uint32_t ry_visual_rule_tiles(const ry_visual_rule *a, uint32_t phase)
{
    switch (phase) {
    case PHASE_UNIT: return (a->n_patches + ROWS - 1) / ROWS;
    case PHASE_COSINES: return (uint32_t)ry_gram_blocks(a->n_patches, a->kernels.gram_rows);
    case PHASE_CHOOSE: return 1;
    case PHASE_ROWS: return a->n_rows;
    default: return 0;
    }
}

void ry_visual_rule_work(ry_visual_rule *a, const ry_visual_rule_view *v, float *rows,
                         uint32_t phase, uint32_t tile, unsigned thread)
{
    const size_t P = a->n_patches, C = a->dim;
    const int merges = a->policy.rule == RY_RULE_PRUMERGE;
    switch (phase) {
    case PHASE_UNIT: unit_rows(a, v, tile); break;
    case PHASE_COSINES:
        a->kernels.gram(a->cosines, P, a->unit, C, P, C, tile, a->gram + thread * a->gram_each);
        break;
    case PHASE_CHOOSE:
        score(a, v);
        if (merges)
            ry_prumerge_choose(a);
        else
            ry_vispruner_choose(a);
        break;
    default:
        if (merges)
            ry_prumerge_row(a, v, rows + tile * C, tile, &a->scratch[thread]);
        else
            memcpy(rows + tile * C, v->x + a->kept[tile] * C, C * sizeof(float));
    }
}
