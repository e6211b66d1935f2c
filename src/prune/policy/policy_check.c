/* policy_check.c - checks a policy against an encoder, and counts the tokens that each cut leaves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"
#include "base/status.h"
#include "prune/policy/policy_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- token counts ---------------------------------------------------------------------------- */

/* ATS: round(keep * tokens), class token included, at least 8, as in its published code. With a
 * number of levels no more tokens than levels stay, and never the one with the least score: the
 * first level is above it. */
static uint32_t ats_tokens(const ry_policy *p, const ry_policy_cut *cut, uint32_t n_tokens,
                           uint32_t n_prefix)
{
    const double wanted = p->budget == RY_BUDGET_KEEP ? nearbyint(cut->keep * (double)n_tokens)
                                                      : (double)cut->count + (double)n_prefix;
    const double least = n_prefix + 1.0;
    double most = fmax(fmax(wanted, least), p->budget == RY_BUDGET_KEEP ? 8 : least);
    if (p->levels && n_tokens - n_prefix > 1)
        most = fmin(most, fmin((double)p->levels + (double)n_prefix, (double)n_tokens - 1));
    return most < (double)n_tokens ? (uint32_t)most : n_tokens;
}

int ry_policy_is_adaptive(const ry_policy *p) { return p->rule == RY_RULE_ATS || p->likeness > 0; }

uint32_t ry_policy_patches_kept(const ry_policy *p, uint32_t i, uint32_t patches)
{
    const ry_policy_cut *cut = &p->cuts[i];
    double kept = cut->count;
    if (p->budget == RY_BUDGET_KEEP)
        kept = ceil(cut->keep * (double)patches); /* in double, as all published code does */
    else if (p->budget == RY_BUDGET_DROP)
        kept = (double)patches - (double)cut->count;
    return kept >= (double)patches ? patches : kept < 1 ? 1 : (uint32_t)kept;
}

/* As the published code counts: left = ceil((1 - drop) P) stay in some form, m = P - left + 1, and
 * of those that stay 2m are merged. */
int ry_policy_tca_split(const ry_policy_cut *cut, uint32_t patches, ry_tca_split *out)
{
    const uint32_t left = (uint32_t)ceil((1.0 - cut->drop) * (double)patches);
    const uint32_t m = patches - left + 1;
    if (left <= 2 * m) return 0;
    *out = (ry_tca_split){left - 2 * m, 2 * m, patches - left};
    return 1;
}

/* Below three fused and merged tokens no row is saved, and the cut does nothing. */
static uint32_t tca_tokens(const ry_policy_cut *cut, uint32_t n_tokens, uint32_t n_prefix)
{
    ry_tca_split s;
    if (!ry_policy_tca_split(cut, n_tokens - n_prefix, &s)) return n_tokens;
    const uint32_t after = n_prefix + s.keep + RY_TCA_CENTRES + 1;
    return after < n_tokens ? after : n_tokens;
}

int ry_policy_draws(const ry_policy *p)
{
    return p->metric == RY_METRIC_RANDOM || p->start == RY_START_RANDOM;
}

uint32_t ry_policy_tokens_after(const ry_policy *p, uint32_t i, uint32_t n_tokens,
                                uint32_t n_prefix)
{
    const ry_policy_cut *cut = &p->cuts[i];
    if (p->rule == RY_RULE_NONE || ry_policy_is_visual(p) || ry_policy_is_lm(p)) return n_tokens;
    if (n_tokens <= n_prefix) return n_tokens;

    const uint32_t patches = n_tokens - n_prefix;
    if (p->rule == RY_RULE_TOME) /* even positions merge into odd ones: at most half */
        return n_tokens - (cut->count < patches / 2 ? cut->count : patches / 2);
    if (p->rule == RY_RULE_ATS) return ats_tokens(p, cut, n_tokens, n_prefix);
    if (p->rule == RY_RULE_TCA) return tca_tokens(cut, n_tokens, n_prefix);
    const uint32_t kept = p->likeness > 0 ? patches : ry_policy_patches_kept(p, i, patches);
    const uint32_t fused = cut->reduce == RY_REDUCE_FUSE && kept < patches;
    return n_prefix + kept + fused;
}

