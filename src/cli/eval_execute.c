/* eval_execute.c - renyi eval: opens model and data, runs the evaluation, has it reported.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "eval_progress.h"
#include "eval_report.h"
#include "json_out.h"
#include "model_path.h"

#include <stdlib.h>
#include <sys/resource.h>

/* A fault of what was asked for is wrong usage, anything else a failure. */
static int report_error(const renyi_error *err)
{
    if (err->code == RENYI_ERR_ARG) return options_usage_error("eval", "%s", err->message);
    cli_error("%s", err->message[0] ? err->message : renyi_status_name(err->code));
    return CLI_FAILED;
}

static void note_data(const eval_arguments *a, const renyi_dataset_info *d)
{
    static const char *const rules[] = {"unknown",
                                        "an index",
                                        "a WordNet id",
                                        "a name of the model's",
                                        "a name of the class map",
                                        "its folder's place among all in byte order"};

    cli_note("data: %llu photos of %s; a class is %s%s", (unsigned long long)d->n_images, a->data,
             d->has_real_labels ? "a ReaL set; its folder " : "", rules[d->rule]);
    if (d->n_left_out)
        cli_note("%llu more are left out: no class that can be predicted",
                 (unsigned long long)d->n_left_out);
}

static double peak_rss_mb(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024e-6; /* Linux counts in KiB */
}

static int exit_code(const eval_report *r)
{
    uint64_t images = 0, failed = 0;

    for (uint32_t i = 0; i < renyi_eval_policy_count(r->eval); i++) {
        renyi_eval_result p;
        renyi_eval_get_result(r->eval, i, &p);
        images += p.images;
        failed += p.failed;
    }
    if (!images || r->is_interrupted) return CLI_FAILED;
    return failed ? CLI_PARTIAL : CLI_OK;
}

static int report(eval_report *r)
{
    r->peak_rss_mb = peak_rss_mb();
    if (r->a->json)
        json_print(eval_report_json(r));
    else
        eval_report_table(r);
    if (r->is_interrupted)
        cli_error("interrupted; %s", r->a->log_samples
                                         ? "the same command with --resume goes on from here"
                                         : "with --log-samples FILE a run can be resumed");
    return eval_results_write(r) ? CLI_FAILED : exit_code(r);
}

/* Everything is open: run and report. */
static int run(const eval_arguments *a, renyi_eval *e, eval_progress *progress, eval_report *r)
{
    renyi_error err = {0};

    eval_progress_resume(progress, e);
    eval_catch_interrupt();
    const renyi_status status = renyi_eval_run(e, &err);
    progress_end(&progress->bar);
    if (status != RENYI_OK && status != RENYI_ERR_ABORTED) return report_error(&err);
    r->a = a;
    r->eval = e;
    r->is_interrupted = status == RENYI_ERR_ABORTED;
    return report(r);
}

static int evaluate(const eval_arguments *a, const renyi_model *model, const renyi_dataset *data)
{
    renyi_model_info info;
    renyi_dataset_info found;
    photo_spec spec;
    eval_progress progress;
    renyi_eval *e = NULL;
    renyi_error err = {0};
    int code;

    renyi_model_get_info(model, &info);
    renyi_dataset_get_info(data, &found);
    if (photo_spec_make(&spec, "eval", &info, &a->over)) return CLI_USAGE;
    photo_spec_note(&spec);
    note_data(a, &found);
    eval_progress_init(&progress, (uint32_t)a->policies.count, a->log_freq);
    char *name = model_path_title(a->model);
    const renyi_eval_options o = {.struct_size = sizeof o,
                                  .n_policies = (uint32_t)a->policies.count,
                                  .policies = (const char *const *)a->policies.items,
                                  .batch = (uint32_t)a->batch,
                                  .n_threads = (uint32_t)a->threads,
                                  .n_workers = (uint32_t)a->workers,
                                  .apply_exif = a->exif != 0,
                                  .preprocess = &spec.preprocess,
                                  .name = name,
                                  .log = a->log_samples,
                                  .resume = a->resume != 0,
                                  .user = &progress,
                                  .on_sample = eval_on_sample,
                                  .on_failure = eval_on_failure,
                                  .progress = eval_on_progress};
    eval_report r = {.model = &info, .data = &found, .spec = &spec};
    if (renyi_eval_new(&e, model, data, &o, &err) != RENYI_OK)
        code = report_error(&err);
    else
        code = run(a, e, &progress, &r);
    renyi_eval_free(e);
    eval_progress_free(&progress);
    free(name);
    return code;
}

static int open_data(const eval_arguments *a, const renyi_model *model, renyi_dataset **out)
{
    const renyi_dataset_options o = {.struct_size = sizeof o,
                                     .ground_truth = a->ground_truth,
                                     .class_map = a->class_map,
                                     .real_labels = a->real_labels,
                                     .valid_labels = a->valid_labels,
                                     .limit = a->limit,
                                     .shuffle = a->shuffle != 0,
                                     .shard = a->shard_index,
                                     .n_shards = a->n_shards,
                                     .seed = a->seed};
    renyi_error err = {0};

    return renyi_dataset_open(out, a->data, model, &o, &err) == RENYI_OK ? CLI_OK
                                                                         : report_error(&err);
}

int eval_execute(const eval_arguments *a)
{
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = cpu_from_name(a->cpu),
                               .image_size = (uint32_t)a->image_size};
    char full[RENYI_POLICY_MAX];
    renyi_dataset *data = NULL;

    if (eval_results_check(a)) return CLI_FAILED;
    renyi_model *model = model_open_reported(a->model, &opt);
    int code = model ? CLI_OK : CLI_FAILED;
    for (size_t i = 0; code == CLI_OK && i < a->policies.count; i++)
        code = prune_check("eval", a->policies.items[i], model, full);
    if (code == CLI_OK) code = open_data(a, model, &data);
    if (code == CLI_OK) code = evaluate(a, model, data);
    renyi_dataset_free(data);
    renyi_model_free(model);
    return code;
}
