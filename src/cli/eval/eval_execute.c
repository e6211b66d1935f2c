/* eval_execute.c - renyi eval: opens model and data, runs the evaluation, has it reported.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_job.h"
#include "cli/eval/eval_masks.h"
#include "cli/eval/eval_report.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/output.h"
#include "cli/shared/models.h"

#include <stdlib.h>
#include <sys/resource.h>

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
    if (r->is_interrupted && !ranks_number())
        cli_error("interrupted; %s", r->a->log_samples
                                         ? "the same command with --resume goes on from here"
                                         : "with --log-samples FILE a run can be resumed");
    return eval_results_write(r) ? CLI_FAILED : exit_code(r);
}

/* What answers depend on beside model and photos; owned, NULL = nothing. */
static char *condition_of(const eval_subject *s)
{
    if (!s->words) return NULL;
    if (!s->adapt || !s->adapt->condition) return cli_copy(s->words->condition);
    return cli_format("%s%s", s->words->condition, s->adapt->condition);
}

int eval_evaluate(const eval_subject *s)
{
    const eval_arguments *a = s->a;
    char *condition = condition_of(s);
    const eval_job job = {.verb = s->verb,
                          .a = a,
                          .model_word = a->model,
                          .model = s->model,
                          .data = s->data,
                          .policies = (const char *const *)a->policies.items,
                          .n_policies = (uint32_t)a->policies.count,
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
                     .words = s->words,
                     .adapt = s->adapt};
    class_names names;

    renyi_model_get_info(s->model, &info);
    renyi_dataset_get_info(s->data, &found);
    (void)class_names_open(&names, s->model, &info, NULL); /* without a file nothing can fail */
    r.names = &names;
    int code = eval_job_run(&job, &e, &spec, &r.is_interrupted);
    r.eval = e;
    if (e) ranks_settle(); /* it ran, and all ranks know how that went */
    if (code == CLI_OK) code = report(&r);
    if (e && s->adapt && adapt_save(s->adapt) != CLI_OK) code = CLI_FAILED;
    class_names_free(&names);
    free(condition);
    renyi_eval_free(e);
    return code;
}

int eval_execute(const eval_arguments *a)
{
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = cpu_from_name(a->cpu),
                               .image_size = (uint32_t)a->image_size,
                               .dtype = dtype_from_name(a->dtype)};
    renyi_dataset *data = NULL;

    if (a->masks.folder && ranks_get())
        return options_usage_error("eval", "--masks is not shared over ranks; run it alone");
    if (eval_results_check(a)) return CLI_FAILED;
    renyi_model *model = model_open_reported(a->model, &opt, NULL);
    int code = model ? CLI_OK : CLI_FAILED;
    for (size_t i = 0; code == CLI_OK && i < a->policies.count; i++)
        code = prune_check("eval", a->policies.items[i], model, NULL);
    if (code == CLI_OK && a->masks.folder) {
        code = eval_masks_execute(a, model);
    } else {
        if (code == CLI_OK) code = eval_open_data("eval", a, model, &data);
        const eval_subject subject = {"eval", a, model, data, NULL, NULL};
        if (code == CLI_OK) code = eval_evaluate(&subject);
    }
    renyi_dataset_free(data);
    renyi_model_free(model);
    return code;
}