void ry_policy_split(const ry_policy *p, uint32_t kept, uint32_t *by_class, uint32_t *by_column)
{
    /* Products in double exactly as written: with c = 0.8 the paper's floor(70 * (1 - c)) is 13. */
    uint32_t column = p->metric == RY_METRIC_CLS ? 0 : kept;
    if (p->metric == RY_METRIC_CORRECT)
        column = p->rounding == RY_ROUND_CODE ? (uint32_t)((double)kept * p->c)
                                              : kept - (uint32_t)floor((double)kept * (1 - p->c));
    *by_column = column;
    *by_class = kept - column;
}

uint32_t ry_policy_visual_count(const ry_policy *p, uint32_t patches)
{
    const ry_policy_cut *cut = &p->cuts[0];
    if (p->budget == RY_BUDGET_ADAPTIVE) return 0;
    if (p->budget == RY_BUDGET_COUNT) return cut->count;
    return (uint32_t)((double)patches * cut->keep);
}

uint32_t ry_policy_smaller_grid(const ry_policy *p, uint32_t patches)
{
    return (uint32_t)sqrt((double)ry_policy_visual_count(p, patches));
}

/* step = int(1 / share), stride = int(step / 3), as in the published code. */
uint32_t ry_policy_plus_stride(uint32_t count, uint32_t patches)
{
    return count ? (uint32_t)(1.0 / ((double)count / (double)patches)) / 3 : 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* A share as the text of a policy can say it: at least its smallest decimal. */
static double share_in_text(double share)
{
    char text[RY_DECIMAL_TEXT];
    double said = 0.0;
    ry_print_decimal(text, share);
    return ry_read_decimal(text, strlen(text), &said) && said > 0.0 ? said : 1e-19;
}

static uint32_t at_most_count(double count)
{
    return count < RY_MAX_COUNT ? (uint32_t)count : RY_MAX_COUNT;
}

/* Two cuts that fall on one block remove what both would, one after the other. */
static void join_cuts(ry_policy_cut *a, const ry_policy_cut *b, ry_budget budget)
{
    if (budget == RY_BUDGET_KEEP) a->keep = share_in_text(a->keep * b->keep);
    if (budget == RY_BUDGET_SHARE) a->drop = share_in_text(1 - (1 - a->drop) * (1 - b->drop));
    a->count = budget == RY_BUDGET_DROP ? at_most_count((double)a->count + b->count)
               : a->count < b->count    ? a->count
                                        : b->count;
    a->reduce = b->reduce;
}

/* layers=.../12: the same places of a model with another number of blocks. */
static void resolve_depth(ry_policy *p, uint32_t n_blocks)
{
    uint32_t n = 0;
    for (uint32_t i = 0; p->depth && i < p->n_cuts; i++) {
        ry_policy_cut cut = p->cuts[i];
        cut.layer = (uint32_t)((uint64_t)cut.layer * n_blocks / p->depth);
        if (n && p->cuts[n - 1].layer == cut.layer)
            join_cuts(&p->cuts[n - 1], &cut, p->budget);
        else
            p->cuts[n++] = cut;
    }
    if (!p->depth) return;
    memset(p->cuts + n, 0, (p->n_cuts - n) * sizeof *p->cuts);
    p->n_cuts = n;
    p->depth = 0;
}

renyi_status ry_policy_resolve_layers(ry_policy *p, uint32_t n_blocks, renyi_error *err)
{
    const unsigned n = n_blocks;
    resolve_depth(p, n);
    if (p->every_layer) {
        if (!n || n > RY_MAX_CUTS)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "layers=all: the model has %u blocks, a policy cuts in at most %d", n,
                           (int)RY_MAX_CUTS);
        if (p->n_cuts != 1 && p->n_cuts != n)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "a list of %u values with layers=all: the model has %u blocks",
                           (unsigned)p->n_cuts, n);
        for (uint32_t i = p->n_cuts; i < n; i++) p->cuts[i] = p->cuts[0];
        for (uint32_t i = 0; i < n; i++) p->cuts[i].layer = i;
        p->n_cuts = n;
        p->every_layer = 0;
    }
    for (uint32_t i = 0; i < p->n_cuts; i++)
        if (p->cuts[i].layer >= n && !ry_policy_is_lm(p))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "layer %u is outside the model: its blocks are 0 to %u",
                           (unsigned)p->cuts[i].layer, n - 1);
    return RENYI_OK;
}

