/* figure_head.c - the head of a figure: the photo, its name, and what the model says it is, dense
 * and pruned side by side.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/draw.h"

#include <math.h>
#include <string.h>

enum { GUESS = 22 }; /* units for a class and its bar */

/* ImageNet's names are lists of synonyms: where they do not fit, the first one does. */
static void put_name(ry_draw *d, double x, double y, ry_ink ink, const char *name, double most)
{
    ry_words first = {0};
    const char *comma = strchr(name, ',');
    const size_t n = comma ? (size_t)(comma - name) : 0;
    if (n > 0 && n < sizeof first.text && ry_text_width(name, 1e9, NULL) * 10.5 > most) {
        memcpy(first.text, name, n);
        name = first.text;
    }
    ry_sheet_text(d->s, x, y, RY_FACE_SMALL, RY_LEFT, ink, name, most);
}

static void draw_guess(ry_draw *d, const renyi_viz_guess *g, double x, double y, ry_ink ink)
{
    const double p = fmin(fmax((double)g->probability, 0), 1);
    ry_words w = {0};
    ry_say_number(&w, 100 * p, 1);
    ry_say(&w, " %");
    const double taken =
        ry_sheet_text(d->s, x + d->cell, y, RY_FACE_SMALL, RY_RIGHT, ink, w.text, 60);
    put_name(d, x, y, ink, g->name, d->cell - taken - 8);
    ry_sheet_box(d->s, d->look.rule, x, y + 4, x + d->cell, y + 7);
    ry_sheet_box(d->s, d->look.bar, x, y + 4, x + d->cell * p, y + 7);
}

static void say_cost(ry_words *w, const renyi_viz_answer *a, const renyi_viz_answer *dense)
{
    ry_say_macs(w, a->macs);
    if (a != dense && !isfinite(a->ms)) ry_say_change(w, a->macs, dense->macs);
    if (!isfinite(a->ms)) return;
    ry_say(w, ", ");
    ry_say_number(w, a->ms, a->ms < 99.5 ? 1 : 0);
    ry_say(w, " ms");
}

/* How the answers of a head are set. */
typedef struct answers {
    uint32_t n_top; /* classes of each */
    int n_lines;    /* of a label */
    double height;  /* of an answer */
} answers;

static int is_long(const ry_draw *d, const char *label)
{
    return ry_text_width(label, 1e9, NULL) * 12 > d->cell;
}

/* One answer in one column; y is the baseline of its label. */
static void draw_answer(ry_draw *d, const char *label, const renyi_viz_answer *a,
                        const answers *set, double x, double y)
{
    const renyi_viz_answer *dense = &d->r->dense;
    ry_words cost = {0};
    say_cost(&cost, a, dense);
    if (set->n_lines > 1 && !is_long(d, label)) y += RY_LINE;
    ry_draw_wrapped(d, x, y, RY_FACE_STRONG, d->look.text, label, d->cell, set->n_lines);
    y += is_long(d, label) ? 2 * RY_LINE + 1 : RY_LINE + 1;
    ry_sheet_text(d->s, x, y, RY_FACE_SMALL, RY_LEFT, d->look.faint, cost.text, d->cell);
    for (uint32_t i = 0; i < set->n_top && i < a->n_top; i++) {
        const int is_new = i == 0 && dense->n_top > 0 && dense->top[0].index != a->top[0].index;
        draw_guess(d, &a->top[i], x, y + RY_LINE + 5 + i * GUESS,
                   is_new   ? d->look.changed
                   : i == 0 ? d->look.text
                            : d->look.faint);
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

static answers answers_of(const ry_draw *d, uint32_t n_rows, uint32_t n_top)
{
    answers set = {.n_top = n_top, .n_lines = 1};
    for (uint32_t i = 0; i < n_rows; i++)
        if (is_long(d, d->r->rows[i].label)) set.n_lines = 2;
    set.height = (set.n_lines + 1) * RY_LINE + 5 + n_top * GUESS + 8;
    return set;
}

void ry_draw_head(ry_draw *d, const char *title, uint32_t n_rows, uint32_t n_top)
{
    const answers set = answers_of(d, n_rows, n_top);
    const double top = d->y, x = ry_column_x(d, 0);
    ry_sheet_show(d->s, d->photo, (ry_rect){d->x, top, d->x + d->cell, top + d->cell});
    draw_names(d, title, x);
    d->y += 66;
    for (uint32_t i = 0; i <= n_rows; i++) {
        const uint32_t column = i % d->n_columns;
        if (i > 0 && column == 0) d->y += set.height;
        const renyi_viz_row *row = i ? &d->r->rows[i - 1] : NULL;
        draw_answer(d, row ? row->label : "unpruned", row ? &row->answer : &d->r->dense, &set,
                    ry_column_x(d, column), d->y);
    }
    d->y = fmax(d->y + set.height - RY_LINE, top + d->cell) + 22;
}
