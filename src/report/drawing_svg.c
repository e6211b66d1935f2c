/* drawing_svg.c - writes a drawing as SVG: lines and text stay vectors, each bitmap is embedded
 * once. This is not cairo's SVG surface: that one numbers its surfaces over the life of a
 * process, so a second call would give other bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/drawing.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>

/* ---- attributes ---------------------------------------------------------------------------- */

/* Charts need a tenth of a pixel; figures are magnified. Zeros at the end are left out. */
static void put_place(ry_buffer *out, const ry_drawing *d, double v)
{
    char digits[RY_NUMBER_MAX];
    size_t n = ry_number(digits, v, d->css ? 1 : 3);
    while (n > 1 && digits[n - 1] == '0') n--;
    if (digits[n - 1] == '.') n--;
    ry_buffer_put(out, digits, n);
}

static void put_attribute(ry_buffer *out, const ry_drawing *d, const char *name, double v)
{
    ry_buffer_text(out, " ");
    ry_buffer_text(out, name);
    ry_buffer_text(out, "=\"");
    put_place(out, d, v);
    ry_buffer_text(out, "\"");
}

static void put_ink(ry_buffer *out, const char *name, ry_ink ink)
{
    static const char hex[] = "0123456789abcdef";
    const char colour[] = {'#',
                           hex[ink.r >> 4],
                           hex[ink.r & 15],
                           hex[ink.g >> 4],
                           hex[ink.g & 15],
                           hex[ink.b >> 4],
                           hex[ink.b & 15],
                           0};
    ry_putf(out, " %s=\"%s\"", name, colour);
    if (ink.a == 255) return;
    ry_putf(out, " %s-opacity=\"%.3f\"", name, ink.a / 255.0);
}

static void put_class(ry_buffer *out, const ry_drawing *d, const ry_mark *m)
{
    const char *classes = d->texts.bytes + m->style;
    if (*classes) ry_putf(out, " class=\"%s\"", classes);
}

static void put_translation(ry_buffer *out, const ry_drawing *d, const ry_mark *m)
{
    ry_buffer_text(out, "translate(");
    put_place(out, d, m->place.x0);
    ry_buffer_text(out, " ");
    put_place(out, d, m->place.y0);
    ry_buffer_text(out, ")");
}

/* ---- paths --------------------------------------------------------------------------------- */

/* A letter of a path and the number after it. */
static void put_step(ry_buffer *out, const ry_drawing *d, const char *letter, double place)
{
    ry_buffer_text(out, letter);
    put_place(out, d, place);
}

/* M x y H x V y H x z for every box. */
static void put_boxes(ry_buffer *out, const ry_drawing *d, const ry_mark *m)
{
    ry_buffer_text(out, "<path d=\"");
    for (size_t i = m->first; i < m->first + m->n; i++) {
        const ry_box *b = &d->boxes[i];
        put_step(out, d, "M", b->x0);
        put_step(out, d, " ", b->y0);
        put_step(out, d, "H", b->x1);
        put_step(out, d, "V", b->y1);
        put_step(out, d, "H", b->x0);
        ry_buffer_text(out, "z");
    }
    ry_buffer_text(out, "\"");
}

/* A segment that begins where the one before ended continues its line. */
static void put_segments(ry_buffer *out, const ry_drawing *d, const ry_mark *m)
{
    ry_buffer_text(out, " d=\"");
    for (size_t i = m->first; i < m->first + m->n; i++) {
        const ry_box *b = &d->boxes[i];
        if (i == m->first || b->x0 != b[-1].x1 || b->y0 != b[-1].y1) {
            put_step(out, d, "M", b->x0);
            put_step(out, d, " ", b->y0);
        }
        if (b->y0 == b->y1) {
            put_step(out, d, "H", b->x1);
        } else if (b->x0 == b->x1) {
            put_step(out, d, "V", b->y1);
        } else {
            put_step(out, d, "L", b->x1);
            put_step(out, d, " ", b->y1);
        }
    }
    ry_buffer_text(out, "\"");
}

