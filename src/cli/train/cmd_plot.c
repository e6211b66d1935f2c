/* cmd_plot.c - renyi plot: the command line, and the curves of runs as table, JSON, SVG, HTML or
 * text.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "cli/kit/files.h"
#include "cli/kit/options.h"
#include "cli/kit/output.h"
#include "cli/train/plot_view.h"
#include "cli/verbs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the table ----------------------------------------------------------------------------- */

enum { MAX_COLUMNS = 12 };

typedef struct plot_column {
    const char *name;
    int is_text;
    char *cells[RENYI_REPORT_MAX_RUNS]; /* owned; NULL = unknown */
} plot_column;

/* The table of runs, also on the HTML page. */
typedef struct plot_report {
    plot_view v;
    uint32_t n_columns;
    plot_column columns[MAX_COLUMNS];
} plot_report;

static plot_column *add_column(plot_report *r, const char *name, int is_text)
{
    plot_column *c = &r->columns[r->n_columns++];

    c->name = name;
    c->is_text = is_text;
    return c;
}

/* A column that would be empty is left out. */
static void add_texts(plot_report *r, const char *name, size_t offset)
{
    plot_column *c = add_column(r, name, 1);
    int n = 0;

    for (uint32_t i = 0; i < r->v.n; i++) {
        const char *text;
        memcpy(&text, (const char *)&r->v.infos[i] + offset, sizeof text);
        if (text) c->cells[i] = cli_copy(text), n++;
    }
    if (!n) r->n_columns--;
}

static void add_numbers(plot_report *r, const char *name, size_t offset, int decimals)
{
    plot_column *c = add_column(r, name, 0);
    int n = 0;

    for (uint32_t i = 0; i < r->v.n; i++) {
        double value;
        memcpy(&value, (const char *)&r->v.infos[i] + offset, sizeof value);
        if (isfinite(value)) c->cells[i] = cli_format("%.*f", decimals, value), n++;
    }
    if (!n) r->n_columns--;
}

static void add_best(plot_report *r)
{
    plot_column *c = add_column(r, "best top-1 % (epochs)", 0);
    int n = 0;

    for (uint32_t i = 0; i < r->v.n; i++)
        if (isfinite(r->v.infos[i].best_top1)) /* inside an epoch at the end of train --steps */
            c->cells[i] =
                cli_format("%.2f (%.4g)", r->v.infos[i].best_top1, r->v.infos[i].best_epoch),
            n++;
    if (!n) r->n_columns--;
}

static char *duration(double seconds)
{
    const unsigned long long s = (unsigned long long)seconds;

    if (seconds < 60) return cli_format("%.1f s", seconds);
    if (s < 3600) return cli_format("%llu:%02llu min", s / 60, s % 60);
    return cli_format("%llu:%02llu h", s / 3600, s / 60 % 60);
}

static void add_time(plot_report *r)
{
    plot_column *c = add_column(r, "time", 0);
    int n = 0;

    for (uint32_t i = 0; i < r->v.n; i++)
        if (r->v.infos[i].seconds < 1e12) c->cells[i] = duration(r->v.infos[i].seconds), n++;
    if (!n) r->n_columns--;
}

static void make_columns(plot_report *r)
{
    add_numbers(r, "epochs", offsetof(renyi_run_info, epochs), r->v.x_decimals == 3 ? 2 : 1);
    add_numbers(r, "updates", offsetof(renyi_run_info, steps), 0);
    add_numbers(r, "training loss", offsetof(renyi_run_info, loss), 4);
    add_numbers(r, "validation loss", offsetof(renyi_run_info, val_loss), 4);
    add_numbers(r, "top-1 %", offsetof(renyi_run_info, top1), 2);
    add_best(r);
    add_numbers(r, "top-5 %", offsetof(renyi_run_info, top5), 2);
    add_numbers(r, "images/s", offsetof(renyi_run_info, images_per_second), 1);
    add_time(r);
    add_texts(r, "policy", offsetof(renyi_run_info, policy)); /* long, so it is the last */
}

