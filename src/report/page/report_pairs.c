/* report_pairs.c - the paired tests of a report: list, verdict, table, and data for page.js.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

/* 45,000 pairs (300 points) take about a megabyte; of more only the important ones are kept. */
enum { MOST_PAIRS = 50000 };

static renyi_report_pair swapped(renyi_report_pair p)
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

static int is_important(const ry_point_set *set, uint32_t i)
{
    const ry_point *p = &set->points[i];
    return i == set->baseline || (p->is_dense && !p->is_resized) || p->on_front[0] ||
           p->on_front[1];
}

renyi_status ry_pairs_new(ry_pairs *p, const ry_point_set *set, renyi_error *err)
{
    const renyi_report *r = set->report;
    *p = (ry_pairs){.is_partial = r->n_pairs > MOST_PAIRS};
    p->items = ry_alloc(set->al, r->n_pairs, sizeof *p->items);
    if (!p->items) return ry_fail_nomem(err, r->n_pairs * sizeof *p->items);
    for (size_t i = 0; i < r->n_pairs; i++) {
        const renyi_report_pair *from = &r->pairs[i];
        if (p->is_partial && !is_important(set, from->a) && !is_important(set, from->b)) continue;
        p->items[p->n++] = from->a < from->b ? *from : swapped(*from);
    }
    qsort(p->items, p->n, sizeof *p->items, by_points);
    for (size_t i = 1; i < p->n; i++)
        if (!by_points(&p->items[i - 1], &p->items[i])) {
            const uint32_t a = p->items[i].a, b = p->items[i].b;
            ry_pairs_free(p, set);
            return ry_fail(err, RENYI_ERR_ARG, -1, "report: points %u and %u are compared twice", a,
                           b);
        }
    return RENYI_OK;
}

void ry_pairs_free(ry_pairs *p, const ry_point_set *set)
{
    ry_free(set->al, p->items);
    *p = (ry_pairs){0};
}

/* The pair of two points as seen from a: returns 1 and *out, or 0 if it is not known. */
static int find_pair(const ry_pairs *p, uint32_t a, uint32_t b, renyi_report_pair *out)
{
    const renyi_report_pair key = {.a = a < b ? a : b, .b = a < b ? b : a};
    const renyi_report_pair *at =
        p->n ? bsearch(&key, p->items, p->n, sizeof key, by_points) : NULL;
    if (!at) return 0;
    *out = a < b ? *at : swapped(*at);
    return 1;
}

void ry_pair_interval(const renyi_report_pair *p, double *low, double *high)
{
    const double only_a = (double)p->only_a + 0.5, only_b = (double)p->only_b + 0.5;
    const double n = only_a + only_b + (double)p->both + (double)p->neither + 1;
    const double change = only_b - only_a;
    const double half = 1.959964 * sqrt(only_a + only_b - change * change / n);
    *low = 100 * fmax(-1, (change - half) / n);
    *high = 100 * fmin(1, (change + half) / n);
}

/* "−18.4 to +2.0" */
static void put_interval(ry_buffer *s, const renyi_report_pair *p)
{
    double low, high;
    ry_pair_interval(p, &low, &high);
    ry_put_signed(s, low, 1);
    ry_buffer_text(s, " to ");
    ry_put_signed(s, high, 1);
}

/* ---- the verdict ---- */

/* "#3 mosaic keep=0.7, vit_tiny, 160 px": enough to identify a point. page.js does the same. */
static void put_point_title(ry_buffer *s, const ry_point_set *set, uint32_t i)
{
    const ry_point *p = &set->points[i];
    ry_putf(s, "#%u %s", i + 1, p->is_dense ? "dense" : p->policy);
    if (set->n_models > 1) ry_putf(s, ", %s", p->model);
    if (p->is_resized) ry_putf(s, ", %u px", p->of->image_size);
}

static void put_point_link(ry_buffer *s, const ry_point_set *set, uint32_t i)
{
    ry_putf(s, "<a href=\"#r%u\">", i + 1);
    put_point_title(s, set, i);
    ry_buffer_text(s, "</a>");
}

typedef struct choice {
    uint32_t point;
    renyi_report_pair pair;
    int is_found;
} choice;

