/* sheet_out.h - a sheet as pixels, PNG or SVG.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SHEET_OUT_H
#define RY_SHEET_OUT_H

#include "report/figure/sheet.h"

/* Pixels as RGB bytes, `scale` of them per unit; *rgb [*height, *width, 3] is from ry_alloc.
 * RENYI_ERR_LIMIT beyond RENYI_FIGURE_MAX_SIDE or _PIXELS. */
renyi_status ry_sheet_pixels(const ry_sheet *s, double scale, uint8_t **rgb, uint32_t *width,
                             uint32_t *height, renyi_error *err);

/* Writes a file that stands alone. Memory that is short for `out` shows in it alone. */
renyi_status ry_sheet_svg(const ry_sheet *s, ry_sink *out, renyi_error *err);

/* A PNG file. per_metre: pixels, 0 = unsaid. */
renyi_status ry_put_png(ry_sink *out, const uint8_t *rgb, uint32_t width, uint32_t height,
                        uint32_t per_metre, renyi_error *err);
void ry_put_base64(ry_sink *out, const void *bytes, size_t size);

#endif
