/* figure_head.c - the head of a figure: the photo, its name, and what the model says it is, dense and
 * pruned side by side. SPDX-License-Identifier: Apache-2.0 */
#include "report/draw.h"

#include <math.h>
#include <string.h>

enum { GUESS = 22 }; /* units for a class and its bar */

static void draw_guess(ry_draw *d, const renyi_viz_guess *g, double x, double y, ry_ink ink)
{
    const double p = fmin(fmax((double)g->probability, 0), 1);
    ry_words w = {0};
    ry_say_number(&w, 100 * p, 1);
    ry_say(&w, " %");
    const double taken = ry_sheet_text(d->s, x + d->cell, y, RY_FACE_SMALL, RY_RIGHT, ink, w.text, 60);
    ry_sheet_text(d->s, x, y, RY_FACE_SMALL, RY_LEFT, ink, g->name, d->cell - taken - 8);
    ry_sheet_box(d->s, d->look.rule, x, y + 4, x + d->cell, y + 7);
    ry_sheet_box(d->s, d->look.bar, x, y + 4, x + d->cell * p, y + 7);
}

static void say_cost(ry_words *w, const renyi_viz_answer *a, const renyi_viz_answer *dense)
{
    ry_say_macs(w, a->macs);
    if (a != dense && dense->macs > 0 && !isfinite(a->ms)) {
        const double change = 100 * (a->macs / dense->macs - 1);
        ry_say(w, change < 0 ? ", \xE2\x88\x92" : ", +");
        ry_say_number(w, fabs(change), 0);
        ry_say(w, " %");
    }
    if (!isfinite(a->ms)) return;
    ry_say(w, ", ");
    ry_say_number(w, a->ms, a->ms < 99.5 ? 1 : 0);
    ry_say(w, " ms");
}

/* One answer in one column; y is the baseline of its label. */
static void draw_answer(ry_draw *d, const char *label, const renyi_viz_answer *a, uint32_t n_top,
                        double x, double y)
{
    const renyi_viz_answer *dense = &d->r->dense;
    ry_words cost = {0};
    say_cost(&cost, a, dense);
    ry_sheet_text(d->s, x, y, RY_FACE_STRONG, RY_LEFT, d->look.text, label, d->cell);
    ry_sheet_text(d->s, x, y + RY_LINE, RY_FACE_SMALL, RY_LEFT, d->look.faint, cost.text, d->cell);
    for (uint32_t i = 0; i < n_top && i < a->n_top; i++) {
        const int is_new = i == 0 && dense->n_top > 0 && dense->top[0].index != a->top[0].index;
        draw_guess(d, &a->top[i], x, y + 2 * RY_LINE + 5 + i * GUESS,
                   is_new ? d->look.changed : i == 0 ? d->look.text : d->look.faint);
    }
}

static void draw_names(ry_draw *d, const char *title, double x)
{
    const renyi_viz_result *r = d->r;
    ry_words w = {0};
    ry_sheet_text(d->s, x, d->y + 17, RY_FACE_TITLE, RY_LEFT, d->look.text, title, d->right - x);
    ry_say(&w, r->model ? r->model : "model");
    ry_say(&w, ": ");
    ry_say_count(&w, r->photo.grid);
    ry_say(&w, " \xC3\x97 ");
    ry_say_count(&w, r->photo.grid);
    ry_say(&w, " patches of ");
    ry_say_count(&w, r->photo.patch);
    ry_say(&w, " pixels, ");
    ry_say_count(&w, r->n_blocks);
    ry_say(&w, " layers");
    ry_sheet_text(d->s, x, d->y + 37, RY_FACE_TEXT, RY_LEFT, d->look.faint, w.text, d->right - x);
}

void ry_draw_head(ry_draw *d, const char *title, uint32_t n_rows, uint32_t n_top)
{
    const double top = d->y, x = ry_column_x(d, 0);
    const double height = 2 * RY_LINE + 5 + n_top * GUESS + 8;
    ry_sheet_show(d->s, d->photo, (ry_rect){d->x, top, d->x + d->cell, top + d->cell});
    draw_names(d, title, x);
    d->y += 66;
    for (uint32_t i = 0; i <= n_rows; i++) {
        const uint32_t column = i % d->n_columns;
        if (i > 0 && column == 0) d->y += height;
        const renyi_viz_row *row = i ? &d->r->rows[i - 1] : NULL;
        draw_answer(d, row ? row->label : "unpruned", row ? &row->answer : &d->r->dense, n_top,
                    ry_column_x(d, column), d->y);
    }
    d->y = fmax(d->y + height - RY_LINE, top + d->cell) + 22;
}
