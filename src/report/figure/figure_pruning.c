/* figure_pruning.c - what policies keep, layer by layer: over the photo, and as a mosaic of tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/draw.h"

#include <math.h>

enum { ALL_ROWS, MERGING_ROWS }; /* part of a table */

static const renyi_viz_row *row_at(const ry_draw *d, const ry_table *t, uint32_t row)
{
    for (uint32_t i = 0; i < d->r->n_rows; i++)
        if ((t->part == ALL_ROWS || d->r->rows[i].merges) && row-- == 0) return &d->r->rows[i];
    return NULL; /* not reached: rows are counted before */
}

/* ---- words --------------------------------------------------------------------------------- */

static void row_name(const ry_draw *d, const ry_table *t, uint32_t row, ry_words *out)
{
    ry_say(out, row_at(d, t, row)->label);
}

/* Cost and answer, below the name. */
static void row_more(ry_draw *d, const ry_table *t, uint32_t row, double y)
{
    const renyi_viz_row *of = row_at(d, t, row);
    const renyi_viz_answer *a = &of->answer, *dense = &d->r->dense;
    ry_words w = {0};
    if (of->adaptive) ry_say(&w, "at most ");
    ry_say_macs(&w, a->macs);
    ry_say_change(&w, a->macs, dense->macs);
    ry_sheet_text(d->s, d->x, y, RY_FACE_SMALL, RY_LEFT, d->look.faint, w.text, d->cell);
    if (a->n_top == 0) return;
    const int is_same = dense->n_top > 0 && dense->top[0].index == a->top[0].index;
    y = ry_draw_wrapped(d, d->x, y + 20, RY_FACE_SMALL, is_same ? d->look.text : d->look.changed,
                        a->top[0].name, d->cell, 2);
    w = (ry_words){0};
    ry_say_number(&w, 100 * (double)a->top[0].probability, 1);
    ry_say(&w, is_same ? " %" : " %, not the dense answer");
    ry_sheet_text(d->s, d->x, y, RY_FACE_SMALL, RY_LEFT, is_same ? d->look.faint : d->look.changed,
                  w.text, d->cell);
}

static void say_more(ry_words *w, uint32_t n, const char *what)
{
    if (n == 0) return;
    ry_say(w, ", ");
    ry_say_count(w, n);
    ry_say(w, what);
}

/* "98 kept, 98 dropped", or "70 tokens, 138 patches" where patches were joined. */
static void say_counts(ry_words *w, const renyi_viz_step *step, int is_terse)
{
    ry_say_count(w, step->n_groups);
    ry_say(w, step->n_merged ? " tokens" : " kept");
    if (is_terse) return;
    if (step->n_merged)
        say_more(w, step->n_kept + step->n_merged, " patches");
    else
        say_more(w, step->n_dropped, " dropped");
    say_more(w, step->n_fused, " fused");
}

static void row_caption(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column, uint32_t line,
                        ry_words *out)
{
    const renyi_viz_step *step = &row_at(d, t, row)->steps[column];
    if (line == 0) {
        say_counts(out, step, d->is_terse);
        return;
    }
    ry_say_macs(out, step->macs);
    if (d->is_terse) return;
    say_more(out, step->n_rescued, " rescued");
    if (!step->n_rescued && d->cell > 130) ry_say(out, step->is_cut ? " so far" : ", no cut here");
}

/* ---- pictures ------------------------------------------------------------------------------ */

static void row_picture(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column, ry_rect place)
{
    const renyi_viz_step *step = &row_at(d, t, row)->steps[column];
    if (t->part == ALL_ROWS)
        ry_cell_overlay(d, step, place);
    else
        ry_cell_mosaic(d, step, place);
}

/* Words that end at x with a swatch before them; returns its left edge. */
static double put_swatch(ry_draw *d, double x, double y, const char *text, ry_ink ink)
{
    x -= ry_sheet_text(d->s, x, y, RY_FACE_TEXT, RY_RIGHT, d->look.faint, text, 400) + 6;
    ry_sheet_box(d->s, ink, x - 11, y - 9, x, y + 2);
    return x - 11;
}

static void overlay_legend(ry_draw *d, const ry_table *t, double y)
{
    const ry_ink grey = {166, 174, 186, 255}, orange = {255, 154, 31, 255};
    uint32_t n_rescued = 0, n_merged = 0;
    double x = d->right;
    (void)t;
    for (uint32_t i = 0; i < d->r->n_rows; i++)
        for (uint32_t l = 0; l < d->r->n_layers; l++) {
            n_rescued += d->r->rows[i].steps[l].n_rescued > 0;
            n_merged += d->r->rows[i].steps[l].n_merged > 0;
        }
    if (n_merged) {
        x = put_swatch(d, x, y, "joined to one token", grey);
        ry_sheet_outline(d->s, d->look.ground, 1, (ry_rect){x + 1, y - 8, x + 10, y + 1});
        x -= 16;
    }
    if (n_rescued) {
        x = put_swatch(d, x, y, "rescued by Col-Ln", grey);
        ry_sheet_outline(d->s, orange, 2, (ry_rect){x, y - 9, x + 11, y + 2});
        x -= 16;
    }
    x = put_swatch(d, x, y, "dropped or fused so far", d->gone_ink);
    ry_sheet_lines(d->s, d->hatch, 1);
    ry_sheet_rect(d->s, x, y + 2, x + 11, y - 9);
}

/* ---- tables -------------------------------------------------------------------------------- */

ry_table ry_table_overlay(const ry_draw *d)
{
    ry_table t = {.about = "One row for each policy. What is gone so far is veiled. Costs are "
                           "multiply-accumulates from the photo to the end of the layer.",
                  .n_rows = d->r->n_rows,
                  .n_lines = 2,
                  .part = ALL_ROWS,
                  .name = row_name,
                  .more = row_more,
                  .picture = row_picture,
                  .caption = row_caption,
                  .legend = overlay_legend};
    ry_say(&t.title, "What pruning keeps");
    return t;
}

ry_table ry_table_mosaic(const ry_draw *d)
{
    ry_table t = {.about =
                      "Each token in the mean colour of its patches. Patches that were dropped "
                      "or fused are left open.",
                  .n_lines = 2,
                  .part = MERGING_ROWS,
                  .name = row_name,
                  .more = row_more,
                  .picture = row_picture,
                  .caption = row_caption};
    ry_say(&t.title, "What is joined with what");
    for (uint32_t i = 0; i < d->r->n_rows; i++) t.n_rows += d->r->rows[i].merges != 0;
    return t;
}
