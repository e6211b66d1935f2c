/* viz_options.c - checks and copies the lists of renyi_viz_options and fills in defaults.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_LAYERS = 6, DEFAULT_TOP = 5, MAX_TIMED = 1000 };

static renyi_status check_count(const char *what, uint32_t n, uint32_t most, const void *list,
                                renyi_error *err)
{
    if (n > most)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u %s; at most %u are allowed", n, what, most);
    if (n && !list) return ry_fail(err, RENYI_ERR_ARG, -1, "the list of %s is NULL", what);
    return RENYI_OK;
}

/* ---- layers and keep rates ----------------------------------------------------------------- */

static renyi_status read_layers(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    const uint32_t blocks = v->model->vit.config.n_blocks;
    RY_TRY(check_count("layers", o->n_layers, blocks, o->layers, err));
    const uint32_t first = blocks < DEFAULT_LAYERS ? blocks : DEFAULT_LAYERS;
    v->n_layers = o->n_layers ? o->n_layers : first;
    v->layers = RY_POOL_TAKE(&v->pool, v->n_layers, uint32_t);
    if (!v->layers) return ry_fail_nomem(err, v->n_layers * sizeof *v->layers);
    for (uint32_t i = 0; i < v->n_layers; i++) {
        v->layers[i] = o->n_layers ? o->layers[i] : i;
        if (v->layers[i] >= blocks)
            return ry_fail(err, RENYI_ERR_ARG, -1, "layer %u; the model has blocks 0 to %u",
                           v->layers[i], blocks - 1);
        if (i && v->layers[i] <= v->layers[i - 1])
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "layer %u after layer %u; layers must ascend, none twice", v->layers[i],
                           v->layers[i - 1]);
    }
    return RENYI_OK;
}

static renyi_status read_keeps(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    static const double usual[] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
    const uint32_t patches = v->model->vit.n_patches;
    RY_TRY(check_count("keep rates", o->n_keeps, RENYI_VIZ_MAX_KEEPS, o->keeps, err));
    const double *from = o->n_keeps ? o->keeps : usual;
    v->n_keeps = o->n_keeps ? o->n_keeps : sizeof usual / sizeof *usual;
    v->keeps = RY_POOL_TAKE(&v->pool, v->n_keeps, double);
    v->kept = RY_POOL_TAKE(&v->pool, v->n_keeps, uint32_t);
    if (!v->keeps || !v->kept) return ry_fail_nomem(err, v->n_keeps * sizeof *v->keeps);
    for (uint32_t i = 0; i < v->n_keeps; i++) {
        const double keep = v->keeps[i] = from[i];
        if (!(keep > 0.0 && keep <= 1.0))
            return ry_fail(err, RENYI_ERR_ARG, -1, "keep rate %g; above 0 and at most 1 is allowed",
                           keep);
        if (i && keep <= from[i - 1])
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "keep rate %g after %g; rates must ascend, none twice", keep,
                           from[i - 1]);
        v->kept[i] = (uint32_t)ceil(keep * patches);
    }
    return RENYI_OK;
}

/* ---- metrics ------------------------------------------------------------------------------- */

/* For people: "Col-L4", followed by the keys that are not defaults. */
static void make_label(char out[RY_MAX_POLICY_TEXT], const char *name, const ry_policy *p)
{
    char n[RY_DECIMAL_TEXT];
    const char *const order = isinf(p->n) ? "∞" : ry_print_decimal(n, p->n);
    const char *rest = strchr(name, ' ');
    if (rest && strncmp(rest, " n=", 3) == 0) rest = strchr(rest + 1, ' ');
    if (!rest) rest = "";
    switch (p->metric) {
    case RY_METRIC_CLS: snprintf(out, RY_MAX_POLICY_TEXT, "class attention%s", rest); break;
    case RY_METRIC_POOL: snprintf(out, RY_MAX_POLICY_TEXT, "probe's attention%s", rest); break;
    case RY_METRIC_COL: snprintf(out, RY_MAX_POLICY_TEXT, "Col-L%s%s", order, rest); break;
    case RY_METRIC_COLV: snprintf(out, RY_MAX_POLICY_TEXT, "Col-L%s × |v|%s", order, rest); break;
    case RY_METRIC_RENYI:
        snprintf(out, RY_MAX_POLICY_TEXT, "Rényi entropy n=%s%s", order, rest);
        break;
    case RY_METRIC_SHANNON: snprintf(out, RY_MAX_POLICY_TEXT, "Shannon entropy%s", rest); break;
    default: snprintf(out, RY_MAX_POLICY_TEXT, "%s", name); break;
    }
}

