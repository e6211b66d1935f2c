/* point_set.c - prepares a report for drawing: checks it, finds fronts, short names, colours.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/point_set.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* ---- Pareto fronts ---- */

double ry_point_cost(const renyi_report_point *p, renyi_chart chart)
{
    return chart == RENYI_CHART_GMACS ? p->gmacs : chart == RENYI_CHART_MS ? p->ms_model : NAN;
}

int ry_point_is_shown(const renyi_report_point *p, renyi_chart chart)
{
    return isfinite(p->top1) && isfinite(ry_point_cost(p, chart));
}

/* on_front[i * stride] = 1 if no other point dominates point i. */
static void mark_front(const renyi_report_point *points, uint32_t n, renyi_chart chart,
                       uint8_t *on_front, size_t stride)
{
    for (uint32_t i = 0; i < n; i++) {
        const double cost = ry_point_cost(&points[i], chart), top1 = points[i].top1;
        uint8_t on = (uint8_t)ry_point_is_shown(&points[i], chart);
        for (uint32_t j = 0; on && j < n; j++) {
            const double other = ry_point_cost(&points[j], chart);
            const int is_shown = ry_point_is_shown(&points[j], chart);
            if (is_shown && other <= cost && points[j].top1 >= top1 &&
                (other < cost || points[j].top1 > top1))
                on = 0;
        }
        on_front[i * stride] = on;
    }
}

renyi_status renyi_report_front(const renyi_report *r, renyi_chart chart, uint8_t *on_front,
                                renyi_error *err)
{
    if (!r || (r->n_points && (!r->points || !on_front)))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_report_front: NULL argument");
    if (chart != RENYI_CHART_GMACS && chart != RENYI_CHART_MS)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_report_front: chart %d has no cost; RENYI_CHART_GMACS and "
                       "RENYI_CHART_MS have one",
                       (int)chart);
    mark_front(r->points, r->n_points, chart, on_front, 1);
    return RENYI_OK;
}

/* ---- short names ---- */

void ry_put_short_model(ry_buffer *s, const char *model)
{
    static const char *const endings[] = {".safetensors.index.json", ".safetensors", ".pth", ".pt",
                                          ".bin"};
    size_t n = strlen(model), start;
    while (n > 1 && model[n - 1] == '/') n--;
    for (start = n; start && (start == n || model[start - 1] != '/'); start--) {}
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t e = strlen(endings[i]);
        if (n - start > e && !memcmp(model + n - e, endings[i], e)) {
            n -= e;
            break;
        }
    }
    ry_buffer_put(s, model + start, n - start);
    ry_buffer_put(s, "", 1);
}

/* Settings that readers look for first are shown even if they are defaults. */
static int is_leading(const char *setting, size_t n)
{
    static const char *const keys[] = {
        "keep=", "p=", "r=", "tokens=", "layers=", "metric=", "n=", "c="};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (n >= strlen(keys[i]) && !memcmp(setting, keys[i], strlen(keys[i]))) return 1;
    return 0;
}

/* A setting is left out if the policy without it means the same in full. */
void ry_put_short_policy(ry_buffer *s, const char *policy)
{
    char full[RENYI_POLICY_MAX], now[RENYI_POLICY_MAX], without[RENYI_POLICY_MAX],
        again[RENYI_POLICY_MAX];
    if (renyi_policy_check(policy, NULL, full, sizeof full, NULL) != RENYI_OK) {
        ry_buffer_put(s, policy, strlen(policy) + 1); /* not a policy of this library: unchanged */
        return;
    }
    memcpy(now, full, strlen(full) + 1);
    for (size_t end = strlen(now), at; end;
         end = at ? at - 1 : 0) { /* from the last setting to the first */
        for (at = end; at && now[at - 1] != ' '; at--) {}
        if (!at || is_leading(now + at, end - at)) continue;
        memcpy(without, now, at - 1);
        memcpy(without + at - 1, now + end, strlen(now + end) + 1);
        if (renyi_policy_check(without, NULL, again, sizeof again, NULL) == RENYI_OK &&
            !strcmp(again, full))
            memcpy(now, without, strlen(without) + 1);
    }
    char *reduce = strstr(now, " reduce="); /* "fuse" alone means the same */
    if (reduce) memmove(reduce + 1, reduce + 8, strlen(reduce + 8) + 1);
    ry_buffer_put(s, now, strlen(now) + 1);
}

/* ---- the set ---- */

static renyi_status check_report(const renyi_report *r, renyi_error *err)
{
    if (!r || (r->n_points && !r->points) || (r->n_pairs && !r->pairs))
        return ry_fail(err, RENYI_ERR_ARG, -1, "report: NULL argument");
    if (r->n_points > RENYI_REPORT_MAX_POINTS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "report: %u points; at most %u can be shown",
                       r->n_points, (unsigned)RENYI_REPORT_MAX_POINTS);
    if (r->baseline > r->n_points)
        return ry_fail(err, RENYI_ERR_ARG, -1, "report: baseline %u of %u points", r->baseline,
                       r->n_points);
    for (uint32_t i = 0; i < r->n_points; i++)
        if (r->points[i].n_blocks > 4096)
            return ry_fail(err, RENYI_ERR_LIMIT, -1, "report: point %u has %u blocks; at most 4096",
                           i, r->points[i].n_blocks);
    for (size_t i = 0; i < r->n_pairs; i++) {
        const renyi_report_pair *p = &r->pairs[i];
        if (p->a >= r->n_points || p->b >= r->n_points || p->a == p->b)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "report: pair %zu compares points %u and %u; it needs two different "
                           "points below %u",
                           i, p->a, p->b, r->n_points);
    }
    return RENYI_OK;
}

