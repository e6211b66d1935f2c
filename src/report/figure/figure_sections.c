/* figure_sections.c - the head of a figure (image, name, answers dense and pruned) and its tables
 * of cells.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/figure_parts.h"

#include <math.h>
#include <string.h>

enum { GUESS = 22 }; /* units for a class and its bar */

/* ImageNet's class names are lists of synonyms: if they do not fit, only the first is shown. */
static void draw_class_name(ry_canvas *cv, double x, double y, ry_ink ink, const char *name,
                            double most)
{
    ry_caption first = {0};
    const char *comma = strchr(name, ',');
    const size_t n = comma ? (size_t)(comma - name) : 0;
    if (n > 0 && n < sizeof first.text && ry_text_width(name, 1e9, NULL) * 10.5 > most) {
        memcpy(first.text, name, n);
        name = first.text;
    }
    ry_draw_text(cv->drawing, x, y, RY_FACE_SMALL, RY_LEFT, ink, name, most);
}

static void draw_guess(ry_canvas *cv, const renyi_viz_guess *g, double x, double y, ry_ink ink)
{
    const double p = fmin(fmax((double)g->probability, 0), 1);
    ry_caption w = {0};
    ry_caption_number(&w, 100 * p, 1);
    ry_caption_add(&w, " %%");
    const double taken =
        ry_draw_text(cv->drawing, x + cv->cell, y, RY_FACE_SMALL, RY_RIGHT, ink, w.text, 60);
    draw_class_name(cv, x, y, ink, g->name, cv->cell - taken - 8);
    ry_draw_box(cv->drawing, cv->ink.rule, x, y + 4, x + cv->cell, y + 7);
    ry_draw_box(cv->drawing, cv->ink.bar, x, y + 4, x + cv->cell * p, y + 7);
}

static void add_cost(ry_caption *w, const renyi_viz_answer *a, const renyi_viz_answer *dense)
{
    ry_caption_macs(w, a->macs);
    if (a != dense && !isfinite(a->ms)) ry_caption_change(w, a->macs, dense->macs);
    if (!isfinite(a->ms)) return;
    ry_caption_add(w, ", ");
    ry_caption_number(w, a->ms, a->ms < 99.5 ? 1 : 0);
    ry_caption_add(w, " ms");
}

/* Layout of the answers. */
typedef struct answers {
    uint32_t n_top; /* classes of each */
    int n_lines;    /* of a label */
    double height;  /* of an answer */
} answers;

enum { LABEL_LINES = 4 }; /* at most */

static int label_lines(ry_canvas *cv, const char *label)
{
    return ry_count_lines(cv, RY_FACE_STRONG, label, cv->cell, LABEL_LINES);
}

/* One answer in one column; y is the baseline of its label. */
static void draw_answer(ry_canvas *cv, const char *label, const renyi_viz_answer *a,
                        const answers *set, double x, double y)
{
    const renyi_viz_answer *dense = &cv->r->dense;
    ry_caption cost = {0};
    add_cost(&cost, a, dense);
    ry_draw_wrapped_text(cv, x, y + (set->n_lines - label_lines(cv, label)) * RY_LINE,
                         RY_FACE_STRONG, cv->ink.text, label, cv->cell, LABEL_LINES);
    y += set->n_lines * RY_LINE + 1;
    ry_draw_text(cv->drawing, x, y, RY_FACE_SMALL, RY_LEFT, cv->ink.faint, cost.text, cv->cell);
    for (uint32_t i = 0; i < set->n_top && i < a->n_top; i++) {
        const int is_new = i == 0 && dense->n_top > 0 && dense->top[0].index != a->top[0].index;
        draw_guess(cv, &a->top[i], x, y + RY_LINE + 5 + i * GUESS,
                   is_new   ? cv->ink.changed
                   : i == 0 ? cv->ink.text
                            : cv->ink.faint);
    }
}

