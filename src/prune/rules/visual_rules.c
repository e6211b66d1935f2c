/* visual_rules.c - runs a rule behind the tower: scores, cosines of all pairs, and the phases of
 * a decision.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/visual_rules.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernels/rows/rows.h"
#include "prune/rules/select.h"
#include "prune/rules/visual_rule.h"

#include <math.h>
#include <string.h>

enum { PHASE_MEAN, PHASE_UNIT, PHASE_COSINES, PHASE_CHOOSE, PHASE_ROWS };
enum { ROWS = 16 }; /* rows of a tile */

static const ry_visual_ops *ops_of(ry_rule rule)
{
    switch (rule) {
    case RY_RULE_VISPRUNER: return &ry_visual_vispruner;
    case RY_RULE_VISIONZIP: return &ry_visual_visionzip;
    case RY_RULE_DIVPRUNE: return &ry_visual_divprune;
    case RY_RULE_HIPRUNE: return &ry_visual_hiprune;
    case RY_RULE_MOSAIC_BEHIND: return &ry_visual_mosaic;
    case RY_RULE_CDPRUNER: return &ry_visual_cdpruner;
    case RY_RULE_RANDOM: return &ry_visual_random;
    case RY_RULE_UNIFORM: return &ry_visual_uniform;
    case RY_RULE_POOL: return &ry_visual_pool;
    default: return &ry_visual_prumerge;
    }
}

void ry_visual_rule_needs_of(ry_visual_rule_needs *out, const ry_policy *p)
{
    const uint32_t reads = ops_of(p->rule)->reads;
    const int scores = (reads & RY_READS_SCORES) != 0, text = p->metric == RY_METRIC_TEXT,
              by_class = p->metric != RY_METRIC_COL && !text;
    *out = (ry_visual_rule_needs){
        .behind = (reads & RY_READS_BEHIND) != 0,
        .class_row = scores && (by_class || (reads & RY_READS_BEHIND)), /* it weighs sums too */
        .columns = scores && p->metric != RY_METRIC_CLS && !text,
        .spec = {.kind = RY_COLUMN_NORM, .order = p->n},
        .keys = (reads & RY_READS_KEYS) != 0,
        .projected = (reads & RY_READS_PROJECTED) != 0,
        .draws = ry_policy_draws(p),
        .relevance = text,
        .early = reads & RY_READS_EARLY ? p->block : RENYI_NONE};
}

/* ---- making -------------------------------------------------------------------------------- */

static void layout(ry_arena *a, ry_visual_rule *r)
{
    const size_t P = r->n_patches, C = r->pair_dim, pairs = C ? P * P : 0;
    r->gram_each = C ? (ry_gram_scratch(P, C, r->kernels.gram_rows) + 15) / 16 * 16 : 0;
    r->unit = RY_TAKE(a, P * C, float);
    r->cosines = RY_TAKE(a, pairs, float);
    r->mean = RY_TAKE(a, C, float);
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
    r->near = RY_TAKE(a, P, float);
    r->spread = RY_TAKE(a, r->n_factors ? P : 0, double);
    r->factors = RY_TAKE(a, r->n_factors * P, double);
    r->scratch = RY_TAKE(a, r->n_threads, ry_visual_scratch);
    for (unsigned t = 0; t < r->n_threads; t++) {
        const ry_visual_scratch h = {.list = RY_TAKE(a, P, uint32_t),
                                     .order = RY_TAKE(a, P, uint32_t),
                                     .near = RY_TAKE(a, P, float),
                                     .rank = RY_TAKE(a, 2 * P, uint64_t)};
        if (r->scratch) r->scratch[t] = h;
    }
}

static uint32_t pair_dim(const ry_visual_ops *ops, const ry_visual_rule_spec *spec)
{
    switch (ops->pairs) {
    case RY_PAIRS_NONE: return 0;
    case RY_PAIRS_KEYS: return ops->reads & RY_READS_BEHIND ? spec->dim : spec->dim / spec->n_heads;
    case RY_PAIRS_FEATURES:
    case RY_PAIRS_CENTRED: return spec->dim;
    case RY_PAIRS_PROJECTED: return spec->lm_dim;
    }
    return 0;
}

static ry_visual_rule unbound(const ry_visual_rule_spec *spec)
{
    ry_visual_rule r = {.policy = *spec->policy,
                        .ops = ops_of(spec->policy->rule),
                        .n_patches = spec->n_patches,
                        .dim = spec->dim,
                        .grid = (uint32_t)lround(sqrt((double)spec->n_patches)),
                        .n_threads = spec->n_threads};
    r.pair_dim = pair_dim(r.ops, spec);
    if (spec->policy->rule == RY_RULE_CDPRUNER)
        r.n_factors = ry_policy_visual_count(spec->policy, spec->n_patches);
    ry_kernels_init(&r.kernels, spec->level);
    return r;
}