static const char *or_text(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static uint32_t colour_of(const char *family, size_t n, uint32_t index)
{
    static const char *const known[] = {"none", "naive", "evit",     "mosaic",   "tome",
                                        "ats",  "tca",   "prumerge", "vispruner"};
    _Static_assert(sizeof known / sizeof *known == RY_COLOURS, "one colour for each family");
    for (uint32_t i = 0; i < RY_COLOURS; i++)
        if (strlen(known[i]) == n && !memcmp(known[i], family, n)) return i;
    return 1 + index % (RY_COLOURS - 1);
}

static int same_family(const ry_point *a, const ry_point *b)
{
    return a->family_size == b->family_size && !memcmp(a->family, b->family, a->family_size);
}

/* Finds the metric in the policy of point i; metrics are numbered in order of appearance. */
static void number_metric(ry_point_set *set, uint32_t i)
{
    static const char key[] = " metric=";
    ry_point *p = &set->points[i];
    const char *at = strstr(or_text(p->of->policy, ""), key);
    if (!at) return;
    p->metric = at + sizeof key - 1;
    p->metric_size = strcspn(p->metric, " ");
    if (!strncmp(p->metric + p->metric_size, " n=", 3))
        p->metric_size += 1 + strcspn(p->metric + p->metric_size + 1, " ");
    p->metric_index = set->n_metrics;
    for (uint32_t j = 0; j < i && p->metric_index == set->n_metrics; j++) {
        const ry_point *q = &set->points[j];
        if (q->metric && q->metric_size == p->metric_size &&
            !memcmp(q->metric, p->metric, p->metric_size))
            p->metric_index = q->metric_index;
    }
    set->n_metrics += p->metric_index == set->n_metrics;
}

/* Finds family and model of point i; both are numbered in order of appearance. */
static void number_point(ry_point_set *set, uint32_t i)
{
    ry_point *p = &set->points[i];
    const char *model = or_text(p->of->model, "");
    p->family = or_text(p->of->family, or_text(p->of->policy, "none"));
    p->family_size = p->of->family && *p->of->family ? strlen(p->family) : strcspn(p->family, " (");
    p->family_index = set->n_families;
    p->model_index = set->n_models;
    for (uint32_t j = 0; j < i && p->family_index == set->n_families; j++)
        if (same_family(&set->points[j], p)) p->family_index = set->points[j].family_index;
    for (uint32_t j = 0; j < i && p->model_index == set->n_models; j++)
        if (!strcmp(model, or_text(set->points[j].of->model, "")))
            p->model_index = set->points[j].model_index;
    set->n_families += p->family_index == set->n_families;
    set->n_models += p->model_index == set->n_models;
    p->colour = colour_of(p->family, p->family_size, p->family_index);
    p->is_dense = p->family_size == 4 && !memcmp(p->family, "none", 4);
    p->is_resized =
        p->of->image_size && p->of->native_size && p->of->image_size != p->of->native_size;
    set->has_resized |= p->is_resized;
}

/* The sink moves while it grows, so all names are written first and found afterwards. */
static void name_points(ry_point_set *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        ry_put_short_model(&set->names, or_text(set->points[i].of->model, "model"));
        ry_put_short_policy(&set->names, or_text(set->points[i].of->policy, "none"));
    }
    if (set->names.failed) return;
    const char *at = set->names.bytes;
    for (uint32_t i = 0; i < set->n; i++) {
        set->points[i].model = at;
        set->points[i].policy = at + strlen(at) + 1;
        at = set->points[i].policy + strlen(set->points[i].policy) + 1;
    }
}

/* If two models have the same short name, both are shown in full. */
static void resolve_model_names(ry_point_set *set)
{
    for (uint32_t i = 1; i < set->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            ry_point *a = &set->points[i], *b = &set->points[j];
            if (a->model_index != b->model_index && !strcmp(a->model, b->model))
                a->is_ambiguous = b->is_ambiguous = 1;
        }
    for (uint32_t i = 0; i < set->n; i++)
        if (set->points[i].is_ambiguous)
            set->points[i].model = or_text(set->points[i].of->model, set->points[i].model);
}

static uint32_t find_baseline(const ry_point_set *set)
{
    if (set->report->baseline) return set->report->baseline - 1;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->points[i].is_dense && !set->points[i].is_resized) return i;
    return 0;
}

renyi_status ry_point_set_new(ry_point_set *set, const renyi_report *r, renyi_error *err)
{
    memset(set, 0, sizeof *set);
    RY_TRY(check_report(r, err));
    set->report = r;
    set->al = set->names.al = &r->allocator;
    set->n = r->n_points;
    set->points = ry_calloc(set->al, set->n, sizeof *set->points);
    if (!set->points) return ry_fail_nomem(err, set->n * sizeof *set->points);
    for (uint32_t i = 0; i < set->n; i++) {
        set->points[i].of = &r->points[i];
        number_point(set, i);
        number_metric(set, i);
    }
    name_points(set);
    if (set->names.failed) {
        const size_t wanted = set->names.wanted;
        ry_point_set_free(set);
        return ry_fail_nomem(err, wanted);
    }
    resolve_model_names(set);
    for (uint32_t i = 0; i < set->n; i++) {
        ry_point *p = &set->points[i];
        p->shape = (set->n_models > 1 ? p->model_index : p->family_index) % RY_SHAPES;
    }
    for (int c = 0; set->n && c < 2; c++)
        mark_front(r->points, set->n, (renyi_chart)c, &set->points[0].on_front[c],
                   sizeof *set->points);
    set->baseline = find_baseline(set);
    return RENYI_OK;
}

void ry_point_set_free(ry_point_set *set)
{
    if (!set->al) return;
    ry_free(set->al, set->points);
    ry_free(set->al, set->names.bytes);
    memset(set, 0, sizeof *set);
}
