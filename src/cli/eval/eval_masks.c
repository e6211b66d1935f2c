/* eval_masks.c - renyi eval --masks: checks the options, runs the study and reports it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_masks.h"

#include "cli/eval/eval_job.h"
#include "cli/kit/output.h"
#include "cli/kit/progress.h"

#include <stdlib.h>
#include <string.h>

/* ---- options ------------------------------------------------------------------------------- */

typedef struct given_option {
    const char *name;
    int is_given;
} given_option;

static const char *first_given(const given_option *options, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (options[i].is_given) return options[i].name;
    return NULL;
}

int eval_masks_check(const eval_arguments *a)
{
    const given_option only_with[] = {{"--metrics", a->masks.metrics != NULL},
                                      {"--mask-kind", a->masks.kind != NULL},
                                      {"--mask-border", a->masks.border != NULL},
                                      {"--mask-keep", a->masks.keep.given}};
    const given_option labels[] = {{"--ground-truth", a->ground_truth != NULL},
                                   {"--class-map", a->class_map != NULL},
                                   {"--real-labels", a->real_labels != NULL},
                                   {"--valid-labels", a->valid_labels != NULL}};
    const given_option not_with[] = {{"--log-samples", a->log_samples != NULL},
                                     {"--resume", a->resume},
                                     {"--shard", a->shard != NULL},
                                     {"--workers", a->workers != 0}};
    const char *bad = NULL;

    if (!a->masks.folder) {
        if (!(bad = first_given(only_with, 4))) return 0;
        options_usage_error("eval", "%s is for --masks DIR", bad);
    } else if ((bad = first_given(labels, 4))) {
        options_usage_error("eval", "%s: --masks uses no labels", bad);
    } else if ((bad = first_given(not_with, 4))) {
        options_usage_error("eval", "%s cannot be combined with --masks", bad);
    } else if (a->masks.keep.given &&
               !(a->masks.keep.values[0] > 0.0 && a->masks.keep.values[0] <= 1.0)) {
        options_usage_error("eval", "option '--mask-keep': %g is not above 0 and at most 1",
                            a->masks.keep.values[0]);
    } else {
        return 0;
    }
    return -1;
}

/* "cls, col n=4" -> its items */
static void split_metrics(cli_strings *out, const char *list)
{
    while (list && *list) {
        const size_t blanks = strspn(list, " ");
        const size_t length = strcspn(list += blanks, ",");
        cli_strings_add(out, cli_format("%.*s", (int)length, list));
        list += length + (list[length] == ',');
    }
}

/* Without --prune, or with none alone, no policy is studied. */
static int has_policies(const eval_arguments *a)
{
    return a->policies.count > 1 || strcmp(a->policies.items[0], "none") != 0;
}

/* ---- progress ------------------------------------------------------------------------------ */

typedef struct masks_progress {
    progress_bar bar;
    uint64_t log_freq, next_line; /* images */
    double start_ms;
    int is_started;
} masks_progress;

static void on_failure(void *user, const char *file, const char *message)
{
    masks_progress *p = user;

    progress_end(&p->bar);
    cli_error("%s: %s", file, message);
    p->is_started = 0;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    masks_progress *p = user;
    const double seconds = (cli_now_ms() - p->start_ms) * 1e-3;

    if (!p->is_started) progress_start(&p->bar, "masks", total, 1);
    p->is_started = 1;
    progress_text(&p->bar, ", %.1f/s", seconds > 0 ? (double)done / seconds : 0.0);
    progress_update(&p->bar, done);
    if (!p->bar.is_on && done >= p->next_line) {
        cli_note("masks: [%llu/%llu]  Time: %.1fs (%.1f/s)", (unsigned long long)done,
                 (unsigned long long)total, seconds, (double)done / seconds);
        while (p->next_line <= done) p->next_line += p->log_freq;
    }
    return was_interrupted();
}

/* ---- running ------------------------------------------------------------------------------- */

