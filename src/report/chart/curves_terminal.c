/* curves_terminal.c - charts of training runs as text: lines of braille dots between two axes, with
 * name and last value of each run at the right.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/chart/chart.h"

#include <math.h>
#include <string.h>

/* A character has 2 x 4 dots. */
enum { LEAST_ROWS = 12, MARK_EVERY = 16, NUMBER_MOST = 12 };

typedef struct cell {
    uint8_t dots; /* bits of the braille character */
    uint8_t run;  /* of the last line through it */
    char mark;    /* letter of a run; 0 = none */
} cell;

typedef struct screen {
    const renyi_report_curves *r;
    const renyi_report_panel *p;
    ry_buffer *out;
    int has_colours;
    uint32_t left, width, rows; /* characters before the plot, and of the plot */
    cell *cells;                /* [rows, width] */
    ry_scale x, y;              /* in dots */
    uint32_t n_labels;
    const renyi_report_curve *labels[RENYI_REPORT_MAX_RUNS]; /* from the top */
    double label_rows[RENYI_REPORT_MAX_RUNS];
} screen;

/* ---- text ---- */

static void put_times(ry_buffer *out, const char *text, uint32_t n)
{
    while (n--) ry_buffer_text(out, text);
}

static uint32_t count_chars(const char *text, size_t size)
{
    uint32_t n = 0;
    for (size_t i = 0; i < size; i++) n += ((uint8_t)text[i] & 0xC0) != 0x80;
    return n;
}

/* The first byte after `n` characters. */
static size_t skip_chars(const char *text, size_t size, uint32_t n)
{
    size_t at = 0;
    for (; n && at < size; n--) do
            at++;
        while (at < size && ((uint8_t)text[at] & 0xC0) == 0x80);
    return at;
}

/* At most `most` characters of a text from outside: its beginning or its end. */
static void put_short(ry_buffer *out, const char *text, uint32_t most, int is_end)
{
    ry_buffer clean = {.al = out->al};
    ry_put_clean(&clean, text ? text : "");
    const uint32_t all = count_chars(clean.bytes, clean.size), left = most ? most - 1 : 0;
    size_t from = 0, to = clean.size;
    if (all > most && is_end) from = skip_chars(clean.bytes, clean.size, all - left);
    if (all > most && !is_end) to = skip_chars(clean.bytes, clean.size, left);
    if (from) ry_buffer_text(out, "…");
    ry_buffer_put(out, clean.bytes + from, to - from);
    if (to < clean.size) ry_buffer_text(out, "…");
    if (clean.failed) out->failed = 1, out->wanted = clean.wanted;
    ry_buffer_free(&clean);
}

/* Runs have the colours of the 256 that every terminal of today has. */
static void set_colour(const screen *s, uint32_t run)
{
    static const uint8_t colours[RY_COLOURS] = {33, 208, 35, 197, 135, 37, 178, 171, 245};
    if (s->has_colours)
        ry_putf(s->out, "\033[38;5;%um", colours[ry_run_look_of(run).colour % RY_COLOURS]);
}

static void end_style(const screen *s)
{
    if (s->has_colours) ry_buffer_text(s->out, "\033[0m");
}

static char letter_of(uint32_t run) { return (char)('a' + run % 26); }

/* "b col 1.8012"; without the letter if there is one run. Only what fits into `most` characters:
 * names of runs usually differ at the end. */
static void put_label(const screen *s, const renyi_report_curve *c, ry_buffer *out, uint32_t most)
{
    char value[RY_NUMBER_MAX];
    size_t n = ry_number(value, c->y[ry_curve_end(c)], (int)s->p->y_decimals);
    if (n > NUMBER_MOST) n = 0; /* larger than any loss */
    const uint32_t rest = (uint32_t)n + (s->r->n_runs > 1 ? 3 : 1);
    if (s->r->n_runs > 1) ry_buffer_put(out, (char[]){letter_of(c->run), ' '}, 2);
    put_short(out, ry_run_name(s->r, c->run), most > rest ? most - rest : 0, 1);
    ry_buffer_text(out, " ");
    ry_buffer_put(out, value, n);
}

/* ---- lines ---- */

static void set_dot(screen *s, double x, double y, uint32_t run)
{
    static const uint8_t bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    const uint32_t at_x = (uint32_t)x, at_y = (uint32_t)y;
    cell *c = &s->cells[at_y / 4 * s->width + at_x / 2];
    c->dots |= bits[at_y % 4][at_x % 2];
    c->run = (uint8_t)run;
}

