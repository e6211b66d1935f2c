/* figure_parts.h - the parts of a figure: canvas, cells, captions, tables, head, and the whole.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FIGURE_PARTS_H
#define RY_FIGURE_PARTS_H

#include "renyi/viz.h"
#include "report/drawing.h"

/* ---- figure_canvas.c: one result while it is drawn ---- */

typedef struct ry_inks {
    ry_ink ground, text, faint, rule;
    ry_ink open;    /* dropped patches of a mosaic */
    ry_ink border;  /* around a token of a mosaic */
    ry_ink bar;     /* of a probability */
    ry_ink changed; /* an answer that differs from the dense one */
} ry_inks;

ry_inks ry_inks_of(int is_dark);

static const double RY_MARGIN = 30, RY_GAP = 12, RY_LINE = 15; /* units */

/* A result and its bitmaps: the image as it is; in grey; as shown where dropped. */
typedef struct ry_square {
    const renyi_viz_result *r;
    uint32_t image, grey, gone;
} ry_square;

typedef struct ry_canvas {
    ry_drawing *drawing;
    const renyi_figure_options *opt;            /* defaults filled in */
    const renyi_viz_result *r;                  /* the result, or the square of it that is drawn */
    const renyi_viz_tiles *tiles;               /* of a LLaVA-NeXT; else NULL */
    ry_square squares[1 + RENYI_VIZ_MAX_TILES]; /* the result, then its tiles */
    uint32_t square;                            /* the one in use */
    ry_inks ink;
    double cell;                /* side of a cell */
    double x, y;                /* left edge; top of the free space */
    double right;               /* right edge */
    int is_terse;               /* short captions */
    uint32_t n_columns;         /* of cells, beside the column of labels */
    uint32_t image, grey, gone; /* bitmaps of the square in use */
    ry_ink gone_ink, hatch;     /* about the colour of `gone`; of the strokes on it */
    uint8_t *level;             /* [n_patches] scratch */
    uint32_t *key;              /* [n_patches] scratch */
    float *sorted;              /* [n_patches], of all tiles if there are any; scratch */
} ry_canvas;

/* Bitmaps and scratch for cv->r and cv->tiles. */
void ry_canvas_prepare(ry_canvas *cv);
void ry_canvas_free(ry_canvas *cv);
double ry_column_x(const ry_canvas *cv, uint32_t column); /* left edge of a cell */

/* Wraps text to the width `most`, at most max_lines, the last one cut. y is the baseline of the
 * first line; returns the baseline of the line after the last. */
double ry_draw_wrapped_text(ry_canvas *cv, double x, double y, ry_face face, ry_ink ink,
                            const char *text, double most, int max_lines);

/* Lines that it takes. */
int ry_count_lines(ry_canvas *cv, ry_face face, const char *text, double most, int max_lines);

/* A short text, cut when full. Nothing is escaped. */
typedef struct ry_caption {
    char text[160];
    size_t n;
} ry_caption;

/* printf, for integers and strings: the decimal point of other numbers depends on the locale. */
void ry_caption_add(ry_caption *c, const char *format, ...) RY_FORMAT(2, 3);
void ry_caption_number(ry_caption *c, double v, int decimals);
void ry_caption_score(ry_caption *c, double v);   /* three significant digits: 0.0123, 4.5e-7 */
void ry_caption_macs(ry_caption *c, double macs); /* "0.83 GMACs", "12.1 MMACs" */
void ry_caption_change(ry_caption *c, double macs, double dense); /* ", −39 %" */

/* ---- figure_cells.c: one cell each ---- */

void ry_cell_overlay(ry_canvas *cv, const renyi_viz_step *step, ry_box place);
void ry_cell_mosaic(ry_canvas *cv, const renyi_viz_step *step, ry_box place);
void ry_cell_heat(ry_canvas *cv, const float *score, double low, double high, ry_box place);
void ry_cell_ring(ry_canvas *cv, uint32_t patch, ry_box place); /* marks a patch */
/* 1st and 99th percentile of the finite scores (nearest rank); 0 and 0 if there are none. */
void ry_percentiles(ry_canvas *cv, const float *score, double *low, double *high);
/* The same for the first n of cv->sorted, which are finite. */
void ry_percentiles_of(ry_canvas *cv, size_t n, double *low, double *high);

/* ---- figure_rows.c: tables of cells ---- */

