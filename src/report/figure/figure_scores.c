/* figure_scores.c - scores of the unpruned model as heat maps: metrics, orders of the norm, heads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/figure/draw.h"

#include <math.h>

static void say_range(ry_words *out, double low, double high)
{
    ry_say_score(out, low);
    ry_say(out, " to ");
    ry_say_score(out, high);
}

/* Pure colours, as the legend of hues; over the photo they are duller. Each step reaches to the end
 * and is painted over by the next. */
static void colour_bar(ry_draw *d, const ry_table *t, double y)
{
    enum { STEPS = 96 };
    const double width = 192;
    double x = d->right;
    (void)t;
    x -= ry_sheet_text(d->s, x, y, RY_FACE_TEXT, RY_RIGHT, d->look.faint, "99th percentile", 200);
    x -= 8 + width;
    for (int i = 0; i < STEPS; i++) {
        uint8_t c[3];
        renyi_colour(d->opt->colours, (i + 0.5) / STEPS, c);
        ry_sheet_box(d->s, (ry_ink){c[0], c[1], c[2], 255}, x + i * width / STEPS, y - 9, x + width,
                     y + 2);
    }
    ry_sheet_text(d->s, x - 8, y, RY_FACE_TEXT, RY_RIGHT, d->look.faint, "1st", 200);
}

/* ---- metrics ------------------------------------------------------------------------------- */

static const renyi_viz_metric *metric_at(const ry_table *t, uint32_t row)
{
    return (const renyi_viz_metric *)t->of + row;
}

static void metric_name(const ry_draw *d, const ry_table *t, uint32_t row, ry_words *out)
{
    (void)d;
    ry_say(out, metric_at(t, row)->label);
}

static void metric_more(ry_draw *d, const ry_table *t, uint32_t row, double y)
{
    ry_draw_wrapped(d, d->x, y, RY_FACE_SMALL, d->look.faint, metric_at(t, row)->name, d->cell, 3);
}

static void metric_picture(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column,
                           ry_rect place)
{
    const renyi_viz_map *map = &metric_at(t, row)->maps[column];
    ry_cell_heat(d, map->score, (double)map->low, (double)map->high, place);
}

static void metric_caption(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column,
                           uint32_t line, ry_words *out)
{
    const renyi_viz_map *map = &metric_at(t, row)->maps[column];
    (void)line;
    if (!d->is_terse) say_range(out, (double)map->low, (double)map->high);
}

static ry_table metric_table(const char *title, const renyi_viz_metric *of, uint32_t n)
{
    ry_table t = {.n_rows = n,
                  .n_lines = 1,
                  .of = of,
                  .name = metric_name,
                  .more = metric_more,
                  .picture = metric_picture,
                  .caption = metric_caption,
                  .legend = colour_bar};
    ry_say(&t.title, title);
    return t;
}

ry_table ry_table_heat(const ry_draw *d)
{
    ry_table t = metric_table("What scores high", d->r->metrics, d->r->n_metrics);
    t.about = "Scores on the unpruned model. Each picture has its own scale, written below it.";
    return t;
}

ry_table ry_table_norms(const ry_draw *d)
{
    ry_table t = metric_table("The order of the norm", d->r->norms, d->r->n_norms);
    t.about = "Scores on the unpruned model. A larger n favours patches that a few others look at "
              "strongly over those that many look at a little.";
    return t;
}

/* ---- heads --------------------------------------------------------------------------------- */

/* Row 0 is the mean over heads. */
static uint32_t head_of(const ry_draw *d, uint32_t row)
{
    return d->opt->head ? d->opt->head - 1 : row - 1;
}

static const float *attention_of(const ry_draw *d, const ry_table *t, uint32_t row, uint32_t layer)
{
    const renyi_viz_attention *a = t->of;
    const renyi_viz_attention_layer *l = &a->layers[layer];
    if (row == 0) return (t->part ? l->column_mean : l->row_mean) + a->n_prefix;
    return (t->part ? l->column : l->row) + (size_t)head_of(d, row) * a->n_tokens + a->n_prefix;
}

static void head_name(const ry_draw *d, const ry_table *t, uint32_t row, ry_words *out)
{
    (void)t;
    ry_say(out, row == 0 ? "mean of all heads" : "head ");
    if (row > 0) ry_say_count(out, head_of(d, row));
}

static void head_picture(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column,
                         ry_rect place)
{
    const renyi_viz_attention *a = t->of;
    const float *score = attention_of(d, t, row, column);
    const int32_t marked = t->part ? a->token : a->query;
    double low, high;
    ry_percentiles(d, score, &low, &high);
    ry_cell_heat(d, score, low, high, place);
    if (marked >= 0 && (uint32_t)marked < d->r->n_patches) ry_cell_ring(d, (uint32_t)marked, place);
}

static void head_caption(ry_draw *d, const ry_table *t, uint32_t row, uint32_t column,
                         uint32_t line, ry_words *out)
{
    double low, high;
    (void)line;
    if (d->is_terse) return;
    ry_percentiles(d, attention_of(d, t, row, column), &low, &high);
    say_range(out, low, high);
}

static void say_patch(const ry_draw *d, ry_words *w, int32_t patch)
{
    if (patch < 0) {
        ry_say(w, "the class token");
        return;
    }
    ry_say(w, "patch ");
    ry_say_count(w, (uint64_t)patch);
    ry_say(w, " (row ");
    ry_say_count(w, (uint64_t)patch / d->r->photo.grid);
    ry_say(w, ", column ");
    ry_say_count(w, (uint64_t)patch % d->r->photo.grid);
    ry_say(w, ")");
}

ry_table ry_table_attention(const ry_draw *d, int is_column)
{
    const renyi_viz_attention *a = d->r->attention;
    ry_table t = {.about = is_column ? "The token's column of the attention matrix: how much each "
                                       "patch looks at it. Its norm is Col-Ln."
                                     : "The query's row of the attention matrix: how much it looks "
                                       "at each patch.",
                  .n_rows = 1 + (d->opt->head ? 1 : a->n_heads),
                  .n_lines = 1,
                  .of = a,
                  .part = is_column,
                  .name = head_name,
                  .picture = head_picture,
                  .caption = head_caption,
                  .legend = colour_bar};
    ry_say(&t.title, is_column ? "Who looks at " : "Where ");
    say_patch(d, &t.title, is_column ? a->token : a->query);
    if (!is_column) ry_say(&t.title, " looks");
    return t;
}
