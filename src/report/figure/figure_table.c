/* figure_table.c - a section of a figure: title, legend, rows of pictures.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/draw.h"

static void draw_titles(ry_draw *d, const ry_table *t)
{
    ry_sheet_box(d->s, d->look.rule, d->x, d->y, d->right, d->y + 1);
    d->y += 27;
    ry_sheet_text(d->s, d->x, d->y, RY_FACE_HEAD, RY_LEFT, d->look.text, t->title.text, 1e9);
    if (t->legend) t->legend(d, t, d->y);
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

static void draw_captions(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column, double x)
{
    for (uint32_t line = 0; line < t->n_lines; line++) {
        const ry_ink ink = line + 1 < t->n_lines ? d->look.text : d->look.faint;
        ry_words w = {0};
        t->caption(d, t, row, column, line, &w);
        ry_sheet_text(d->s, x, d->y + d->cell + (line + 1) * RY_LINE, RY_FACE_SMALL, RY_CENTRE, ink,
                      w.text, d->cell + RY_GAP - 2);
    }
}

void ry_draw_table(ry_draw *d, const ry_table *t)
{
    draw_titles(d, t);
    for (uint32_t row = 0; row < t->n_rows && !d->s->failed; row++) {
        ry_words name = {0};
        t->name(d, t, row, &name);
        const double y = ry_draw_wrapped(d, d->x, d->y + 11, RY_FACE_STRONG, d->look.text,
                                         name.text, d->cell, 4);
        if (t->more) t->more(d, t, row, y + 3);
        for (uint32_t i = 0; i < d->r->n_layers; i++) {
            const double x = ry_column_x(d, i);
            t->picture(d, t, row, i, (ry_rect){x, d->y, x + d->cell, d->y + d->cell});
            draw_captions(d, t, row, i, x + d->cell / 2);
        }
        d->y += d->cell + t->n_lines * RY_LINE + 14;
    }
    d->y += 8;
}

int ry_tables_of(const ry_draw *d, ry_table out[RY_MAX_TABLES])
{
    static const renyi_figure_kind order[] = {RENYI_FIGURE_OVERLAY, RENYI_FIGURE_MOSAIC,
                                              RENYI_FIGURE_HEAT, RENYI_FIGURE_NORMS,
                                              RENYI_FIGURE_ATTENTION};
    int n = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (d->opt->kind != RENYI_FIGURE_ALL && d->opt->kind != order[i]) continue;
        if (!renyi_figure_has(d->r, order[i])) continue;
        switch (order[i]) {
        case RENYI_FIGURE_OVERLAY: out[n++] = ry_table_overlay(d); break;
        case RENYI_FIGURE_MOSAIC: out[n++] = ry_table_mosaic(d); break;
        case RENYI_FIGURE_HEAT: out[n++] = ry_table_heat(d); break;
        case RENYI_FIGURE_NORMS: out[n++] = ry_table_norms(d); break;
        default: out[n++] = ry_table_attention(d, 0); out[n++] = ry_table_attention(d, 1);
        }
    }
    return n;
}
