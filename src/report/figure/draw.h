/* draw.h - the parts of a figure: cells, sections, the head.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DRAW_H
#define RY_DRAW_H

#include "renyi/viz.h"
#include "report/figure/sheet.h"

/* Colours of a page. */
typedef struct ry_look {
    ry_ink ground, text, faint, rule;
    ry_ink open;    /* patches that are no more, in a mosaic */
    ry_ink border;  /* round a token in a mosaic */
    ry_ink bar;     /* of a probability */
    ry_ink changed; /* an answer that is not the dense one */
} ry_look;

enum { RY_MARGIN = 30, RY_GAP = 12, RY_LINE = 15 }; /* units */

/* A result being drawn. */
typedef struct ry_draw {
    ry_sheet *s;
    const renyi_figure_options *opt; /* defaults filled in */
    const renyi_viz_result *r;
    ry_look look;
    double cell;                /* side of a picture */
    double x, y;                /* left edge; the next free place from the top */
    double right;               /* right edge */
    int is_terse;               /* captions are short */
    uint32_t n_columns;         /* of pictures, beside the column of labels */
    uint32_t photo, grey, gone; /* pictures: as it is; without colour; what was dropped */
    ry_ink gone_ink, hatch;     /* about the colour of the last, and of strokes through it */
    uint8_t *level;             /* [n_patches] scratch */
    uint32_t *key;              /* [n_patches] scratch */
    float *sorted;              /* [n_patches] scratch */
} ry_draw;

/* ---- draw.c ---- */

ry_look ry_look_of(int is_dark);
double ry_column_x(const ry_draw *d, uint32_t column); /* left edge of a picture */
void ry_draw_free(ry_draw *d);
/* Pictures and scratch for d->r. */
void ry_draw_prepare(ry_draw *d);

/* Words in lines of at most `most`, the first at baseline y; the last of max_lines is cut. Returns
 * the baseline behind them. */
double ry_draw_wrapped(ry_draw *d, double x, double y, ry_face face, ry_ink ink, const char *text,
                       double most, int max_lines);

/* A short text that is put together; cut when full. Nothing is escaped. */
typedef struct ry_words {
    char text[160];
    size_t n;
} ry_words;
void ry_say(ry_words *w, const char *text);
void ry_say_count(ry_words *w, uint64_t v);
void ry_say_number(ry_words *w, double v, int decimals);
void ry_say_score(ry_words *w, double v);   /* three digits that count: 0.0123, 4.5e-7 */
void ry_say_macs(ry_words *w, double macs); /* "0.83 GMACs", "12.1 MMACs" */
void ry_say_change(ry_words *w, double macs, double dense); /* ", −39 %" */

/* ---- cells.c: one picture each ---- */

void ry_cell_overlay(ry_draw *d, const renyi_viz_step *step, ry_rect place);
void ry_cell_mosaic(ry_draw *d, const renyi_viz_step *step, ry_rect place);
void ry_cell_heat(ry_draw *d, const float *score, double low, double high, ry_rect place);
void ry_cell_ring(ry_draw *d, uint32_t patch, ry_rect place); /* marks a patch */
/* 1st and 99th percentile of the finite scores (nearest rank); 0 and 0 if there are none. */
void ry_percentiles(ry_draw *d, const float *score, double *low, double *high);

/* ---- sections ---- */

/* A table of pictures: a row's name at the left, then one picture for each layer. */
typedef struct ry_table ry_table;
struct ry_table {
    ry_words title;
    const char *about;
    uint32_t n_rows, n_lines; /* lines of the caption below a picture */
    const void *of;           /* what it is about, and which part of it: for the functions */
    int part;
    void (*name)(const ry_draw *d, const ry_table *t, uint32_t row, ry_words *out);
    void (*more)(ry_draw *d, const ry_table *t, uint32_t row, double y); /* below the name */
    void (*picture)(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column, ry_rect place);
    void (*caption)(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column, uint32_t line,
                    ry_words *out);
    void (*legend)(ry_draw *d, const ry_table *t,
                   double y); /* up to d->right, baseline y; or NULL */
};
enum { RY_MAX_TABLES = 6 };

void ry_draw_table(ry_draw *d, const ry_table *t);
/* Photo, title, and the answers of the unpruned model and of the first n_rows rows. */
void ry_draw_head(ry_draw *d, const char *title, uint32_t n_rows, uint32_t n_top);

/* The tables of a result in the order of a page, of which d->opt->kind wants some. */
int ry_tables_of(const ry_draw *d, ry_table out[RY_MAX_TABLES]);
ry_table ry_table_overlay(const ry_draw *d), ry_table_mosaic(const ry_draw *d),
    ry_table_heat(const ry_draw *d), ry_table_norms(const ry_draw *d),
    ry_table_attention(const ry_draw *d, int is_column);

#endif
