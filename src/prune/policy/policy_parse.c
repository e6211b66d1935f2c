/* policy_parse.c - turns the keys and values of a policy text into a ry_policy: what values mean,
 * their ranges, and which keys go together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"
#include "base/status.h"
#include "prune/policy/cascade.h"
#include "prune/policy/policy_values.h"

#include <math.h>
#include <string.h>

/* ---- layers and values per layer ------------------------------------------------------------- */

static renyi_status add_layers(ry_policy *p, const ry_slice *item, renyi_error *err)
{
    const char *dash = memchr(item->at, '-', item->len);
    const size_t len = dash ? (size_t)(dash - item->at) : item->len;
    uint64_t first, last;

    if (!ry_read_whole(item->at, len, RY_MAX_COUNT, &first))
        return ry_value_bad(RY_KEY_LAYERS, item, err);
    last = first;
    if (dash && !ry_read_whole(dash + 1, item->len - len - 1, RY_MAX_COUNT, &last))
        return ry_value_bad(RY_KEY_LAYERS, item, err);
    if (last < first)
        return ry_fail(err, RENYI_ERR_ARG, item->offset,
                       "layers=%.*s: a range goes from the lower block to the higher",
                       RY_SHOW(item));
    if (last - first >= RY_MAX_CUTS - p->n_cuts)
        return ry_fail(err, RENYI_ERR_ARG, item->offset,
                       "layers=%.*s: a policy names at most %d layers", RY_SHOW(item),
                       (int)RY_MAX_CUTS);
    for (uint64_t l = first; l <= last; l++) p->cuts[p->n_cuts++].layer = (uint32_t)l;
    return RENYI_OK;
}

/* "2-9/12" without "/12", which goes to p->depth. */
static renyi_status read_depth(ry_policy *p, ry_slice *value, renyi_error *err)
{
    const char *slash = memchr(value->at, '/', value->len);
    const size_t len = slash ? (size_t)(slash - value->at) : value->len;
    uint64_t depth = 0;

    if (slash && (!ry_read_whole(slash + 1, value->len - len - 1, RY_MAX_COUNT, &depth) || !depth))
        return ry_value_bad(RY_KEY_LAYERS, value, err);
    p->depth = (uint32_t)depth;
    value->len = len;
    return RENYI_OK;
}

static renyi_status read_layers(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    static const ry_name sets[] = {{"early", 0}, {"all", 1}, {NULL, 0}};
    const ry_slice *value = ry_key_value(w, RY_KEY_LAYERS);
    const ry_name *set = ry_name_find(sets, value->at, value->len);
    const ry_slice early = {"0-5", 3, value->offset};
    ry_slice list = *value;
    ry_items items;

    p->every_layer = set && set->value;
    if (p->every_layer) return RENYI_OK; /* read_list sets n_cuts */
    if (set) return add_layers(p, &early, err);
    RY_TRY(read_depth(p, &list, err));
    RY_TRY(ry_items_read(&items, RY_KEY_LAYERS, &list, err));
    for (size_t i = 0; i < items.count; i++) RY_TRY(add_layers(p, &items.item[i], err));
    for (uint32_t i = 0; p->depth && i < p->n_cuts; i++)
        if (p->cuts[i].layer >= p->depth)
            return ry_fail(err, RENYI_ERR_ARG, value->offset,
                           "layers=%.*s: a model with %u blocks has no block %u", RY_SHOW(value),
                           (unsigned)p->depth, (unsigned)p->cuts[i].layer);
    return RENYI_OK;
}

/* The items of a key with one value for all layers or one per layer. With layers=all the first
 * list sets their number, until the policy is checked against a model. */
static renyi_status read_list(ry_policy *p, const ry_key_values *w, ry_key key, ry_items *items,
                              renyi_error *err)
{
    const ry_slice *value = ry_key_value(w, key);
    RY_TRY(ry_items_read(items, key, value, err));
    if (p->every_layer && p->n_cuts <= 1) p->n_cuts = (uint32_t)items->count;
    if (items->count != 1 && items->count != p->n_cuts)
        return ry_fail(err, RENYI_ERR_ARG, value->offset,
                       "%s has %zu values for %u layers: give one, or one per layer",
                       ry_keys[key].name, items->count, (unsigned)p->n_cuts);
    return RENYI_OK;
}