static void put_table(const plot_report *r)
{
    text_table t = {0};

    text_table_column(&t, TEXT_LEFT, "run");
    for (uint32_t k = 0; k < r->n_columns; k++)
        text_table_column(&t, r->columns[k].is_text ? TEXT_LEFT : TEXT_RIGHT, "%s",
                          r->columns[k].name);
    for (uint32_t i = 0; i < r->v.n; i++) {
        text_table_cell(&t, "%s", r->v.names[i]);
        for (uint32_t k = 0; k < r->n_columns; k++)
            text_table_cell(&t, "%s", r->columns[k].cells[i] ? r->columns[k].cells[i] : "-");
    }
    text_table_put(&t, 0, 0);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *numbers_json(const double *values, size_t n, double scale)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_number(values[i] * scale));
    return list;
}

static json_t *curves_json(const plot_view *v, uint32_t run)
{
    json_t *curves = json_object();

    for (uint32_t i = 0; i < v->n_charts; i++) {
        const plot_chart *chart = &v->charts[i];
        const renyi_run_curve *c = &chart->lines[run];
        json_object_set_new(curves, chart->kind->name,
                            json_pack("{s:o, s:o}", "x", numbers_json(c->x, c->n, v->x_scale), "y",
                                      numbers_json(c->y, c->n, 1 / chart->kind->scale)));
    }
    return curves;
}

static json_t *run_json(const plot_view *v, uint32_t i)
{
    const renyi_run_info *r = &v->infos[i];

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}",
        "name", json_text(v->names[i]), "path", json_text(r->path), "policy", json_text(r->policy),
        "model", json_text(r->model), "stages", (json_int_t)r->n_stages, "cut", r->is_cut, "epochs",
        json_number(r->epochs), "steps", json_number(r->steps), "seconds", json_number(r->seconds),
        "train_loss", json_number(r->loss), "val_loss", json_number(r->val_loss), "top1",
        json_number(r->top1), "top5", json_number(r->top5), "best_top1", json_number(r->best_top1),
        "best_epoch", json_number(r->best_epoch), "images_per_second",
        json_number(r->images_per_second), "bad_lines", (json_int_t)r->n_bad, "curves",
        curves_json(v, i));
}

static json_t *plot_json(const plot_view *v)
{
    json_t *runs = json_array();

    for (uint32_t i = 0; i < v->n; i++) json_array_append_new(runs, run_json(v, i));
    return json_pack("{s:s, s:I, s:o}", "x", v->a->axis, "smooth", (json_int_t)v->smooth, "runs",
                     runs);
}

/* ---- drawings ------------------------------------------------------------------------------ */

static int ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);

    return n >= m && strcmp(path + n - m, ending) == 0;
}

/* A file, or text for the terminal. 0, or -1 after reporting. */
static int put_drawing(const plot_arguments *a, const renyi_report_curves *r)
{
    renyi_report_text text = {0};
    renyi_error err = {0};
    int code = 0;
    const renyi_status st = !a->output
                                ? renyi_report_curves_terminal(&text, r, cli_columns(40, 160),
                                                               *cli_bold(stdout) != 0, &err)
                            : ends_in(a->output, ".html") ? renyi_report_curves_html(&text, r, &err)
                                                          : renyi_report_curves_svg(&text, r, &err);
    if (st) {
        cli_error("%s: %s", a->output ? a->output : "plot", err.message);
        return -1;
    }
    if (a->output) {
        code = write_whole_file(a->output, text.bytes, text.size);
        if (!code) cli_note("%s: %zu bytes", a->output, text.size);
    } else {
        fwrite(text.bytes, 1, text.size, stdout); /* cli_finish_output reports a failure */
        putchar('\n');
    }
    renyi_report_text_free(&text);
    return code;
}

static int draw(const plot_report *report)
{
    const plot_view *v = &report->v;
    renyi_report_panel panels[RENYI_REPORT_MAX_PANELS];
    renyi_report_column columns[MAX_COLUMNS];

    for (uint32_t i = 0; i < v->n_charts; i++) {
        const plot_chart *c = &v->charts[i];
        panels[i] =
            (renyi_report_panel){c->kind->title, c->caption,        v->x_label,  c->kind->y_label,
                                 v->x_decimals,  c->kind->decimals, c->n_curves, c->curves};
    }
    for (uint32_t i = 0; i < report->n_columns; i++)
        columns[i] = (renyi_report_column){report->columns[i].name,
                                           (const char *const *)report->columns[i].cells,
                                           (uint32_t)report->columns[i].is_text};
    const renyi_report_curves r = {.struct_size = sizeof r,
                                   .n_runs = v->n,
                                   .n_panels = v->n_charts,
                                   .n_columns = report->n_columns,
                                   .runs = (const char *const *)v->names,
                                   .panels = panels,
                                   .columns = columns,
                                   .title = v->a->title,
                                   .command = v->a->command};
    return put_drawing(v->a, &r);
}