/* Letters tell lines apart without colours. Those of different runs are in different columns. */
static void set_mark(screen *s, double x, double y, uint32_t run, uint32_t *last)
{
    const uint32_t column = (uint32_t)x / 2;
    if (s->r->n_runs < 2 || column == *last || column % MARK_EVERY != (5 * run + 3) % MARK_EVERY)
        return;
    s->cells[(uint32_t)y / 4 * s->width + column].mark = letter_of(run);
    *last = column;
}

static void draw_line(screen *s, const renyi_report_curve *c)
{
    double from_x = NAN, from_y = NAN;
    uint32_t marked = UINT32_MAX;
    for (size_t i = 0; i < c->n; i++) {
        const int is_point = isfinite(c->x[i]) && isfinite(c->y[i]);
        const double x = is_point ? round(ry_scale_at(&s->x, c->x[i])) : NAN;
        const double y = is_point ? round(ry_scale_at(&s->y, c->y[i])) : NAN;
        const double steps = isnan(from_x) ? 0 : fmax(fabs(x - from_x), fabs(y - from_y));
        for (double k = steps > 0 ? 1 : 0; is_point && k <= steps; k++) {
            const double share = steps > 0 ? k / steps : 1;
            const double at_x = steps > 0 ? round(from_x + share * (x - from_x)) : x;
            const double at_y = steps > 0 ? round(from_y + share * (y - from_y)) : y;
            set_dot(s, at_x, at_y, c->run);
            set_mark(s, at_x, at_y, c->run, &marked);
        }
        from_x = x, from_y = y;
    }
}

/* Labels in the order in which the lines end, one in a row. */
static void place_labels(screen *s)
{
    for (uint32_t i = 0; i < s->p->n_curves && s->n_labels < RENYI_REPORT_MAX_RUNS; i++) {
        const renyi_report_curve *c = &s->p->curves[i];
        if (c->is_faint || ry_curve_end(c) == c->n) continue;
        const double row = floor(ry_scale_at(&s->y, c->y[ry_curve_end(c)]) / 4);
        uint32_t k = s->n_labels++;
        for (; k && s->label_rows[k - 1] > row; k--)
            s->label_rows[k] = s->label_rows[k - 1], s->labels[k] = s->labels[k - 1];
        s->label_rows[k] = row, s->labels[k] = c;
    }
    ry_labels_spread(s->label_rows, s->n_labels, 1, s->rows - 1);
}

/* ---- rows ---- */

static void put_cell(const screen *s, const cell *c)
{
    const uint32_t code = 0x2800u + c->dots;
    const char braille[3] = {(char)(0xE0 | code >> 12), (char)(0x80 | (code >> 6 & 63)),
                             (char)(0x80 | (code & 63))};
    if (!c->dots) {
        ry_buffer_text(s->out, " ");
        return;
    }
    set_colour(s, c->run);
    if (c->mark)
        ry_buffer_put(s->out, &c->mark, 1);
    else
        ry_buffer_put(s->out, braille, 3);
    end_style(s);
}

/* The tick of the y axis in this row, at most NUMBER_MOST characters; 0 = none. */
static size_t tick_of(const screen *s, uint32_t row, char out[RY_NUMBER_MAX])
{
    size_t n = 0;
    for (int i = 0; i < s->y.n_ticks; i++)
        if ((uint32_t)round(ry_scale_at(&s->y, s->y.ticks[i])) / 4 == row)
            n = ry_number(out, s->y.ticks[i], ry_scale_decimals(&s->y, i));
    return n <= NUMBER_MOST ? n : 0;
}

static void put_row(const screen *s, uint32_t row, uint32_t label_width)
{
    char tick[RY_NUMBER_MAX];
    const size_t n = tick_of(s, row, tick);
    put_times(s->out, " ", s->left - (uint32_t)n - 1);
    ry_buffer_put(s->out, tick, n);
    ry_buffer_text(s->out, n ? "┤" : "│");
    for (uint32_t i = 0; i < s->width; i++) put_cell(s, &s->cells[row * s->width + i]);
    for (uint32_t i = 0; i < s->n_labels; i++) {
        if ((uint32_t)fmax(s->label_rows[i], 0) != row) continue;
        ry_buffer_text(s->out, " ");
        set_colour(s, s->labels[i]->run);
        put_label(s, s->labels[i], s->out, label_width);
        end_style(s);
        break;
    }
    ry_buffer_text(s->out, "\n");
}

