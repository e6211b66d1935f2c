/* viz_page_data.h - the page of pictures: its lists, and the numbers for its script.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VIZ_PAGE_DATA_H
#define RY_VIZ_PAGE_DATA_H

#include "renyi/viz.h"
#include "report/page/markup.h"

enum { RY_VIZ_MAX_MAPS = 2 * RENYI_VIZ_MAX_METRICS + RENYI_VIZ_MAX_ORDERS };

/* All maps of a photo, each metric once: the metrics, then those norms that are not among them.
 * The same places in every photo. */
typedef struct ry_viz_maps {
    uint32_t n;
    struct {
        uint32_t is_norm, at; /* place in the result's norms, or in its metrics */
    } of[RY_VIZ_MAX_MAPS];
    uint32_t norms[RY_VIZ_MAX_MAPS]; /* [n_norms] their places among the maps */
} ry_viz_maps;

ry_viz_maps ry_viz_maps_of(const renyi_viz_result *r);
const renyi_viz_metric *ry_viz_map_at(const renyi_viz_result *r, const ry_viz_maps *maps,
                                      uint32_t i);

/* RENYI_OK if one page can show all photos. */
renyi_status ry_viz_check(const renyi_viz_page *page, renyi_error *err) RENYI_CHECK;

/* Everything the script reads, as JSON in its own element. */
void ry_viz_put_data(ry_sink *s, const renyi_viz_page *page);

extern const char ry_viz_css[], ry_viz_html[], ry_viz_draw_js[], ry_viz_patch_js[],
    ry_viz_js[]; /* files of this folder */

#endif