static int takes_order(const ry_policy *p)
{
    return p->metric == RY_METRIC_COL || p->metric == RY_METRIC_COLV ||
           p->metric == RY_METRIC_RENYI;
}

/* The index of a metric in v->scored; a new metric is added. */
static renyi_status add_scored(renyi_viz *v, const char *text, uint32_t *place, renyi_error *err)
{
    char name[RY_MAX_POLICY_TEXT], label[RY_MAX_POLICY_TEXT];
    ry_policy policy;
    RY_TRY(ry_scores_read(name, &policy, v->model, text, err));
    for (*place = 0; *place < v->n_scored; ++*place)
        if (strcmp(v->scored[*place].name, name) == 0) return RENYI_OK;
    make_label(label, name, &policy);
    ry_viz_metric *m = &v->scored[v->n_scored];
    m->order = takes_order(&policy) ? policy.n : NAN;
    m->name = ry_pool_text(&v->pool, name);
    m->label = ry_pool_text(&v->pool, label);
    if (!m->name || !m->label) return ry_fail_nomem(err, sizeof name);
    v->n_scored++;
    return RENYI_OK;
}

/* Adds the order to a metric that has one and does not give it: the default of the rule, naive 4,
 * evit 2. */
static void add_order(char out[RY_MAX_POLICY_TEXT], const char *metric, const char *rule)
{
    char text[RY_MAX_POLICY_TEXT], order[RY_DECIMAL_TEXT];
    ry_policy policy;
    snprintf(out, RY_MAX_POLICY_TEXT, "%s", metric);
    if (strstr(metric, " n=") || strlen(metric) > RY_MAX_POLICY_TEXT / 2) return;
    const int n =
        snprintf(text, sizeof text, "%s metric=%s", rule && *rule ? rule : "naive", metric);
    if (n < 0 || (size_t)n >= sizeof text || ry_policy_parse(&policy, text, NULL)) return;
    if (!takes_order(&policy)) return;
    snprintf(out, RY_MAX_POLICY_TEXT, "%s n=%s", metric, ry_print_decimal(order, policy.n));
}

static renyi_status read_metrics(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    const ry_vit_config *c = &v->model->vit.config;
    const char *const row = ry_vit_class_rows(c)           ? "cls"
                            : c->pool == RY_POOL_ATTENTION ? "pool"
                                                           : "";
    const char *const usual[] = {row, "col n=4", "random"};
    const char *const *from = o->n_metrics ? o->metrics : *row ? usual : usual + 1;
    const uint32_t n = o->n_metrics ? o->n_metrics : *row ? 3 : 2;
    RY_TRY(check_count("metrics", o->n_metrics, RENYI_VIZ_MAX_METRICS, o->metrics, err));
    for (uint32_t i = 0; i < n; i++) {
        char text[RY_MAX_POLICY_TEXT];
        uint32_t place;
        if (!from[i]) return ry_fail(err, RENYI_ERR_ARG, -1, "metric %u is NULL", i);
        if (strlen(from[i]) >= sizeof text)
            return ry_fail(err, RENYI_ERR_ARG, -1, "a metric of %zu bytes", strlen(from[i]));
        add_order(text, from[i], o->rule);
        RY_TRY(add_scored(v, text, &place, err));
        if (place < i)
            return ry_fail(err, RENYI_ERR_ARG, -1, "metric \"%.80s\" is given twice",
                           v->scored[place].name);
    }
    v->n_metrics = n;
    return RENYI_OK;
}

