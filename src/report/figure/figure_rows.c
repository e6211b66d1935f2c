/* figure_rows.c - the rows of a figure: what each policy keeps, and scores of the unpruned model
 * as heat maps (metrics, orders of the norm, heads).
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/figure_parts.h"

#include <math.h>

/* ---- policies: what is kept, what was merged ----------------------------------------------- */

enum { ALL_ROWS, MERGING_ROWS }; /* part of a table */

static const renyi_viz_row *row_at(const ry_canvas *cv, const ry_table *t, uint32_t row)
{
    for (uint32_t i = 0; i < cv->r->n_rows; i++)
        if ((t->part == ALL_ROWS || cv->r->rows[i].merges) && row-- == 0) return &cv->r->rows[i];
    return NULL; /* not reached: rows are counted before */
}

static void row_name(const ry_canvas *cv, const ry_table *t, uint32_t row, ry_caption *out)
{
    ry_caption_add(out, "%s", row_at(cv, t, row)->label);
}

/* The visual tokens of the whole image. Returns the next line. */
static double draw_tokens(ry_canvas *cv, uint32_t row, double y)
{
    ry_caption w = {0};
    ry_tokens_caption(cv, row + 1, &w);
    return ry_draw_wrapped_text(cv, cv->x, y, RY_FACE_SMALL, cv->ink.text, w.text, cv->cell, 3);
}

/* Tokens, cost and answer, below the name. */
static void row_more(ry_canvas *cv, const ry_table *t, uint32_t row, double y)
{
    const renyi_viz_row *of = row_at(cv, t, row);
    const renyi_viz_answer *a = &of->answer, *dense = &cv->r->dense;
    ry_caption w = {0};
    if (cv->tiles) y = draw_tokens(cv, (uint32_t)(of - cv->r->rows), y);
    if (of->adaptive) ry_caption_add(&w, "at most ");
    ry_caption_macs(&w, a->macs);
    ry_caption_change(&w, a->macs, dense->macs);
    ry_draw_text(cv->drawing, cv->x, y, RY_FACE_SMALL, RY_LEFT, cv->ink.faint, w.text, cv->cell);
    if (a->n_top == 0) return;
    const int is_same = dense->n_top > 0 && dense->top[0].index == a->top[0].index;
    y = ry_draw_wrapped_text(cv, cv->x, y + 20, RY_FACE_SMALL,
                             is_same ? cv->ink.text : cv->ink.changed, a->top[0].name, cv->cell, 2);
    w = (ry_caption){0};
    ry_caption_number(&w, 100 * (double)a->top[0].probability, 1);
    ry_caption_add(&w, is_same ? " %%" : " %%, not the dense answer");
    ry_draw_text(cv->drawing, cv->x, y, RY_FACE_SMALL, RY_LEFT,
                 is_same ? cv->ink.faint : cv->ink.changed, w.text, cv->cell);
}

static void add_count(ry_caption *w, uint32_t n, const char *what)
{
    if (n) ry_caption_add(w, ", %u %s", n, what);
}

/* "98 kept, 98 dropped", or "70 tokens, 138 patches" if patches were merged. */
static void add_counts(ry_caption *w, const renyi_viz_step *step, int is_terse)
{
    ry_caption_add(w, "%u %s", step->n_groups, step->n_merged ? "tokens" : "kept");
    if (is_terse) return;
    if (step->n_merged)
        add_count(w, step->n_kept + step->n_merged, "patches");
    else
        add_count(w, step->n_dropped, "dropped");
    add_count(w, step->n_fused, "fused");
}

/* "103 of 576", or of all tiles together. */
static void square_caption(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t line,
                           ry_caption *out)
{
    const uint32_t used = cv->square, first = line ? 1 : used,
                   end = line ? ry_n_cells(cv) : used + 1;
    uint32_t n = 0, most = 0;
    for (uint32_t k = first; k < end; k++) {
        ry_use_square(cv, k);
        n += row_at(cv, t, row)->steps[0].n_tokens;
        most += ry_n_inside(cv);
    }
    ry_use_square(cv, used);
    ry_caption_add(out, "%u of %u", n, most);
    if (line && end > 2) ry_caption_add(out, " in all tiles");
}

