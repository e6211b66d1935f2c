/* sweep_report.c - the results of a sweep: table, JSON, CSV, and the folder of -o.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/sweep/sweep_report.h"

#include "cli/eval/eval_report.h"
#include "cli/kit/files.h"
#include "cli/kit/output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the table
 * ----------------------------------------------------------------------------------- */

/* Keys that are always shown. */
static int is_important(const char *key)
{
    static const char *const kept[] = {
        "keep=", "p=", "tokens=", "r=", "layers=", "metric=", "n=", "c="};

    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strncmp(key, kept[i], strlen(kept[i])) == 0) return 1;
    return 0;
}

/* Does a text mean `full`? The weights of a fused token are "auto" until the model is known. */
static int means_same(const char *text, const char *full)
{
    char got[RENYI_POLICY_MAX];
    const char *automatic;

    if (renyi_policy_check(text, NULL, got, sizeof got, NULL) != RENYI_OK) return 0;
    if (strcmp(got, full) == 0) return 1;
    if (!(automatic = strstr(got, " weights=auto"))) return 0;
    char *resolved = cli_format("%.*s weights=cls%s", (int)(automatic - got), got,
                                automatic + strlen(" weights=auto"));
    const int is_same = strcmp(resolved, full) == 0;
    free(resolved);
    return is_same;
}

char *sweep_short_policy(const char *full)
{
    char *text = cli_copy(full);

    for (const char *blank = strchr(text, ' '); blank;) {
        const char *end = blank + 1 + strcspn(blank + 1, " ");
        char *without = cli_format("%.*s%s", (int)(blank - text), text, end);
        if (!is_important(blank + 1) && means_same(without, full)) {
            const ptrdiff_t at = blank - text;
            free(text);
            text = without;
            blank = text[at] ? text + at : NULL;
        } else {
            free(without);
            blank = *end ? end : NULL;
        }
    }
    return text;
}

/* Difference to the dense model at its own size; "~": within the noise. */
static void put_difference(const sweep_view *v, size_t i)
{
    renyi_eval_pair p;

    if (v->baseline[i] == SWEEP_NO_POINT || v->baseline[i] == i || !v->points[i].result.images) {
        printf("%9s", "");
        return;
    }
    renyi_sweep_get_pair(v->sweep, v->baseline[i], i, &p);
    printf("%+8.2f%s", p.difference, p.is_noise ? "~" : " ");
}

static void put_row(const sweep_view *v, size_t i, int width)
{
    const renyi_sweep_point *p = &v->points[i];
    const renyi_eval_result *r = &p->result;
    char *policy = sweep_short_policy(r->policy);
    const int front = v->on_gmacs[i] || v->on_ms[i];

    printf("%s%s%s  ", front ? cli_green(stdout) : "", v->on_gmacs[i] ? "M" : " ",
           v->on_ms[i] ? "T" : " ");
    cli_print("%4zu  %-*.*s %5u", i + 1, width, width, v->labels[i], p->image_size);
    eval_put_real(9, 2, r->top1);
    if (r->images)
        printf("  %5.1f to %5.1f", r->top1_range.low, r->top1_range.high);
    else
        printf("  %14s", "");
    put_difference(v, i);
    eval_put_real(9, 2, r->top5);
    eval_put_real(8, 2, r->gmacs);
    eval_put_real(9, 2, r->ms_model);
    printf("  %s%s\n", policy, front ? cli_plain(stdout) : "");
    free(policy);
}

static void put_summary(const sweep_view *v)
{
    renyi_dataset_info d;
    renyi_eval_times t;

    renyi_sweep_get_data(v->sweep, &d);
    renyi_sweep_get_times(v->sweep, &t);
    if (!v->a->dry_run)
        printf(
            "\nM T   on the Pareto front of accuracy against GMACs, against milliseconds of the model\n"
            "diff  points against the same model, dense, at its own size (or the largest); ~ within the "
            "noise of these photos\n");
    printf("\n%zu points on %llu photos", v->n, (unsigned long long)d.n_images);
    if (renyi_sweep_failure_count(v->sweep))
        printf(", %zu of them unreadable", renyi_sweep_failure_count(v->sweep));
    if (renyi_sweep_skip_count(v->sweep))
        printf("; %zu points cannot be run", renyi_sweep_skip_count(v->sweep));
    if (!v->a->dry_run)
        printf("; %.1f s, %.1f of them in the model; peak memory %.0f MB", t.seconds,
               t.seconds_model, v->peak_rss_mb);
    putchar('\n');
}

