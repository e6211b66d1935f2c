/* classify_output.c - prints the best classes of images: lines for people, JSON, JSON lines or CSV.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "cli/classify/classify.h"
#include "cli/kit/files.h"
#include "cli/kit/output.h"
#include "cli/kit/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one image ----------------------------------------------------------------------------- */

/* By the largest logit: probabilities of a softmax add up to 1, whatever the image shows. */
static int is_none(const classify_job *job, const image_result *r)
{
    return r->top[0].logit < job->info->none_below;
}

static void put_lines(const classify_job *job, const image_result *r)
{
    fputs(cli_bold(stdout), stdout);
    cli_put_clean(stdout, strcmp(r->file, "-") == 0 ? "(stdin)" : r->file);
    printf("%s  %.1f ms\n", cli_plain(stdout), r->ms);
    if (is_none(job, r))
        printf("  none of the %u classes: the largest logit is %.2f, below %.2f; the nearest:\n",
               job->info->n_classes, r->top[0].logit, job->info->none_below);
    for (uint32_t i = 0; i < r->n_top; i++) {
        printf("  %s%7.2f %%  ", i ? "" : cli_green(stdout), 100.0 * r->top[i].probability);
        cli_put_clean(stdout, class_name(job->names, r->top[i].index));
        printf("%s\n", i ? "" : cli_plain(stdout));
    }
}

static json_t *result_json(const classify_job *job, const image_result *r)
{
    json_t *top = json_array();

    for (uint32_t i = 0; i < r->n_top; i++)
        json_array_append_new(
            top, json_pack("{s:i, s:o, s:f, s:f}", "index", (int)r->top[i].index, "label",
                           json_text(class_name(job->names, r->top[i].index)), "probability",
                           r->top[i].probability, "logit", r->top[i].logit));
    json_t *none = isnan(job->info->none_below) ? json_null() : json_boolean(is_none(job, r));
    return json_pack("{s:o, s:o, s:o, s:f, s:f}", "file", json_text(r->file), "top", top,
                     "none_of_these", none, "ms", r->ms, "ms_decode", r->ms_decode);
}

#define CSV_COLUMNS "file,rank,index,label,probability,logit,none_of_these,ms,ms_decode,error\n"

/* One row per class, best first. */
static void put_csv(FILE *f, const classify_job *job, const image_result *r)
{
    const char *none = isnan(job->info->none_below) ? "" : is_none(job, r) ? "1" : "0";

    for (uint32_t i = 0; i < r->n_top; i++) {
        csv_cell(f, r->file);
        fprintf(f, ",%u,%u,", i + 1, r->top[i].index);
        csv_cell(f, class_name(job->names, r->top[i].index));
        csv_real(f, 9, r->top[i].probability);
        csv_real(f, 6, r->top[i].logit);
        fprintf(f, ",%s", none);
        csv_real(f, 3, r->ms);
        csv_real(f, 3, r->ms_decode);
        fputs(",\n", f);
    }
}

void classify_put(classify_output *out, const classify_job *job, const image_result *r)
{
    if (job->form == CLASSIFY_JSON) json_array_append_new(out->results, result_json(job, r));
    if (job->form == CLASSIFY_JSONL) json_print_line(result_json(job, r));
    if (job->form == CLASSIFY_TEXT) put_lines(job, r);
    if (out->csv) put_csv(out->csv, job, r);
}

void classify_put_failures(classify_output *out, const classify_job *job,
                           const image_inputs *inputs)
{
    for (; out->n_told < inputs->failed.count; out->n_told++) {
        const char *file = inputs->failed.items[out->n_told];
        const char *reason = inputs->reasons.items[out->n_told];
        if (job->form == CLASSIFY_JSONL) json_print_line(json_failure(file, reason));
        if (!out->csv) continue;
        csv_cell(out->csv, file);
        fputs(",,,,,,,,,", out->csv);
        csv_cell(out->csv, reason);
        putc('\n', out->csv);
    }
}

/* ---- all of them --------------------------------------------------------------------------- */

int classify_output_open(classify_output *out, const classify_job *job)
{
    *out = (classify_output){.results = job->form == CLASSIFY_JSON ? json_array() : NULL};
    if (job->form == CLASSIFY_CSV) out->csv = stdout;
    if (job->csv && !(out->csv = open_memstream(&out->bytes, &out->n_bytes))) {
        cli_error("%s: out of memory", job->csv);
        return -1;
    }
    if (out->csv) fputs(CSV_COLUMNS, out->csv);
    return 0;
}

/* The document of --json; `results` is consumed. */
static void put_document(const classify_job *job, json_t *results, const image_inputs *inputs)
{
    const image_spec *spec = job->spec;
    json_t *preprocessing = image_spec_json(spec);

    if (preprocessing)
        json_object_set_new(preprocessing, "changed_by_command_line",
                            json_boolean(spec->is_overridden));
    json_print(json_pack("{s:o, s:o, s:s, s:s, s:s, s:s, s:o, s:b, s:o, s:o}", "model",
                         json_text(job->model), "architecture", json_text(job->info->architecture),
                         "policy", renyi_session_policy(job->session), "cpu_level",
                         renyi_cpu_name(job->info->cpu), "dtype",
                         renyi_dtype_name(job->info->dtype), "probabilities",
                         job->info->is_sigmoid ? "sigmoid" : "softmax", "preprocessing",
                         preprocessing, "interrupted", was_interrupted(), "results", results,
                         "failed", json_failures(&inputs->failed, &inputs->reasons)));
}

int classify_output_close(classify_output *out, const classify_job *job, const image_inputs *inputs,
                          int is_good)
{
    const int is_buffer = out->csv && out->csv != stdout;
    int code = 0;

    if (is_good && out->results)
        put_document(job, out->results, inputs);
    else
        json_decref(out->results);
    if (is_buffer && fclose(out->csv)) {
        cli_error("%s: out of memory", job->csv);
        code = -1;
    } else if (is_buffer && is_good) {
        code = write_whole_file(job->csv, out->bytes, out->n_bytes);
    }
    free(out->bytes);
    return code;
}
