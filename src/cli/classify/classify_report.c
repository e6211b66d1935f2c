/* classify_report.c - see classify_report.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/classify/classify_report.h"

#include "cli/kit/output.h"

#include <math.h>
#include <string.h>

/* Insert into the sorted list; a later index with an equal logit stays behind. */
static uint32_t insert_score(class_score *top, uint32_t count, uint32_t k, class_score score)
{
    uint32_t at = count;

    while (at > 0 && score.probability > top[at - 1].probability) at--;
    if (at == k) return count;
    const uint32_t kept = count < k ? count : k - 1;
    memmove(top + at + 1, top + at, (kept - at) * sizeof *top);
    top[at] = score;
    return kept + 1;
}

uint32_t classify_top(class_score *top, uint32_t k, const float *logits, uint32_t n_classes)
{
    uint32_t count = 0;
    double sum = 0.0;

    for (uint32_t i = 0; i < n_classes; i++) {
        if (isnan(logits[i])) return 0;
        count = insert_score(top, count, k, (class_score){i, (double)logits[i]});
    }
    if (!count || !isfinite(top[0].probability)) return 0;
    const double largest = top[0].probability;
    for (uint32_t i = 0; i < n_classes; i++) sum += exp((double)logits[i] - largest);
    for (uint32_t i = 0; i < count; i++)
        top[i].probability = exp(top[i].probability - largest) / sum;
    return count;
}

static void put_lines(classify_report *report, const photo_result *r)
{
    fputs(cli_bold(stdout), stdout);
    cli_put_clean(stdout, strcmp(r->file, "-") == 0 ? "(stdin)" : r->file);
    printf("%s  %.1f ms\n", cli_plain(stdout), r->ms);
    for (uint32_t i = 0; i < r->n_top; i++) {
        printf("  %s%7.2f %%  ", i ? "" : cli_green(stdout), 100.0 * r->top[i].probability);
        cli_put_clean(stdout, class_name(report->names, r->top[i].index));
        printf("%s\n", i ? "" : cli_plain(stdout));
    }
}

static json_t *result_json(classify_report *report, const photo_result *r)
{
    json_t *top = json_array();

    for (uint32_t i = 0; i < r->n_top; i++)
        json_array_append_new(top,
                              json_pack("{s:i, s:o, s:f}", "index", (int)r->top[i].index, "label",
                                        json_text(class_name(report->names, r->top[i].index)),
                                        "probability", r->top[i].probability));
    return json_pack("{s:o, s:o, s:f, s:f}", "file", json_text(r->file), "top", top, "ms", r->ms,
                     "ms_decode", r->ms_decode);
}

void report_photo(classify_report *report, const photo_result *result)
{
    if (report->results)
        json_array_append_new(report->results, result_json(report, result));
    else
        put_lines(report, result);
}

static json_t *failed_json(const image_inputs *inputs)
{
    json_t *list = json_array();

    for (size_t i = 0; i < inputs->failed.count; i++)
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "file", json_text(inputs->failed.items[i]),
                                        "error", json_text(inputs->reasons.items[i])));
    return list;
}

void report_end(classify_report *report, const classify_header *header, const image_inputs *inputs)
{
    const photo_spec *spec = header->spec;

    if (!report->results) return;
    json_t *preprocessing = json_preprocess(&spec->preprocess, spec->source);
    if (preprocessing)
        json_object_set_new(preprocessing, "changed_by_command_line",
                            json_boolean(spec->is_overridden));
    json_print(json_pack("{s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o}", "model",
                         json_text(header->model), "architecture",
                         json_text(header->info->architecture), "policy", header->policy,
                         "cpu_level", renyi_cpu_name(header->info->cpu), "dtype",
                         renyi_dtype_name(header->info->dtype), "preprocessing", preprocessing,
                         "results", report->results, "failed", failed_json(inputs)));
    report->results = NULL;
}
