/* plot_view.c - reads training runs: names, axis, smoothing, and the curves of every chart.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/plot_view.h"

#include "cli/kit/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* With more runs the unsmoothed lines would cover each other. */
enum { MOST_RAW = 4 };

static const plot_kind plot_kinds[] = {
    {"loss", RENYI_RUN_LOSS, "Training loss", "training loss", 4, 1, 1},
    {"epoch_loss", RENYI_RUN_EPOCH_LOSS, "Training loss of every epoch", "training loss", 4, 1, 0},
    {"val_loss", RENYI_RUN_VAL_LOSS, "Validation loss", "validation loss", 4, 1, 0},
    {"top1", RENYI_RUN_TOP1, "Top-1 accuracy", "top-1 accuracy, %", 2, 1, 0},
    {"top5", RENYI_RUN_TOP5, "Top-5 accuracy", "top-5 accuracy, %", 2, 1, 0},
    {"ema_top1", RENYI_RUN_EMA_TOP1, "Top-1 accuracy of the averaged weights",
     "top-1 accuracy, averaged weights, %", 2, 1, 0},
    {"lr", RENYI_RUN_LR, "Learning rate", "learning rate, millionths", 3, 1e6, 0},
    {"keep", RENYI_RUN_KEEP, "Keep rate", "share of tokens kept by a cut", 3, 1, 0},
    {"speed", RENYI_RUN_SPEED, "Speed", "images per second", 1, 1, 1},
    {NULL, RENYI_RUN_LOSS, NULL, NULL, 0, 0, 0},
};

/* ---- names --------------------------------------------------------------------------------- */

/* The last part of a path; for .../log.jsonl the name of its folder. */
static char *last_part(const char *path, size_t n)
{
    static const char log[] = "/log.jsonl";
    const size_t m = sizeof log - 1;

    while (n > 1 && path[n - 1] == '/') n--;
    if (n > m && memcmp(path + n - m, log, m) == 0) n -= m;
    size_t from = n;
    while (from && path[from - 1] != '/') from--;
    return cli_format("%.*s", (int)(n - from), path + from);
}

/* "runs/a+runs/b" -> "a+b" */
static char *short_name(const char *path)
{
    struct stat st;
    char *name = cli_copy("");

    if (stat(path, &st) == 0) {
        free(name);
        return last_part(path, strlen(path));
    }
    for (const char *at = path;; at++) {
        const size_t n = strcspn(at, "+");
        char *part = last_part(at, n), *longer = cli_format("%s%s%s", name, *name ? "+" : "", part);
        free(part);
        free(name);
        name = longer;
        at += n;
        if (!*at) return name;
    }
}

static int given_names(plot_view *v, const char *text)
{
    const char *at = text;

    for (uint32_t i = 0; i < v->n; i++) {
        const size_t n = strcspn(at, ",");
        const int is_last = i + 1 == v->n;
        if (!n || (at[n] == 0) != is_last)
            return options_usage_error("plot", "--names: %u runs need %u names separated by commas",
                                       v->n, v->n);
        v->names[i] = cli_format("%.*s", (int)n, at);
        at += n + 1;
    }
    return CLI_OK;
}

static int make_names(plot_view *v, const cli_strings *paths)
{
    if (v->a->names) return given_names(v, v->a->names);
    for (uint32_t i = 0; i < v->n; i++) v->names[i] = short_name(paths->items[i]);
    for (uint32_t i = 0; i < v->n; i++) { /* the whole path where names are equal */
        int is_shared = 0;
        char *own = short_name(paths->items[i]);
        for (uint32_t k = 0; k < v->n; k++) {
            char *other = short_name(paths->items[k]);
            is_shared |= k != i && strcmp(own, other) == 0;
            free(other);
        }
        free(own);
        if (!is_shared) continue;
        free(v->names[i]);
        v->names[i] = cli_copy(paths->items[i]);
    }
    return CLI_OK;
}

/* ---- what is shown ------------------------------------------------------------------------- */

static int add_kind(plot_view *v, const char *name, size_t n)
{
    char all[256] = "";

    for (const plot_kind *k = plot_kinds; k->name; k++) {
        if (strlen(k->name) == n && memcmp(k->name, name, n) == 0) {
            if (v->n_charts == RENYI_REPORT_MAX_PANELS)
                return options_usage_error("plot", "--what: more than %d charts",
                                           RENYI_REPORT_MAX_PANELS);
            v->charts[v->n_charts++].kind = k;
            return CLI_OK;
        }
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", *all ? ", " : "", k->name);
    }
    return options_usage_error("plot", "--what: '%.*s' is not one of %s", (int)n, name, all);
}

static int choose_kinds(plot_view *v)
{
    for (const char *at = v->a->what;; at++) {
        const size_t n = strcspn(at, ",");
        const int code = add_kind(v, at, n);
        if (code) return code;
        at += n;
        if (!*at) return CLI_OK;
    }
}

