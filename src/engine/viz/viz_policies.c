/* viz_policies.c - the policies that a renyi_viz runs: the rule with each metric, further policies
 * of the caller, and the rule at every keep rate.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/core/policy_api.h"
#include "engine/viz/viz_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_CUTS = 6 };

static renyi_status add_costs(renyi_viz *v, ry_viz_policy *p, renyi_error *err)
{
    const uint32_t n = v->model->vit.config.n_blocks;
    renyi_layer_cost *layers = RY_POOL_TAKE(&v->pool, n, renyi_layer_cost);
    double *macs = RY_POOL_TAKE(&v->pool, n + 1, double);
    renyi_cost cost;
    if (!layers || !macs) return ry_fail_nomem(err, n * sizeof *layers);
    RY_TRY(ry_policy_cost(v->model, &p->policy, &cost, layers, n, err));
    double sum = cost.embed.macs;
    for (uint32_t b = 0; b < n; b++) macs[b] = sum += layers[b].macs;
    macs[n] = cost.total.macs;
    p->macs = macs;
    return RENYI_OK;
}

/* policy: checked for the model. */
static renyi_status add_policy(renyi_viz *v, ry_viz_policy *out, const ry_policy *policy,
                               const char *label, renyi_error *err)
{
    char text[RY_MAX_POLICY_TEXT];
    out->policy = *policy;
    ry_policy_print(text, policy);
    out->text = ry_pool_text(&v->pool, text);
    out->label = ry_pool_text(&v->pool, label);
    if (!out->text || !out->label) return ry_fail_nomem(err, sizeof text);
    for (uint32_t i = 0; i < policy->n_cuts; i++)
        if (policy->cuts[i].reduce == RY_REDUCE_MERGE) out->merges = 1;
    out->adaptive = ry_policy_is_adaptive(policy);
    return add_costs(v, out, err);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static renyi_status parse_policy(const renyi_viz *v, const char *text, ry_policy *out,
                                 renyi_error *err)
{
    return ry_policy_for_model(out, text, v->model, err);
}

/* "naive p=16 layers=0,1,2,3,4,5": six cuts remove half of 196 patches; fewer cuts if there are too
 * few patches. */
static void default_rule(const renyi_viz *v, char out[RY_MAX_POLICY_TEXT])
{
    const uint32_t half = v->model->vit.n_patches / 2;
    uint32_t cuts = v->n_layers < DEFAULT_CUTS ? v->n_layers : DEFAULT_CUTS;
    if (cuts > half) cuts = half ? half : 1;
    int n = snprintf(out, RY_MAX_POLICY_TEXT, "naive p=%u layers=", half / cuts);
    for (uint32_t i = 0; i < cuts; i++)
        n += snprintf(out + n, RY_MAX_POLICY_TEXT - (size_t)n, "%s%u", i ? "," : "", v->layers[i]);
}

/* The rule with one of the scored metrics. */
static renyi_status parse_rule(const renyi_viz *v, const char *rule, uint32_t metric,
                               ry_policy *out, renyi_error *err)
{
    char text[RY_MAX_POLICY_TEXT];
    renyi_error why = {0};
    const char *name = v->scored[metric].name;
    const int n = snprintf(text, sizeof text, "%s metric=%s", rule, name);
    if (n < 0 || (size_t)n >= sizeof text)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a rule of %zu bytes", strlen(rule));
    if (!parse_policy(v, text, out, &why)) return RENYI_OK;
    return ry_fail(
        err, why.code, -1,
        "rule \"%.80s\" with metric=%.40s: %.240s (give a policy that takes no metric as "
        "a row of its own)",
        rule, name, why.message);
}

static renyi_status add_rows(renyi_viz *v, const renyi_viz_options *o, const char *rule,
                             renyi_error *err)
{
    ry_policy policy;
    ry_viz_policy *out = v->policies + 1;
    for (uint32_t m = 0; *rule && m < v->n_metrics; m++, out++) {
        RY_TRY(parse_rule(v, rule, m, &policy, err));
        *out = (ry_viz_policy){.metric = m, .norm = RENYI_NONE, .keep = NAN};
        RY_TRY(add_policy(v, out, &policy, v->scored[m].label, err));
    }
    for (uint32_t i = 0; i < o->n_policies; i++, out++) {
        renyi_error why = {0};
        if (!o->policies[i]) return ry_fail(err, RENYI_ERR_ARG, -1, "policy %u is NULL", i);
        if (parse_policy(v, o->policies[i], &policy, &why))
            return ry_fail(err, why.code, -1, "policy \"%.80s\": %.380s", o->policies[i],
                           why.message);
        *out = (ry_viz_policy){.metric = RENYI_NONE, .norm = RENYI_NONE, .keep = NAN};
        RY_TRY(add_policy(v, out, &policy, o->policies[i], err));
    }
    v->n_rows = (uint32_t)(out - v->policies) - 1;
    return RENYI_OK;
}

/* 1 = some row cuts in this block. */
static int is_cut_block(const renyi_viz *v, uint32_t block)
{
    for (uint32_t r = 1; r <= v->n_rows; r++) {
        const ry_policy *p = &v->policies[r].policy;
        for (uint32_t i = 0; i < p->n_cuts; i++)
            if (p->cuts[i].layer == block) return 1;
    }
    return 0;
}

/* Default layers: after the first blocks, which are there already, every block with a cut. */
static renyi_status add_cut_layers(renyi_viz *v, renyi_error *err)
{
    const uint32_t blocks = v->model->vit.config.n_blocks, first = v->n_layers;
    uint32_t *layers = RY_POOL_TAKE(&v->pool, blocks, uint32_t);
    if (!layers) return ry_fail_nomem(err, blocks * sizeof *layers);
    memcpy(layers, v->layers, first * sizeof *layers);
    for (uint32_t b = layers[first - 1] + 1; b < blocks; b++)
        if (is_cut_block(v, b)) layers[v->n_layers++] = b;
    v->layers = layers;
    return RENYI_OK;
}

/* ---- the sweep over keep rates ------------------------------------------------------------- */

/* Sets another rate: `keep` at each cut, or a p (or counts) that leaves this share of the patches
 * after the last cut. */
static void set_keep(ry_policy *p, double keep, uint32_t patches)
{
    const double gone = (1.0 - keep) * patches;
    for (uint32_t i = 0; i < p->n_cuts; i++) {
        ry_policy_cut *c = &p->cuts[i];
        const double so_far = gone * (i + 1) / p->n_cuts;
        if (p->budget == RY_BUDGET_KEEP)
            c->keep = keep;
        else if (p->budget == RY_BUDGET_SHARE)
            c->drop = 1.0 - keep;
        else if (p->budget == RY_BUDGET_DROP)
            c->count = (uint32_t)(gone / p->n_cuts);
        else
            c->count = patches - (uint32_t)so_far;
    }
}

/* The rule with one of the scored metrics at every keep rate. */
static renyi_status add_rates(renyi_viz *v, const char *rule, uint32_t scored, ry_viz_policy base,
                              ry_viz_policy *out, renyi_error *err)
{
    for (uint32_t k = 0; k < v->n_keeps; k++, out++) {
        char text[RY_MAX_POLICY_TEXT];
        renyi_error why = {0};
        ry_policy policy;
        RY_TRY(parse_rule(v, rule, scored, &policy, err));
        set_keep(&policy, v->keeps[k], v->model->vit.n_patches);
        ry_policy_print(text, &policy); /* parsed again: the rate may not be allowed */
        if (parse_policy(v, text, &policy, &why))
            return ry_fail(err, why.code, -1, "rule \"%.80s\" at keep rate %g: %.300s", rule,
                           v->keeps[k], why.message);
        *out = base;
        out->keep = v->keeps[k];
        RY_TRY(add_policy(v, out, &policy, v->scored[scored].label, err));
    }
    return RENYI_OK;
}

static renyi_status add_sweep(renyi_viz *v, const char *rule, int with_norms, renyi_error *err)
{
    ry_viz_policy *out = v->policies + 1 + v->n_rows;
    for (uint32_t m = 0; m < v->n_metrics; m++, out += v->n_keeps)
        RY_TRY(add_rates(v, rule, m, (ry_viz_policy){.metric = m, .norm = RENYI_NONE}, out, err));
    for (uint32_t i = 0; with_norms && i < v->n_norms; i++) {
        if (v->norms[i] < v->n_metrics) continue;
        const ry_viz_policy base = {.metric = RENYI_NONE, .norm = i};
        RY_TRY(add_rates(v, rule, v->norms[i], base, out, err));
        out += v->n_keeps;
    }
    for (uint32_t i = 0; with_norms && i < v->n_norms; i++) {
        ry_policy policy;
        if (v->norms[i] < v->n_metrics) continue;
        RY_TRY(parse_rule(v, rule, v->norms[i], &policy, err));
        *out = (ry_viz_policy){.metric = RENYI_NONE, .norm = i, .keep = NAN};
        RY_TRY(add_policy(v, out++, &policy, v->scored[v->norms[i]].label, err));
    }
    v->n_sweep = (uint32_t)(out - v->policies) - 1 - v->n_rows;
    return RENYI_OK;
}

renyi_status ry_viz_read_policies(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    char text[RY_MAX_POLICY_TEXT];
    const char *rule = o->rule ? o->rule : text;
    ry_policy none;
    default_rule(v, text);
    if (o->n_policies > RENYI_VIZ_MAX_ROWS - RENYI_VIZ_MAX_METRICS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u policies; at most %d are allowed", o->n_policies,
                       RENYI_VIZ_MAX_ROWS - RENYI_VIZ_MAX_METRICS);
    if (o->n_policies && !o->policies)
        return ry_fail(err, RENYI_ERR_ARG, -1, "the list of policies is NULL");
    if (o->sweep && !*rule)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a sweep over keep rates needs a rule");
    const size_t most =
        1 + (size_t)v->n_metrics + o->n_policies +
        (o->sweep ? ((size_t)v->n_metrics + v->n_norms) * ((size_t)v->n_keeps + 1) : 0);
    v->policies = RY_POOL_TAKE(&v->pool, most, ry_viz_policy);
    if (!v->policies) return ry_fail_nomem(err, most * sizeof *v->policies);
    RY_TRY(parse_policy(v, NULL, &none, err));
    v->policies[0] = (ry_viz_policy){.metric = RENYI_NONE, .norm = RENYI_NONE, .keep = NAN};
    RY_TRY(add_policy(v, &v->policies[0], &none, "dense", err));
    RY_TRY(add_rows(v, o, rule, err));
    if (!o->n_layers) RY_TRY(add_cut_layers(v, err));
    return o->sweep ? add_sweep(v, rule, o->sweep > 1, err) : RENYI_OK;
}