static void put_x_axis(const screen *s, uint32_t unit_width)
{
    uint32_t at = 0;
    put_times(s->out, " ", s->left - 1);
    ry_buffer_text(s->out, "└");
    for (uint32_t i = 0; i < s->width; i++) {
        int is_tick = 0;
        for (int k = 0; k < s->x.n_ticks; k++)
            is_tick |= (uint32_t)round(ry_scale_at(&s->x, s->x.ticks[k])) / 2 == i;
        ry_buffer_text(s->out, is_tick ? "┴" : "─");
    }
    ry_buffer_text(s->out, "\n");
    put_times(s->out, " ", s->left);
    for (int k = 0; k < s->x.n_ticks; k++) {
        char tick[RY_NUMBER_MAX];
        const uint32_t n = (uint32_t)ry_number(tick, s->x.ticks[k], ry_scale_decimals(&s->x, k));
        const uint32_t middle = (uint32_t)round(ry_scale_at(&s->x, s->x.ticks[k])) / 2;
        uint32_t from = middle > n / 2 ? middle - n / 2 : 0;
        if (from + n > s->width) from = n < s->width ? s->width - n : 0; /* the last one */
        if (n > s->width || (k && from <= at)) continue;
        put_times(s->out, " ", from - at);
        ry_buffer_put(s->out, tick, n);
        at = from + n;
    }
    put_times(s->out, " ", s->width + 1 - at);
    put_short(s->out, s->p->x_label, unit_width, 0);
    ry_buffer_text(s->out, "\n");
}

/* ---- the chart ---- */

/* Characters of the longest label and of the unit of the x axis, at most a third of the columns. */
static uint32_t label_width_of(const screen *s, uint32_t columns)
{
    const char *unit = s->p->x_label ? s->p->x_label : "";
    uint32_t most = count_chars(unit, strlen(unit));
    if (most > columns / 3) most = columns / 3;
    for (uint32_t i = 0; i < s->p->n_curves; i++) {
        const renyi_report_curve *c = &s->p->curves[i];
        if (c->is_faint || ry_curve_end(c) == c->n) continue;
        ry_buffer text = {.al = s->out->al};
        put_label(s, c, &text, columns / 3);
        const uint32_t n = count_chars(text.bytes, text.size);
        if (n > most) most = n;
        ry_buffer_free(&text);
    }
    return most;
}

static void draw_plot(screen *s, uint32_t columns, uint32_t label_width)
{
    char tick[RY_NUMBER_MAX];
    size_t most = 1;
    s->y.from = 4 * s->rows - 1, s->y.to = 0;
    for (uint32_t row = 0; row < s->rows; row++) {
        const size_t n = tick_of(s, row, tick);
        if (n > most) most = n;
    }
    s->left = (uint32_t)most + 2;
    s->width = columns - s->left - label_width - 1;
    s->x.from = 0, s->x.to = 2 * s->width - 1;
    s->cells = ry_calloc(s->out->al, (size_t)s->rows * s->width, sizeof *s->cells);
    if (!s->cells) {
        s->out->failed = 1, s->out->wanted = (size_t)s->rows * s->width * sizeof *s->cells;
        return;
    }
    for (uint32_t i = 0; i < s->p->n_curves; i++)
        if (!s->p->curves[i].is_faint) draw_line(s, &s->p->curves[i]);
    place_labels(s);
    for (uint32_t row = 0; row < s->rows; row++) put_row(s, row, label_width);
    put_x_axis(s, label_width);
    ry_free(s->out->al, s->cells);
}

void ry_chart_text(ry_buffer *out, const renyi_report_curves *r, uint32_t columns, int has_colours)
{
    for (uint32_t i = 0; i < r->n_panels; i++) {
        screen s = {.r = r, .p = &r->panels[i], .out = out, .has_colours = has_colours};
        const uint32_t n = ry_panel_scales(r, s.p, 1, &s.x, &s.y);
        if (i) ry_buffer_text(out, "\n");
        if (has_colours) ry_buffer_text(out, "\033[1m");
        put_short(out, s.p->y_label, columns - 20, 0); /* and what follows */
        end_style(&s);
        ry_buffer_text(out, n ? "\n" : ": nothing is known\n");
        s.rows = n > LEAST_ROWS ? n : LEAST_ROWS;
        if (n) draw_plot(&s, columns, label_width_of(&s, columns));
    }
}
