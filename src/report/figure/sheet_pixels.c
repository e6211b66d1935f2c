/* sheet_pixels.c - a sheet painted by cairo.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "renyi/viz.h"
#include "report/figure/sheet_out.h"
#include "report/figure/type.h"

#include <math.h>

/* cairo's way to hold RGB: 0xffRRGGBB in a machine word. */
static void to_words(uint32_t *out, const uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = 0xFF000000u | (uint32_t)rgb[3 * i] << 16 | (uint32_t)rgb[3 * i + 1] << 8 |
                 rgb[3 * i + 2];
}

static void from_words(uint8_t *rgb, const uint32_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t word = in[i];
        rgb[3 * i] = (uint8_t)(word >> 16);
        rgb[3 * i + 1] = (uint8_t)(word >> 8);
        rgb[3 * i + 2] = (uint8_t)word;
    }
}

static void set_ink(cairo_t *to, ry_ink ink)
{
    cairo_set_source_rgba(to, ink.r / 255.0, ink.g / 255.0, ink.b / 255.0, ink.a / 255.0);
}

static void add_boxes(const ry_sheet *s, const ry_mark *m, cairo_t *to)
{
    for (size_t i = m->first; i < m->first + m->n; i++) {
        const ry_rect *r = &s->rects[i];
        cairo_rectangle(to, r->x0, r->y0, r->x1 - r->x0, r->y1 - r->y0);
    }
}

static void paint_lines(const ry_sheet *s, const ry_mark *m, cairo_t *to)
{
    set_ink(to, m->ink);
    cairo_set_line_width(to, m->width);
    cairo_set_line_cap(to, CAIRO_LINE_CAP_SQUARE);
    for (size_t i = m->first; i < m->first + m->n; i++) {
        cairo_move_to(to, s->rects[i].x0, s->rects[i].y0);
        cairo_line_to(to, s->rects[i].x1, s->rects[i].y1);
    }
    cairo_stroke(to); /* all at once: where lines of a translucent ink cross, it is not darker */
}

static void paint_picture(const ry_sheet *s, const ry_mark *m, cairo_surface_t *picture,
                          cairo_t *to)
{
    const double by = (m->place.x1 - m->place.x0) / s->pictures[m->picture].side;
    cairo_save(to);
    cairo_set_antialias(to, CAIRO_ANTIALIAS_NONE);
    if (m->n > 0) {
        add_boxes(s, m, to);
    } else {
        cairo_rectangle(to, m->place.x0, m->place.y0, m->place.x1 - m->place.x0,
                        m->place.y1 - m->place.y0);
    }
    cairo_clip(to);
    cairo_translate(to, m->place.x0, m->place.y0);
    cairo_scale(to, by, by);
    cairo_set_source_surface(to, picture, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(to), CAIRO_FILTER_GOOD);
    cairo_pattern_set_extend(cairo_get_source(to), CAIRO_EXTEND_PAD);
    cairo_paint(to);
    cairo_restore(to);
}

static void paint(const ry_sheet *s, cairo_surface_t **pictures, cairo_t *to)
{
    set_ink(to, s->ground);
    cairo_paint(to);
    ry_type_target(s->type, to);
    for (size_t i = 0; i < s->n_marks; i++) {
        const ry_mark *m = &s->marks[i];
        cairo_set_antialias(to, CAIRO_ANTIALIAS_DEFAULT);
        switch (m->kind) {
        case RY_MARK_FILL: /* whole pixels: no seams between patches */
            cairo_set_antialias(to, CAIRO_ANTIALIAS_NONE);
            set_ink(to, m->ink);
            add_boxes(s, m, to);
            cairo_fill(to);
            break;
        case RY_MARK_LINES: paint_lines(s, m, to); break;
        case RY_MARK_PICTURE: paint_picture(s, m, pictures[m->picture], to); break;
        case RY_MARK_TEXT: ry_type_paint(s->type, to, m, s->texts.bytes + m->first); break;
        }
    }
}

static cairo_surface_t *surface_of(const ry_picture *p)
{
    cairo_surface_t *f = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)p->side, (int)p->side);
    if (cairo_surface_status(f) != CAIRO_STATUS_SUCCESS) return f;
    unsigned char *data = cairo_image_surface_get_data(f);
    const size_t stride = (size_t)cairo_image_surface_get_stride(f);
    for (size_t y = 0; y < p->side; y++)
        to_words((uint32_t *)(void *)(data + y * stride), p->rgb + y * p->side * 3, p->side);
    cairo_surface_mark_dirty(f);
    return f;
}

/* Onto words [height, width]; the status of cairo. */
static cairo_status_t paint_words(const ry_sheet *s, double scale, uint32_t *words, int width,
                                  int height, cairo_surface_t **pictures)
{
    cairo_surface_t *page = cairo_image_surface_create_for_data(
        (unsigned char *)words, CAIRO_FORMAT_RGB24, width, height, 4 * width);
    cairo_t *to = cairo_create(page);
    cairo_status_t status = cairo_status(to);
    for (size_t i = 0; i < s->n_pictures; i++) {
        pictures[i] = surface_of(&s->pictures[i]);
        if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(pictures[i]);
    }
    if (status == CAIRO_STATUS_SUCCESS) {
        cairo_scale(to, scale, scale);
        paint(s, pictures, to);
        status = cairo_status(to);
    }
    cairo_surface_flush(page);
    for (size_t i = 0; i < s->n_pictures; i++) cairo_surface_destroy(pictures[i]);
    cairo_destroy(to);
    cairo_surface_destroy(page);
    return status;
}

renyi_status ry_sheet_pixels(const ry_sheet *s, double scale, uint8_t **rgb, uint32_t *width,
                             uint32_t *height, renyi_error *err)
{
    const double w = ceil(s->width * scale), h = ceil(s->height * scale);
    *rgb = NULL;
    if (!(w >= 1 && h >= 1 && w <= RENYI_FIGURE_MAX_SIDE && h <= RENYI_FIGURE_MAX_SIDE &&
          w * h <= RENYI_FIGURE_MAX_PIXELS))
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "the figure would have %.0f x %.0f pixels; at most %d a side and %d in all: "
                       "take fewer photos, layers or rows, a smaller scale, or SVG",
                       w, h, RENYI_FIGURE_MAX_SIDE, RENYI_FIGURE_MAX_PIXELS);
    const size_t n = (size_t)w * (size_t)h;
    uint32_t *words = ry_alloc(s->al, n, sizeof *words);
    cairo_surface_t **pictures = ry_alloc(s->al, s->n_pictures, sizeof(cairo_surface_t *));
    *rgb = ry_alloc(s->al, n, 3);
    cairo_status_t status = CAIRO_STATUS_NO_MEMORY;
    if (words && pictures && *rgb) status = paint_words(s, scale, words, (int)w, (int)h, pictures);
    if (status == CAIRO_STATUS_SUCCESS) from_words(*rgb, words, n);
    ry_free(s->al, words);
    ry_free(s->al, pictures);
    *width = (uint32_t)w;
    *height = (uint32_t)h;
    if (status == CAIRO_STATUS_SUCCESS) return RENYI_OK;
    ry_free(s->al, *rgb);
    *rgb = NULL;
    if (status == CAIRO_STATUS_NO_MEMORY) return ry_fail_nomem(err, 7 * n);
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "cairo could not paint the figure: %s",
                   cairo_status_to_string(status));
}