/* The cheapest point that loses at most one point of accuracy against the baseline. "No significant
 * difference" would be the wrong rule: with few images it picks a point that lost a lot. */
static choice cheapest_near(const ry_point_set *set, const ry_pairs *p, uint32_t *n_tests,
                            uint32_t *n_noise)
{
    const double limit = set->points[set->baseline].of->gmacs;
    choice best = {.point = set->n};
    double least = limit;
    *n_tests = *n_noise = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        renyi_report_pair pair;
        if (i == set->baseline || !find_pair(p, set->baseline, i, &pair)) continue;
        ++*n_tests;
        *n_noise += pair.is_noise != 0;
        if (!(pair.difference >= -1.0) || !(set->points[i].of->gmacs < least)) continue;
        least = set->points[i].of->gmacs;
        best = (choice){i, pair, 1};
    }
    return best;
}

/* page.js writes the same for another baseline. */
void ry_put_verdict(ry_buffer *s, const ry_point_set *set, const ry_pairs *p)
{
    uint32_t n_tests, n_noise;
    if (!set->n) return;
    const choice best = cheapest_near(set, p, &n_tests, &n_noise);
    const renyi_report_point *base = set->points[set->baseline].of;
    ry_buffer_text(s, "<p id=\"verdict\" class=\"verdict\" aria-live=\"polite\">");
    if (!n_tests) {
        ry_buffer_text(s, "No paired tests against ");
        put_point_link(s, set, set->baseline);
        ry_buffer_text(s, " are known.</p>\n");
        return;
    }
    if (best.is_found) {
        const renyi_report_point *b = set->points[best.point].of;
        ry_buffer_text(s, "Cheapest within one point of ");
        put_point_link(s, set, set->baseline);
        ry_buffer_text(s, ": <b>");
        put_point_link(s, set, best.point);
        ry_putf(s, "</b>, with <b>%.0f %%</b> of its GMACs and <b>", 100 * b->gmacs / base->gmacs);
        ry_put_signed(s, best.pair.difference, 2);
        ry_buffer_text(s, "</b> points of accuracy (95 % interval: ");
        put_interval(s, &best.pair);
        ry_buffer_text(s, "), p = ");
        ry_put_p_value(s, best.pair.p_value);
        ry_buffer_text(s, ".");
    } else {
        ry_buffer_text(s, "Nothing cheaper comes within one point of ");
        put_point_link(s, set, set->baseline);
        ry_buffer_text(s, ".");
    }
    ry_putf(s, " <span>%s%u of %u tests are within the noise of %llu photos.</span></p>\n",
            best.is_found ? "The interval says how much may really be lost. " : "", n_noise,
            n_tests, (unsigned long long)base->images);
}

/* ---- the table ---- */

/* page.js writes the same row for another baseline. */
static void put_test_row(ry_buffer *s, const ry_point_set *set, uint32_t i,
                         const renyi_report_pair *p)
{
    const double n = (double)p->both + (double)p->only_a + (double)p->only_b + (double)p->neither;
    const ry_point *point = &set->points[i];
    ry_putf(s, "<tr class=\"c%u%s\" data-i=\"%u\"><td>%u</td>", point->colour,
            p->is_noise ? " noise" : "", i, i + 1);
    ry_putf(s, "<td class=\"po\"><i></i><a href=\"#r%u\">%s</a><small>", i + 1, point->policy);
    if (set->n_models > 1) ry_putf(s, ", %s", point->model);
    if (point->is_resized) ry_putf(s, ", %u px", point->of->image_size);
    ry_putf(s, "</small></td><td class=\"g\">%.3f</td><td><b>", point->of->gmacs);
    ry_put_signed(s, p->difference, 2);
    ry_buffer_text(s, "</b> <small>");
    put_interval(s, p);
    ry_putf(s, "</small></td><td>%llu</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%.1f</td><td>",
            (unsigned long long)p->both, (unsigned long long)p->only_a,
            (unsigned long long)p->only_b, (unsigned long long)p->neither,
            100 * (double)p->same / n);
    ry_put_p_value(s, p->p_value);
    ry_putf(s, "</td><td>%s</td></tr>\n",
            p->is_noise         ? "within the noise"
            : p->difference < 0 ? "worse"
                                : "better");
}