static const ry_slice *item_of(const ry_items *items, uint32_t cut)
{
    return &items->item[items->count == 1 ? 0 : cut];
}

static renyi_status read_budget_item(ry_policy_cut *cut, ry_key key, const ry_slice *item,
                                     renyi_error *err)
{
    uint64_t count = 0;
    if (key == RY_KEY_KEEP) {
        if (!ry_read_decimal(item->at, item->len, &cut->keep) || !(cut->keep > 0) || cut->keep > 1)
            return ry_value_bad(key, item, err);
        return RENYI_OK;
    }
    if (key == RY_KEY_DROP) {
        if (!ry_read_decimal(item->at, item->len, &cut->drop) || !(cut->drop > 0) || cut->drop >= 1)
            return ry_value_bad(key, item, err);
        return RENYI_OK;
    }
    if (!ry_read_whole(item->at, item->len, RY_MAX_COUNT, &count) ||
        (key == RY_KEY_TOKENS && !count))
        return ry_value_bad(key, item, err);
    cut->count = (uint32_t)count;
    return RENYI_OK;
}

static ry_budget budget_of(ry_key key)
{
    switch (key) {
    case RY_KEY_KEEP: return RY_BUDGET_KEEP;
    case RY_KEY_TOKENS: return RY_BUDGET_COUNT;
    case RY_KEY_DROP: return RY_BUDGET_SHARE;
    default: return RY_BUDGET_DROP;
    }
}

static ry_key budget_key(const ry_key_values *w)
{
    ry_key key = RY_KEY_KEEP;
    while (!ry_key_value(w, key)) key++; /* every rule that cuts has a default budget */
    return key;
}

/* Layers, budget and reduce into p->cuts, in the order of the text. */
static renyi_status read_cuts(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_key key = budget_key(w);
    const int choice = ry_key_for_rule(RY_KEY_REDUCE, w->rule);
    ry_items budgets, reduces = {0};

    p->budget = budget_of(key);
    if (ry_key_for_rule(RY_KEY_LAYER, w->rule)) {
        p->n_cuts = 1;
        RY_TRY(ry_value_count(w, RY_KEY_LAYER, 1, &p->cuts[0].layer, err));
    } else {
        RY_TRY(read_layers(p, w, err));
    }
    RY_TRY(read_list(p, w, key, &budgets, err));
    if (choice) RY_TRY(read_list(p, w, RY_KEY_REDUCE, &reduces, err));
    for (uint32_t i = 0; i < p->n_cuts; i++) {
        ry_policy_cut *cut = &p->cuts[i];
        if (p->every_layer) cut->layer = i;
        RY_TRY(read_budget_item(cut, key, item_of(&budgets, i), err));
        cut->reduce =
            w->rule == RY_RULE_ATS || ry_policy_is_lm(p) ? RY_REDUCE_DROP : RY_REDUCE_MERGE;
        if (!choice) continue;
        const ry_slice *item = item_of(&reduces, i);
        const ry_name *name = ry_name_find(ry_keys[RY_KEY_REDUCE].names, item->at, item->len);
        if (!name) return ry_value_bad(RY_KEY_REDUCE, item, err);
        cut->reduce = (ry_reduce)name->value;
        if (cut->reduce == RY_REDUCE_FUSE && p->budget == RY_BUDGET_DROP && cut->count == 1)
            return ry_fail(err, RENYI_ERR_ARG, item_of(&budgets, i)->offset,
                           "p=1 with fuse removes one token and adds one; use a larger p, or drop");
    }
    return RENYI_OK;
}

static renyi_status sort_cuts(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    for (uint32_t i = 1; i < p->n_cuts; i++)
        for (uint32_t j = i; j && p->cuts[j].layer < p->cuts[j - 1].layer; j--) {
            const ry_policy_cut t = p->cuts[j];
            p->cuts[j] = p->cuts[j - 1];
            p->cuts[j - 1] = t;
        }
    for (uint32_t i = 1; i < p->n_cuts; i++)
        if (p->cuts[i].layer == p->cuts[i - 1].layer)
            return ry_fail(err, RENYI_ERR_ARG, ry_key_value(w, RY_KEY_LAYERS)->offset,
                           "layer %u is named twice", (unsigned)p->cuts[i].layer);
    return RENYI_OK;
}

