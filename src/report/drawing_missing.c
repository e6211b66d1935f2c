/* drawing_missing.c - figures in a library that was built without cairo and pango: each is refused
 * when it is begun. Charts and pages need neither.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/drawing.h"

#include "base/status.h"

renyi_status ry_typesetter_new(ry_typesetter **out, const renyi_allocator *al, renyi_error *err)
{
    (void)al;
    *out = NULL;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "figures: renyi was built without cairo and pango; install pango's development "
                   "package (Debian: libpango1.0-dev) and build again. HTML pages and charts need "
                   "neither");
}

/* There is no typesetter, so the functions below are never called. */

void ry_typesetter_free(ry_typesetter *t) { (void)t; }

double ry_typeset_width(ry_typesetter *t, ry_face face, const char *text)
{
    (void)t, (void)face, (void)text;
    return 0;
}

renyi_status ry_drawing_pixels(const ry_drawing *d, double scale, uint8_t **rgb, uint32_t *width,
                               uint32_t *height, renyi_error *err)
{
    ry_typesetter *none;
    (void)scale;
    *rgb = NULL;
    *width = *height = 0;
    return ry_typesetter_new(&none, d->al, err);
}