/* ToMe's schedule: from int(r (1 - inflection)) in equal steps to 2r minus that, truncated. */
static void resolve_inflection(ry_policy *p)
{
    const double r = p->n_cuts ? p->cuts[0].count : 0;
    const double first = trunc(r * (1 - p->inflection)), last = 2 * r - first;
    for (uint32_t i = 0; p->inflection != 0 && p->n_cuts > 1 && i < p->n_cuts; i++)
        p->cuts[i].count = at_most_count(first + (last - first) / (p->n_cuts - 1) * i);
    p->inflection = 0;
}

/* metric=pool and weights=pool need a pooling head that takes the place of a class token. */
static renyi_status check_pooling(const ry_policy *p, const ry_policy_shape *s, renyi_error *err)
{
    const int ranks = p->metric == RY_METRIC_POOL;
    if (s->pools || (!ranks && !(ry_policy_fuses(p) && p->weights == RY_FUSE_POOL)))
        return RENYI_OK;
    const char *instead = !ry_policy_has_class(s) ? (ranks ? "metric=col" : "weights=score")
                          : ranks                 ? "metric=cls or col"
                                                  : "weights=cls";
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s looks at the probe of an attention-pooling head, as SigLIP has; %s, use %s",
                   ranks ? "metric=pool" : "weights=pool",
                   ry_policy_has_class(s) ? "this model has a class token" : "this model has none",
                   instead);
}

/* Weights of a fused token: which row of attention the encoder has. */
static void resolve_weights(ry_policy *p, const ry_policy_shape *s)
{
    const int has_class = ry_policy_has_class(s);
    if (p->weights == RY_FUSE_AUTO)
        p->weights = has_class ? RY_FUSE_CLS : s->pools ? RY_FUSE_POOL : RY_FUSE_SCORE;
    /* correct ranks by the row that the encoder has, and weighs by the same */
    if (p->metric == RY_METRIC_CORRECT && p->weights == RY_FUSE_CLS && s->pools)
        p->weights = RY_FUSE_POOL;
}

static renyi_status check_class_token(ry_policy *p, const ry_policy_shape *s, renyi_error *err)
{
    const char *what = NULL;
    const char *instead = s->pools ? "metric=col, pool, colv, renyi, shannon or random"
                                   : "metric=col, colv, renyi, shannon or random";
    char rule[RY_OWN_NAME + 16];

    resolve_weights(p, s);
    RY_TRY(check_pooling(p, s, err));
    if (ry_policy_has_class(s)) return RENYI_OK;
    if (p->rule == RY_RULE_ATS) {
        what = s->pools ? NULL : "the rule ats";
        instead = "mosaic, tome, or naive or evit with metric=col";
    } else if (p->rule == RY_RULE_TCA) {
        what = p->metric == RY_METRIC_CLS ? "metric=cls" : NULL;
        instead = "metric=col";
    } else if (ry_policy_own_needs(p, RENYI_NEED_CLASS_ROW)) {
        snprintf(rule, sizeof rule, "the rule %s", p->own->name);
        what = rule;
        instead = "a rule without RENYI_NEED_CLASS_ROW";
    } else if (p->rule == RY_RULE_NAIVE || p->rule == RY_RULE_EVIT || p->rule == RY_RULE_OWN) {
        if (p->metric == RY_METRIC_CLS) what = "metric=cls";
        if (p->metric == RY_METRIC_CORRECT && !s->pools) what = "metric=correct";
        if (!what && ry_policy_fuses(p) && p->weights == RY_FUSE_CLS) {
            what = "weights=cls";
            instead = s->pools ? "weights=pool or score" : "weights=score";
        }
    }
    if (!what) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s looks at the class token, and this model has none; use %s", what, instead);
}

