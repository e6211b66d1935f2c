/* cmd_eval.c - renyi eval: the command line, then model, data, run and report.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_job.h"
#include "cli/eval/eval_masks.h"
#include "cli/eval/eval_report.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/output.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

#include <stdlib.h>

/* ---- running
 * ------------------------------------------------------------------------------------- */

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

static void put_csv(FILE *f, const void *user)
{
    const eval_report *r = user;
    const renyi_preprocess *spec = &r->spec->preprocess;
    char *title = model_path_title(r->a->model);
    renyi_eval_times t;

    renyi_eval_get_times(r->eval, &t);
    const eval_csv_frame frame = {.title = title,
                                  .interpolation = interpolation_name(spec->interpolation),
                                  .image_size = spec->size,
                                  .params = (double)r->model->n_params,
                                  .crop_pct = spec->crop_pct,
                                  .peak_rss_mb = r->peak_rss_mb,
                                  .threads = t.n_threads,
                                  .batch = t.batch};

    eval_csv(f, r->eval, &frame);
    free(title);
}

static int report_results(eval_report *r)
{
    const eval_arguments *a = r->a;

    r->peak_rss_mb = cli_peak_rss_bytes() * 1e-6;
    if (a->json)
        json_print(eval_report_json(r));
    else
        eval_report_table(r);
    if (r->is_interrupted) eval_report_interrupt(a->log_samples != NULL, "--log-samples FILE");
    if (a->results_file &&
        eval_results_write(a->results_file, a->results_format, eval_report_json(r), put_csv, r))
        return CLI_FAILED;
    return exit_code(r);
}

/* What results depend on besides model and images, for the log; owned, NULL = nothing. */
static char *make_condition(const eval_subject *s)
{
    if (!s->classes) return NULL;
    if (!s->adapt || !s->adapt->condition) return cli_copy(s->classes->condition);
    return cli_format("%s%s", s->classes->condition, s->adapt->condition);
}

/* Every dtype with every policy. */
typedef struct eval_rows {
    const char **policies;
    const renyi_model **models;
} eval_rows;

static eval_rows make_rows(const eval_subject *s)
{
    const size_t n = s->a->policies.count;
    eval_rows rows = {cli_alloc(s->n_models * n, sizeof *rows.policies),
                      cli_alloc(s->n_models * n, sizeof *rows.models)};

    for (size_t i = 0; i < s->n_models * n; i++) {
        rows.policies[i] = s->a->policies.items[i % n];
        rows.models[i] = s->models[i / n];
    }
    return rows;
}

int eval_evaluate(const eval_subject *s)
{
    const eval_arguments *a = s->a;
    char *condition = make_condition(s);
    eval_rows rows = make_rows(s);
    const eval_job job = {.verb = s->verb,
                          .a = a,
                          .model_name = a->model,
                          .model = s->models[0],
                          .data = s->data,
                          .policies = rows.policies,
                          .models = rows.models,
                          .n_policies = (uint32_t)(s->n_models * a->policies.count),
                          .resume = a->resume,
                          .condition = condition,
                          .adapt = s->adapt ? s->adapt->items : NULL};
    renyi_model_info info;
    renyi_dataset_info found;
    image_spec spec;
    renyi_eval *e = NULL;
    eval_report r = {.a = a,
                     .model = &info,
                     .data = &found,
                     .spec = &spec,
                     .classes = s->classes,
                     .adapt = s->adapt};
    class_names names;

    renyi_model_get_info(s->models[0], &info);
    renyi_dataset_get_info(s->data, &found);
    (void)class_names_open(&names, s->models[0], &info, NULL); /* cannot fail without a file */
    r.names = &names;
    int code = eval_job_run(&job, &e, &spec, &r.is_interrupted);
    r.eval = e;
    if (e) ranks_settle(); /* all ranks know the result */
    if (code == CLI_OK) code = report_results(&r);
    if (e && s->adapt && adapt_save(s->adapt) != CLI_OK) code = CLI_FAILED;
    class_names_free(&names);
    free(condition);
    renyi_eval_free(e);
    free(rows.policies);
    free(rows.models);
    return code;
}

/* The model in every dtype; dtypes that turn out to be the same ("f32,auto") once. Returns an exit
 * code. */
