/* drawing.h - a drawing as a list of marks (areas, lines, shapes, bitmaps, texts, groups), which
 * is then written as SVG or painted as pixels. Units are CSS pixels, y points down.
 *
 * There are two kinds of marks. Figures give each mark its colour ("ink"); they can be painted
 * and written. Charts give each mark a style, which is a list of classes of chart.css; they are
 * written as SVG only, where the style sheet also serves dark mode and the script of a page.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DRAWING_H
#define RY_DRAWING_H

#include "report/markup.h"

typedef struct ry_ink {
    uint8_t r, g, b, a; /* not premultiplied */
} ry_ink;

typedef struct ry_box {
    double x0, y0, x1, y1;
} ry_box;

typedef enum ry_face {
    RY_FACE_TITLE,
    RY_FACE_HEAD,   /* of a section */
    RY_FACE_STRONG, /* of a row, a column */
    RY_FACE_TEXT,
    RY_FACE_SMALL,
    RY_N_FACES
} ry_face;

typedef enum ry_align { RY_LEFT, RY_CENTRE, RY_RIGHT } ry_align;

enum { RY_SHAPES = 6 }; /* disc, square, triangle, ... */

typedef enum ry_mark_kind {
    RY_MARK_FILL,   /* boxes */
    RY_MARK_LINES,  /* segments from (x0, y0) to (x1, y1) */
    RY_MARK_BITMAP, /* seen through its boxes; all of it if there are none */
    RY_MARK_TEXT,
    /* with a style only: */
    RY_MARK_SHAPE,
    RY_MARK_CIRCLE,
    RY_MARK_GROUP, /* holds the marks up to its END */
    RY_MARK_TITLE, /* tooltip of the group */
    RY_MARK_END
} ry_mark_kind;

typedef struct ry_mark {
    ry_mark_kind kind;
    ry_ink ink;      /* of FILL, LINES and TEXT without a style */
    size_t style;    /* offset of its classes in `texts`, NUL-terminated; 0 = it has an ink */
    ry_box place;    /* of a BITMAP; else x0, y0: baseline of a TEXT, centre of a SHAPE or CIRCLE,
                        origin of a GROUP */
    double size;     /* width of LINES with an ink, radius of a CIRCLE, scale of a SHAPE */
    size_t first, n; /* FILL, LINES, BITMAP: n boxes; TEXT, TITLE: offset in `texts`,
                        NUL-terminated; GROUP: the same, of its further attributes */
    uint32_t index;  /* of a bitmap or shape */
    ry_face face;
    ry_align align;
    const char *tag; /* of GROUP and END: "g" or "a" */
} ry_mark;

/* RGB pixels, borrowed or (is_owned) freed with the drawing. */
typedef struct ry_bitmap {
    const uint8_t *rgb; /* [side, side, 3] */
    uint32_t side;
    int is_owned;
} ry_bitmap;

typedef struct ry_typesetter ry_typesetter;

/* When an allocation fails, `failed` is set and marks are lost. Callers check once, at the end. */
typedef struct ry_drawing {
    const renyi_allocator *al;
    double width, height;  /* may be set after the marks */
    const char *title;     /* for screen readers; borrowed */
    ry_buffer description; /* markup, longer than the title; may be empty */

    ry_typesetter *typesetter; /* figures only */
    ry_ink ground;             /* figures: the background */
    const char *css;           /* charts: the style sheet, borrowed; NULL = a figure */
    const char *svg_style;     /* charts: classes of the <svg> */
    int is_inline; /* charts: part of a page, which has the style sheet, size and background */

    ry_mark *marks; /* [n_marks] in the order of painting */
    size_t n_marks, max_marks;
    ry_box *boxes; /* [n_boxes] */
    size_t n_boxes, max_boxes;
    ry_bitmap *bitmaps; /* [n_bitmaps] */
    size_t n_bitmaps, max_bitmaps;
    ry_buffer texts; /* of marks with an ink: UTF-8 to be escaped; with a style: markup */
    double pen_x, pen_y;
    int failed;
} ry_drawing;

void ry_drawing_free(ry_drawing *d);

/* ---- marks with an ink ---- */