/* A row has its name at the left, then one cell for each layer. */
typedef struct ry_table ry_table;
struct ry_table {
    ry_caption title;
    const char *about;
    uint32_t n_rows;
    uint32_t n_lines; /* of the caption below a cell. With tiles: line 0 is about one square, line 1
                         about all tiles; if there is only one line, it is about all tiles */
    int part;         /* for the functions: which part of the data */
    void (*name)(const ry_canvas *cv, const ry_table *t, uint32_t row, ry_caption *out);
    void (*more)(ry_canvas *cv, const ry_table *t, uint32_t row, double y); /* below the name */
    void (*cell)(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t column, ry_box place);
    void (*caption)(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t column, uint32_t line,
                    ry_caption *out);
    void (*legend)(ry_canvas *cv, const ry_table *t, double y); /* ends at cv->right; or NULL */
};
enum { RY_MAX_TABLES = 6 };

/* The tables that cv->opt->kind asks for, in the order of a figure. Returns their number. */
int ry_tables_of(const ry_canvas *cv, ry_table out[RY_MAX_TABLES]);

/* ---- figure_squares.c: what the cells of a row are: layers, or base and tiles ---- */

renyi_status ry_tiles_check(const renyi_viz_tiles *tiles, const renyi_viz_result *base,
                            renyi_error *err) RENYI_CHECK;

uint32_t ry_n_cells(const ry_canvas *cv);
/* The end of the line of cells that `cell` is in. */
uint32_t ry_line_end(const ry_canvas *cv, uint32_t cell);
/* Makes square 0, the base, or a tile the one in use. */
void ry_use_square(ry_canvas *cv, uint32_t square);
/* Makes the square of a cell the one in use; returns the layer. */
uint32_t ry_use_cell(ry_canvas *cv, uint32_t cell);
void ry_cell_title(const ry_canvas *cv, uint32_t cell, ry_caption *out);
void ry_draw_cell(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t cell, ry_box place);

void ry_draw_border(ry_canvas *cv, ry_box box); /* an area that is border */
/* "680 of 2928 tokens (40 newlines)": visual tokens of the whole image, without pruning (0) or of
 * row - 1. */
void ry_tokens_caption(const ry_canvas *cv, uint32_t row, ry_caption *out);
/* Patches of the square in use that are no border. */
uint32_t ry_n_inside(const ry_canvas *cv);
int ry_is_inside(const ry_canvas *cv, uint32_t patch);
/* Percentiles of the scores of a metric (with is_norm: of a norm) in the square in use; tiles have
 * one scale, without the border. 0 = no score is finite. */
int ry_square_range(ry_canvas *cv, int is_norm, uint32_t index, uint32_t layer, double *low,
                    double *high);

/* In units: a row of cells; the cells of a figure. */
double ry_tiles_width(const renyi_viz_tiles *tiles, double cell);
double ry_row_height(const ry_canvas *cv, const ry_table *t);
ry_box ry_cell_place(const ry_canvas *cv, uint32_t cell);
void ry_draw_titles(ry_canvas *cv);
void ry_draw_captions(ry_canvas *cv, const ry_table *t, uint32_t row);

/* ---- figure_sections.c ---- */

/* Image, title, and the answers of the unpruned model and of the first n_rows rows. */
void ry_draw_head(ry_canvas *cv, const char *title, uint32_t n_rows, uint32_t n_top);
void ry_draw_table(ry_canvas *cv, const ry_table *t);

/* ---- figure.c ---- */

typedef struct ry_figure {
    const renyi_viz_result *const *results;
    size_t n;
    renyi_figure_options opt; /* defaults filled in */
} ry_figure;

renyi_status ry_figure_check(ry_figure *f, const renyi_viz_result *const *results, size_t n,
                             const renyi_figure_options *opt, renyi_error *err);

/* NULL = the result has none. */
const renyi_viz_tiles *ry_figure_tiles(const ry_figure *f, size_t i);

/* A drawing without marks; borrows f. On failure there is nothing to free. */
renyi_status ry_figure_empty(ry_drawing *out, const ry_figure *f, renyi_error *err);
renyi_status ry_figure_png(ry_buffer *out, const ry_figure *f, renyi_error *err);
/* Makes a file of a finished sink. On failure it frees the sink and *out stays as it is. */
renyi_status ry_figure_finish(renyi_figure_file *out, ry_buffer *s, renyi_status status,
                              renyi_error *err);

#endif