static void put_lines(ry_buffer *out, const ry_drawing *d, const ry_mark *m)
{
    ry_buffer_text(out, "<path");
    if (m->style) put_class(out, d, m);
    put_segments(out, d, m);
    if (!m->style) {
        ry_buffer_text(out, " fill=\"none\" stroke-linecap=\"square\"");
        put_attribute(out, d, "stroke-width", m->size);
        put_ink(out, "stroke", m->ink);
    }
    ry_buffer_text(out, "/>\n");
}

/* Around the origin, about 11 pixels wide. */
static void put_shape(ry_buffer *out, const ry_drawing *d, const ry_mark *m)
{
    static const char *const paths[RY_SHAPES] = {"M-5 0a5 5 0 1 1 10 0a5 5 0 1 1-10 0z",
                                                 "M-4.5-4.5h9v9h-9z",
                                                 "M0-6L5.6 4.2H-5.6z",
                                                 "M0-6.3L6.3 0L0 6.3L-6.3 0z",
                                                 "M0 6L5.6-4.2H-5.6z",
                                                 "M-5.5 0L-2.8-4.8H2.8L5.5 0L2.8 4.8H-2.8z"};
    const int is_moved = m->place.x0 != 0 || m->place.y0 != 0, is_scaled = m->size != 1;
    ry_buffer_text(out, "<path");
    put_class(out, d, m);
    if (is_moved || is_scaled) {
        ry_buffer_text(out, " transform=\"");
        if (is_moved) put_translation(out, d, m);
        if (is_scaled) ry_putf(out, is_moved ? " scale(%.2f)" : "scale(%.2f)", m->size);
        ry_buffer_text(out, "\"");
    }
    ry_putf(out, " d=\"%s\"/>", paths[m->index % RY_SHAPES]);
    if (is_moved) ry_buffer_text(out, "\n");
}

/* ---- other marks --------------------------------------------------------------------------- */

/* `number` is the mark's own; it names the clip path. */
static void put_bitmap(ry_buffer *out, const ry_drawing *d, const ry_mark *m, size_t number)
{
    if (m->n > 0) {
        ry_putf(out, "<clipPath id=\"c%zu\">", number);
        put_boxes(out, d, m);
        ry_putf(out, "/></clipPath><g clip-path=\"url(#c%zu)\">", number);
    }
    ry_putf(out, "<use xlink:href=\"#p%u\" transform=\"", m->index);
    put_translation(out, d, m);
    ry_putf(out, " scale(%.6f)\"/>", (m->place.x1 - m->place.x0) / d->bitmaps[m->index].side);
    ry_buffer_text(out, m->n > 0 ? "</g>\n" : "\n");
}

static void put_text(ry_buffer *out, const ry_drawing *d, const ry_mark *m)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    ry_buffer_text(out, "<text");
    if (m->style) put_class(out, d, m);
    put_attribute(out, d, "x", m->place.x0);
    put_attribute(out, d, "y", m->place.y0);
    if (m->style) {
        ry_buffer_text(out, ">");
        ry_buffer_text(out, d->texts.bytes + m->first);
    } else {
        put_attribute(out, d, "font-size", ry_face_size(m->face));
        if (ry_face_weight(m->face) != 400)
            put_attribute(out, d, "font-weight", ry_face_weight(m->face));
        ry_buffer_text(out, anchors[m->align]);
        put_ink(out, "fill", m->ink);
        ry_putf(out, ">%s", d->texts.bytes + m->first);
    }
    ry_buffer_text(out, "</text>\n");
}

static void put_group(ry_buffer *out, const ry_drawing *d, const ry_mark *m)
{
    ry_buffer_text(out, "<");
    ry_buffer_text(out, m->tag);
    put_class(out, d, m);
    if (m->place.x0 != 0 || m->place.y0 != 0) {
        ry_buffer_text(out, " transform=\"");
        put_translation(out, d, m);
        ry_buffer_text(out, "\"");
    }
    ry_buffer_text(out, d->texts.bytes + m->first);
    ry_buffer_text(out, ">");
}

