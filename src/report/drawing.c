/* drawing.c - the list of marks of a drawing: opening marks, adding to them, cutting long texts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/drawing.h"

#include "base/buffer.h"

#include <stdarg.h>
#include <string.h>

/* ---- sizes of text -------------------------------------------------------------------------- */

static const struct {
    double size;
    int weight;
} faces[RY_N_FACES] = {
    [RY_FACE_TITLE] = {19, 700},  [RY_FACE_HEAD] = {14.5, 600},  [RY_FACE_STRONG] = {12, 600},
    [RY_FACE_TEXT] = {11.5, 400}, [RY_FACE_SMALL] = {10.5, 400},
};

double ry_face_size(ry_face face) { return faces[face].size; }

int ry_face_weight(ry_face face) { return faces[face].weight; }

void ry_drawing_free(ry_drawing *d)
{
    for (size_t i = 0; i < d->n_bitmaps; i++)
        if (d->bitmaps[i].is_owned) ry_free(d->al, (void *)(uintptr_t)d->bitmaps[i].rgb);
    ry_free(d->al, d->marks);
    ry_free(d->al, d->boxes);
    ry_free(d->al, d->bitmaps);
    ry_free(d->al, d->texts.bytes);
    ry_free(d->al, d->description.bytes);
    ry_typesetter_free(d->typesetter);
    *d = (ry_drawing){0};
}

/* Space for one more item of `size` bytes in *items [n of *most]; 0 = no memory. */
static int reserve_item(ry_drawing *d, void **items, size_t n, size_t *most, size_t size)
{
    if (!d->failed) d->failed = !ry_grow(d->al, items, most, n, size);
    return !d->failed;
}

static void add_mark(ry_drawing *d, ry_mark mark)
{
    void *items = d->marks;
    const int ok = reserve_item(d, &items, d->n_marks, &d->max_marks, sizeof *d->marks);
    d->marks = items;
    if (ok) d->marks[d->n_marks++] = mark;
}

void ry_add_box(ry_drawing *d, double x0, double y0, double x1, double y1)
{
    void *items = d->boxes;
    const int ok = reserve_item(d, &items, d->n_boxes, &d->max_boxes, sizeof *d->boxes);
    d->boxes = items;
    if (!ok) return;
    d->boxes[d->n_boxes++] = (ry_box){x0, y0, x1, y1};
    d->marks[d->n_marks - 1].n++;
}

/* ---- marks with an ink --------------------------------------------------------------------- */

void ry_open_fill(ry_drawing *d, ry_ink ink)
{
    add_mark(d, (ry_mark){.kind = RY_MARK_FILL, .ink = ink, .first = d->n_boxes});
}

void ry_open_lines(ry_drawing *d, ry_ink ink, double width)
{
    add_mark(d, (ry_mark){.kind = RY_MARK_LINES, .ink = ink, .first = d->n_boxes, .size = width});
}

void ry_open_bitmap(ry_drawing *d, uint32_t bitmap, ry_box place)
{
    const ry_mark mark = {
        .kind = RY_MARK_BITMAP, .index = bitmap, .place = place, .first = d->n_boxes};
    add_mark(d, mark);
}

void ry_draw_box(ry_drawing *d, ry_ink ink, double x0, double y0, double x1, double y1)
{
    ry_open_fill(d, ink);
    ry_add_box(d, x0, y0, x1, y1);
}

void ry_draw_outline(ry_drawing *d, ry_ink ink, double width, ry_box box)
{
    const double in = width / 2;
    const double x0 = box.x0 + in, y0 = box.y0 + in, x1 = box.x1 - in, y1 = box.y1 - in;
    ry_open_lines(d, ink, width);
    ry_add_box(d, x0, y0, x1, y0);
    ry_add_box(d, x1, y0, x1, y1);
    ry_add_box(d, x1, y1, x0, y1);
    ry_add_box(d, x0, y1, x0, y0);
}

uint32_t ry_add_bitmap(ry_drawing *d, const uint8_t *rgb, uint32_t side, int is_owned)
{
    void *items = d->bitmaps;
    const int ok = reserve_item(d, &items, d->n_bitmaps, &d->max_bitmaps, sizeof *d->bitmaps);
    d->bitmaps = items;
    if (!ok || !rgb) {
        if (is_owned) ry_free(d->al, (void *)(uintptr_t)rgb);
        d->failed = 1;
        return 0;
    }
    d->bitmaps[d->n_bitmaps] = (ry_bitmap){rgb, side, is_owned};
    return (uint32_t)d->n_bitmaps++;
}

/* Bytes of the first `n` characters of UTF-8 text. */
static size_t prefix_bytes(const char *text, size_t n)
{
    size_t i = 0;
    for (; n > 0 && text[i]; n--)
        for (i++; ((unsigned char)text[i] & 0xC0) == 0x80;) i++;
    return i;
}