static void row_caption(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t column,
                        uint32_t line, ry_caption *out)
{
    const renyi_viz_step *step = &row_at(cv, t, row)->steps[column];
    if (cv->tiles) {
        if (!line || !cv->is_terse) square_caption(cv, t, row, line, out);
        return;
    }
    if (line == 0) {
        add_counts(out, step, cv->is_terse);
        return;
    }
    ry_caption_macs(out, step->macs);
    if (cv->is_terse) return;
    ry_caption_add(out, step->is_cut ? " so far" : ", no cut");
    add_count(out, step->n_rescued, "rescued");
}

static void row_cell(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t column, ry_box place)
{
    const renyi_viz_step *step = &row_at(cv, t, row)->steps[column];
    if (t->part == ALL_ROWS)
        ry_cell_overlay(cv, step, place);
    else
        ry_cell_mosaic(cv, step, place);
}

/* Text that ends at x, with a swatch before it; returns the left edge of the swatch. */
static double draw_swatch(ry_canvas *cv, double x, double y, const char *text, ry_ink ink)
{
    x -= ry_draw_text(cv->drawing, x, y, RY_FACE_TEXT, RY_RIGHT, cv->ink.faint, text, 400) + 6;
    ry_draw_box(cv->drawing, ink, x - 11, y - 9, x, y + 2);
    return x - 11;
}

static void overlay_legend(ry_canvas *cv, const ry_table *t, double y)
{
    const ry_ink grey = {166, 174, 186, 255}, orange = {255, 154, 31, 255};
    uint32_t n_rescued = 0, n_merged = 0;
    double x = cv->right;
    (void)t;
    for (uint32_t i = 0; i < cv->r->n_rows; i++)
        for (uint32_t l = 0; l < cv->r->n_layers; l++) {
            n_rescued += cv->r->rows[i].steps[l].n_rescued > 0;
            n_merged += cv->r->rows[i].steps[l].n_merged > 0;
        }
    if (n_merged) {
        x = draw_swatch(cv, x, y, "joined to one token", grey);
        ry_draw_outline(cv->drawing, cv->ink.ground, 1, (ry_box){x + 1, y - 8, x + 10, y + 1});
        x -= 16;
    }
    if (n_rescued) {
        x = draw_swatch(cv, x, y, "rescued by Col-Ln", grey);
        ry_draw_outline(cv->drawing, orange, 2, (ry_box){x, y - 9, x + 11, y + 2});
        x -= 16;
    }
    if (cv->tiles) {
        x = draw_swatch(cv, x, y, "border, no tokens", cv->ink.open);
        ry_draw_border(cv, (ry_box){x, y - 9, x + 11, y + 2});
        x -= 16;
    }
    x = draw_swatch(cv, x, y, cv->tiles ? "dropped or fused" : "dropped or fused so far",
                    cv->gone_ink);
    ry_open_lines(cv->drawing, cv->hatch, 1);
    ry_add_box(cv->drawing, x, y + 2, x + 11, y - 9);
}

static ry_table overlay_table(const ry_canvas *cv)
{
    ry_table t = {.about =
                      "One row for each policy. Patches gone so far are covered. Costs at the left "
                      "are totals; those below a picture go up to the end of its layer.",
                  .n_rows = cv->r->n_rows,
                  .n_lines = 2,
                  .part = ALL_ROWS,
                  .name = row_name,
                  .more = row_more,
                  .cell = row_cell,
                  .caption = row_caption,
                  .legend = overlay_legend};
    if (cv->tiles)
        t.about = "One row for each policy. Patches that give no token of their own are covered. "
                  "Below: visual tokens of each square, merged ones included.";
    ry_caption_add(&t.title, "What pruning keeps");
    return t;
}

static ry_table mosaic_table(const ry_canvas *cv)
{
    ry_table t = {.about =
                      "Each token in the mean colour of its patches. Patches that were dropped "
                      "or fused are left open.",
                  .n_lines = 2,
                  .part = MERGING_ROWS,
                  .name = row_name,
                  .more = row_more,
                  .cell = row_cell,
                  .caption = row_caption};
    ry_caption_add(&t.title, "What is joined with what");
    for (uint32_t i = 0; i < cv->r->n_rows; i++) t.n_rows += cv->r->rows[i].merges != 0;
    return t;
}

