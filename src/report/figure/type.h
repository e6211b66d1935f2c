/* type.h - text set by pango in one font. GLib ends the process when memory runs out inside it; all
 * else that fails here is an error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TYPE_H
#define RY_TYPE_H

#include "report/figure/sheet.h"

#include <cairo.h>

/* One for each figure: pango's own caches are then no state of the library. NULL = no memory. */
ry_type *ry_type_new(const renyi_allocator *al);
void ry_type_free(ry_type *t);

double ry_type_width(ry_type *t, ry_face face, const char *text); /* UTF-8 */
double ry_type_size(ry_face face);                                /* of the font, units */
int ry_type_weight(ry_face face);                                 /* as in CSS: 400 to 700 */

/* Paints a text on `to` at a baseline. Call ry_type_target first, once for each `to`. */
void ry_type_target(ry_type *t, cairo_t *to);
void ry_type_paint(ry_type *t, cairo_t *to, const ry_mark *mark, const char *text);

#endif
