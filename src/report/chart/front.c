/* front.c - which points no other beats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "report/chart/view.h"

#include <math.h>

double ry_point_cost(const renyi_report_point *p, renyi_chart chart)
{
    return chart == RENYI_CHART_GMACS ? p->gmacs : chart == RENYI_CHART_MS ? p->ms_model : NAN;
}

int ry_point_is_shown(const renyi_report_point *p, renyi_chart chart)
{
    return isfinite(p->top1) && isfinite(ry_point_cost(p, chart));
}

void ry_front_mark(const renyi_report_point *points, uint32_t n, renyi_chart chart,
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
    ry_front_mark(r->points, r->n_points, chart, on_front, 1);
    return RENYI_OK;
}