/* Shortens the text that was put last, from `first` on, until it fits with its ellipsis. */
static double cut_to_fit(ry_drawing *d, size_t first, ry_face face, double most)
{
    const char *text = d->texts.bytes + first;
    size_t low = 0, high = d->texts.size - first; /* characters: low fits, high does not */
    double width = 0;
    char *part = ry_alloc(d->al, high + 4, 1);
    if (!part) return !(d->failed = 1);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2, bytes = prefix_bytes(text, middle);
        memcpy(part, text, bytes);
        memcpy(part + bytes, "\xE2\x80\xA6", 4);
        const double w = ry_typeset_width(d->typesetter, face, part);
        if (w <= most)
            low = middle, width = w;
        else
            high = middle;
    }
    d->texts.size = first + prefix_bytes(text, low);
    ry_free(d->al, part);
    ry_buffer_put(&d->texts, "\xE2\x80\xA6", 4); /* its NUL too */
    return width;
}

double ry_draw_text(ry_drawing *d, double x, double y, ry_face face, ry_align align, ry_ink ink,
                    const char *text, double most)
{
    if (!text || !*text || d->failed) return 0;
    const size_t first = d->texts.size;
    ry_put_clean(&d->texts, text);
    ry_buffer_put(&d->texts, "", 1);
    if (d->texts.failed) return !(d->failed = 1);
    double width = ry_typeset_width(d->typesetter, face, d->texts.bytes + first);
    if (width > most) width = cut_to_fit(d, first, face, most);
    if (d->failed || d->texts.failed) return !(d->failed = 1);
    add_mark(d, (ry_mark){.kind = RY_MARK_TEXT,
                          .ink = ink,
                          .place = {x, y, x, y},
                          .first = first,
                          .face = face,
                          .align = align});
    return width;
}

/* ---- marks with a style -------------------------------------------------------------------- */

/* In `texts` such a mark has its style, a NUL, its own text (often empty), and the NUL that the
 * next mark begins with. */
static ry_buffer *add_styled(ry_drawing *d, ry_mark mark, const char *style, va_list ap)
{
    ry_buffer_put(&d->texts, "", 1);
    mark.style = d->texts.size;
    ry_vputf(&d->texts, style, ap);
    ry_buffer_put(&d->texts, "", 1);
    if (mark.kind == RY_MARK_LINES)
        mark.first = d->n_boxes;
    else
        mark.first = d->texts.size;
    add_mark(d, mark);
    return &d->texts;
}

static ry_buffer *add_with_style(ry_drawing *d, ry_mark mark, const char *style, ...)
    RY_FORMAT(3, 4);
static ry_buffer *add_with_style(ry_drawing *d, ry_mark mark, const char *style, ...)
{
    va_list ap;
    va_start(ap, style);
    ry_buffer *text = add_styled(d, mark, style, ap);
    va_end(ap);
    return text;
}

void ry_open_path(ry_drawing *d, const char *style, ...)
{
    va_list ap;
    va_start(ap, style);
    add_styled(d, (ry_mark){.kind = RY_MARK_LINES}, style, ap);
    va_end(ap);
}

void ry_move_to(ry_drawing *d, double x, double y) { d->pen_x = x, d->pen_y = y; }

void ry_line_to(ry_drawing *d, double x, double y)
{
    ry_add_box(d, d->pen_x, d->pen_y, x, y);
    ry_move_to(d, x, y);
}

void ry_draw_circle(ry_drawing *d, double x, double y, double radius, const char *style)
{
    const ry_mark mark = {.kind = RY_MARK_CIRCLE, .place = {x, y, x, y}, .size = radius};
    add_with_style(d, mark, "%s", style);
}

void ry_draw_shape(ry_drawing *d, uint32_t shape, double x, double y, double scale,
                   const char *style, ...)
{
    const ry_mark mark = {
        .kind = RY_MARK_SHAPE, .place = {x, y, x, y}, .size = scale, .index = shape};
    va_list ap;
    va_start(ap, style);
    add_styled(d, mark, style, ap);
    va_end(ap);
}

ry_buffer *ry_open_label(ry_drawing *d, double x, double y, const char *style, ...)
{
    va_list ap;
    va_start(ap, style);
    const ry_mark mark = {.kind = RY_MARK_TEXT, .place = {x, y, x, y}};
    ry_buffer *text = add_styled(d, mark, style, ap);
    va_end(ap);
    return text;
}

ry_buffer *ry_open_group(ry_drawing *d, const char *tag, double x, double y, const char *style, ...)
{
    va_list ap;
    va_start(ap, style);
    const ry_mark mark = {.kind = RY_MARK_GROUP, .place = {x, y, x, y}, .tag = tag};
    ry_buffer *attributes = add_styled(d, mark, style, ap);
    va_end(ap);
    return attributes;
}

ry_buffer *ry_open_title(ry_drawing *d)
{
    return add_with_style(d, (ry_mark){.kind = RY_MARK_TITLE}, RY_NO_STYLE);
}

void ry_close_group(ry_drawing *d, const char *tag)
{
    add_with_style(d, (ry_mark){.kind = RY_MARK_END, .tag = tag}, RY_NO_STYLE);
}