static int open_models(const eval_arguments *a, renyi_model *models[MAX_DTYPES], size_t *count)
{
    renyi_model_info info[MAX_DTYPES];

    for (size_t i = 0; i < a->dtypes.n; i++) {
        renyi_options opt = model_options(a->cpu, NULL, a->image_size);
        opt.dtype = a->dtypes.items[i];
        renyi_model *model = model_open_reported(a->model, &opt, &info[*count]);
        size_t same = 0;
        if (!model) return CLI_FAILED;
        while (same < *count && info[same].dtype != info[*count].dtype) same++;
        if (same < *count)
            renyi_model_free(model);
        else
            models[(*count)++] = model;
    }
    return CLI_OK;
}

static int run_models(const eval_arguments *a, renyi_model *const *models, size_t n)
{
    renyi_dataset *data = NULL;
    int code = CLI_OK;

    for (size_t i = 0; code == CLI_OK && i < a->policies.count; i++)
        code = prune_check("eval", a->policies.items[i], models[0], NULL);
    if (code == CLI_OK && a->masks.folder) return eval_masks_execute(a, models[0]);
    if (code == CLI_OK) code = eval_open_data("eval", a, models[0], &data);
    const eval_subject subject = {"eval", a,   (const renyi_model *const *)models, n, data,
                                  NULL,   NULL};
    if (code == CLI_OK) code = eval_evaluate(&subject);
    renyi_dataset_free(data);
    return code;
}

static int execute(const eval_arguments *a)
{
    renyi_model *models[MAX_DTYPES] = {NULL};
    size_t n = 0;

    if (a->masks.folder && ranks_get())
        return options_usage_error("eval", "--masks cannot run on several ranks");
    if (eval_results_check(a)) return CLI_FAILED;
    int code = open_models(a, models, &n);
    if (code == CLI_OK) code = run_models(a, models, n);
    for (size_t i = 0; i < n; i++) renyi_model_free(models[i]);
    return code;
}

/* ---- the command line
 * ---------------------------------------------------------------------------- */

static int check_arguments(eval_arguments *a, const cli_strings *arguments)
{
    if (eval_take_data("eval", a, arguments) != CLI_OK) return CLI_USAGE;
    if (eval_masks_check(a) || eval_check_arguments("eval", a)) return CLI_USAGE;
    if (a->masks.folder && a->dtypes.n > 1)
        return options_usage_error("eval", "--masks takes one --dtype at a time");
    return prune_policies("eval", &a->prune, &a->policies);
}

static option_outcome parse_options(eval_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL", MODEL_HELP_BUILTIN, 0, 0},
        DATA_OPTION_ROWS(a),
        PRUNE_OPTION_ROWS(&a->prune),
        RESULT_OPTION_ROWS(a),
        MASK_OPTION_ROWS(a),
        RUN_OPTION_ROWS(a),
        STREAMS_OPTION_ROW(a),
        DTYPES_OPTION_ROW(a),
        IMAGE_OPTION_ROWS(a),
    };
    const verb_syntax syntax = {
        "eval", "[-m MODEL] --data-dir DIR [--prune POLICY]... [options]",
        "Accuracy with its 95 % interval, loss, MACs and milliseconds of one or more pruning policies on\n"
        "labelled images. Each image is decoded once for all policies, and policies are compared image by\n"
        "image; a difference that may be chance is marked as noise. A class folder is named by class index,\n"
        "WordNet id or class name. Images that cannot be read are reported and skipped, and the exit code\n"
        "is 3. With --masks images need no labels: it measures how well metrics rank the patches of the\n"
        "object above those of the background, and what each policy does to both.",
        "  renyi eval -m model.safetensors --data-dir imagenet/val\n"
        "  renyi eval -m model.safetensors --data-dir images --prune none --prune 'mosaic keep=0.7 layers=0,3,6'\n"
        "  renyi eval -m model.safetensors --data-dir val --limit 1000 --log-samples run.jsonl --resume\n"
        "  renyi eval -m model.safetensors --data-dir ILSVRC2012_val --ground-truth val.txt --csv results.csv\n"
        "  renyi eval -m model.safetensors --data-dir pets/images --masks pets/trimaps --metrics 'cls,col n=4'\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_eval(int argc, char **argv)
{
    eval_arguments a = {.log_freq = 100, .results_format = "csv"};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&a, &arguments)) == CLI_OK) {
        a.model = model_or_builtin(a.model);
        code = execute(&a);
    }
    prune_options_free(&a.prune);
    cli_strings_free(&a.policies);
    cli_strings_free(&arguments);
    return code;
}
