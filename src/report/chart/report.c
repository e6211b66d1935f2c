/* report.c - the public doors: charts and the page as texts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/report.h"

#include "base/alloc.h"
#include "base/status.h"
#include "report/chart/chart.h"
#include "report/page/page.h"

#include <string.h>

/* Hands the finished text over, or frees it. */
static renyi_status finish(renyi_report_text *out, ry_sink *s, ry_view *v, renyi_error *err)
{
    const renyi_allocator al = *v->al;
    ry_put_bytes(s, "", 1);
    ry_view_free(v);
    if (s->failed) {
        ry_free(&al, s->bytes);
        return ry_fail_nomem(err, s->wanted);
    }
    *out = (renyi_report_text){s->bytes, s->size - 1, al};
    return RENYI_OK;
}

renyi_status renyi_report_svg(renyi_report_text *out, const renyi_report *r, renyi_chart chart,
                              renyi_error *err)
{
    ry_view v;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_report_svg: NULL argument");
    memset(out, 0, sizeof *out);
    if (chart != RENYI_CHART_GMACS && chart != RENYI_CHART_MS && chart != RENYI_CHART_TOKENS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_report_svg: there is no chart %d",
                       (int)chart);
    RY_TRY(ry_view_new(&v, r, err));
    ry_sink s = {.al = v.al};
    if (chart == RENYI_CHART_TOKENS)
        ry_chart_tokens(&s, &v, RY_FORM_FILE);
    else
        ry_chart_scatter(&s, &v, chart, RY_FORM_FILE);
    return finish(out, &s, &v, err);
}

renyi_status renyi_report_html(renyi_report_text *out, const renyi_report *r, renyi_error *err)
{
    ry_view v;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_report_html: NULL argument");
    memset(out, 0, sizeof *out);
    RY_TRY(ry_view_new(&v, r, err));
    ry_sink s = {.al = v.al};
    const renyi_status status = ry_page(&s, &v, err);
    if (status != RENYI_OK) {
        ry_free(v.al, s.bytes);
        ry_view_free(&v);
        return status;
    }
    return finish(out, &s, &v, err);
}

void renyi_report_text_free(renyi_report_text *t)
{
    if (!t) return;
    const renyi_allocator al = t->allocator;
    ry_free(&al, t->bytes);
    memset(t, 0, sizeof *t);
}
