/* figure_scores.c - scores of the unpruned model as heat maps: metrics, orders of the norm, heads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/draw.h"

#include <math.h>

static void draw_range(ry_draw *d, double low, double high, ry_rect place)
{
    ry_words w = {0};
    ry_say_score(&w, low);
    ry_say(&w, " to ");
    ry_say_score(&w, high);
    ry_sheet_text(d->s, (place.x0 + place.x1) / 2, place.y1 + RY_LINE, RY_FACE_SMALL, RY_CENTRE,
                  d->look.faint, w.text, d->cell);
}

/* The colours as they appear over a grey photo of middle brightness would be duller: the bar shows
 * them pure, as the eye compares hues. */
static void colour_bar(ry_draw *d, const void *of, double y)
{
    enum { STEPS = 96 };
    const double width = 192, step = width / STEPS;
    double x = d->right;
    (void)of;
    x -= ry_sheet_text(d->s, x, y, RY_FACE_TEXT, RY_RIGHT, d->look.faint, "99th percentile", 200);
    x -= 8 + width;
    for (int i = 0; i < STEPS; i++) {
        uint8_t c[3];
        renyi_colour(d->opt->colours, (i + 0.5) / STEPS, c);
        ry_sheet_box(d->s, (ry_ink){c[0], c[1], c[2], 255}, x + i * step, y - 10,
                     x + (i + 1) * step, y + 2);
    }
    ry_sheet_text(d->s, x - 8, y, RY_FACE_TEXT, RY_RIGHT, d->look.faint, "1st", 200);
}

/* ---- metrics ------------------------------------------------------------------------------- */

static void metric_label(ry_draw *d, const void *of, uint32_t row, double y)
{
    const renyi_viz_metric *m = (const renyi_viz_metric *)of + row;
    y = ry_draw_wrapped(d, d->x, y + 11, RY_FACE_STRONG, d->look.text, m->label, d->cell, 3) + 3;
    ry_draw_wrapped(d, d->x, y, RY_FACE_SMALL, d->look.faint, m->name, d->cell, 3);
}

static void metric_cell(ry_draw *d, const void *of, uint32_t row, uint32_t column, ry_rect place)
{
    const renyi_viz_map *map = &((const renyi_viz_metric *)of)[row].maps[column];
    ry_cell_heat(d, map->score, (double)map->low, (double)map->high, place);
    draw_range(d, (double)map->low, (double)map->high, place);
}

void ry_draw_heat(ry_draw *d)
{
    const ry_table t = {.title = "What scores high",
                        .about = "Scores on the unpruned model. Each picture has its own scale, "
                                 "written below it.",
                        .n_rows = d->r->n_metrics,
                        .n_lines = 1,
                        .label = metric_label,
                        .cell = metric_cell,
                        .legend = colour_bar,
                        .of = d->r->metrics};
    ry_draw_table(d, &t);
}

void ry_draw_norms(ry_draw *d)
{
    const ry_table t = {.title = "The order of the norm",
                        .about = "Col-Ln on the unpruned model: the larger n, the more a patch counts "
                                 "that few others look at strongly.",
                        .n_rows = d->r->n_norms,
                        .n_lines = 1,
                        .label = metric_label,
                        .cell = metric_cell,
                        .legend = colour_bar,
                        .of = d->r->norms};
    ry_draw_table(d, &t);
}

/* ---- heads --------------------------------------------------------------------------------- */

/* Which of the two halves of the attention figure. */
typedef struct half {
    const renyi_viz_attention *a;
    int is_column;
} half;

/* Row 0 is the mean over heads, unless one head was chosen. */
static const float *half_of(const ry_draw *d, const half *h, uint32_t row, uint32_t layer)
{
    const renyi_viz_attention_layer *l = &h->a->layers[layer];
    const float *mean = h->is_column ? l->column_mean : l->row_mean;
    const float *heads = h->is_column ? l->column : l->row;
    if (row == 0) return mean + h->a->n_prefix;
    const uint32_t head = d->opt->head ? d->opt->head - 1 : row - 1;
    return heads + (size_t)head * h->a->n_tokens + h->a->n_prefix;
}

static void half_label(ry_draw *d, const void *of, uint32_t row, double y)
{
    ry_words w = {0};
    (void)of;
    ry_say(&w, row == 0 ? "mean of all heads" : "head ");
    if (row > 0) ry_say_count(&w, d->opt->head ? d->opt->head - 1 : row - 1);
    ry_sheet_text(d->s, d->x, y + 11, RY_FACE_STRONG, RY_LEFT, d->look.text, w.text, d->cell);
}

static void half_cell(ry_draw *d, const void *of, uint32_t row, uint32_t column, ry_rect place)
{
    const half *h = of;
    const float *score = half_of(d, h, row, column);
    const int32_t marked = h->is_column ? h->a->token : h->a->query;
    double low, high;
    ry_percentiles(d, score, &low, &high);
    ry_cell_heat(d, score, low, high, place);
    if (marked >= 0 && (uint32_t)marked < d->r->n_patches) ry_cell_ring(d, (uint32_t)marked, place);
    draw_range(d, low, high, place);
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

void ry_draw_attention(ry_draw *d)
{
    const renyi_viz_attention *a = d->r->attention;
    for (int is_column = 0; is_column < 2; is_column++) {
        const half h = {a, is_column};
        ry_words title = {0};
        ry_say(&title, is_column ? "Who looks at " : "Where ");
        say_patch(d, &title, is_column ? a->token : a->query);
        if (!is_column) ry_say(&title, " looks");
        const ry_table t = {.title = title.text,
                            .about = is_column
                                         ? "The token's received column of the attention matrix: "
                                           "how much each patch looks at it. Its norm is Col-Ln."
                                         : "The query's row of the attention matrix: how much it "
                                           "looks at each patch.",
                            .n_rows = 1 + (d->opt->head ? 1 : a->n_heads),
                            .n_lines = 1,
                            .label = half_label,
                            .cell = half_cell,
                            .legend = colour_bar,
                            .of = &h};
        ry_draw_table(d, &t);
    }
}
