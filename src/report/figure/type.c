/* type.c - text by pango: widths do not depend on scale, hinting, locale or the screen.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/type.h"

#include "base/alloc.h"

#include <pango/pangocairo.h>

struct ry_type {
    const renyi_allocator *al;
    PangoFontMap *fonts;
    PangoContext *context;
    PangoLayout *layout;
    PangoFontDescription *faces[RY_N_FACES];
};

static const struct {
    double size;
    int weight;
} faces[RY_N_FACES] = {
    [RY_FACE_TITLE] = {19, 700},  [RY_FACE_HEAD] = {14.5, 600},  [RY_FACE_STRONG] = {12, 600},
    [RY_FACE_TEXT] = {11.5, 400}, [RY_FACE_SMALL] = {10.5, 400},
};

double ry_type_size(ry_face face) { return faces[face].size; }

int ry_type_weight(ry_face face) { return faces[face].weight; }

ry_type *ry_type_new(const renyi_allocator *al)
{
    ry_type *t = ry_calloc(al, 1, sizeof *t);
    cairo_font_options_t *options = cairo_font_options_create();
    if (!t || cairo_font_options_status(options) != CAIRO_STATUS_SUCCESS) {
        cairo_font_options_destroy(options);
        ry_free(al, t);
        return NULL;
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
        pango_font_description_set_weight(t->faces[i], (PangoWeight)faces[i].weight);
        pango_font_description_set_absolute_size(t->faces[i], faces[i].size * PANGO_SCALE);
    }
    return t;
}

void ry_type_free(ry_type *t)
{
    if (!t) return;
    for (int i = 0; i < RY_N_FACES; i++) pango_font_description_free(t->faces[i]);
    g_object_unref(t->layout);
    g_object_unref(t->context);
    g_object_unref(t->fonts);
    ry_free(t->al, t);
}

static double set(ry_type *t, ry_face face, const char *text)
{
    int width;
    pango_layout_set_font_description(t->layout, t->faces[face]);
    pango_layout_set_text(t->layout, text, -1);
    pango_layout_get_size(t->layout, &width, NULL);
    return (double)width / PANGO_SCALE;
}

double ry_type_width(ry_type *t, ry_face face, const char *text) { return set(t, face, text); }

void ry_type_target(ry_type *t, cairo_t *to)
{
    pango_cairo_update_context(to, t->context);
    pango_layout_context_changed(t->layout);
}

void ry_type_paint(ry_type *t, cairo_t *to, const ry_mark *mark, const char *text)
{
    const double width = set(t, mark->face, text);
    const double back = mark->align == RY_LEFT ? 0 : mark->align == RY_CENTRE ? width / 2 : width;
    cairo_set_source_rgba(to, mark->ink.r / 255.0, mark->ink.g / 255.0, mark->ink.b / 255.0,
                          mark->ink.a / 255.0);
    cairo_move_to(to, mark->place.x0 - back, mark->place.y0);
    pango_cairo_show_layout_line(to, pango_layout_get_line_readonly(t->layout, 0));
}