/* ---- the command line
 * ---------------------------------------------------------------------------- */

static int plot_runs(const plot_arguments *a, const cli_strings *paths)
{
    plot_report *r = cli_alloc(1, sizeof *r);
    int code = plot_view_make(&r->v, a, paths);

    if (!code) make_columns(r);
    const int in_terminal = !a->json && (a->term || isatty(STDOUT_FILENO));
    if (!code && (a->output || in_terminal) && draw(r)) code = CLI_FAILED;
    if (!code && a->json) json_print(plot_json(&r->v));
    if (!code && !a->json) put_table(r);
    for (uint32_t i = 0; i < r->n_columns; i++)
        for (uint32_t k = 0; k < r->v.n; k++) free(r->columns[i].cells[k]);
    plot_view_free(&r->v);
    free(r);
    return code;
}

static option_outcome parse_options(plot_arguments *a, int argc, char **argv, cli_strings *paths)
{
    const option table[] = {
        {"output", 'o', OPTION_STRING, &a->output, "FILE",
         "draw to FILE.svg, or to the page FILE.html", 0, 0},
        {"what", 0, OPTION_STRING, &a->what, "LIST",
         "charts: loss, epoch_loss, val_loss, top1, top5, ema_top1, lr, keep, speed (loss,top1)", 0,
         0},
        {"x", 0, OPTION_CHOICE, &a->axis, "epoch|step|seconds", "the horizontal axis (epoch)", 0,
         0},
        {"smooth", 0, OPTION_COUNT, &a->smooth, "N",
         "smooth over N steps, 1 = none (a hundredth of the longest run)", 1, 1000000},
        {"names", 0, OPTION_STRING, &a->names, "A,B,...", "names of the runs (their folders')", 0,
         0},
        {"title", 0, OPTION_STRING, &a->title, "TEXT", "title above the charts", 0, 0},
        {"term", 0, OPTION_FLAG, &a->term, "",
         "draw as text on stdout (without -o, if it is a terminal)", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "numbers and curves as one JSON document on stdout",
         0, 0},
    };
    const verb_syntax syntax = {
        "plot", "RUN... [-o FILE.svg|FILE.html] [options]",
        "Draws loss and accuracy of training runs over time, each run as a line with its own color and\n"
        "dashes, and prints their last numbers. Without -o it draws in the terminal. RUN is a folder of\n"
        "'renyi train' or a log.jsonl, also of a run that was interrupted or is still going on; A+B is one\n"
        "run in two stages. The page is one self-contained file and shows the values under the pointer.",
        "  renyi plot runs/cls\n"
        "  renyi plot runs/cls runs/col -o loss.svg\n"
        "  renyi plot runs/* -o runs.html --what loss,val_loss,top1 --smooth 50\n"
        "  renyi plot runs/low+runs/high runs/base --x seconds -o time.html\n"
        "  renyi plot runs/cls --json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, paths);
}

int cmd_plot(int argc, char **argv)
{
    plot_arguments a = {.what = "loss,top1", .axis = "epoch"};
    cli_strings paths = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &paths);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    a.command = cli_command_line(argc, argv);
    if (outcome == OPTIONS_GO && !paths.count)
        options_usage_error("plot", "no run given: a folder of 'renyi train' or a log.jsonl");
    else if (outcome == OPTIONS_GO && a.output && !ends_in(a.output, ".svg") &&
             !ends_in(a.output, ".html"))
        options_usage_error("plot", "-o: '%s' must end in .svg or .html", a.output);
    else if (outcome == OPTIONS_GO && a.term && (a.json || a.output))
        options_usage_error("plot", "--term and %s exclude each other", a.json ? "--json" : "-o");
    else if (outcome == OPTIONS_GO)
        code = plot_runs(&a, &paths);
    free(a.command);
    cli_strings_free(&paths);
    return code;
}
