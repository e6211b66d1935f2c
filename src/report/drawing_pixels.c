/* drawing_pixels.c - paints a drawing with cairo and pango.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/drawing.h"

#include "base/alloc.h"
#include "base/status.h"
#include "renyi/viz.h"

#include <math.h>
#include <pango/pangocairo.h>

/* ---- text ---------------------------------------------------------------------------------- */

struct ry_typesetter {
    const renyi_allocator *al;
    PangoFontMap *fonts;
    PangoContext *context;
    PangoLayout *layout;
    PangoFontDescription *faces[RY_N_FACES];
};

renyi_status ry_typesetter_new(ry_typesetter **out, const renyi_allocator *al, renyi_error *err)
{
    ry_typesetter *t = ry_calloc(al, 1, sizeof *t);
    cairo_font_options_t *options = cairo_font_options_create();
    if (!t || cairo_font_options_status(options) != CAIRO_STATUS_SUCCESS) {
        cairo_font_options_destroy(options);
        ry_free(al, t);
        *out = NULL;
        return ry_fail_nomem(err, sizeof *t);
    }
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    t->al = al;
    t->fonts = pango_cairo_font_map_new();
    t->context = pango_font_map_create_context(t->fonts);
    pango_cairo_context_set_font_options(t->context, options);
    cairo_font_options_destroy(options);
    pango_context_set_language(t->context, pango_language_from_string("en"));
    pango_context_set_base_dir(t->context, PANGO_DIRECTION_LTR);
    pango_context_set_round_glyph_positions(t->context, FALSE);
    t->layout = pango_layout_new(t->context);
    pango_layout_set_single_paragraph_mode(t->layout, TRUE);
    pango_layout_set_auto_dir(t->layout, FALSE);
    for (int i = 0; i < RY_N_FACES; i++) {
        t->faces[i] = pango_font_description_from_string("Open Sans,DejaVu Sans,sans-serif");
        pango_font_description_set_weight(t->faces[i], (PangoWeight)ry_face_weight((ry_face)i));
        pango_font_description_set_absolute_size(t->faces[i],
                                                 ry_face_size((ry_face)i) * PANGO_SCALE);
    }
    *out = t;
    return RENYI_OK;
}

void ry_typesetter_free(ry_typesetter *t)
{
    if (!t) return;
    for (int i = 0; i < RY_N_FACES; i++) pango_font_description_free(t->faces[i]);
    g_object_unref(t->layout);
    g_object_unref(t->context);
    g_object_unref(t->fonts);
    ry_free(t->al, t);
}

double ry_typeset_width(ry_typesetter *t, ry_face face, const char *text)
{
    int width;
    pango_layout_set_font_description(t->layout, t->faces[face]);
    pango_layout_set_text(t->layout, text, -1);
    pango_layout_get_size(t->layout, &width, NULL);
    return (double)width / PANGO_SCALE;
}

/* ---- marks --------------------------------------------------------------------------------- */

/* cairo stores a pixel as 0xffRRGGBB in a 32-bit word. */
static void rgb_to_cairo(uint32_t *out, const uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = 0xFF000000u | (uint32_t)rgb[3 * i] << 16 | (uint32_t)rgb[3 * i + 1] << 8 |
                 rgb[3 * i + 2];
}

static void cairo_to_rgb(uint8_t *rgb, const uint32_t *in, size_t n)
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

static void trace_boxes(const ry_drawing *d, const ry_mark *m, cairo_t *to)
{
    for (size_t i = m->first; i < m->first + m->n; i++) {
        const ry_box *b = &d->boxes[i];
        cairo_rectangle(to, b->x0, b->y0, b->x1 - b->x0, b->y1 - b->y0);
    }
}

static void paint_lines(const ry_drawing *d, const ry_mark *m, cairo_t *to)
{
    set_ink(to, m->ink);
    cairo_set_line_width(to, m->size);
    cairo_set_line_cap(to, CAIRO_LINE_CAP_SQUARE);
    for (size_t i = m->first; i < m->first + m->n; i++) {
        cairo_move_to(to, d->boxes[i].x0, d->boxes[i].y0);
        cairo_line_to(to, d->boxes[i].x1, d->boxes[i].y1);
    }
    cairo_stroke(to); /* all at once, so that crossings of translucent lines are not darker */
}

static void paint_bitmap(const ry_drawing *d, const ry_mark *m, cairo_surface_t *bitmap,
                         cairo_t *to)
{
    const double by = (m->place.x1 - m->place.x0) / d->bitmaps[m->index].side;
    cairo_save(to);
    cairo_set_antialias(to, CAIRO_ANTIALIAS_NONE);
    if (m->n > 0) {
        trace_boxes(d, m, to);
    } else {
        cairo_rectangle(to, m->place.x0, m->place.y0, m->place.x1 - m->place.x0,
                        m->place.y1 - m->place.y0);
    }
    cairo_clip(to);
    cairo_translate(to, m->place.x0, m->place.y0);
    cairo_scale(to, by, by);
    cairo_set_source_surface(to, bitmap, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(to), CAIRO_FILTER_GOOD);
    cairo_pattern_set_extend(cairo_get_source(to), CAIRO_EXTEND_PAD);
    cairo_paint(to);
    cairo_restore(to);
}

