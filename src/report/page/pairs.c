/* pairs.c - the paired tests in order: found by their two points, written compactly.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "report/page/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 45,000 pairs (300 points) make about a megabyte; more than this are thinned out. */
enum { MOST_PAIRS = 50000 };

static renyi_report_pair turned(renyi_report_pair p)
{
    const renyi_report_pair was = p;
    p.a = was.b, p.b = was.a;
    p.only_a = was.only_b, p.only_b = was.only_a;
    p.difference = -was.difference;
    return p;
}

static int by_points(const void *left, const void *right)
{
    const renyi_report_pair *x = left, *y = right;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static int matters(const ry_view *v, uint32_t i)
{
    const ry_view_point *p = &v->points[i];
    return i == v->baseline || (p->is_dense && !p->is_resized) || p->on_front[0] || p->on_front[1];
}

renyi_status ry_pairs_new(ry_pairs *p, const ry_view *v, renyi_error *err)
{
    const renyi_report *r = v->report;
    *p = (ry_pairs){.is_partial = r->n_pairs > MOST_PAIRS};
    p->items = ry_alloc(v->al, r->n_pairs, sizeof *p->items);
    if (!p->items) return ry_fail_nomem(err, r->n_pairs * sizeof *p->items);
    for (size_t i = 0; i < r->n_pairs; i++) {
        const renyi_report_pair *from = &r->pairs[i];
        if (p->is_partial && !matters(v, from->a) && !matters(v, from->b)) continue;
        p->items[p->n++] = from->a < from->b ? *from : turned(*from);
    }
    qsort(p->items, p->n, sizeof *p->items, by_points);
    for (size_t i = 1; i < p->n; i++)
        if (!by_points(&p->items[i - 1], &p->items[i])) {
            const uint32_t a = p->items[i].a, b = p->items[i].b;
            ry_pairs_free(p, v);
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "report: points %u and %u are compared twice; once is enough", a, b);
        }
    return RENYI_OK;
}

void ry_pairs_free(ry_pairs *p, const ry_view *v)
{
    ry_free(v->al, p->items);
    *p = (ry_pairs){0};
}

int ry_pairs_find(const ry_pairs *p, uint32_t a, uint32_t b, renyi_report_pair *out)
{
    const renyi_report_pair key = {.a = a < b ? a : b, .b = a < b ? b : a};
    const renyi_report_pair *at =
        p->n ? bsearch(&key, p->items, p->n, sizeof key, by_points) : NULL;
    if (!at) return 0;
    *out = a < b ? *at : turned(*at);
    return 1;
}

/* ---- how large the difference may be ---- */

void ry_pair_interval(const renyi_report_pair *p, double *low, double *high)
{
    const double only_a = (double)p->only_a + 0.5, only_b = (double)p->only_b + 0.5;
    const double n = only_a + only_b + (double)p->both + (double)p->neither + 1;
    const double change = only_b - only_a;
    const double half = 1.959964 * sqrt(only_a + only_b - change * change / n);
    *low = 100 * fmax(-1, (change - half) / n);
    *high = 100 * fmin(1, (change + half) / n);
}

void ry_put_interval(ry_sink *s, const renyi_report_pair *p)
{
    double low, high;
    ry_pair_interval(p, &low, &high);
    ry_put_signed(s, low, 1);
    ry_put(s, " to ");
    ry_put_signed(s, high, 1);
}

/* ---- for page.js ---- */

/* Do the counts follow from those of the two points? Then two numbers need not be written. */
static int follows(const ry_view *v, const renyi_report_pair *p)
{
    const renyi_report_point *a = v->points[p->a].of, *b = v->points[p->b].of;
    return a->images == b->images && a->n_top1 == p->both + p->only_a &&
           b->n_top1 == p->both + p->only_b &&
           a->images == p->both + p->only_a + p->only_b + p->neither;
}

/* "only_a,only_b,same,p" with p in units of 0.0001, "-" if unknown, "~" behind it if within the
 * noise; then ",both,neither" where they do not follow. "b=" in front where b is not the next. */
static void put_pair(ry_sink *s, const ry_view *v, const renyi_report_pair *p, uint32_t next)
{
    if (p->b != next) ry_putf(s, "%u=", p->b);
    ry_putf(s, "%llu,%llu,%llu,", (unsigned long long)p->only_a, (unsigned long long)p->only_b,
            (unsigned long long)p->same);
    if (isfinite(p->p_value))
        ry_putf(s, "%.0f", p->p_value < 0.0001 ? 0 : 1e4 * p->p_value);
    else
        ry_put(s, "-");
    if (p->is_noise) ry_put(s, "~");
    if (!follows(v, p))
        ry_putf(s, ",%llu,%llu", (unsigned long long)p->both, (unsigned long long)p->neither);
}

void ry_page_data(ry_sink *s, const ry_view *v, const ry_pairs *p)
{
    ry_putf(s, "<script type=\"application/json\" id=\"data\">{\"baseline\":%u,\"images\":[",
            v->baseline);
    for (uint32_t i = 0; i < v->n; i++)
        ry_putf(s, i ? ",%llu" : "%llu", (unsigned long long)v->points[i].of->images);
    ry_put(s, "],\"right\":[");
    for (uint32_t i = 0; i < v->n; i++)
        ry_putf(s, i ? ",%llu" : "%llu", (unsigned long long)v->points[i].of->n_top1);
    ry_put(s, "],\"pairs\":[");
    size_t at = 0;
    for (uint32_t a = 0; a < v->n; a++) { /* one text a point: its pairs with later points */
        ry_put(s, a ? ",\n\"" : "\n\"");
        uint32_t next = a + 1;
        for (int is_first = 1; at < p->n && p->items[at].a == a; at++, is_first = 0) {
            if (!is_first) ry_put(s, " ");
            put_pair(s, v, &p->items[at], next);
            next = p->items[at].b + 1;
        }
        ry_put(s, "\"");
    }
    ry_put(s, "]}</script>\n");
}