static void choose_axis(plot_view *v)
{
    double seconds = 0, epochs = 0;

    for (uint32_t i = 0; i < v->n; i++) {
        seconds = fmax(seconds, v->infos[i].seconds);
        epochs = fmax(epochs, v->infos[i].epochs);
    }
    v->x_scale = 1;
    if (strcmp(v->a->axis, "step") == 0) {
        v->axis = RENYI_RUN_BY_STEP;
        v->x_label = "updates";
    } else if (strcmp(v->a->axis, "seconds") == 0) {
        v->axis = RENYI_RUN_BY_SECONDS;
        v->x_label = seconds > 7200 ? "hours" : seconds > 120 ? "minutes" : "seconds";
        v->x_scale = seconds > 7200 ? 3600 : seconds > 120 ? 60 : 1;
        v->x_decimals = 2;
    } else {
        v->axis = RENYI_RUN_BY_EPOCH;
        v->x_label = "epochs";
        v->x_decimals = epochs > 3 ? 2 : 3;
    }
}

/* A hundredth of the longest run removes enough noise to see the lines. */
static uint64_t choose_smooth(const plot_view *v)
{
    uint64_t most = 0;

    if (v->a->smooth) return v->a->smooth;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->infos[i].n_steps > most) most = v->infos[i].n_steps;
    return most / 100 > 1 ? most / 100 : 1;
}

/* ---- curves -------------------------------------------------------------------------------- */

static int add_curve(plot_view *v, plot_chart *chart, uint32_t run, int is_raw)
{
    renyi_run_curve *to = is_raw ? &chart->raw[run] : &chart->lines[run];
    const uint64_t smooth = chart->kind->is_smoothed && !is_raw ? v->smooth : 1;
    renyi_error err = {0};

    if (renyi_run_log_get_curve(to, v->logs[run], chart->kind->what, v->axis, smooth, 0, &err)) {
        cli_error("%s: %s", v->names[run], err.message);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < to->n; i++) {
        to->x[i] /= v->x_scale;
        to->y[i] *= chart->kind->scale;
    }
    if (to->n)
        chart->curves[chart->n_curves++] =
            (renyi_report_curve){run, is_raw != 0, to->x, to->y, to->n};
    return CLI_OK;
}

/* With many steps the thin line is a mean, too: the library returns at most a thousand points. */
static char *describe_means(const plot_view *v, int has_raw)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < v->n; i++)
        if (v->infos[i].n_steps > most) most = v->infos[i].n_steps;
    const unsigned long long thin = (most + 999) / 1000, thick = v->smooth;
    if (!has_raw) return cli_format("Means of %llu logged steps.", thick);
    if (thin > 1)
        return cli_format("Means of %llu logged steps; thin lines: of %llu.", thick, thin);
    return cli_format("Means of %llu logged steps; thin lines: every step.", thick);
}

static int make_chart(plot_view *v, plot_chart *chart)
{
    const int has_mean = chart->kind->is_smoothed && v->smooth > 1,
              has_raw = has_mean && v->n <= MOST_RAW;

    for (uint32_t i = 0; i < v->n; i++)
        if (add_curve(v, chart, i, 0) || (has_raw && add_curve(v, chart, i, 1))) return CLI_FAILED;
    if (has_mean) chart->caption = describe_means(v, has_raw);
    if (!chart->n_curves) cli_warn("no run has %s", chart->kind->y_label);
    return CLI_OK;
}

static int open_run(plot_view *v, const char *path)
{
    renyi_error err = {0};
    renyi_run_info *info = &v->infos[v->n];

    if (renyi_run_log_open(&v->logs[v->n], path, NULL, &err)) {
        cli_error("%s", err.message);
        return CLI_FAILED;
    }
    renyi_run_log_get_info(v->logs[v->n++], info);
    if (info->n_bad)
        cli_warn(
            "%s: %llu lines of the log cannot be read and are left out; the first is line %llu",
            path, (unsigned long long)info->n_bad, (unsigned long long)info->first_bad);
    return CLI_OK;
}

int plot_view_make(plot_view *v, const plot_arguments *a, const cli_strings *paths)
{
    int code = CLI_OK;

    *v = (plot_view){.a = a};
    if (paths->count > RENYI_REPORT_MAX_RUNS)
        return options_usage_error("plot", "%zu runs; at most %d can be distinguished",
                                   paths->count, RENYI_REPORT_MAX_RUNS);
    code = choose_kinds(v);
    for (size_t i = 0; !code && i < paths->count; i++) code = open_run(v, paths->items[i]);
    if (!code) code = make_names(v, paths);
    if (code) return code;
    choose_axis(v);
    v->smooth = choose_smooth(v);
    for (uint32_t i = 0; !code && i < v->n_charts; i++) code = make_chart(v, &v->charts[i]);
    return code;
}

void plot_view_free(plot_view *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        renyi_run_log_free(v->logs[i]);
        free(v->names[i]);
    }
    for (uint32_t i = 0; i < v->n_charts; i++) {
        for (uint32_t k = 0; k < v->n; k++) {
            renyi_run_curve_free(&v->charts[i].lines[k]);
            renyi_run_curve_free(&v->charts[i].raw[k]);
        }
        free(v->charts[i].caption);
    }
}