renyi_status ry_policy_read_cuts(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    RY_TRY(read_cuts(p, w, err));
    return ry_key_for_rule(RY_KEY_LAYERS, w->rule) ? sort_cuts(p, w, err) : RENYI_OK;
}

/* ---- metric ---------------------------------------------------------------------------------- */

/* A key that the user gave but the metric or the reduction does not use is an error. */
renyi_status ry_policy_check_keys(const ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_name *metrics = ry_keys[RY_KEY_METRIC].names;
    char list[96];
    for (ry_key k = 0; k < RY_N_KEYS; k++) {
        const ry_slice *value = ry_key_value(w, k);
        if (!value || w->given[k].origin != RY_FROM_USER) continue;
        const int64_t offset = value->offset - (int64_t)strlen(ry_keys[k].name) - 1;
        ry_name_list(list, sizeof list, metrics, ry_keys[k].metrics);
        if (p->own && !ry_key_is_used(k, p))
            return ry_fail(err, RENYI_ERR_ARG, offset,
                           "%s is the order of the columns, and %s does not need them "
                           "(RENYI_NEED_COLUMNS)",
                           ry_keys[k].name, p->own->name);
        if (!ry_key_is_used(k, p))
            return ry_fail(err, RENYI_ERR_ARG, offset, "%s goes with metric=%s, not with metric=%s",
                           ry_keys[k].name, list, ry_name_of(metrics, (int)p->metric));
        if (k == RY_KEY_WEIGHTS && !ry_policy_fuses(p))
            return ry_fail(err, RENYI_ERR_ARG, offset,
                           "weights are those of a fused token: say fuse, or leave them out");
    }
    return RENYI_OK;
}

/* The class row, as in the code of every EViT variant (its variable names suggest otherwise);
 * for random ranking the random scores. For metrics without a class row ry_policy_check decides.
 */
static ry_fuse_weights usual_weights(ry_metric metric)
{
    if (metric == RY_METRIC_RANDOM) return RY_FUSE_SCORE;
    if (metric == RY_METRIC_POOL) return RY_FUSE_POOL;
    return metric == RY_METRIC_CLS || metric == RY_METRIC_CORRECT ? RY_FUSE_CLS : RY_FUSE_AUTO;
}

static renyi_status read_weights(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    int word = RY_FUSE_AUTO;
    if (!ry_policy_fuses(p)) return RENYI_OK;
    RY_TRY(ry_value_word(w, RY_KEY_WEIGHTS, &word, err));
    p->weights = word == RY_FUSE_AUTO ? usual_weights(p->metric) : (ry_fuse_weights)word;
    return RENYI_OK;
}

/* Reads a key only if this metric uses it. */
static renyi_status read_metric_word(const ry_policy *p, const ry_key_values *w, ry_key key,
                                     int *out, renyi_error *err)
{
    return ry_key_is_used(key, p) ? ry_value_word(w, key, out, err) : RENYI_OK;
}

static renyi_status read_seed(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_slice *seed = ry_key_value(w, RY_KEY_SEED);
    if (ry_read_whole(seed->at, seed->len, UINT64_MAX, &p->seed)) return RENYI_OK;
    return ry_value_bad(RY_KEY_SEED, seed, err);
}