static renyi_status nothing_kept(const ry_policy_cut *cut, uint32_t patches, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "layer %u: drop=%g fuses or merges all %u patches that arrive there, and one at "
                   "least has to stay as it is; 0.1 is usual",
                   (unsigned)cut->layer, cut->drop, (unsigned)patches);
}

/* Every cut leaves at least one patch. */
static renyi_status check_counts(const ry_policy *p, const ry_policy_shape *s, renyi_error *err)
{
    uint32_t n = s->n_prefix + s->n_patches;
    ry_tca_split split;
    for (uint32_t i = 0; i < p->n_cuts; i++) {
        const ry_policy_cut *cut = &p->cuts[i];
        const uint32_t patches = n - s->n_prefix;
        if (p->rule == RY_RULE_TCA && !ry_policy_tca_split(cut, patches, &split))
            return nothing_kept(cut, patches, err);
        if (p->budget == RY_BUDGET_DROP && p->rule != RY_RULE_TOME && cut->count >= patches)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "layer %u: p=%u leaves no token, only %u of the %u patches arrive there",
                           (unsigned)cut->layer, (unsigned)cut->count, (unsigned)patches,
                           (unsigned)s->n_patches);
        n = ry_policy_tokens_after(p, i, n, s->n_prefix);
    }
    return RENYI_OK;
}

static renyi_status check_visual(const ry_policy *p, const ry_policy_shape *s, renyi_error *err)
{
    const char *rule = ry_name_of(ry_rule_names, (int)p->rule);
    const uint32_t squares = p->over_image && s->n_squares ? s->n_squares : 1;
    const uint32_t n = ry_policy_visual_count(p, squares * s->n_patches);
    if (!s->visual)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s chooses among the visual tokens that a LLaVA gives its language model; "
                       "this model has none. Use naive, evit, mosaic, tome or ats",
                       rule);
    if (n > squares * s->n_patches)
        return ry_fail(err, RENYI_ERR_ARG, -1, "tokens=%u: %s has %u patches here", n,
                       squares == 1 && s->n_squares > 1 ? "a tile" : "an image",
                       squares * s->n_patches);
    if (!n && p->budget != RY_BUDGET_ADAPTIVE)
        return ry_fail(err, RENYI_ERR_ARG, -1, "keep=%g leaves none of %u patches", p->cuts[0].keep,
                       s->n_patches);
    if (p->rule == RY_RULE_HIPRUNE && p->block >= s->n_blocks)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "block=%u: the tower runs blocks 0 to %u; the block is one in the middle",
                       p->block, s->n_blocks - 1);
    if (p->plus && p->over_image)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "plus adds patches to those of each tile, so it goes with budget=tile");
    if (p->plus && n && !ry_policy_plus_stride(n, s->n_patches))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "plus adds patches between %u of %u; at most a third, %u, leave space for "
                       "them",
                       n, s->n_patches, s->n_patches / 3);
    return RENYI_OK;
}

renyi_status ry_policy_check(ry_policy *p, const ry_policy_shape *shape, renyi_error *err)
{
    if (p->rule == RY_RULE_NONE) return RENYI_OK;
    if (ry_policy_is_lm(p)) return ry_policy_check_lm(p, shape, err);
    if (!shape->n_patches) return ry_fail(err, RENYI_ERR_ARG, -1, "a model without patches");
    if (ry_policy_is_visual(p)) return check_visual(p, shape, err);
    RY_TRY(ry_policy_resolve_layers(p, shape->n_blocks, err));
    if (p->rule == RY_RULE_TOME) resolve_inflection(p);
    RY_TRY(check_class_token(p, shape, err));
    return check_counts(p, shape, err);
}