renyi_status ry_visual_rule_new(ry_visual_rule **out, const ry_visual_rule_spec *spec,
                                const renyi_allocator *al, renyi_error *err)
{
    *out = NULL;
    ry_visual_rule *r = ry_calloc(al, 1, sizeof *r);
    if (!r) return ry_fail_nomem(err, sizeof *r);
    *r = unbound(spec);
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

void ry_visual_rule_set_count(ry_visual_rule *a, uint32_t count)
{
    a->policy.budget = RY_BUDGET_COUNT;
    a->policy.cuts[0].count = count;
}

size_t ry_visual_rule_bytes(const ry_visual_rule *a) { return a->arena_bytes; }
uint32_t ry_visual_rule_count(const ry_visual_rule *a) { return a->n_rows; }
const uint32_t *ry_visual_rule_kept(const ry_visual_rule *a) { return a->kept; }

const float *ry_visual_rule_scores(const ry_visual_rule *a)
{
    return a->ops->has_scores ? a->score : NULL;
}

uint32_t ry_visual_rule_most(const ry_visual_rule *a)
{
    const ry_policy *p = &a->policy;
    const uint32_t P = a->n_patches, n = ry_policy_visual_count(p, P);
    if (p->rule != RY_RULE_PRUMERGE) return n;
    if (p->plus) return P + 1;
    if (p->budget == RY_BUDGET_ADAPTIVE) /* all above the upper quartile, and one */
        return P - (uint32_t)(0.75 * (double)(P - 1));
    return n + (n < P);
}

double ry_visual_rule_macs(const ry_visual_rule *a)
{
    const double P = a->n_patches; /* of the cosines one half, by symmetry */
    return 0.5 * P * P * a->pair_dim + (a->ops->macs ? a->ops->macs(a) : 0.0);
}

/* ---- deciding ------------------------------------------------------------------------------ */

static void find_mean(ry_visual_rule *a, const ry_visual_rule_view *v)
{
    const size_t n = a->pair_dim;
    memset(a->mean, 0, n * sizeof *a->mean);
    if (a->ops->pairs != RY_PAIRS_CENTRED) return;
    for (uint32_t j = 0; j < a->n_patches; j++) ry_row_add(a->mean, v->x + j * n, 1.0f, n);
    for (size_t k = 0; k < n; k++) a->mean[k] /= (float)a->n_patches;
}

/* y = x - mean scaled to length 1; a zero row stays zero. In double: VisPruner's rounds depend on
 * differences in the seventh digit, and the published code does not round here. */
static void unit_row(float *y, const float *x, const float *mean, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)mean[i];
        sum += d * d;
    }
    const double scale = sum > 0.0 ? 1.0 / sqrt(sum) : 0.0;
    for (size_t i = 0; i < n; i++) y[i] = (float)(((double)x[i] - (double)mean[i]) * scale);
}

static void unit_rows(ry_visual_rule *a, const ry_visual_rule_view *v, uint32_t tile)
{
    const ry_visual_pairs pairs = a->ops->pairs;
    const size_t n = a->pair_dim, row = pairs == RY_PAIRS_KEYS ? v->key_row : n;
    const float *from = pairs == RY_PAIRS_KEYS        ? v->keys
                        : pairs == RY_PAIRS_PROJECTED ? v->projected
                                                      : v->x;
    for (uint32_t j = tile * ROWS; j < a->n_patches && j < (tile + 1) * ROWS; j++)
        unit_row(a->unit + j * n, from + j * row, a->mean, n);
}

void ry_visual_rule_score(ry_visual_rule *a, const float *class_row, const float *columns,
                          double sum)
{
    const ry_metric m = a->policy.metric;
    const uint32_t P = a->n_patches;
    const float *by = m == RY_METRIC_CLS ? class_row : columns;
    for (uint32_t j = 0; j < P; j++)
        a->score[j] = m == RY_METRIC_CLS ? by[j] : (float)((double)by[j] / sum);
    ry_rank(a->order, a->score, P, a->rank);
    if (m == RY_METRIC_CORRECT) ry_rank(a->class_order, class_row, P, a->rank);
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

void ry_visual_rule_keep_taken(ry_visual_rule *a)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < a->n_patches; j++) n += a->taken[j];
    a->n_kept = a->n_rows = n;
    ry_select_ascending(a->kept, a->taken, a->n_patches);
}

uint32_t ry_visual_rule_tiles(const ry_visual_rule *a, uint32_t phase)
{
    const uint32_t P = a->n_patches;
    switch (phase) {
    case PHASE_MEAN: return a->pair_dim != 0;
    case PHASE_UNIT: return a->pair_dim ? (P + ROWS - 1) / ROWS : 0;
    case PHASE_COSINES: return a->pair_dim ? (uint32_t)ry_gram_blocks(P, a->kernels.gram_rows) : 0;
    case PHASE_CHOOSE: return 1;
    case PHASE_ROWS: return a->n_rows;
    default: return 0;
    }
}

void ry_visual_rule_work(ry_visual_rule *a, const ry_visual_rule_view *v, float *rows,
                         uint32_t phase, uint32_t tile, unsigned thread)
{
    const size_t P = a->n_patches, C = a->dim;
    switch (phase) {
    case PHASE_MEAN: find_mean(a, v); break;
    case PHASE_UNIT: unit_rows(a, v, tile); break;
    case PHASE_COSINES:
        a->kernels.gram(a->cosines, P, a->unit, a->pair_dim, P, a->pair_dim, tile,
                        a->gram + thread * a->gram_each);
        break;
    case PHASE_CHOOSE: a->ops->choose(a, v); break;
    default:
        if (a->ops->row)
            a->ops->row(a, v, rows + tile * C, tile, &a->scratch[thread]);
        else
            memcpy(rows + tile * C, v->x + a->kept[tile] * C, C * sizeof(float));
    }
}