static renyi_status read_ranking(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    int rounding = 0, heads = 0, place = 0, order = 0;

    RY_TRY(ry_policy_check_keys(p, w, err));
    if (ry_key_is_used(RY_KEY_N, p)) RY_TRY(ry_value_number(w, RY_KEY_N, 1, INFINITY, &p->n, err));
    if (ry_policy_own_needs(p, RENYI_NEED_COLUMNS) && w->given[RY_KEY_N].origin == RY_FROM_DEFAULT)
        p->n = p->own->rule.order;
    if (p->metric == RY_METRIC_SHANNON) p->n = 1;
    if (ry_key_for_metric(RY_KEY_C, p->metric))
        RY_TRY(ry_value_number(w, RY_KEY_C, 0, 1, &p->c, err));
    if (ry_key_for_metric(RY_KEY_SEED, p->metric)) RY_TRY(read_seed(p, w, err));
    RY_TRY(read_metric_word(p, w, RY_KEY_ROUNDING, &rounding, err));
    RY_TRY(read_metric_word(p, w, RY_KEY_HEADS, &heads, err));
    RY_TRY(read_metric_word(p, w, RY_KEY_CLASS_ROW, &p->class_row, err));
    RY_TRY(read_metric_word(p, w, RY_KEY_REGISTERS, &p->registers, err));
    RY_TRY(read_metric_word(p, w, RY_KEY_DIAGONAL, &p->diagonal, err));
    RY_TRY(ry_value_word(w, RY_KEY_AT, &place, err));
    if (ry_key_for_rule(RY_KEY_ORDER, p->rule)) RY_TRY(ry_value_word(w, RY_KEY_ORDER, &order, err));
    p->rounding = (ry_rounding)rounding;
    p->heads = (ry_heads)heads;
    p->place = (ry_place)place;
    p->order = (ry_order)order;
    return read_weights(p, w, err);
}

static renyi_status read_inflection(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_slice *value = ry_key_value(w, RY_KEY_INFLECTION);
    RY_TRY(ry_value_number(w, RY_KEY_INFLECTION, -1, 1, &p->inflection, err));
    if (!w->given[RY_KEY_INFLECTION].origin) return RENYI_OK;
    if (memchr(ry_key_value(w, RY_KEY_R)->at, ',', ry_key_value(w, RY_KEY_R)->len))
        return ry_fail(err, RENYI_ERR_ARG, value->offset,
                       "inflection bends one r; a list of r says all there is to say");
    return RENYI_OK;
}

/* The metric of tca and its first centre. */
static renyi_status read_condensing(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_slice *metric = ry_key_value(w, RY_KEY_METRIC);
    const ry_slice *start = ry_key_value(w, RY_KEY_START);
    if (p->metric != RY_METRIC_CLS && p->metric != RY_METRIC_COL)
        return ry_fail(err, RENYI_ERR_ARG, metric->offset,
                       "metric=%.*s: tca ranks by metric=cls or metric=col", RY_SHOW(metric));
    RY_TRY(ry_policy_check_keys(p, w, err));
    if (p->metric == RY_METRIC_COL) RY_TRY(ry_value_number(w, RY_KEY_N, 1, INFINITY, &p->n, err));
    if (start->len == 4 && memcmp(start->at, "best", 4) == 0) return RENYI_OK;
    if (!ry_read_whole(start->at, start->len, UINT64_MAX, &p->seed))
        return ry_value_bad(RY_KEY_START, start, err);
    p->start = RY_START_RANDOM;
    return RENYI_OK;
}

static renyi_status read_levels(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_slice *value = ry_key_value(w, RY_KEY_LEVELS);
    if (value->len == strlen("budget") && memcmp(value->at, "budget", value->len) == 0)
        return RENYI_OK;
    return ry_value_count(w, RY_KEY_LEVELS, 1, &p->levels, err);
}

/* How mosaic chooses and merges. */
static renyi_status read_merge(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    RY_TRY(ry_value_number(w, RY_KEY_ALPHA, 0, 4, &p->alpha, err));
    RY_TRY(ry_value_number(w, RY_KEY_OMEGA, 0, 2, &p->omega, err));
    RY_TRY(ry_value_number(w, RY_KEY_BETA, 0, 2, &p->beta, err));
    RY_TRY(ry_value_number(w, RY_KEY_MEMORY, 0, 1, &p->memory, err));
    RY_TRY(ry_value_word(w, RY_KEY_LENGTH, &p->longest, err));
    RY_TRY(ry_value_number(w, RY_KEY_COL, 0, 1, &p->col, err));
    RY_TRY(ry_value_number(w, RY_KEY_TEMPERATURE, 0.5, 2, &p->temperature, err));
    return ry_value_number(w, RY_KEY_LIKENESS, 0, 1, &p->likeness, err);
}

/* ---- rules for the visual tokens of a LLaVA -------------------------------------------------- */

static renyi_status read_visual_budget(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_slice *tokens = ry_key_value(w, RY_KEY_TOKENS);
    const ry_slice *keep = ry_key_value(w, RY_KEY_KEEP);
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
    return ry_value_count(w, RY_KEY_TOKENS, 1, &cut->count, err);
}

