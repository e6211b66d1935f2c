/* lm_rule.c - binds a policy inside the language model to the cuts of a prefill: what each cut
 * sees, and which visual rows stay.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/lm_rule.h"

#include "base/alloc.h"
#include "base/status.h"
#include "prune/rules/dart.h"
#include "prune/rules/select.h"
#include "prune/rules/sparsevlm.h"

#include <string.h>

_Static_assert((int)RY_MAX_CUTS <= (int)RY_LLAMA_MAX_CUTS, "the cuts of every policy fit");

/* A cut of the last prefill. */
typedef struct cut_record {
    uint32_t n_in, n_kept; /* 0 = not made yet */
    int has_scores;
    uint32_t *kept; /* [max_context] */
    float *scores;  /* [max_context] */
} cut_record;

struct ry_lm_rule {
    ry_policy policy;
    ry_llama_cuts cuts;
    uint32_t max_context;
    size_t bytes;
    uint32_t *order; /* [max_context] */
    uint64_t *rank;  /* [2 max_context] */
    uint8_t *taken;  /* [max_context] */
    ry_dart_scratch dart;
    ry_recycler recycler;
    cut_record records[RY_LLAMA_MAX_CUTS];
};

/* ---- choosing -------------------------------------------------------------------------------- */

static uint32_t take_best(const ry_lm_rule *r, const ry_llama_view *v, uint32_t count)
{
    ry_rank(r->order, v->score, v->n_visual, r->rank);
    memset(r->taken, 0, v->n_visual);
    for (uint32_t k = 0; k < count; k++) r->taken[r->order[k]] = 1;
    return count;
}

static uint32_t take_all(const ry_lm_rule *r, const ry_llama_view *v)
{
    memset(r->taken, 1, v->n_visual);
    return v->n_visual;
}

static void record(ry_lm_rule *r, const ry_llama_view *v, const ry_llama_choice *choice)
{
    cut_record *c = &r->records[v->cut];
    c->n_in = v->n_visual;
    c->n_kept = choice->n_kept + choice->n_merged;
    c->has_scores = v->score != NULL;
    for (uint32_t k = 0; k < c->n_kept; k++)
        c->kept[k] = k < choice->n_kept ? v->place[choice->kept[k]] : RENYI_NONE;
    if (v->score) memcpy(c->scores, v->score, v->n_visual * sizeof *v->score);
}

static void choose(void *self, const ry_llama_view *v, ry_llama_choice *choice)
{
    ry_lm_rule *r = self;
    const ry_policy *p = &r->policy;
    const uint32_t read = v->cut ? r->records[0].n_in : v->n_visual, n = v->n_visual;
    uint32_t count = ry_policy_lm_count(p, v->cut, read);
    if (count >= n)
        count = take_all(r, v);
    else if (p->rule == RY_RULE_DART)
        count = ry_dart_choose(&r->dart, p, v, ry_policy_dart_share(p, read), r->taken);
    else
        count = take_best(r, v, count);
    ry_select_ascending(choice->kept, r->taken, n);
    choice->n_kept = count;
    if (count < n) ry_recycle(&r->recycler, p, v, r->order + count, n - count, choice);
    record(r, v, choice);
}

/* ---- making ---------------------------------------------------------------------------------- */

static ry_llama_cut cut_of(const ry_policy *p, uint32_t i)
{
    const uint32_t layer = p->cuts[i].layer;
    ry_llama_cut cut = {.layer = layer, .look = layer - 1, .order = 1.0};
    if (p->rule == RY_RULE_DART) {
        cut.key_sizes = 1;
        return cut;
    }
    if (p->rule == RY_RULE_PYRAMIDDROP) cut.look = layer;
    cut.queries = RY_QUERIES_LAST;
    if (p->metric == RY_METRIC_LAST) return cut;
    cut.queries = p->rows == RY_LM_ROWS_TEXT ? RY_QUERIES_TEXT : RY_QUERIES_ALL;
    if (p->rule == RY_RULE_SPARSEVLM) cut.queries = RY_QUERIES_RATERS;
    cut.order = p->n;
    return cut;
}