void ry_put_tests(ry_buffer *s, const ry_point_set *set, const ry_pairs *p)
{
    ry_buffer_text(
        s, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Paired tests\">"
           "<table id=\"tests\">\n<caption>Photo by photo against ");
    ry_buffer_text(s, "<span id=\"against\">");
    if (set->n) put_point_title(s, set, set->baseline);
    ry_buffer_text(s, "</span>");
    ry_buffer_text(
        s, "</caption>\n<thead><tr><th scope=\"col\">#</th><th scope=\"col\">policy</th>"
           "<th scope=\"col\">GMACs</th><th scope=\"col\" data-down>points, 95 % interval</th><th "
           "scope=\"col\">both right</th><th scope=\"col\">only baseline</th><th "
           "scope=\"col\">only this</th><th scope=\"col\">neither</th><th scope=\"col\" "
           "data-down>same answer %</th><th scope=\"col\">p</th><th scope=\"col\">so it is</th>"
           "</tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < set->n; i++) {
        renyi_report_pair pair;
        if (i != set->baseline && find_pair(p, set->baseline, i, &pair))
            put_test_row(s, set, i, &pair);
    }
    ry_buffer_text(s, "</tbody></table></div>\n");
}

/* ---- for page.js ---- */

/* Can `both` and `neither` be computed from the two points? Then they are not written. */
static int counts_follow(const ry_point_set *set, const renyi_report_pair *p)
{
    const renyi_report_point *a = set->points[p->a].of, *b = set->points[p->b].of;
    return a->images == b->images && a->n_top1 == p->both + p->only_a &&
           b->n_top1 == p->both + p->only_b &&
           a->images == p->both + p->only_a + p->only_b + p->neither;
}

/* "only_a,only_b,same,p": p in units of 0.0001, or "-" if unknown, followed by "~" if within the
 * noise. Then ",both,neither" if they cannot be computed. "b=" comes first if b is not the next. */
static void put_pair(ry_buffer *s, const ry_point_set *set, const renyi_report_pair *p,
                     uint32_t next)
{
    if (p->b != next) ry_putf(s, "%u=", p->b);
    ry_putf(s, "%llu,%llu,%llu,", (unsigned long long)p->only_a, (unsigned long long)p->only_b,
            (unsigned long long)p->same);
    if (isfinite(p->p_value))
        ry_putf(s, "%.0f", p->p_value < 0.0001 ? 0 : 1e4 * p->p_value);
    else
        ry_buffer_text(s, "-");
    if (p->is_noise) ry_buffer_text(s, "~");
    if (!counts_follow(set, p))
        ry_putf(s, ",%llu,%llu", (unsigned long long)p->both, (unsigned long long)p->neither);
}

void ry_put_pairs_data(ry_buffer *s, const ry_point_set *set, const ry_pairs *p)
{
    ry_putf(s, "<script type=\"application/json\" id=\"data\">{\"baseline\":%u,\"images\":[",
            set->baseline);
    for (uint32_t i = 0; i < set->n; i++)
        ry_putf(s, i ? ",%llu" : "%llu", (unsigned long long)set->points[i].of->images);
    ry_buffer_text(s, "],\"right\":[");
    for (uint32_t i = 0; i < set->n; i++)
        ry_putf(s, i ? ",%llu" : "%llu", (unsigned long long)set->points[i].of->n_top1);
    ry_buffer_text(s, "],\"pairs\":[");
    size_t at = 0;
    for (uint32_t a = 0; a < set->n; a++) { /* one text per point: its pairs with later points */
        ry_buffer_text(s, a ? ",\n\"" : "\n\"");
        uint32_t next = a + 1;
        for (int is_first = 1; at < p->n && p->items[at].a == a; at++, is_first = 0) {
            if (!is_first) ry_buffer_text(s, " ");
            put_pair(s, set, &p->items[at], next);
            next = p->items[at].b + 1;
        }
        ry_buffer_text(s, "\"");
    }
    ry_buffer_text(s, "]}</script>\n");
}