static void put_mark(ry_buffer *out, const ry_drawing *d, size_t i)
{
    const ry_mark *m = &d->marks[i];
    switch (m->kind) {
    case RY_MARK_FILL:
        put_boxes(out, d, m);
        put_ink(out, "fill", m->ink);
        ry_buffer_text(out, " shape-rendering=\"crispEdges\"/>\n"); /* no seams between patches */
        break;
    case RY_MARK_LINES: put_lines(out, d, m); break;
    case RY_MARK_BITMAP: put_bitmap(out, d, m, i); break;
    case RY_MARK_TEXT: put_text(out, d, m); break;
    case RY_MARK_SHAPE: put_shape(out, d, m); break;
    case RY_MARK_CIRCLE:
        ry_buffer_text(out, "<circle");
        put_class(out, d, m);
        put_attribute(out, d, "r", m->size);
        ry_buffer_text(out, "/>");
        break;
    case RY_MARK_GROUP: put_group(out, d, m); break;
    case RY_MARK_TITLE:
        ry_buffer_text(out, "<title>");
        ry_buffer_text(out, d->texts.bytes + m->first);
        ry_buffer_text(out, "</title>");
        break;
    case RY_MARK_END: ry_putf(out, "</%s>\n", m->tag); break;
    }
}

/* ---- the file ------------------------------------------------------------------------------ */

static renyi_status put_bitmaps(ry_buffer *out, const ry_drawing *d, renyi_error *err)
{
    ry_buffer_text(out, "<defs>\n");
    for (size_t i = 0; i < d->n_bitmaps; i++) {
        const ry_bitmap *b = &d->bitmaps[i];
        ry_buffer png = {.al = out->al};
        const renyi_status status = ry_put_png(&png, b->rgb, b->side, b->side, 0, err);
        if (status == RENYI_OK) {
            ry_putf(out, "<image id=\"p%zu\" width=\"%u\" height=\"%u\" xlink:href=\"data:", i,
                    b->side, b->side);
            ry_buffer_text(out, "image/png;base64,");
            ry_put_base64(out, png.bytes, png.size);
            ry_buffer_text(out, "\"/>\n");
        }
        ry_free(png.al, png.bytes);
        RY_TRY(status);
    }
    ry_buffer_text(out, "</defs>\n");
    return RENYI_OK;
}

static void put_head(ry_buffer *out, const ry_drawing *d)
{
    const double w = ceil(d->width), h = ceil(d->height);
    ry_buffer_text(out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    if (d->n_bitmaps) ry_buffer_text(out, " xmlns:xlink=\"http://www.w3.org/1999/xlink\"");
    if (d->css)
        ry_putf(out, " class=\"%s\"", d->svg_style);
    else
        ry_buffer_text(out, " font-family=\"'Open Sans','DejaVu Sans','Segoe UI',Helvetica,Arial,"
                            "sans-serif\"");
    ry_putf(out, " viewBox=\"0 0 %.0f %.0f\"", w, h);
    if (!d->is_inline) ry_putf(out, " width=\"%.0f\" height=\"%.0f\"", w, h);
    const char *title = d->title ? d->title : "figure";
    ry_putf(out, " role=\"%s\" aria-label=\"%s\">\n<title>%s</title>\n",
            d->is_inline ? "group" : "img", title, title);
    if (!d->description.size) return;
    ry_buffer_text(out, "<desc>");
    ry_buffer_put(out, d->description.bytes, d->description.size);
    ry_buffer_text(out, "</desc>\n");
}

static void put_background(ry_buffer *out, const ry_drawing *d)
{
    if (d->css) {
        ry_buffer_text(out, "<style>\n");
        ry_buffer_text(out, d->css);
        ry_buffer_text(out, "</style>\n");
    }
    ry_buffer_text(out, "<rect width=\"100%\" height=\"100%\"");
    if (d->css)
        ry_buffer_text(out, " class=\"rc-bg\"");
    else
        put_ink(out, "fill", d->ground);
    ry_buffer_text(out, "/>\n");
}

renyi_status ry_drawing_svg(ry_drawing *d, ry_buffer *out, renyi_error *err)
{
    ry_buffer_put(&d->texts, "", 1); /* ends the last text */
    if (d->failed || d->texts.failed || d->description.failed) {
        out->failed = 1;
        out->wanted = sizeof *d;
        return RENYI_OK;
    }
    put_head(out, d);
    if (d->n_bitmaps) RY_TRY(put_bitmaps(out, d, err));
    if (!d->is_inline) put_background(out, d);
    for (size_t i = 0; i < d->n_marks; i++) put_mark(out, d, i);
    ry_buffer_text(out, "</svg>\n");
    return RENYI_OK;
}