/* Keys that only a LLaVA-NeXT needs have no defaults in the text. */
static renyi_status read_tiles(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_slice *budget = ry_key_value(w, RY_KEY_BUDGET);
    int newlines = 1;
    if (budget) RY_TRY(ry_value_word(w, RY_KEY_BUDGET, &p->over_image, err));
    if (ry_key_value(w, RY_KEY_NEWLINES)) RY_TRY(ry_value_word(w, RY_KEY_NEWLINES, &newlines, err));
    p->drops_newlines = !newlines;
    if (!p->over_image || (p->budget != RY_BUDGET_ADAPTIVE && p->rule != RY_RULE_DOWNSAMPLE))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, budget->offset,
                   "budget=image: %s has no number that tiles could share; leave budget out",
                   ry_name_of(ry_rule_names, (int)p->rule));
}

static renyi_status read_visual_metric(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    const ry_slice *metric = ry_key_value(w, RY_KEY_METRIC);
    const int by_text = p->metric == RY_METRIC_TEXT && p->rule == RY_RULE_CDPRUNER;
    if (p->metric != RY_METRIC_CLS && p->metric != RY_METRIC_COL &&
        p->metric != RY_METRIC_CORRECT && !by_text)
        return ry_fail(err, RENYI_ERR_ARG, metric->offset,
                       "metric=%.*s: %s ranks by metric=cls, metric=col or metric=correct",
                       RY_SHOW(metric), ry_name_of(ry_rule_names, (int)p->rule));
    RY_TRY(ry_policy_check_keys(p, w, err));
    if (ry_key_for_metric(RY_KEY_N, p->metric))
        RY_TRY(ry_value_number(w, RY_KEY_N, 1, INFINITY, &p->n, err));
    if (ry_key_for_metric(RY_KEY_C, p->metric))
        RY_TRY(ry_value_number(w, RY_KEY_C, 0, 1, &p->c, err));
    return RENYI_OK;
}

static renyi_status read_vispruner(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    int residual = RY_RESIDUAL_AUTO;
    RY_TRY(ry_value_number(w, RY_KEY_IMPORTANT, 0, 1, &p->important, err));
    RY_TRY(ry_value_count(w, RY_KEY_ROUND, 1, &p->round, err));
    RY_TRY(ry_value_word(w, RY_KEY_RESIDUAL, &residual, err));
    if (residual == RY_RESIDUAL_AUTO)
        residual = p->metric == RY_METRIC_CORRECT ? RY_ORDER_POSITION : RY_ORDER_SCORE;
    p->residual = (ry_order)residual;
    return RENYI_OK;
}

/* metric=correct takes patches by one score and then by another; a rule that weighs them needs one
 * score. */
static renyi_status no_two_scores(const ry_key_values *w, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_ARG, ry_key_value(w, RY_KEY_METRIC)->offset,
                   "metric=correct: %s weighs patches by one score; use metric=cls or metric=col",
                   ry_name_of(ry_rule_names, (int)w->rule));
}

/* The rest of a rule for the visual tokens of a LLaVA. */
static renyi_status read_visual(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    RY_TRY(read_visual_budget(p, w, err));
    RY_TRY(read_tiles(p, w, err));
    if (ry_key_for_rule(RY_KEY_METRIC, p->rule)) RY_TRY(read_visual_metric(p, w, err));
    switch (p->rule) {
    case RY_RULE_PRUMERGE:
        RY_TRY(ry_value_word(w, RY_KEY_PLUS, &p->plus, err));
        return ry_value_count(w, RY_KEY_NEIGHBOURS, 0, &p->neighbours, err);
    case RY_RULE_VISPRUNER: return read_vispruner(p, w, err);
    case RY_RULE_VISIONZIP:
        RY_TRY(ry_value_number(w, RY_KEY_CONTEXTUAL, 0, 1, &p->contextual, err));
        return ry_value_word(w, RY_KEY_CLASS_TOKEN, &p->class_token, err);
    case RY_RULE_HIPRUNE:
        RY_TRY(ry_value_number(w, RY_KEY_ANCHORS, 0, 1, &p->anchors, err));
        return ry_value_count(w, RY_KEY_BLOCK, 0, &p->block, err);
    case RY_RULE_MOSAIC_BEHIND:
        if (p->metric == RY_METRIC_CORRECT) return no_two_scores(w, err);
        RY_TRY(ry_value_number(w, RY_KEY_ALPHA, 0, 4, &p->alpha, err));
        RY_TRY(ry_value_number(w, RY_KEY_OMEGA, 0, 2, &p->omega, err));
        return ry_value_word(w, RY_KEY_LENGTH, &p->longest, err);
    case RY_RULE_CDPRUNER: return p->metric == RY_METRIC_CORRECT ? no_two_scores(w, err) : RENYI_OK;
    case RY_RULE_RANDOM: p->metric = RY_METRIC_RANDOM; return read_seed(p, w, err);
    default: return RENYI_OK;
    }
}

