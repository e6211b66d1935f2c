/* sheet.h - a figure as a list of marks (areas, lines, pictures, texts), to be painted as pixels or
 * written as SVG. Units are CSS pixels, y downwards.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SHEET_H
#define RY_SHEET_H

#include "report/page/markup.h"

typedef struct ry_ink {
    uint8_t r, g, b, a; /* not premultiplied */
} ry_ink;

typedef struct ry_rect {
    double x0, y0, x1, y1;
} ry_rect;

typedef enum ry_face {
    RY_FACE_TITLE,
    RY_FACE_HEAD,   /* of a section */
    RY_FACE_STRONG, /* of a row, a column */
    RY_FACE_TEXT,
    RY_FACE_SMALL,
    RY_N_FACES
} ry_face;

typedef enum ry_align { RY_LEFT, RY_CENTRE, RY_RIGHT } ry_align;

typedef enum ry_mark_kind {
    RY_MARK_FILL,
    RY_MARK_LINES,
    RY_MARK_PICTURE,
    RY_MARK_TEXT
} ry_mark_kind;

typedef struct ry_mark {
    ry_mark_kind kind;
    ry_ink ink;       /* not of pictures */
    ry_rect place;    /* of a picture; of a text x0 and its baseline y0 */
    double width;     /* of lines */
    size_t first, n;  /* FILL: boxes; LINES: segments from (x0, y0) to (x1, y1); PICTURE: the boxes
                         it is seen through, 0 = all of it; TEXT: bytes, a NUL behind them */
    uint32_t picture; /* place in the list of pictures */
    ry_face face;
    ry_align align;
} ry_mark;

/* RGB pixels, borrowed or (is_owned) the sheet's. */
typedef struct ry_picture {
    const uint8_t *rgb; /* [side, side, 3] */
    uint32_t side;
    int is_owned;
} ry_picture;

typedef struct ry_type ry_type; /* type.h */

/* Once memory is short, `failed` is set and marks are lost: callers ask once, at the end. */
typedef struct ry_sheet {
    const renyi_allocator *al;
    ry_type *type;
    double width, height;
    ry_ink ground;
    const char *title; /* for people who hear the figure; borrowed */
    ry_mark *marks;    /* [n_marks] in the order of painting */
    size_t n_marks, max_marks;
    ry_rect *rects; /* [n_rects] */
    size_t n_rects, max_rects;
    ry_picture *pictures; /* [n_pictures] */
    size_t n_pictures, max_pictures;
    ry_sink texts; /* UTF-8, nothing in it that cannot be shown */
    int failed;
} ry_sheet;

void ry_sheet_free(ry_sheet *s);

/* Areas and lines: opens a mark, to which ry_sheet_rect adds. */
void ry_sheet_fill(ry_sheet *s, ry_ink ink);
void ry_sheet_lines(ry_sheet *s, ry_ink ink, double width);
/* Boxes added to it are where it is seen through. */
void ry_sheet_show(ry_sheet *s, uint32_t picture, ry_rect place);
void ry_sheet_rect(ry_sheet *s, double x0, double y0, double x1, double y1);

void ry_sheet_box(ry_sheet *s, ry_ink ink, double x0, double y0, double x1, double y1); /* one */
/* Four lines that lie inside the box. */
void ry_sheet_outline(ry_sheet *s, ry_ink ink, double width, ry_rect box);

/* Any bytes. Cut with an ellipsis where it would be wider than `most`; returns its width. */
double ry_sheet_text(ry_sheet *s, double x, double y, ry_face face, ry_align align, ry_ink ink,
                     const char *text, double most);

/* Any bytes as UTF-8 without what cannot be shown; pango takes nothing else. */
void ry_put_clean(ry_sink *out, const char *text);

/* The number of a new picture. rgb is borrowed for the life of the sheet, or (is_owned) from
 * ry_alloc and released with it, even when this fails. */
uint32_t ry_sheet_picture(ry_sheet *s, const uint8_t *rgb, uint32_t side, int is_owned);

#endif
