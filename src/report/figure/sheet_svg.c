/* sheet_svg.c - a sheet as an SVG file: lines and text stay vectors, photos are PNG inside, each
 * once. Written by hand, since cairo numbers its surfaces through the life of a process and would
 * give other bytes the second time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "report/figure/sheet_out.h"
#include "report/figure/type.h"

#include <math.h>

/* A number with at most three decimals and no zeros at its end. */
static void put_place(ry_sink *out, double v)
{
    char digits[RY_NUMBER_MAX];
    size_t n = ry_number(digits, v, 3);
    while (n > 1 && digits[n - 1] == '0') n--;
    if (digits[n - 1] == '.') n--;
    ry_put_bytes(out, digits, n);
}

static void put_attribute(ry_sink *out, const char *name, double v)
{
    ry_put(out, " ");
    ry_put(out, name);
    ry_put(out, "=\"");
    put_place(out, v);
    ry_put(out, "\"");
}

static void put_ink(ry_sink *out, const char *name, ry_ink ink)
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

/* A letter of a path and the number behind it. */
static void put_step(ry_sink *out, const char *letter, double place)
{
    ry_put(out, letter);
    put_place(out, place);
}

/* M x y H x V y H x z for every box. */
static void put_boxes(ry_sink *out, const ry_sheet *s, const ry_mark *m)
{
    ry_put(out, "<path d=\"");
    for (size_t i = m->first; i < m->first + m->n; i++) {
        const ry_rect *r = &s->rects[i];
        put_step(out, "M", r->x0);
        put_step(out, " ", r->y0);
        put_step(out, "H", r->x1);
        put_step(out, "V", r->y1);
        put_step(out, "H", r->x0);
        ry_put(out, "z");
    }
    ry_put(out, "\"");
}

static void put_lines(ry_sink *out, const ry_sheet *s, const ry_mark *m)
{
    ry_put(out, "<path d=\"");
    for (size_t i = m->first; i < m->first + m->n; i++) {
        const ry_rect *r = &s->rects[i];
        put_step(out, "M", r->x0);
        put_step(out, " ", r->y0);
        put_step(out, "L", r->x1);
        put_step(out, " ", r->y1);
    }
    ry_put(out, "\" fill=\"none\" stroke-linecap=\"square\"");
    put_attribute(out, "stroke-width", m->width);
    put_ink(out, "stroke", m->ink);
    ry_put(out, "/>\n");
}

/* `number`: of the mark, which names its window. */
static void put_picture(ry_sink *out, const ry_sheet *s, const ry_mark *m, size_t number)
{
    if (m->n > 0) {
        ry_putf(out, "<clipPath id=\"c%zu\">", number);
        put_boxes(out, s, m);
        ry_putf(out, "/></clipPath><g clip-path=\"url(#c%zu)\">", number);
    }
    ry_putf(out, "<use xlink:href=\"#p%u\" transform=\"translate(", m->picture);
    put_place(out, m->place.x0);
    ry_put(out, " ");
    put_place(out, m->place.y0);
    ry_putf(out, ") scale(%.6f)\"/>", (m->place.x1 - m->place.x0) / s->pictures[m->picture].side);
    ry_put(out, m->n > 0 ? "</g>\n" : "\n");
}

static void put_text(ry_sink *out, const ry_sheet *s, const ry_mark *m)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    ry_put(out, "<text");
    put_attribute(out, "x", m->place.x0);
    put_attribute(out, "y", m->place.y0);
    put_attribute(out, "font-size", ry_type_size(m->face));
    if (ry_type_weight(m->face) != 400) put_attribute(out, "font-weight", ry_type_weight(m->face));
    ry_put(out, anchors[m->align]);
    put_ink(out, "fill", m->ink);
    ry_putf(out, ">%s</text>\n", s->texts.bytes + m->first);
}

static void put_mark(ry_sink *out, const ry_sheet *s, size_t i)
{
    const ry_mark *m = &s->marks[i];
    switch (m->kind) {
    case RY_MARK_FILL:
        put_boxes(out, s, m);
        put_ink(out, "fill", m->ink);
        ry_put(out, " shape-rendering=\"crispEdges\"/>\n"); /* no seams between patches */
        break;
    case RY_MARK_LINES: put_lines(out, s, m); break;
    case RY_MARK_PICTURE: put_picture(out, s, m, i); break;
    case RY_MARK_TEXT: put_text(out, s, m); break;
    }
}

static renyi_status put_pictures(ry_sink *out, const ry_sheet *s, renyi_error *err)
{
    ry_put(out, "<defs>\n");
    for (size_t i = 0; i < s->n_pictures; i++) {
        const ry_picture *p = &s->pictures[i];
        ry_sink png = {.al = out->al};
        const renyi_status status = ry_put_png(&png, p->rgb, p->side, p->side, 0, err);
        if (status == RENYI_OK) {
            ry_putf(out, "<image id=\"p%zu\" width=\"%u\" height=\"%u\" xlink:href=\"data:", i,
                    p->side, p->side);
            ry_put(out, "image/png;base64,");
            ry_put_base64(out, png.bytes, png.size);
            ry_put(out, "\"/>\n");
        }
        ry_free(png.al, png.bytes);
        RY_TRY(status);
    }
    ry_put(out, "</defs>\n");
    return RENYI_OK;
}

renyi_status ry_sheet_svg(const ry_sheet *s, ry_sink *out, renyi_error *err)
{
    const double w = ceil(s->width), h = ceil(s->height);
    ry_put(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                "xmlns:xlink=\"http://www.w3.org/1999/xlink\" role=\"img\"");
    ry_putf(out, " width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\"", w, h, w, h);
    ry_put(out, " font-family=\"'Open Sans','DejaVu Sans','Segoe UI',Helvetica,Arial,sans-serif\">"
                "\n");
    ry_putf(out, "<title>%s</title>\n", s->title ? s->title : "figure");
    RY_TRY(put_pictures(out, s, err));
    ry_put(out, "<rect width=\"100%\" height=\"100%\"");
    put_ink(out, "fill", s->ground);
    ry_put(out, "/>\n");
    for (size_t i = 0; i < s->n_marks; i++) put_mark(out, s, i);
    ry_put(out, "</svg>\n");
    return RENYI_OK;
}