/* One block: the rule itself, then its arrays. */
static ry_lm_rule *lay_out(ry_arena *a, ry_lm_rule *r, size_t dim)
{
    const size_t V = r->max_context;
    ry_lm_rule *place = RY_TAKE(a, 1, ry_lm_rule);
    r->order = RY_TAKE(a, V, uint32_t);
    r->rank = RY_TAKE(a, 2 * V, uint64_t);
    r->taken = RY_TAKE(a, V, uint8_t);
    r->dart = (ry_dart_scratch){.order = r->order,
                                .rank = r->rank,
                                .score = RY_TAKE(a, V, float),
                                .list = RY_TAKE(a, V, uint32_t),
                                .pivot = RY_TAKE(a, V, uint32_t),
                                .chosen = RY_TAKE(a, V, uint8_t)};
    ry_recycler_lay_out(&r->recycler, a, &r->policy, r->max_context, dim);
    for (uint32_t i = 0; i < r->cuts.n; i++) {
        r->records[i].kept = RY_TAKE(a, V, uint32_t);
        r->records[i].scores = RY_TAKE(a, V, float);
    }
    return place;
}

renyi_status ry_lm_rule_new(ry_lm_rule **out, const ry_policy *policy, uint32_t max_context,
                            size_t dim, const renyi_allocator *al, renyi_error *err)
{
    ry_lm_rule rule = {.policy = *policy, .max_context = max_context};
    ry_arena block = {0};
    rule.cuts = (ry_llama_cuts){policy->n_cuts, .renumbers = policy->renumbers, .choose = choose};
    for (uint32_t i = 0; i < policy->n_cuts; i++) rule.cuts.cut[i] = cut_of(policy, i);
    (void)lay_out(&block, &rule, dim); /* measures */
    rule.bytes = block.overflow ? SIZE_MAX : block.used;
    block = (ry_arena){.base = ry_alloc(al, rule.bytes, 1), .cap = rule.bytes};
    *out = NULL;
    if (!block.base) return ry_fail_nomem(err, rule.bytes);
    ry_lm_rule *r = lay_out(&block, &rule, dim);
    rule.cuts.self = r;
    *r = rule;
    *out = r;
    return RENYI_OK;
}

void ry_lm_rule_free(ry_lm_rule *r, const renyi_allocator *al) { ry_free(al, r); }

size_t ry_lm_rule_bytes(const ry_lm_rule *r) { return r->bytes; }
const ry_llama_cuts *ry_lm_rule_cuts(const ry_lm_rule *r) { return &r->cuts; }

renyi_status ry_lm_rule_check(const ry_lm_rule *r, uint32_t n_visual, uint32_t n_text,
                              renyi_error *err)
{
    if (r->policy.rule == RY_RULE_SPARSEVLM && !n_text)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "sparsevlm: rows after the image rate it, and the prompt has none");
    if (r->policy.metric == RY_METRIC_COL && r->policy.rows == RY_LM_ROWS_TEXT && !n_text)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rows=text: the prompt has no rows after the image; use rows=all");
    return ry_policy_check_lm_counts(&r->policy, n_visual, err);
}

/* ---- traces ---------------------------------------------------------------------------------- */

int ry_lm_rule_trace(const ry_lm_rule *r, uint32_t i, ry_lm_trace *out)
{
    if (i >= r->cuts.n || !r->records[i].n_in) return 0;
    const cut_record *c = &r->records[i];
    *out = (ry_lm_trace){.layer = r->cuts.cut[i].layer,
                         .n_in = c->n_in,
                         .n_kept = c->n_kept,
                         .kept = c->kept,
                         .scores = c->has_scores ? c->scores : NULL};
    return 1;
}

void ry_lm_rule_forget(ry_lm_rule *r)
{
    for (uint32_t i = 0; i < r->cuts.n; i++) r->records[i].n_in = 0;
}
