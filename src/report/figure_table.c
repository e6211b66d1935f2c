/* figure_table.c - a section of a figure: title, legend, rows of pictures.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/draw.h"

static void draw_titles(ry_draw *d, const ry_table *t)
{
    ry_sheet_box(d->s, d->look.rule, d->x, d->y, d->right, d->y + 1);
    d->y += 27;
    ry_sheet_text(d->s, d->x, d->y, RY_FACE_HEAD, RY_LEFT, d->look.text, t->title, 1e9);
    if (t->legend) t->legend(d, t->of, d->y);
    d->y += 18;
    ry_sheet_text(d->s, d->x, d->y, RY_FACE_TEXT, RY_LEFT, d->look.faint, t->about,
                  d->right - d->x);
    d->y += 26;
    for (uint32_t i = 0; i < d->r->n_layers; i++) {
        ry_words w = {0};
        ry_say(&w, "layer ");
        ry_say_count(&w, d->r->layers[i]);
        ry_sheet_text(d->s, ry_column_x(d, i) + d->cell / 2, d->y, RY_FACE_STRONG, RY_CENTRE,
                      d->look.text, w.text, d->cell);
    }
    d->y += 8;
}

void ry_draw_table(ry_draw *d, const ry_table *t)
{
    draw_titles(d, t);
    for (uint32_t row = 0; row < t->n_rows && !d->s->failed; row++) {
        t->label(d, t->of, row, d->y);
        for (uint32_t i = 0; i < d->r->n_layers; i++) {
            const double x = ry_column_x(d, i);
            t->cell(d, t->of, row, i, (ry_rect){x, d->y, x + d->cell, d->y + d->cell});
        }
        d->y += d->cell + t->n_lines * RY_LINE + 14;
    }
    d->y += 8;
}