/* ---- metrics and orders of the norm --------------------------------------------------------- */

static void add_range(ry_caption *out, double low, double high)
{
    ry_caption_score(out, low);
    ry_caption_add(out, " to ");
    ry_caption_score(out, high);
}

/* The colours of the map at full strength; over the image they are paler. Each step reaches to the
 * right end and the next is painted over it, so there are no seams. */
static void colour_bar(ry_canvas *cv, const ry_table *t, double y)
{
    const int n_steps = 96;
    const double width = 192;
    double x = cv->right;
    (void)t;
    x -= ry_draw_text(cv->drawing, x, y, RY_FACE_TEXT, RY_RIGHT, cv->ink.faint, "99th percentile",
                      200);
    x -= 8 + width;
    for (int i = 0; i < n_steps; i++) {
        uint8_t c[3];
        renyi_colour(cv->opt->colours, (i + 0.5) / n_steps, c);
        ry_draw_box(cv->drawing, (ry_ink){c[0], c[1], c[2], 255}, x + i * width / n_steps, y - 9,
                    x + width, y + 2);
    }
    ry_draw_text(cv->drawing, x - 8, y, RY_FACE_TEXT, RY_RIGHT, cv->ink.faint, "1st", 200);
}

enum { METRICS, NORMS }; /* part of a table */

static const renyi_viz_metric *metric_at(const ry_canvas *cv, const ry_table *t, uint32_t row)
{
    return (t->part == NORMS ? cv->r->norms : cv->r->metrics) + row;
}

static void metric_name(const ry_canvas *cv, const ry_table *t, uint32_t row, ry_caption *out)
{
    ry_caption_add(out, "%s", metric_at(cv, t, row)->label);
}

static void metric_more(ry_canvas *cv, const ry_table *t, uint32_t row, double y)
{
    const double space = cv->y + ry_row_height(cv, t) - y;
    const int fit = (int)(space / (1.3 * ry_face_size(RY_FACE_SMALL)));
    ry_draw_wrapped_text(cv, cv->x, y, RY_FACE_SMALL, cv->ink.faint, metric_at(cv, t, row)->name,
                         cv->cell,
                         fit < 1   ? 1
                         : fit < 8 ? fit
                                   : 8);
}

static void metric_cell(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t column,
                        ry_box place)
{
    double low, high;
    ry_square_range(cv, t->part == NORMS, row, column, &low, &high);
    ry_cell_heat(cv, metric_at(cv, t, row)->maps[column].score, low, high, place);
}

static void metric_caption(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t column,
                           uint32_t line, ry_caption *out)
{
    double low, high;
    (void)line;
    if (cv->is_terse) return;
    if (ry_square_range(cv, t->part == NORMS, row, column, &low, &high))
        add_range(out, low, high);
    else
        ry_caption_add(out, "no scores");
}

static ry_table metric_table(const char *title, int part, uint32_t n)
{
    ry_table t = {.n_rows = n,
                  .n_lines = 1,
                  .part = part,
                  .name = metric_name,
                  .more = metric_more,
                  .cell = metric_cell,
                  .caption = metric_caption,
                  .legend = colour_bar};
    ry_caption_add(&t.title, "%s", title);
    return t;
}

static ry_table heat_table(const ry_canvas *cv)
{
    ry_table t = metric_table("What scores high", METRICS, cv->r->n_metrics);
    t.about = cv->tiles ? "Scores that the policy ranks by. Base and tiles have one scale each, "
                          "written below."
                        : "Scores on the unpruned model. Each picture has its own scale, written "
                          "below it.";
    return t;
}

static ry_table norms_table(const ry_canvas *cv)
{
    ry_table t = metric_table("The order of the norm", NORMS, cv->r->n_norms);
    t.about = "Scores on the unpruned model. A larger n favours patches that a few others look at "
              "strongly over those that many look at a little.";
    return t;
}

/* ---- heads --------------------------------------------------------------------------------- */