/* The layout of the typesetter must be set up for `to`. */
static void paint_text(const ry_drawing *d, const ry_mark *m, cairo_t *to)
{
    ry_typesetter *t = d->typesetter;
    const double width = ry_typeset_width(t, m->face, d->texts.bytes + m->first);
    const double back = m->align == RY_LEFT ? 0 : m->align == RY_CENTRE ? width / 2 : width;
    set_ink(to, m->ink);
    cairo_move_to(to, m->place.x0 - back, m->place.y0);
    pango_cairo_show_layout_line(to, pango_layout_get_line_readonly(t->layout, 0));
}

static void paint_marks(const ry_drawing *d, cairo_surface_t **bitmaps, cairo_t *to)
{
    set_ink(to, d->ground);
    cairo_paint(to);
    pango_cairo_update_context(to, d->typesetter->context);
    pango_layout_context_changed(d->typesetter->layout);
    for (size_t i = 0; i < d->n_marks; i++) {
        const ry_mark *m = &d->marks[i];
        cairo_set_antialias(to, CAIRO_ANTIALIAS_DEFAULT);
        switch (m->kind) {
        case RY_MARK_FILL: /* whole pixels: no seams between patches */
            cairo_set_antialias(to, CAIRO_ANTIALIAS_NONE);
            set_ink(to, m->ink);
            trace_boxes(d, m, to);
            cairo_fill(to);
            break;
        case RY_MARK_LINES: paint_lines(d, m, to); break;
        case RY_MARK_BITMAP: paint_bitmap(d, m, bitmaps[m->index], to); break;
        case RY_MARK_TEXT: paint_text(d, m, to); break;
        default: break; /* marks with a style are for SVG */
        }
    }
}

static cairo_surface_t *surface_of(const ry_bitmap *b)
{
    cairo_surface_t *f = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)b->side, (int)b->side);
    if (cairo_surface_status(f) != CAIRO_STATUS_SUCCESS) return f;
    unsigned char *data = cairo_image_surface_get_data(f);
    const size_t stride = (size_t)cairo_image_surface_get_stride(f);
    for (size_t y = 0; y < b->side; y++)
        rgb_to_cairo((uint32_t *)(void *)(data + y * stride), b->rgb + y * b->side * 3, b->side);
    cairo_surface_mark_dirty(f);
    return f;
}

/* Paints to pixels [height, width] in the format of cairo and returns its status. */
static cairo_status_t paint_drawing(const ry_drawing *d, double scale, uint32_t *pixels, int width,
                                    int height, cairo_surface_t **bitmaps)
{
    cairo_surface_t *page = cairo_image_surface_create_for_data(
        (unsigned char *)pixels, CAIRO_FORMAT_RGB24, width, height, 4 * width);
    cairo_t *to = cairo_create(page);
    cairo_status_t status = cairo_status(to);
    for (size_t i = 0; i < d->n_bitmaps; i++) {
        bitmaps[i] = surface_of(&d->bitmaps[i]);
        if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(bitmaps[i]);
    }
    if (status == CAIRO_STATUS_SUCCESS) {
        cairo_scale(to, scale, scale);
        paint_marks(d, bitmaps, to);
        status = cairo_status(to);
    }
    cairo_surface_flush(page);
    for (size_t i = 0; i < d->n_bitmaps; i++) cairo_surface_destroy(bitmaps[i]);
    cairo_destroy(to);
    cairo_surface_destroy(page);
    return status;
}

renyi_status ry_drawing_pixels(const ry_drawing *d, double scale, uint8_t **rgb, uint32_t *width,
                               uint32_t *height, renyi_error *err)
{
    const double w = ceil(d->width * scale), h = ceil(d->height * scale);
    *rgb = NULL;
    if (!(w >= 1 && h >= 1 && w <= RENYI_FIGURE_MAX_SIDE && h <= RENYI_FIGURE_MAX_SIDE &&
          w * h <= RENYI_FIGURE_MAX_PIXELS))
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "the figure would have %.0f x %.0f pixels; at most %d a side and %d in all: "
                       "use fewer images, layers or rows, a smaller scale, or SVG",
                       w, h, RENYI_FIGURE_MAX_SIDE, RENYI_FIGURE_MAX_PIXELS);
    const size_t n = (size_t)w * (size_t)h;
    uint32_t *pixels = ry_alloc(d->al, n, sizeof *pixels);
    cairo_surface_t **bitmaps = ry_alloc(d->al, d->n_bitmaps, sizeof(cairo_surface_t *));
    *rgb = ry_alloc(d->al, n, 3);
    cairo_status_t status = CAIRO_STATUS_NO_MEMORY;
    if (pixels && bitmaps && *rgb)
        status = paint_drawing(d, scale, pixels, (int)w, (int)h, bitmaps);
    if (status == CAIRO_STATUS_SUCCESS) cairo_to_rgb(*rgb, pixels, n);
    ry_free(d->al, pixels);
    ry_free(d->al, bitmaps);
    *width = (uint32_t)w;
    *height = (uint32_t)h;
    if (status == CAIRO_STATUS_SUCCESS) return RENYI_OK;
    ry_free(d->al, *rgb);
    *rgb = NULL;
    if (status == CAIRO_STATUS_NO_MEMORY) return ry_fail_nomem(err, 7 * n);
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "cairo could not paint the figure: %s",
                   cairo_status_to_string(status));
}
