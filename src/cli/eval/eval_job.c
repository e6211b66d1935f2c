/* eval_job.c - options and data of the verbs that evaluate, and running policies over it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_job.h"

#include "cli/kit/cli_ranks.h"
#include "cli/kit/progress.h"
#include "cli/shared/models.h"

#include <stdlib.h>
#include <string.h>

int eval_parse_shard(const char *verb, const char *text, uint32_t *index, uint32_t *count)
{
    char *end = NULL;
    const unsigned long i = text ? strtoul(text, &end, 10) : 0;
    const unsigned long n = end && *end == '/' ? strtoul(end + 1, &end, 10) : 0;

    if (!text) return 0;
    if (i < 1 || i > n || n > 1000000 || *end || strspn(text, "0123456789/") != strlen(text)) {
        options_usage_error(verb, "option '--shard': '%s' is not I/N, such as 1/4", text);
        return -1;
    }
    *index = (uint32_t)(i - 1);
    *count = (uint32_t)n;
    return 0;
}

int eval_check_arguments(const char *verb, eval_arguments *a)
{
    if (a->limit && !a->no_shuffle) a->shuffle = 1; /* the first N would be of few classes */
    if (a->resume && !a->log_samples)
        options_usage_error(verb, "--resume needs --log-samples FILE to resume from");
    else if (a->shuffle && a->no_shuffle)
        options_usage_error(verb, "--shuffle and --no-shuffle exclude each other");
    else if (a->seed && !a->shuffle)
        options_usage_error(verb, "--seed is for --limit and --shuffle");
    else if (dtype_list_parse(&a->dtypes, verb, a->dtype) == CLI_OK)
        return eval_parse_shard(verb, a->shard, &a->shard_index, &a->n_shards);
    return -1;
}

int eval_take_data(const char *verb, eval_arguments *a, const cli_strings *arguments)
{
    const size_t n = arguments->count;

    if (n && !a->data) a->data = arguments->items[0];
    if (!a->data) return options_usage_error(verb, "--data-dir DIR is missing");
    if (n > 1 || (n && a->data != arguments->items[0]))
        return options_usage_error(verb, "unexpected '%s': one folder or list at a time",
                                   arguments->items[n - 1]);
    return CLI_OK;
}

int eval_error(const char *verb, const renyi_error *err)
{
    if (err->code == RENYI_ERR_ARG) return options_usage_error(verb, "%s", err->message);
    return cli_fail(err);
}

void eval_report_interrupt(int can_resume, const char *with)
{
    if (ranks_number()) return;
    if (can_resume)
        cli_error("interrupted; the same command with --resume continues from here");
    else if (with)
        cli_error("interrupted; with %s it can be resumed", with);
    else
        cli_error("interrupted");
}

renyi_dataset_options eval_data_options(const eval_arguments *a)
{
    renyi_dataset_options o = {.struct_size = sizeof(renyi_dataset_options),
                               .ground_truth = a->ground_truth,
                               .class_map = a->class_map,
                               .real_labels = a->real_labels,
                               .valid_labels = a->valid_labels,
                               .limit = a->limit,
                               .shuffle = a->shuffle != 0,
                               .shard = a->shard_index,
                               .n_shards = a->n_shards,
                               .seed = a->seed,
                               .on_note = image_note};

    if (a->zeroshot) zeroshot_data_options(a->zeroshot, &o);
    return o;
}

int eval_open_data(const char *verb, const eval_arguments *a, const renyi_model *model,
                   renyi_dataset **out)
{
    const renyi_dataset_options o = eval_data_options(a);
    renyi_error err = {0};

    return renyi_dataset_open(out, a->data, model, &o, &err) == RENYI_OK ? CLI_OK
                                                                         : eval_error(verb, &err);
}

void eval_note_data(const eval_arguments *a, const renyi_dataset_info *found)
{
    static const char *const rules[] = {"unknown",
                                        "an index",
                                        "a WordNet id",
                                        "a class name of the model",
                                        "a name in the class map",
                                        "the position of its folder in byte order",
                                        "given by the dataset's own list"};
    char chosen[64] = "", seen[64] = "";

    if (a->limit && a->shuffle)
        snprintf(chosen, sizeof chosen, ", drawn with seed %llu", (unsigned long long)a->seed);
    if (found->n_seen)
        snprintf(seen, sizeof seen, "; classes seen: %u of %u", found->n_seen,
                 found->n_valid ? found->n_valid : found->n_classes);
    cli_note("data: %llu images in %s%s; a class is %s%s%s", (unsigned long long)found->n_images,
             a->data, chosen, found->has_real_labels ? "a ReaL set; its folder " : "",
             rules[found->rule], seen);
    if (found->n_left_out)
        cli_note("%llu more are left out: their class cannot be predicted",
                 (unsigned long long)found->n_left_out);
    if (found->n_seen == 1 && found->n_images > 1 && found->n_classes > 1 && !ranks_number())
        cli_warn("all %llu images are of one class%s", (unsigned long long)found->n_images,
                 a->no_shuffle ? "; without --no-shuffle they are drawn from all classes" : "");
}

static int run_eval(const eval_job *job, renyi_eval *e, eval_progress *progress,
                    int *is_interrupted)
{
    renyi_error err = {0};

    eval_progress_resume(progress, e);
    catch_interrupt();
    const renyi_status status = renyi_eval_run(e, &err);
    progress_end(&progress->bar);
    *is_interrupted = status == RENYI_ERR_ABORTED;
    return status == RENYI_OK || *is_interrupted ? CLI_OK : eval_error(job->verb, &err);
}

int eval_job_run(const eval_job *job, renyi_eval **out, image_spec *spec, int *is_interrupted)
{
    const eval_arguments *a = job->a;
    renyi_model_info info;
    renyi_dataset_info found;
    eval_progress progress;
    renyi_error err = {0};

    *out = NULL;
    renyi_model_get_info(job->model, &info);
    renyi_dataset_get_info(job->data, &found);
    if (image_spec_make(spec, job->verb, &info, &a->over)) return CLI_USAGE;
    image_spec_note(spec);
    eval_note_data(a, &found);
    if (ranks_get())
        cli_note(
            "%u ranks share the images; accuracies shown on the way are those of the first rank",
            ranks_get()->n_ranks);
    eval_progress_init(&progress, job->verb, job->n_policies, a->log_freq);
    char *name = model_path_title(job->model_name);
    const renyi_eval_options o = {.struct_size = sizeof o,
                                  .n_policies = job->n_policies,
                                  .policies = job->policies,
                                  .models = job->models,
                                  .batch = (uint32_t)a->batch,
                                  .n_threads = (uint32_t)a->threads,
                                  .n_workers = (uint32_t)a->workers,
                                  .n_streams = (uint32_t)a->streams,
                                  .apply_exif = a->exif != 0,
                                  .decode = spec->decode,
                                  .preprocess = &spec->preprocess,
                                  .name = name,
                                  .log = a->log_samples,
                                  .resume = job->resume != 0,
                                  .user = &progress,
                                  .on_sample = eval_on_sample,
                                  .on_failure = eval_on_failure,
                                  .progress = eval_on_progress,
                                  .ranks = ranks_get(),
                                  .condition = job->condition,
                                  .adapt = job->adapt};
    int code = renyi_eval_new(out, job->model, job->data, &o, &err) == RENYI_OK
                   ? run_eval(job, *out, &progress, is_interrupted)
                   : eval_error(job->verb, &err);
    eval_progress_free(&progress);
    free(name);
    return code;
}
