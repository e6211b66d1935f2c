/* plot_report.c - see plot_view.h: the table of runs, JSON, SVG and HTML.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/files.h"
#include "cli/kit/output.h"
#include "cli/train/plot_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ----------------------------------------------------------------------------- */

static plot_column *add_column(plot_view *v, const char *name, int is_text)
{
    plot_column *c = &v->columns[v->n_columns++];

    c->name = name;
    c->is_text = is_text;
    return c;
}

/* A column that would be empty is left out. */
static void add_texts(plot_view *v, const char *name, size_t offset)
{
    plot_column *c = add_column(v, name, 1);
    int n = 0;

    for (uint32_t i = 0; i < v->n; i++) {
        const char *text;
        memcpy(&text, (const char *)&v->infos[i] + offset, sizeof text);
        if (text) c->cells[i] = cli_copy(text), n++;
    }
    if (!n) v->n_columns--;
}

static void add_numbers(plot_view *v, const char *name, size_t offset, int decimals)
{
    plot_column *c = add_column(v, name, 0);
    int n = 0;

    for (uint32_t i = 0; i < v->n; i++) {
        double value;
        memcpy(&value, (const char *)&v->infos[i] + offset, sizeof value);
        if (isfinite(value)) c->cells[i] = cli_format("%.*f", decimals, value), n++;
    }
    if (!n) v->n_columns--;
}

static void add_best(plot_view *v)
{
    plot_column *c = add_column(v, "best top-1 % (epochs)", 0);
    int n = 0;

    for (uint32_t i = 0; i < v->n; i++)
        if (isfinite(v->infos[i].best_top1))
            c->cells[i] = cli_format("%.2f (%.0f)", v->infos[i].best_top1, v->infos[i].best_epoch),
            n++;
    if (!n) v->n_columns--;
}

static char *duration(double seconds)
{
    const unsigned long long s = (unsigned long long)seconds;

    if (seconds < 60) return cli_format("%.1f s", seconds);
    if (s < 3600) return cli_format("%llu:%02llu min", s / 60, s % 60);
    return cli_format("%llu:%02llu h", s / 3600, s / 60 % 60);
}

static void add_time(plot_view *v)
{
    plot_column *c = add_column(v, "time", 0);
    int n = 0;

    for (uint32_t i = 0; i < v->n; i++)
        if (v->infos[i].seconds < 1e12) c->cells[i] = duration(v->infos[i].seconds), n++;
    if (!n) v->n_columns--;
}

void plot_columns_make(plot_view *v)
{
    add_numbers(v, "epochs", offsetof(renyi_run_info, epochs), v->x_decimals == 3 ? 2 : 1);
    add_numbers(v, "updates", offsetof(renyi_run_info, steps), 0);
    add_numbers(v, "training loss", offsetof(renyi_run_info, loss), 4);
    add_numbers(v, "validation loss", offsetof(renyi_run_info, val_loss), 4);
    add_numbers(v, "top-1 %", offsetof(renyi_run_info, top1), 2);
    add_best(v);
    add_numbers(v, "top-5 %", offsetof(renyi_run_info, top5), 2);
    add_numbers(v, "images/s", offsetof(renyi_run_info, images_per_second), 1);
    add_time(v);
    add_texts(v, "policy", offsetof(renyi_run_info, policy)); /* long: behind the numbers */
}

void plot_table(const plot_view *v)
{
    text_table t = {0};

    text_table_column(&t, TEXT_LEFT, "run");
    for (uint32_t k = 0; k < v->n_columns; k++)
        text_table_column(&t, v->columns[k].is_text ? TEXT_LEFT : TEXT_RIGHT, "%s",
                          v->columns[k].name);
    for (uint32_t i = 0; i < v->n; i++) {
        text_table_cell(&t, "%s", v->names[i]);
        for (uint32_t k = 0; k < v->n_columns; k++)
            text_table_cell(&t, "%s", v->columns[k].cells[i] ? v->columns[k].cells[i] : "-");
    }
    text_table_put(&t, 0, 0);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *numbers(const double *values, size_t n, double scale)
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
        json_object_set_new(curves, chart->kind->word,
                            json_pack("{s:o, s:o}", "x", numbers(c->x, c->n, v->x_scale), "y",
                                      numbers(c->y, c->n, 1 / chart->kind->scale)));
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

json_t *plot_json(const plot_view *v)
{
    json_t *runs = json_array();

    for (uint32_t i = 0; i < v->n; i++) json_array_append_new(runs, run_json(v, i));
    return json_pack("{s:s, s:I, s:o}", "x", v->a->axis, "smooth", (json_int_t)v->smooth, "runs",
                     runs);
}

/* ---- files --------------------------------------------------------------------------------- */

static int ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);

    return n > m && strcmp(path + n - m, ending) == 0;
}

int plot_draw(const plot_view *v)
{
    renyi_report_panel panels[RENYI_REPORT_MAX_PANELS];
    renyi_report_column columns[PLOT_MAX_COLUMNS];
    renyi_report_text text = {0};
    renyi_error err = {0};

    for (uint32_t i = 0; i < v->n_charts; i++) {
        const plot_chart *c = &v->charts[i];
        panels[i] =
            (renyi_report_panel){c->kind->title, c->caption,        v->x_label,  c->kind->y_label,
                                 v->x_decimals,  c->kind->decimals, c->n_curves, c->curves};
    }
    for (uint32_t i = 0; i < v->n_columns; i++)
        columns[i] =
            (renyi_report_column){v->columns[i].name, (const char *const *)v->columns[i].cells,
                                  (uint32_t)v->columns[i].is_text};
    const renyi_report_curves r = {.struct_size = sizeof r,
                                   .n_runs = v->n,
                                   .n_panels = v->n_charts,
                                   .n_columns = v->n_columns,
                                   .runs = (const char *const *)v->names,
                                   .panels = panels,
                                   .columns = columns,
                                   .title = v->a->title,
                                   .command = v->a->command};
    const renyi_status st = ends_in(v->a->output, ".html")
                                ? renyi_report_curves_html(&text, &r, &err)
                                : renyi_report_curves_svg(&text, &r, &err);
    if (st) {
        cli_error("%s: %s", v->a->output, err.message);
        return -1;
    }
    const int code = write_whole_file(v->a->output, text.bytes, text.size);
    if (!code) cli_note("%s: %zu bytes", v->a->output, text.size);
    renyi_report_text_free(&text);
    return code;
}