void sweep_table(const sweep_view *v)
{
    int width = 5;

    for (size_t i = 0; i < v->n; i++)
        if ((int)strlen(v->labels[i]) > width) width = (int)strlen(v->labels[i]);
    if (width > 44) width = 44;
    printf(
        "%s       #  %-*s  size  top-1 %%      95 %% range     diff  top-5 %%   GMACs ms model  policy%s\n",
        cli_bold(stdout), width, "model", cli_plain(stdout));
    for (size_t i = 0; i < v->n; i++) put_row(v, v->order[i], width);
    for (size_t i = 0; i < v->n; i++)
        eval_put_cascade(v->order[i] + 1, &v->points[v->order[i]].result);
    put_summary(v);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *tokens_json(const renyi_sweep_point *p)
{
    json_t *list = json_array();

    for (uint32_t b = 0; b < p->n_blocks; b++)
        json_array_append_new(list, json_integer(p->tokens[b]));
    return list;
}

static json_t *point_json(const sweep_view *v, size_t i)
{
    const renyi_sweep_point *p = &v->points[i];
    const renyi_eval_result *r = &p->result;
    json_t *object =
        json_pack("{s:o, s:o, s:s, s:i, s:i, s:s, s:I, s:I, s:o, s:[f,f], s:o, s:[f,f], s:o}",
                  "model", json_text(p->model), "architecture", json_text(p->architecture), "dtype",
                  renyi_dtype_name(p->dtype), "img_size", (int)p->image_size, "native_size",
                  (int)p->native_size, "policy", r->policy, "images", (json_int_t)r->images,
                  "failed", (json_int_t)r->failed, "top1", json_number(r->top1), "top1_range",
                  r->top1_range.low, r->top1_range.high, "top5", json_number(r->top5), "top5_range",
                  r->top5_range.low, r->top5_range.high, "loss", json_number(r->loss));
    json_t *rest =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:b, s:b, s:b}", "gmacs",
                  json_number(r->gmacs), "gmacs_executed", json_number(r->gmacs_executed),
                  "ms_model", json_number(r->ms_model), "ms_total", json_number(r->ms_total),
                  "images_per_second", json_number(r->images_per_second), "params",
                  (json_int_t)p->n_params, "tokens", tokens_json(p), "tokens_are_upper_bound",
                  p->is_bound, "front_gmacs", v->on_gmacs[i], "front_ms", v->on_ms[i]);

    if (object && rest) json_object_update(object, rest);
    if (object && r->is_cascade)
        json_object_set_new(object, "second_share", json_number(r->second_share));
    json_decref(rest);
    return object;
}

static json_t *pairs_json(const sweep_view *v)
{
    json_t *list = json_array();

    for (size_t i = 0; i < v->n_pairs; i++) {
        const renyi_report_pair *p = &v->pairs[i];
        const renyi_eval_pair pair = {.both = p->both,
                                      .only_a = p->only_a,
                                      .only_b = p->only_b,
                                      .none = p->neither,
                                      .same = p->same,
                                      .difference = p->difference,
                                      .p_value = p->p_value,
                                      .is_noise = p->is_noise};
        json_array_append_new(list, eval_pair_json(json_integer(p->a), json_integer(p->b), &pair));
    }
    return list;
}

static json_t *skipped_json(const renyi_sweep *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < renyi_sweep_skip_count(s); i++) {
        renyi_sweep_skip k;
        renyi_sweep_get_skip(s, i, &k);
        json_array_append_new(list, json_pack("{s:o, s:i, s:s, s:o}", "model", json_text(k.model),
                                              "img_size", (int)k.image_size, "policy", k.policy,
                                              "reason", json_text(k.message)));
    }
    return list;
}

static json_t *failed_json(const renyi_sweep *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < renyi_sweep_failure_count(s); i++) {
        renyi_eval_failure f;
        renyi_sweep_get_failure(s, i, &f);
        json_array_append_new(list, eval_failure_json(&f));
    }
    return list;
}

json_t *sweep_json(const sweep_view *v)
{
    json_t *results = json_array();
    renyi_dataset_info d;
    renyi_eval_times t;

    renyi_sweep_get_data(v->sweep, &d);
    renyi_sweep_get_times(v->sweep, &t);
    for (size_t i = 0; i < v->n; i++) json_array_append_new(results, point_json(v, i));
    json_t *document = json_pack(
        "{s:o, s:o, s:o, s:I, s:I, s:I, s:b, s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o}",
        "command", json_text(v->a->command), "machine", json_text(v->machine), "data",
        json_text(v->a->e.data), "photos", (json_int_t)d.n_images, "found", (json_int_t)d.n_found,
        "left_out", (json_int_t)d.n_left_out, "interrupted", v->is_interrupted, "resumed",
        (json_int_t)t.resumed, "seconds", t.seconds, "seconds_model", t.seconds_model,
        "seconds_decode", t.seconds_decode, "peak_rss_mb", v->peak_rss_mb, "results", results,
        "pairs", pairs_json(v), "skipped", skipped_json(v->sweep), "failed", failed_json(v->sweep));
    if (document) eval_run_json(document, &v->a->e, &d, &t);
    return document;
}

