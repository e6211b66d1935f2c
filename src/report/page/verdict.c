/* verdict.c - what the numbers mean, in sentences. page.js says the same for another baseline.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

typedef struct choice {
    uint32_t point;
    renyi_report_pair pair;
    int is_there;
} choice;

/* The cheapest point that answers at most a point worse than the baseline. "Not told apart" would
 * be the wrong rule: with few photos it picks what lost most and still could not be proven to. */
static choice cheapest_near(const ry_view *v, const ry_pairs *p, uint32_t *n_tests,
                            uint32_t *n_noise)
{
    const double limit = v->points[v->baseline].of->gmacs;
    choice best = {.point = v->n};
    double least = limit;
    *n_tests = *n_noise = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        renyi_report_pair pair;
        if (i == v->baseline || !ry_pairs_find(p, v->baseline, i, &pair)) continue;
        ++*n_tests;
        *n_noise += pair.is_noise != 0;
        if (!(pair.difference >= -1.0) || !(v->points[i].of->gmacs < least)) continue;
        least = v->points[i].of->gmacs;
        best = (choice){i, pair, 1};
    }
    return best;
}

void ry_page_title(ry_sink *s, const ry_view *v, uint32_t i)
{
    const ry_view_point *p = &v->points[i];
    ry_putf(s, "#%u %s", i + 1, p->is_dense ? "dense" : p->policy);
    if (v->n_models > 1) ry_putf(s, ", %s", p->model);
    if (p->is_resized) ry_putf(s, ", %u px", p->of->image_size);
}

static void put_point(ry_sink *s, const ry_view *v, uint32_t i)
{
    ry_putf(s, "<a href=\"#r%u\">", i + 1);
    ry_page_title(s, v, i);
    ry_put(s, "</a>");
}

void ry_page_verdict(ry_sink *s, const ry_view *v, const ry_pairs *p)
{
    uint32_t n_tests, n_noise;
    if (!v->n) return;
    const choice best = cheapest_near(v, p, &n_tests, &n_noise);
    const renyi_report_point *base = v->points[v->baseline].of;
    ry_put(s, "<p id=\"verdict\" class=\"verdict\" aria-live=\"polite\">");
    if (!n_tests) {
        ry_put(s, "No paired tests against ");
        put_point(s, v, v->baseline);
        ry_put(s, " are known.</p>\n");
        return;
    }
    if (best.is_there) {
        const renyi_report_point *b = v->points[best.point].of;
        ry_put(s, "Cheapest within one point of ");
        put_point(s, v, v->baseline);
        ry_put(s, ": <b>");
        put_point(s, v, best.point);
        ry_putf(s, "</b>, with <b>%.0f %%</b> of its GMACs and <b>", 100 * b->gmacs / base->gmacs);
        ry_put_signed(s, best.pair.difference, 2);
        ry_put(s, "</b> points of accuracy (95 % interval: ");
        ry_put_interval(s, &best.pair);
        ry_put(s, "), p = ");
        ry_put_p_value(s, best.pair.p_value);
        ry_put(s, ".");
    } else {
        ry_put(s, "Nothing cheaper comes within one point of ");
        put_point(s, v, v->baseline);
        ry_put(s, ".");
    }
    ry_putf(s,
            " <span>The interval says what may be lost: with these photos more cannot be told. "
            "%u of %u tests are within the noise of %llu photos.</span></p>\n",
            n_noise, n_tests, (unsigned long long)base->images);
}
