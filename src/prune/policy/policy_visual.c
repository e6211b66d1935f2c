/* policy_visual.c - policies that act behind the tower of a LLaVA: their words, and how many tokens
 * they keep.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "prune/policy/policy_number.h"
#include "prune/policy/policy_text.h"
#include "prune/policy/policy_values.h"

#include <math.h>
#include <string.h>

/* ---- words --------------------------------------------------------------------------------- */

static renyi_status read_count(const ry_words *w, ry_key key, uint64_t least, uint32_t *out,
                               renyi_error *err)
{
    const ry_slice *value = ry_words_value(w, key);
    uint64_t count = 0;
    if (!ry_read_whole(value->at, value->len, RY_MAX_COUNT, &count) || count < least)
        return ry_value_bad(key, value, err);
    *out = (uint32_t)count;
    return RENYI_OK;
}

static renyi_status read_budget(ry_policy *p, const ry_words *w, renyi_error *err)
{
    const ry_slice *tokens = ry_words_value(w, RY_KEY_TOKENS);
    const ry_slice *keep = ry_words_value(w, RY_KEY_KEEP);
    ry_policy_cut *cut = &p->cuts[0];
    p->n_cuts = 1;
    if (keep) {
        p->budget = RY_BUDGET_KEEP;
        if (!ry_read_decimal(keep->at, keep->len, &cut->keep) || !(cut->keep > 0) || cut->keep > 1)
            return ry_value_bad(RY_KEY_KEEP, keep, err);
        return RENYI_OK;
    }
    if (p->rule == RY_RULE_PRUMERGE && tokens->len == strlen("adaptive") &&
        memcmp(tokens->at, "adaptive", tokens->len) == 0) {
        p->budget = RY_BUDGET_ADAPTIVE;
        return RENYI_OK;
    }
    p->budget = RY_BUDGET_COUNT;
    return read_count(w, RY_KEY_TOKENS, 1, &cut->count, err);
}

static renyi_status read_metric(ry_policy *p, const ry_words *w, renyi_error *err)
{
    const ry_slice *metric = ry_words_value(w, RY_KEY_METRIC);
    if (p->metric != RY_METRIC_CLS && p->metric != RY_METRIC_COL && p->metric != RY_METRIC_CORRECT)
        return ry_fail(err, RENYI_ERR_ARG, metric->offset,
                       "metric=%.*s: %s ranks by metric=cls, metric=col or metric=correct",
                       RY_SHOW(metric), ry_name_of(ry_rule_names, (int)p->rule));
    RY_TRY(ry_values_used(p, w, err));
    if (ry_key_for_metric(RY_KEY_N, p->metric))
        RY_TRY(ry_value_number(w, RY_KEY_N, 1, INFINITY, &p->n, err));
    if (ry_key_for_metric(RY_KEY_C, p->metric))
        RY_TRY(ry_value_number(w, RY_KEY_C, 0, 1, &p->c, err));
    return RENYI_OK;
}

renyi_status ry_policy_read_visual(ry_policy *p, const ry_words *w, renyi_error *err)
{
    int residual = RY_RESIDUAL_AUTO;
    RY_TRY(read_budget(p, w, err));
    RY_TRY(read_metric(p, w, err));
    if (p->rule == RY_RULE_PRUMERGE) {
        RY_TRY(ry_value_word(w, RY_KEY_PLUS, &p->plus, err));
        return read_count(w, RY_KEY_NEIGHBOURS, 0, &p->neighbours, err);
    }
    RY_TRY(ry_value_number(w, RY_KEY_IMPORTANT, 0, 1, &p->important, err));
    RY_TRY(read_count(w, RY_KEY_ROUND, 1, &p->round, err));
    RY_TRY(ry_value_word(w, RY_KEY_RESIDUAL, &residual, err));
    if (residual == RY_RESIDUAL_AUTO)
        residual = p->metric == RY_METRIC_CORRECT ? RY_ORDER_POSITION : RY_ORDER_SCORE;
    p->residual = (ry_order)residual;
    return RENYI_OK;
}

/* ---- counts -------------------------------------------------------------------------------- */

uint32_t ry_policy_visual_count(const ry_policy *p, uint32_t patches)
{
    const ry_policy_cut *cut = &p->cuts[0];
    if (p->budget == RY_BUDGET_ADAPTIVE) return 0;
    if (p->budget == RY_BUDGET_COUNT) return cut->count;
    return (uint32_t)((double)patches * cut->keep);
}

/* step = int(1 / share), stride = int(step / 3), as the published code has it. */
uint32_t ry_policy_plus_stride(uint32_t count, uint32_t patches)
{
    return count ? (uint32_t)(1.0 / ((double)count / (double)patches)) / 3 : 0;
}

renyi_status ry_policy_check_visual(const ry_policy *p, const ry_policy_shape *s, renyi_error *err)
{
    const char *rule = ry_name_of(ry_rule_names, (int)p->rule);
    const uint32_t n = ry_policy_visual_count(p, s->n_patches);
    if (!s->visual)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s chooses among the visual tokens that a LLaVA gives its language model; "
                       "this model has none. Use naive, evit, mosaic, tome or ats",
                       rule);
    if (n > s->n_patches)
        return ry_fail(err, RENYI_ERR_ARG, -1, "tokens=%u: a picture has %u patches here", n,
                       s->n_patches);
    if (!n && p->budget != RY_BUDGET_ADAPTIVE)
        return ry_fail(err, RENYI_ERR_ARG, -1, "keep=%g leaves none of %u patches", p->cuts[0].keep,
                       s->n_patches);
    if (p->plus && n && !ry_policy_plus_stride(n, s->n_patches))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "plus adds patches between %u of %u; at most a third, %u, leave room for "
                       "them",
                       n, s->n_patches, s->n_patches / 3);
    return RENYI_OK;
}