/* ---- CSV ----------------------------------------------------------------------------------- */

static void csv_row(FILE *f, const sweep_view *v, const renyi_eval_times *t, size_t i)
{
    const renyi_sweep_point *p = &v->points[i];
    const eval_csv_frame frame = {.title = v->titles[i],
                                  .interpolation = interpolation_name(p->preprocess.interpolation),
                                  .image_size = p->image_size,
                                  .params = (double)p->n_params,
                                  .crop_pct = p->preprocess.crop_pct};

    eval_csv_result(f, &frame, &p->result);
    fprintf(f, ",%d,%d,", v->on_gmacs[i], v->on_ms[i]);
    for (uint32_t b = 0; b < p->n_blocks; b++) fprintf(f, "%s%u", b ? " " : "", p->tokens[b]);
    fprintf(f, ",%u,%u,%s\n", t->n_threads, t->batch, renyi_dtype_name(p->dtype));
}

/* The columns of renyi eval (timm's first), then the fronts and the tokens after each block. Owned.
 */
static char *sweep_csv(const sweep_view *v)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    renyi_eval_times t;

    if (!f) return cli_copy("");
    renyi_sweep_get_times(v->sweep, &t);
    fputs(EVAL_CSV_COLUMNS ",front_gmacs,front_ms,tokens,threads,batch_size,dtype\n", f);
    for (size_t i = 0; i < v->n; i++) csv_row(f, v, &t, i);
    fclose(f);
    return text;
}

/* ---- the folder ---------------------------------------------------------------------------- */

static int write_file(const sweep_view *v, const char *name, const char *bytes, size_t size)
{
    char *path = cli_format("%s/%s", v->a->output, name);
    const int code = write_whole_file(path, bytes, size);

    free(path);
    return code;
}

static int write_json(const sweep_view *v)
{
    json_t *document = sweep_json(v);
    char *text = document ? json_dumps(document, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;

    json_decref(document);
    if (!text) {
        cli_error("results.json: out of memory");
        return -1;
    }
    const int code = write_file(v, "results.json", text, strlen(text));
    free(text);
    return code;
}

static int write_csv(const sweep_view *v)
{
    char *text = sweep_csv(v);
    const int code = write_file(v, "results.csv", text, strlen(text));

    free(text);
    return code;
}

static int write_text(const sweep_view *v, const char *name, renyi_status status,
                      renyi_report_text *text, const renyi_error *err)
{
    if (status != RENYI_OK) {
        cli_error("%s: %s", name, err->message);
        return -1;
    }
    const int code = write_file(v, name, text->bytes, text->size);
    renyi_report_text_free(text);
    return code;
}

static int write_chart(const sweep_view *v, const char *name, renyi_chart chart)
{
    renyi_report_text text = {0};
    renyi_error err = {0};
    const renyi_status status = renyi_report_svg(&text, &v->report, chart, &err);

    return write_text(v, name, status, &text, &err);
}

static int write_page(const sweep_view *v)
{
    renyi_report_text text = {0};
    renyi_error err = {0};
    const renyi_status status = renyi_report_html(&text, &v->report, &err);

    return write_text(v, "report.html", status, &text, &err);
}

int sweep_folder_make(const sweep_arguments *a)
{
    if (!a->output) return 0;
    if (mkdir(a->output, 0777) && errno != EEXIST) {
        cli_error("%s: %s", a->output, strerror(errno));
        return -1;
    }
    char *path = cli_format("%s/results.csv", a->output);
    const int code = check_writable(path);

    free(path);
    return code;
}

int sweep_folder_write(const sweep_view *v)
{
    if (!v->a->output) return 0;
    if (write_csv(v) || write_json(v) || write_page(v) ||
        write_chart(v, "accuracy-gmacs.svg", RENYI_CHART_GMACS) ||
        write_chart(v, "accuracy-ms.svg", RENYI_CHART_MS) ||
        write_chart(v, "tokens.svg", RENYI_CHART_TOKENS))
        return -1;
    cli_note("%s: results.csv, results.json, samples.jsonl, report.html, accuracy-gmacs.svg, "
             "accuracy-ms.svg, tokens.svg",
             v->a->output);
    return 0;
}