static int report_study(masks_report *r)
{
    renyi_masks_get_info(r->study, &r->info);
    if (r->info.n_trimap && r->info.n_binary)
        cli_warn(
            "%llu masks look like trimaps and %llu like 0 and 1; if they are all of one kind, give "
            "--mask-kind",
            (unsigned long long)r->info.n_trimap, (unsigned long long)r->info.n_binary);
    if (r->a->json)
        json_print(masks_report_json(r));
    else
        masks_report_table(r);
    if (r->is_interrupted) cli_error("interrupted; the results are of the images so far");
    if (masks_results_write(r)) return CLI_FAILED;
    if (!r->info.images || r->is_interrupted) {
        if (!r->info.images) cli_error("no image with both object and background was run");
        return CLI_FAILED;
    }
    return r->info.failed ? CLI_PARTIAL : CLI_OK;
}

static int run_study(masks_report *r, renyi_masks *study, masks_progress *progress)
{
    renyi_error err = {0};

    catch_interrupt();
    progress->start_ms = cli_now_ms();
    const renyi_status status = renyi_masks_run(study, &err);
    progress_end(&progress->bar);
    r->is_interrupted = status == RENYI_ERR_ABORTED;
    if (status != RENYI_OK && !r->is_interrupted) return eval_error("eval", &err);
    r->study = study;
    return report_study(r);
}

static renyi_mask_kind kind_of(const char *name)
{
    if (!name) return RENYI_MASK_AUTO;
    return strcmp(name, "trimap") == 0 ? RENYI_MASK_TRIMAP : RENYI_MASK_BINARY;
}

static int make_study(const eval_arguments *a, const renyi_model *model, const renyi_dataset *data,
                      const image_spec *spec, const renyi_model_info *info)
{
    cli_strings metrics = {0};
    masks_progress progress = {.log_freq = a->log_freq, .next_line = a->log_freq};
    masks_report r = {.a = a, .model = info, .spec = spec};
    renyi_masks *study = NULL;
    renyi_error err = {0};

    split_metrics(&metrics, a->masks.metrics);
    const renyi_masks_options o = {.struct_size = sizeof o,
                                   .folder = a->masks.folder,
                                   .kind = kind_of(a->masks.kind),
                                   .border_is_object =
                                       a->masks.border && strcmp(a->masks.border, "object") == 0,
                                   .keep = a->masks.keep.given ? a->masks.keep.values[0] : 0.0,
                                   .n_metrics = (uint32_t)metrics.count,
                                   .metrics = (const char *const *)metrics.items,
                                   .n_policies = has_policies(a) ? (uint32_t)a->policies.count : 0,
                                   .policies = (const char *const *)a->policies.items,
                                   .batch = (uint32_t)a->batch,
                                   .n_threads = (uint32_t)a->threads,
                                   .apply_exif = a->exif != 0,
                                   .preprocess = &spec->preprocess,
                                   .user = &progress,
                                   .on_failure = on_failure,
                                   .progress = on_progress};
    const int code = renyi_masks_new(&study, model, data, &o, &err) == RENYI_OK
                         ? run_study(&r, study, &progress)
                         : eval_error("eval", &err);
    renyi_masks_free(study);
    cli_strings_free(&metrics);
    return code;
}

int eval_masks_execute(const eval_arguments *a, const renyi_model *model)
{
    renyi_dataset_options o = eval_data_options(a);
    renyi_dataset *data = NULL;
    renyi_dataset_info found;
    renyi_model_info info;
    image_spec spec;
    renyi_error err = {0};

    o.unlabelled = 1;
    renyi_model_get_info(model, &info);
    if (image_spec_make(&spec, "eval", &info, &a->over)) return CLI_USAGE;
    if (spec.decode != RENYI_DECODE_EXACT)
        return options_usage_error("eval",
                                   "--masks decodes every pixel: leave out --decode scaled");
    if (renyi_dataset_open(&data, a->data, model, &o, &err) != RENYI_OK)
        return eval_error("eval", &err);
    renyi_dataset_get_info(data, &found);
    image_spec_note(&spec);
    cli_note("data: %llu images in %s, masks in %s", (unsigned long long)found.n_images, a->data,
             a->masks.folder);
    const int code = make_study(a, model, data, &spec, &info);
    renyi_dataset_free(data);
    return code;
}
