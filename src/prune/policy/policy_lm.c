/* policy_lm.c - policies that act inside the language model of a LLaVA: what their keys mean, how
 * many visual tokens each cut leaves, and whether they fit a model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "prune/policy/policy_values.h"

#include <math.h>

/* ---- text ------------------------------------------------------------------------------------ */

static renyi_status read_ranking(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_slice *metric = ry_key_value(w, RY_KEY_METRIC);
    int rows = 0;
    if (p->metric != RY_METRIC_LAST && p->metric != RY_METRIC_COL)
        return ry_fail(err, RENYI_ERR_ARG, metric->offset,
                       "metric=%.*s: %s ranks by metric=last or metric=col", RY_SHOW(metric),
                       ry_name_of(ry_rule_names, (int)p->rule));
    RY_TRY(ry_policy_check_keys(p, w, err));
    if (p->metric == RY_METRIC_LAST) return RENYI_OK;
    RY_TRY(ry_value_word(w, RY_KEY_ROWS, &rows, err));
    p->rows = (ry_lm_rows)rows;
    return ry_value_number(w, RY_KEY_N, 1, INFINITY, &p->n, err);
}

/* Ranks by columns of the rows that rate; a merged row has no position of its own. */
static renyi_status read_sparsevlm(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    p->metric = RY_METRIC_COL;
    p->rows = RY_LM_ROWS_TEXT;
    p->renumbers = 1;
    RY_TRY(ry_value_number(w, RY_KEY_N, 1, INFINITY, &p->n, err));
    RY_TRY(ry_value_number(w, RY_KEY_RECYCLE, 0, 1, &p->recycle, err));
    return ry_value_count(w, RY_KEY_MEMBERS, 1, &p->members, err);
}

renyi_status ry_policy_read_lm(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    RY_TRY(ry_policy_read_cuts(p, w, err));
    if (p->rule == RY_RULE_SPARSEVLM) return read_sparsevlm(p, w, err);
    RY_TRY(ry_value_word(w, RY_KEY_POSITIONS, &p->renumbers, err));
    if (p->rule != RY_RULE_DART) return read_ranking(p, w, err);
    RY_TRY(ry_value_count(w, RY_KEY_PIVOTS, 1, &p->pivots, err));
    return ry_value_count(w, RY_KEY_TEXT_PIVOTS, 0, &p->text_pivots, err);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* keep: of the shares of all cuts so far, truncated once, as published code truncates. */
static uint32_t wanted_count(const ry_policy *p, uint32_t i, uint32_t n)
{
    double share = 1.0;
    if (p->budget == RY_BUDGET_COUNT) return p->cuts[i].count;
    for (uint32_t k = 0; k <= i; k++) share *= p->cuts[k].keep;
    return (uint32_t)((double)n * share);
}

uint32_t ry_policy_dart_share(const ry_policy *p, uint32_t n)
{
    const double total =
        p->budget == RY_BUDGET_COUNT ? (double)p->cuts[0].count : (double)n * p->cuts[0].keep;
    return (uint32_t)(total / ((double)p->pivots + (double)p->text_pivots));
}

uint32_t ry_policy_lm_count(const ry_policy *p, uint32_t i, uint32_t n)
{
    uint64_t count = wanted_count(p, i, n);
    if (p->rule == RY_RULE_DART)
        count = p->pivots +
                ((uint64_t)p->pivots + p->text_pivots) * (uint64_t)ry_policy_dart_share(p, n);
    return count < n ? (uint32_t)count : n;
}

uint32_t ry_policy_recycled(const ry_policy *p, uint32_t dropped)
{
    if (p->rule != RY_RULE_SPARSEVLM || p->recycle <= 0.0 || !dropped) return 0;
    const uint32_t count = (uint32_t)(p->recycle * (double)dropped) + 1;
    return count < dropped ? count : dropped;
}

uint32_t ry_policy_recycled_rows(const ry_policy *p, uint32_t dropped)
{
    const uint32_t count = ry_policy_recycled(p, dropped);
    if (!count) return 0;
    const uint32_t rows = count / p->members + 1;
    return rows < count ? rows : count;
}

/* ---- checks ---------------------------------------------------------------------------------- */

renyi_status ry_policy_check_lm_counts(const ry_policy *p, uint32_t n, renyi_error *err)
{
    uint32_t arrive = n;
    if (p->rule == RY_RULE_DART && p->pivots > n)
        return ry_fail(err, RENYI_ERR_ARG, -1, "pivots=%u: an image has %u visual tokens here",
                       p->pivots, n);
    for (uint32_t i = 0; i < p->n_cuts; i++) {
        const uint32_t layer = p->cuts[i].layer, count = wanted_count(p, i, n);
        if (count > arrive)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "tokens=%u: %u visual tokens arrive at layer %u of the language model",
                           count, arrive, layer);
        if (!count)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "keep=%g leaves none of %u visual tokens at layer %u of the language "
                           "model",
                           p->cuts[i].keep, n, layer);
        const uint32_t kept = ry_policy_lm_count(p, i, n);
        if (kept < arrive) arrive = kept + ry_policy_recycled_rows(p, arrive - kept);
    }
    return RENYI_OK;
}

renyi_status ry_policy_check_lm(ry_policy *p, const ry_policy_shape *s, renyi_error *err)
{
    if (!s->lm_layers)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "%s drops visual tokens between the layers of a language model, and none "
            "runs here; it is for questions to a LLaVA (renyi ask, renyi viz --question)",
            ry_name_of(ry_rule_names, (int)p->rule));
    RY_TRY(ry_policy_resolve_layers(p, s->lm_layers, err));
    for (uint32_t i = 0; i < p->n_cuts; i++)
        if (!p->cuts[i].layer || p->cuts[i].layer >= s->lm_layers)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "layer %u: the language model has %u layers, and a cut is before one of "
                           "1 to %u",
                           p->cuts[i].layer, s->lm_layers, s->lm_layers - 1);
    return s->n_patches ? ry_policy_check_lm_counts(p, s->n_patches, err) : RENYI_OK;
}