/* The rows of the norm-order figure. */
static renyi_status read_orders(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    static const double usual[] = {1.0, 2.0, 3.0, 4.0, INFINITY};
    RY_TRY(check_count("orders", o->n_orders, RENYI_VIZ_MAX_ORDERS, o->orders, err));
    const double *from = o->n_orders ? o->orders : usual;
    const uint32_t n = o->n_orders ? o->n_orders : sizeof usual / sizeof *usual;
    v->norms = RY_POOL_TAKE(&v->pool, n + 1, uint32_t);
    if (!v->norms) return ry_fail_nomem(err, (n + 1) * sizeof *v->norms);
    if (ry_vit_class_rows(&v->model->vit.config))
        RY_TRY(add_scored(v, "cls", &v->norms[v->n_norms++], err));
    for (uint32_t i = 0; i < n; i++) {
        char text[RY_DECIMAL_TEXT + 8], number[RY_DECIMAL_TEXT];
        if (!(from[i] >= 1.0))
            return ry_fail(err, RENYI_ERR_ARG, -1, "order %g; 1 and above, or inf, is allowed",
                           from[i]);
        for (uint32_t j = 0; j < i; j++)
            if (from[j] == from[i])
                return ry_fail(err, RENYI_ERR_ARG, -1, "order %g is given twice", from[i]);
        snprintf(text, sizeof text, "col n=%s", ry_print_decimal(number, from[i]));
        RY_TRY(add_scored(v, text, &v->norms[v->n_norms++], err));
    }
    return RENYI_OK;
}

/* ---- the rest ------------------------------------------------------------------------------ */

static renyi_status read_attention(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    const ry_vit *m = &v->model->vit;
    const uint32_t grid = m->config.image_size / m->config.patch_size;
    const uint32_t middle = grid / 2 * grid + grid / 2;
    v->attention = o->attention != 0;
    if ((o->has_query && o->query >= m->n_patches) || (o->has_token && o->token >= m->n_patches))
        return ry_fail(err, RENYI_ERR_ARG, -1, "patch %u as %s; the image has 0 to %u",
                       o->has_query && o->query >= m->n_patches ? o->query : o->token,
                       o->has_query && o->query >= m->n_patches ? "query" : "token",
                       m->n_patches - 1);
    v->query = ry_vit_class_rows(&m->config) ? RENYI_PREFIX : (int32_t)middle;
    if (o->has_query) v->query = (int32_t)o->query;
    v->token = o->has_token ? (int32_t)o->token : -1;
    return v->attention && !o->has_token ? add_scored(v, "col n=4", &v->liked, err) : RENYI_OK;
}

static renyi_status copy_names(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    const uint32_t n = v->model->vit.config.n_classes;
    v->class_names = RY_POOL_TAKE(&v->pool, n, const char *);
    if (!v->class_names) return ry_fail_nomem(err, n * sizeof *v->class_names);
    for (uint32_t i = 0; i < n; i++) {
        char fallback[32];
        const char *name = o->class_names ? o->class_names[i] : renyi_model_label(v->model, i);
        snprintf(fallback, sizeof fallback, "class %u", i);
        v->class_names[i] = ry_pool_text(&v->pool, name ? name : fallback);
        if (!v->class_names[i]) return ry_fail_nomem(err, n * sizeof *v->class_names);
    }
    return RENYI_OK;
}

renyi_status ry_viz_read_options(renyi_viz *v, const renyi_viz_options *o, renyi_error *err)
{
    const uint32_t classes = v->model->vit.config.n_classes;
    if (o->n_top > RENYI_VIZ_MAX_TOP)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u classes per prediction; at most %d", o->n_top,
                       RENYI_VIZ_MAX_TOP);
    if (o->time > MAX_TIMED)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u timed runs; at most %d", o->time, MAX_TIMED);
    v->n_top = o->n_top ? o->n_top : DEFAULT_TOP;
    if (v->n_top > classes) v->n_top = classes;
    v->time = o->time;
    /* Metrics and orders, plus the class row and Col-L4. */
    v->scored =
        RY_POOL_TAKE(&v->pool, RENYI_VIZ_MAX_METRICS + RENYI_VIZ_MAX_ORDERS + 2, ry_viz_metric);
    if (!v->scored) return ry_fail_nomem(err, sizeof *v->scored);
    RY_TRY(read_layers(v, o, err));
    RY_TRY(read_keeps(v, o, err));
    RY_TRY(read_metrics(v, o, err));
    RY_TRY(read_orders(v, o, err));
    RY_TRY(read_attention(v, o, err));
    return copy_names(v, o, err);
}
