/* sheet.c - the list of marks grows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/sheet.h"

#include "base/alloc.h"
#include "report/figure/type.h"

#include <string.h>

void ry_sheet_free(ry_sheet *s)
{
    for (size_t i = 0; i < s->n_pictures; i++)
        if (s->pictures[i].is_owned) ry_free(s->al, (void *)(uintptr_t)s->pictures[i].rgb);
    ry_free(s->al, s->marks);
    ry_free(s->al, s->rects);
    ry_free(s->al, s->pictures);
    ry_free(s->al, s->texts.bytes);
    *s = (ry_sheet){0};
}

/* Room for one more of `size` bytes in *items [n of *most]; 0 = there is none. */
static int make_room(ry_sheet *s, void **items, size_t n, size_t *most, size_t size)
{
    if (s->failed) return 0;
    if (n < *most) return 1;
    if (n > SIZE_MAX / 2 - 64) return !(s->failed = 1);
    const size_t more = n ? 2 * n : 64;
    void *larger = ry_alloc(s->al, more, size);
    if (!larger) return !(s->failed = 1);
    if (n) memcpy(larger, *items, n * size);
    ry_free(s->al, *items);
    *items = larger;
    *most = more;
    return 1;
}

static void add_mark(ry_sheet *s, ry_mark mark)
{
    void *items = s->marks;
    const int ok = make_room(s, &items, s->n_marks, &s->max_marks, sizeof *s->marks);
    s->marks = items;
    if (ok) s->marks[s->n_marks++] = mark;
}

void ry_sheet_fill(ry_sheet *s, ry_ink ink)
{
    add_mark(s, (ry_mark){.kind = RY_MARK_FILL, .ink = ink, .first = s->n_rects});
}

void ry_sheet_lines(ry_sheet *s, ry_ink ink, double width)
{
    add_mark(s, (ry_mark){.kind = RY_MARK_LINES, .ink = ink, .first = s->n_rects, .width = width});
}

void ry_sheet_show(ry_sheet *s, uint32_t picture, ry_rect place)
{
    add_mark(s,
             (ry_mark){
                 .kind = RY_MARK_PICTURE, .picture = picture, .place = place, .first = s->n_rects});
}

void ry_sheet_rect(ry_sheet *s, double x0, double y0, double x1, double y1)
{
    void *items = s->rects;
    const int ok = make_room(s, &items, s->n_rects, &s->max_rects, sizeof *s->rects);
    s->rects = items;
    if (!ok) return;
    s->rects[s->n_rects++] = (ry_rect){x0, y0, x1, y1};
    s->marks[s->n_marks - 1].n++;
}

void ry_sheet_box(ry_sheet *s, ry_ink ink, double x0, double y0, double x1, double y1)
{
    ry_sheet_fill(s, ink);
    ry_sheet_rect(s, x0, y0, x1, y1);
}

void ry_sheet_outline(ry_sheet *s, ry_ink ink, double width, ry_rect box)
{
    const double in = width / 2;
    const double x0 = box.x0 + in, y0 = box.y0 + in, x1 = box.x1 - in, y1 = box.y1 - in;
    ry_sheet_lines(s, ink, width);
    ry_sheet_rect(s, x0, y0, x1, y0);
    ry_sheet_rect(s, x1, y0, x1, y1);
    ry_sheet_rect(s, x1, y1, x0, y1);
    ry_sheet_rect(s, x0, y1, x0, y0);
}

/* ---- texts --------------------------------------------------------------------------------- */

void ry_put_clean(ry_sink *out, const char *text)
{
    while (*text) {
        size_t n;
        const uint32_t c = ry_utf8_next(text, &n);
        if (c == 0xFFFD)
            ry_put(out, "\xEF\xBF\xBD");
        else if (c == ' ')
            ry_put(out, " ");
        else
            ry_put_bytes(out, text, n);
        text += n;
    }
}

/* Ends of the first `n` characters of UTF-8 text. */
static size_t prefix_bytes(const char *text, size_t n)
{
    size_t i = 0;
    for (; n > 0 && text[i]; n--)
        for (i++; ((unsigned char)text[i] & 0xC0) == 0x80;) i++;
    return i;
}

/* Shortens the text that was put last, from `first` on, until with its ellipsis it fits. */
static double cut_to_fit(ry_sheet *s, size_t first, ry_face face, double most)
{
    const char *text = s->texts.bytes + first;
    size_t low = 0, high = s->texts.size - first; /* characters: low fits, high does not */
    double width = 0;
    char *part = ry_alloc(s->al, high + 4, 1);
    if (!part) return !(s->failed = 1);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2, bytes = prefix_bytes(text, middle);
        memcpy(part, text, bytes);
        memcpy(part + bytes, "\xE2\x80\xA6", 4);
        const double w = ry_type_width(s->type, face, part);
        if (w <= most)
            low = middle, width = w;
        else
            high = middle;
    }
    s->texts.size = first + prefix_bytes(text, low);
    ry_free(s->al, part);
    ry_put_bytes(&s->texts, "\xE2\x80\xA6", 4); /* its NUL too */
    return width;
}

double ry_sheet_text(ry_sheet *s, double x, double y, ry_face face, ry_align align, ry_ink ink,
                     const char *text, double most)
{
    if (!text || !*text || s->failed) return 0;
    const size_t first = s->texts.size;
    ry_put_clean(&s->texts, text);
    ry_put_bytes(&s->texts, "", 1);
    if (s->texts.failed) return !(s->failed = 1);
    double width = ry_type_width(s->type, face, s->texts.bytes + first);
    if (width > most) width = cut_to_fit(s, first, face, most);
    if (s->failed || s->texts.failed) return !(s->failed = 1);
    add_mark(s, (ry_mark){.kind = RY_MARK_TEXT,
                          .ink = ink,
                          .place = {x, y, x, y},
                          .first = first,
                          .n = s->texts.size - first - 1,
                          .face = face,
                          .align = align});
    return width;
}

uint32_t ry_sheet_picture(ry_sheet *s, const uint8_t *rgb, uint32_t side, int is_owned)
{
    void *items = s->pictures;
    const int ok = make_room(s, &items, s->n_pictures, &s->max_pictures, sizeof *s->pictures);
    s->pictures = items;
    if (!ok || !rgb) {
        if (is_owned) ry_free(s->al, (void *)(uintptr_t)rgb);
        s->failed = 1;
        return 0;
    }
    s->pictures[s->n_pictures] = (ry_picture){rgb, side, is_owned};
    return (uint32_t)s->n_pictures++;
}