/* ---- a whole policy -------------------------------------------------------------------------- */

static renyi_status read_policy(ry_policy *p, const ry_key_values *w, renyi_error *err)
{
    int metric = w->own ? RY_METRIC_OWN : RY_METRIC_CLS;

    p->rule = w->rule;
    p->own = w->own;
    p->class_row = p->registers = p->diagonal = 1;
    if (p->rule == RY_RULE_NONE) return RENYI_OK;
    if (ry_key_for_rule(RY_KEY_METRIC, p->rule))
        RY_TRY(ry_value_word(w, RY_KEY_METRIC, &metric, err));
    p->metric = (ry_metric)metric;
    if (ry_policy_is_lm(p)) return ry_policy_read_lm(p, w, err);
    if (p->metric == RY_METRIC_LAST)
        return ry_fail(err, RENYI_ERR_ARG, ry_key_value(w, RY_KEY_METRIC)->offset,
                       "metric=last is the last row of a language model; %s sees none, fastv and "
                       "pyramiddrop do",
                       ry_rule_name(p->rule, p->own));
    if (ry_policy_is_visual(p)) return read_visual(p, w, err);
    if (p->metric == RY_METRIC_TEXT)
        return ry_fail(err, RENYI_ERR_ARG, ry_key_value(w, RY_KEY_METRIC)->offset,
                       "metric=text ranks by a question to a LLaVA: it is of the rule cdpruner");
    RY_TRY(read_cuts(p, w, err));
    if (p->rule == RY_RULE_TOME) RY_TRY(read_inflection(p, w, err));
    if (p->rule == RY_RULE_ATS) RY_TRY(read_levels(p, w, err));
    if (p->rule == RY_RULE_MOSAIC) RY_TRY(read_merge(p, w, err));
    if (p->rule == RY_RULE_TCA)
        RY_TRY(read_condensing(p, w, err));
    else if (ry_key_for_rule(RY_KEY_AT, p->rule))
        RY_TRY(read_ranking(p, w, err));
    return sort_cuts(p, w, err);
}

renyi_status ry_policy_parse_own(ry_policy *out, const char *text, const ry_own_rules *own,
                                 renyi_error *err)
{
    ry_key_values words;

    memset(out, 0, sizeof *out);
    if (ry_is_cascade(text))
        return ry_fail(err, RENYI_ERR_ARG, 0,
                       "a cascade, where a policy of one pass is needed; cascades are for sessions "
                       "that classify images");
    if (strlen(text) >= RY_MAX_POLICY_TEXT)
        return ry_fail(err, RENYI_ERR_ARG, RY_MAX_POLICY_TEXT - 1,
                       "a policy has at most %d bytes; this one has %zu", RY_MAX_POLICY_TEXT - 1,
                       strlen(text));
    RY_TRY(ry_key_values_read(&words, text, own, err));
    RY_TRY(read_policy(out, &words, err));
    if (ry_policy_text_length(out) >= RY_MAX_POLICY_TEXT)
        return ry_fail(err, RENYI_ERR_ARG, 0,
                       "this policy, written in full, is longer than %d bytes",
                       RY_MAX_POLICY_TEXT - 1);
    return RENYI_OK;
}

renyi_status ry_policy_parse(ry_policy *out, const char *text, renyi_error *err)
{
    return ry_policy_parse_own(out, text, NULL, err);
}