/* Of rows after the first, which is the mean over heads. */
static uint32_t head_of(const ry_canvas *cv, uint32_t row)
{
    return cv->opt->head ? cv->opt->head - 1 : row - 1;
}

static const float *attention_of(const ry_canvas *cv, const ry_table *t, uint32_t row,
                                 uint32_t layer)
{
    const renyi_viz_attention *a = cv->r->attention;
    const renyi_viz_attention_layer *l = &a->layers[layer];
    if (row == 0) return (t->part ? l->column_mean : l->row_mean) + a->n_prefix;
    return (t->part ? l->column : l->row) + (size_t)head_of(cv, row) * a->n_tokens + a->n_prefix;
}

static void head_name(const ry_canvas *cv, const ry_table *t, uint32_t row, ry_caption *out)
{
    (void)t;
    if (row == 0)
        ry_caption_add(out, "mean of all heads");
    else
        ry_caption_add(out, "head %u", head_of(cv, row));
}

static void head_cell(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t column, ry_box place)
{
    const renyi_viz_attention *a = cv->r->attention;
    const float *score = attention_of(cv, t, row, column);
    const int32_t marked = t->part ? a->token : a->query;
    double low, high;
    ry_percentiles(cv, score, &low, &high);
    ry_cell_heat(cv, score, low, high, place);
    if (marked >= 0 && (uint32_t)marked < cv->r->n_patches)
        ry_cell_ring(cv, (uint32_t)marked, place);
}

static void head_caption(ry_canvas *cv, const ry_table *t, uint32_t row, uint32_t column,
                         uint32_t line, ry_caption *out)
{
    double low, high;
    (void)line;
    if (cv->is_terse) return;
    ry_percentiles(cv, attention_of(cv, t, row, column), &low, &high);
    add_range(out, low, high);
}

static void add_patch_name(const ry_canvas *cv, ry_caption *w, int32_t patch)
{
    const uint32_t at = (uint32_t)patch, grid = cv->r->photo.grid;
    if (patch < 0)
        ry_caption_add(w, "the class token");
    else
        ry_caption_add(w, "patch %u (row %u, column %u)", at, at / grid, at % grid);
}

static ry_table attention_table(const ry_canvas *cv, int is_column)
{
    const renyi_viz_attention *a = cv->r->attention;
    ry_table t = {.about = is_column ? "The token's column of the attention matrix: how much each "
                                       "patch looks at it. Its norm is Col-Ln."
                                     : "The query's row of the attention matrix: how much it looks "
                                       "at each patch.",
                  .n_rows = 1 + (cv->opt->head ? 1 : a->n_heads),
                  .n_lines = 1,
                  .part = is_column,
                  .name = head_name,
                  .cell = head_cell,
                  .caption = head_caption,
                  .legend = colour_bar};
    ry_caption_add(&t.title, is_column ? "Who looks at " : "Where ");
    add_patch_name(cv, &t.title, is_column ? a->token : a->query);
    if (!is_column) ry_caption_add(&t.title, " looks");
    return t;
}

/* ---- all tables ---------------------------------------------------------------------------- */

int ry_tables_of(const ry_canvas *cv, ry_table out[RY_MAX_TABLES])
{
    static const renyi_figure_kind order[] = {RENYI_FIGURE_OVERLAY, RENYI_FIGURE_MOSAIC,
                                              RENYI_FIGURE_HEAT, RENYI_FIGURE_NORMS,
                                              RENYI_FIGURE_ATTENTION};
    int n = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (cv->opt->kind != RENYI_FIGURE_ALL && cv->opt->kind != order[i]) continue;
        if (!renyi_figure_has(cv->r, order[i])) continue;
        switch (order[i]) {
        case RENYI_FIGURE_OVERLAY: out[n++] = overlay_table(cv); break;
        case RENYI_FIGURE_MOSAIC: out[n++] = mosaic_table(cv); break;
        case RENYI_FIGURE_HEAT: out[n++] = heat_table(cv); break;
        case RENYI_FIGURE_NORMS: out[n++] = norms_table(cv); break;
        default: out[n++] = attention_table(cv, 0); out[n++] = attention_table(cv, 1);
        }
    }
    return n;
}