static void draw_names(ry_canvas *cv, const char *title, double x)
{
    const renyi_viz_result *r = cv->r;
    ry_caption w = {0};
    ry_draw_text(cv->drawing, x, cv->y + 17, RY_FACE_TITLE, RY_LEFT, cv->ink.text, title,
                 cv->right - x);
    ry_caption_add(&w, "%s: %u × %u patches of %u pixels%s, %u layers",
                   r->model ? r->model : "model", r->photo.grid, r->photo.grid, r->photo.patch,
                   cv->tiles ? " in base and each tile" : "", r->n_blocks);
    ry_draw_text(cv->drawing, x, cv->y + 37, RY_FACE_TEXT, RY_LEFT, cv->ink.faint, w.text,
                 cv->right - x);
}

static answers answers_of(ry_canvas *cv, uint32_t n_rows, uint32_t n_top)
{
    answers set = {.n_top = n_top, .n_lines = 1};
    for (uint32_t i = 0; i < n_rows; i++) {
        const int n = label_lines(cv, cv->r->rows[i].label);
        if (n > set.n_lines) set.n_lines = n;
    }
    set.height = (set.n_lines + 1) * RY_LINE + 5 + n_top * GUESS + 8;
    return set;
}

void ry_draw_head(ry_canvas *cv, const char *title, uint32_t n_rows, uint32_t n_top)
{
    const answers set = answers_of(cv, n_rows, n_top);
    const double top = cv->y, x = ry_column_x(cv, 0);
    ry_open_bitmap(cv->drawing, cv->image, (ry_box){cv->x, top, cv->x + cv->cell, top + cv->cell});
    draw_names(cv, title, x);
    cv->y += 66;
    for (uint32_t i = 0; i <= n_rows; i++) {
        const uint32_t column = i % cv->n_columns;
        if (i > 0 && column == 0) cv->y += set.height;
        const renyi_viz_row *row = i ? &cv->r->rows[i - 1] : NULL;
        draw_answer(cv, row ? row->label : "unpruned", row ? &row->answer : &cv->r->dense, &set,
                    ry_column_x(cv, column), cv->y);
    }
    cv->y = fmax(cv->y + set.height - RY_LINE, top + cv->cell) + 22;
}

/* ---- tables -------------------------------------------------------------------------------- */

static void draw_table_head(ry_canvas *cv, const ry_table *t)
{
    ry_draw_box(cv->drawing, cv->ink.rule, cv->x, cv->y, cv->right, cv->y + 1);
    cv->y += 27;
    ry_draw_text(cv->drawing, cv->x, cv->y, RY_FACE_HEAD, RY_LEFT, cv->ink.text, t->title.text,
                 1e9);
    if (t->legend) t->legend(cv, t, cv->y);
    cv->y += 18;
    ry_draw_text(cv->drawing, cv->x, cv->y, RY_FACE_TEXT, RY_LEFT, cv->ink.faint, t->about,
                 cv->right - cv->x);
    cv->y += 26;
    ry_draw_titles(cv);
    cv->y += 8;
}

void ry_draw_table(ry_canvas *cv, const ry_table *t)
{
    draw_table_head(cv, t);
    for (uint32_t row = 0; row < t->n_rows && !cv->drawing->failed; row++) {
        ry_caption name = {0};
        t->name(cv, t, row, &name);
        const double y = ry_draw_wrapped_text(cv, cv->x, cv->y + 11, RY_FACE_STRONG, cv->ink.text,
                                              name.text, cv->cell, 4);
        if (t->more) t->more(cv, t, row, y + 3);
        for (uint32_t i = 0; i < ry_n_cells(cv); i++)
            ry_draw_cell(cv, t, row, i, ry_cell_place(cv, i));
        ry_use_square(cv, 0);
        ry_draw_captions(cv, t, row);
        cv->y += ry_row_height(cv, t) + 14;
    }
    cv->y += 8;
}
