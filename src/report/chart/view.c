/* view.c - see view.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/view.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

static renyi_status check(const renyi_report *r, renyi_error *err)
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
                           "report: pair %zu compares points %u and %u; two different ones below "
                           "%u are needed",
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
    _Static_assert(sizeof known / sizeof *known == RY_COLOURS, "a colour each");
    for (uint32_t i = 0; i < RY_COLOURS; i++)
        if (strlen(known[i]) == n && !memcmp(known[i], family, n)) return i;
    return 1 + index % (RY_COLOURS - 1);
}

static int same_family(const ry_view_point *a, const ry_view_point *b)
{
    return a->family_size == b->family_size && !memcmp(a->family, b->family, a->family_size);
}

/* Family and model of point i, numbered as they appear. */
static void number_point(ry_view *v, uint32_t i)
{
    ry_view_point *p = &v->points[i];
    const char *model = or_text(p->of->model, "");
    p->family = or_text(p->of->family, or_text(p->of->policy, "none"));
    p->family_size = p->of->family && *p->of->family ? strlen(p->family) : strcspn(p->family, " ");
    p->family_index = v->n_families;
    p->model_index = v->n_models;
    for (uint32_t j = 0; j < i && p->family_index == v->n_families; j++)
        if (same_family(&v->points[j], p)) p->family_index = v->points[j].family_index;
    for (uint32_t j = 0; j < i && p->model_index == v->n_models; j++)
        if (!strcmp(model, or_text(v->points[j].of->model, "")))
            p->model_index = v->points[j].model_index;
    v->n_families += p->family_index == v->n_families;
    v->n_models += p->model_index == v->n_models;
    p->colour = colour_of(p->family, p->family_size, p->family_index);
    p->is_dense = p->family_size == 4 && !memcmp(p->family, "none", 4);
    p->is_resized =
        p->of->image_size && p->of->native_size && p->of->image_size != p->of->native_size;
    v->has_resized |= p->is_resized;
}

/* Names move while their sink grows: first all are written, then found again. */
static void name_points(ry_view *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        ry_put_short_model(&v->names, or_text(v->points[i].of->model, "model"));
        ry_put_short_policy(&v->names, or_text(v->points[i].of->policy, "none"));
    }
    if (v->names.failed) return;
    const char *at = v->names.bytes;
    for (uint32_t i = 0; i < v->n; i++) {
        v->points[i].model = at;
        v->points[i].policy = at + strlen(at) + 1;
        at = v->points[i].policy + strlen(v->points[i].policy) + 1;
    }
}

/* Two models of one short name: both in full. */
static void tell_models_apart(ry_view *v)
{
    for (uint32_t i = 1; i < v->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            ry_view_point *a = &v->points[i], *b = &v->points[j];
            if (a->model_index != b->model_index && !strcmp(a->model, b->model))
                a->is_ambiguous = b->is_ambiguous = 1;
        }
    for (uint32_t i = 0; i < v->n; i++)
        if (v->points[i].is_ambiguous)
            v->points[i].model = or_text(v->points[i].of->model, v->points[i].model);
}

static uint32_t find_baseline(const ry_view *v)
{
    if (v->report->baseline) return v->report->baseline - 1;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->points[i].is_dense && !v->points[i].is_resized) return i;
    return 0;
}

renyi_status ry_view_new(ry_view *v, const renyi_report *r, renyi_error *err)
{
    memset(v, 0, sizeof *v);
    RY_TRY(check(r, err));
    v->report = r;
    v->al = v->names.al = &r->allocator;
    v->n = r->n_points;
    v->points = ry_calloc(v->al, v->n, sizeof *v->points);
    if (!v->points) return ry_fail_nomem(err, v->n * sizeof *v->points);
    for (uint32_t i = 0; i < v->n; i++) {
        v->points[i].of = &r->points[i];
        number_point(v, i);
    }
    name_points(v);
    if (v->names.failed) {
        const size_t wanted = v->names.wanted;
        ry_view_free(v);
        return ry_fail_nomem(err, wanted);
    }
    tell_models_apart(v);
    for (uint32_t i = 0; i < v->n; i++) {
        ry_view_point *p = &v->points[i];
        p->shape = (v->n_models > 1 ? p->model_index : p->family_index) % RY_SHAPES;
    }
    for (int c = 0; v->n && c < 2; c++)
        ry_front_mark(r->points, v->n, (renyi_chart)c, &v->points[0].on_front[c],
                      sizeof *v->points);
    v->baseline = find_baseline(v);
    return RENYI_OK;
}

void ry_view_free(ry_view *v)
{
    if (!v->al) return;
    ry_free(v->al, v->points);
    ry_free(v->al, v->names.bytes);
    memset(v, 0, sizeof *v);
}