/* Each opens a mark, to which ry_add_box adds. */
void ry_open_fill(ry_drawing *d, ry_ink ink);
void ry_open_lines(ry_drawing *d, ry_ink ink, double width);
void ry_open_bitmap(ry_drawing *d, uint32_t bitmap, ry_box place);
void ry_add_box(ry_drawing *d, double x0, double y0, double x1, double y1);

void ry_draw_box(ry_drawing *d, ry_ink ink, double x0, double y0, double x1, double y1);
void ry_draw_outline(ry_drawing *d, ry_ink ink, double width, ry_box box); /* inside the box */

/* Any bytes. Cut with an ellipsis if wider than `most`; returns the width. */
double ry_draw_text(ry_drawing *d, double x, double y, ry_face face, ry_align align, ry_ink ink,
                    const char *text, double most);

/* Returns the index of a new bitmap. rgb is borrowed until ry_drawing_free, or (is_owned) comes
 * from ry_alloc and is freed with the drawing, even when this call fails. */
uint32_t ry_add_bitmap(ry_drawing *d, const uint8_t *rgb, uint32_t side, int is_owned);

/* ---- marks with a style: a format of ry_putf and its arguments ---- */

#define RY_NO_STYLE "%s", ""

/* Opens a line, to which ry_move_to and ry_line_to add. */
void ry_open_path(ry_drawing *d, const char *style, ...) RY_FORMAT(2, 3);
void ry_move_to(ry_drawing *d, double x, double y);
void ry_line_to(ry_drawing *d, double x, double y);

void ry_draw_circle(ry_drawing *d, double x, double y, double radius, const char *style);
void ry_draw_shape(ry_drawing *d, uint32_t shape, double x, double y, double scale,
                   const char *style, ...) RY_FORMAT(6, 7);

/* Opens a text; its markup is what is put into the returned sink before the next mark. */
ry_buffer *ry_open_label(ry_drawing *d, double x, double y, const char *style, ...) RY_FORMAT(4, 5);

/* Opens a group with its own origin. Attributes besides the class are put into the returned sink,
 * each with a space before it. `tag` is "g", or "a" for a link. */
ry_buffer *ry_open_group(ry_drawing *d, const char *tag, double x, double y, const char *style, ...)
    RY_FORMAT(5, 6);
#define RY_HIDDEN " aria-hidden=\"true\"" /* attribute: screen readers skip the group */
ry_buffer *ry_open_title(ry_drawing *d);  /* tooltip of the open group */
void ry_close_group(ry_drawing *d, const char *tag);

/* ---- output ---- */

/* A file of its own or, if is_inline, an element of a page. A failed allocation of the drawing or
 * of `out` is reported in `out`; other failures are returned. */
renyi_status ry_drawing_svg(ry_drawing *d, ry_buffer *out, renyi_error *err);

/* Paints marks that have an ink: RGB bytes, `scale` pixels per unit; *rgb [*height, *width, 3] is
 * from ry_alloc. RENYI_ERR_LIMIT beyond RENYI_FIGURE_MAX_SIDE or _PIXELS. */
renyi_status ry_drawing_pixels(const ry_drawing *d, double scale, uint8_t **rgb, uint32_t *width,
                               uint32_t *height, renyi_error *err);

/* Writes a PNG file without a time, so that the same pixels give the same bytes. per_metre:
 * resolution in pixels, 0 = none given. */
renyi_status ry_put_png(ry_buffer *out, const uint8_t *rgb, uint32_t width, uint32_t height,
                        uint32_t per_metre, renyi_error *err);

/* ---- text set by pango ---- */

/* One for each figure, so that pango's caches are no state of the library. RENYI_ERR_UNSUPPORTED in
 * a build without pango. Inside pango GLib ends the process when memory runs out; every other
 * failure is returned. */
renyi_status ry_typesetter_new(ry_typesetter **out, const renyi_allocator *al, renyi_error *err);
void ry_typesetter_free(ry_typesetter *t);

double ry_typeset_width(ry_typesetter *t, ry_face face, const char *text); /* UTF-8 */
double ry_face_size(ry_face face);                                         /* of the font, units */
int ry_face_weight(ry_face face);                                          /* CSS: 400 to 700 */

#endif
