/* figure_pruning.c - what policies keep, layer by layer: over the photo, and as a mosaic of tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/draw.h"

#include <math.h>

static const renyi_viz_row *row_at(const ry_draw *d, uint32_t row, int only_merging)
{
    for (uint32_t i = 0; i < d->r->n_rows; i++)
        if ((!only_merging || d->r->rows[i].merges) && row-- == 0) return &d->r->rows[i];
    return NULL; /* not reached: rows are counted before */
}

static void draw_label(ry_draw *d, const renyi_viz_row *row, double y)
{
    const renyi_viz_answer *a = &row->answer, *dense = &d->r->dense;
    const double most = d->cell;
    y = ry_draw_wrapped(d, d->x, y + 11, RY_FACE_STRONG, d->look.text, row->label, most, 4) + 3;
    ry_words w = {0};
    if (row->adaptive) ry_say(&w, "at most ");
    ry_say_macs(&w, a->macs);
    if (dense->macs > 0) {
        const double change = 100 * (a->macs / dense->macs - 1);
        ry_say(&w, change < 0 ? ", \xE2\x88\x92" : ", +");
        ry_say_number(&w, fabs(change), 0);
        ry_say(&w, " %");
    }
    ry_sheet_text(d->s, d->x, y, RY_FACE_SMALL, RY_LEFT, d->look.faint, w.text, most);
    if (a->n_top == 0) return;
    const int is_same = dense->n_top > 0 && dense->top[0].index == a->top[0].index;
    w = (ry_words){0};
    ry_say(&w, a->top[0].name);
    const double at = 100 * (double)a->top[0].probability;
    y = ry_draw_wrapped(d, d->x, y + 20, RY_FACE_SMALL, is_same ? d->look.text : d->look.changed,
                        w.text, most, 2);
    w = (ry_words){0};
    ry_say_number(&w, at, 1);
    ry_say(&w, is_same ? " %" : " %, not the dense answer");
    ry_sheet_text(d->s, d->x, y, RY_FACE_SMALL, RY_LEFT,
                  is_same ? d->look.faint : d->look.changed, w.text, most);
}

/* "98 kept · 98 dropped", or "70 tokens · 138 patches" where patches were joined. */
static void say_counts(ry_words *w, const renyi_viz_step *step)
{
    ry_say_count(w, step->n_groups);
    ry_say(w, step->n_merged ? " tokens, " : " kept");
    if (step->n_merged) {
        ry_say_count(w, (uint64_t)step->n_kept + step->n_merged);
        ry_say(w, " patches");
    }
    if (step->n_dropped && !step->n_merged) {
        ry_say(w, ", ");
        ry_say_count(w, step->n_dropped);
        ry_say(w, " dropped");
    }
    if (step->n_fused) {
        ry_say(w, ", ");
        ry_say_count(w, step->n_fused);
        ry_say(w, " fused");
    }
}

static void draw_caption(ry_draw *d, const renyi_viz_step *step, ry_rect place)
{
    const double x = (place.x0 + place.x1) / 2, most = d->cell + RY_GAP - 2;
    ry_words w = {0};
    say_counts(&w, step);
    ry_sheet_text(d->s, x, place.y1 + RY_LINE, RY_FACE_SMALL, RY_CENTRE, d->look.text, w.text, most);
    w = (ry_words){0};
    ry_say_macs(&w, step->macs);
    if (step->n_rescued) {
        ry_say(&w, ", ");
        ry_say_count(&w, step->n_rescued);
        ry_say(&w, " rescued");
    } else {
        ry_say(&w, step->is_cut ? " so far" : ", no cut here");
    }
    ry_sheet_text(d->s, x, place.y1 + 2 * RY_LINE, RY_FACE_SMALL, RY_CENTRE, d->look.faint, w.text,
                  most);
}

/* ---- over the photo ------------------------------------------------------------------------ */

static void overlay_label(ry_draw *d, const void *of, uint32_t row, double y)
{
    (void)of;
    draw_label(d, row_at(d, row, 0), y);
}

static void overlay_cell(ry_draw *d, const void *of, uint32_t row, uint32_t column, ry_rect place)
{
    const renyi_viz_step *step = &row_at(d, row, 0)->steps[column];
    (void)of;
    ry_cell_overlay(d, step, place);
    draw_caption(d, step, place);
}

/* Swatches from the right edge on; the words of the last come first. */
static double put_swatch(ry_draw *d, double x, double y, const char *text, ry_ink ink)
{
    x -= ry_sheet_text(d->s, x, y, RY_FACE_TEXT, RY_RIGHT, d->look.faint, text, 400) + 6;
    ry_sheet_box(d->s, ink, x - 11, y - 9.5, x, y + 1.5);
    return x - 11;
}

static void overlay_legend(ry_draw *d, const void *of, double y)
{
    uint32_t n_rescued = 0, n_merged = 0;
    double x = d->right;
    (void)of;
    for (uint32_t i = 0; i < d->r->n_rows; i++)
        for (uint32_t l = 0; l < d->r->n_layers; l++) {
            n_rescued += d->r->rows[i].steps[l].n_rescued > 0;
            n_merged += d->r->rows[i].steps[l].n_merged > 0;
        }
    if (n_merged) {
        x = put_swatch(d, x, y, "joined to one token", (ry_ink){166, 174, 186, 255});
        ry_sheet_outline(d->s, d->look.ground, 1, (ry_rect){x + 1, y - 8.5, x + 10, y + 0.5});
        x -= 16;
    }
    if (n_rescued) {
        x = put_swatch(d, x, y, "rescued by Col-Ln", (ry_ink){166, 174, 186, 255});
        ry_sheet_outline(d->s, (ry_ink){255, 154, 31, 255}, 2, (ry_rect){x, y - 9.5, x + 11, y + 1.5});
        x -= 16;
    }
    put_swatch(d, x, y, "dropped or fused so far", (ry_ink){45, 47, 53, 255});
}

void ry_draw_overlay(ry_draw *d)
{
    const ry_table t = {.title = "What pruning keeps",
                        .about = "One row for each policy. Patches that are dropped or fused so far "
                                 "are dark. Multiply-accumulates from the photo to the end of the "
                                 "layer.",
                        .n_rows = d->r->n_rows,
                        .n_lines = 2,
                        .label = overlay_label,
                        .cell = overlay_cell,
                        .legend = overlay_legend};
    ry_draw_table(d, &t);
}

/* ---- as a mosaic --------------------------------------------------------------------------- */

static void mosaic_label(ry_draw *d, const void *of, uint32_t row, double y)
{
    (void)of;
    draw_label(d, row_at(d, row, 1), y);
}

static void mosaic_cell(ry_draw *d, const void *of, uint32_t row, uint32_t column, ry_rect place)
{
    const renyi_viz_step *step = &row_at(d, row, 1)->steps[column];
    (void)of;
    ry_cell_mosaic(d, step, place);
    draw_caption(d, step, place);
}

void ry_draw_mosaic(ry_draw *d)
{
    ry_table t = {.title = "What is joined with what",
                  .about = "Each token in the mean colour of its patches. Dropped and fused patches "
                           "are left open.",
                  .n_lines = 2,
                  .label = mosaic_label,
                  .cell = mosaic_cell};
    for (uint32_t i = 0; i < d->r->n_rows; i++) t.n_rows += d->r->rows[i].merges != 0;
    ry_draw_table(d, &t);
}
