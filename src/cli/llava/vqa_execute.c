/* vqa_execute.c - renyi vqa: opens the questions, asks a model or reads answers, and scores them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_job.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"
#include "cli/llava/vqa_asking.h"
#include "cli/llava/vqa_report.h"
#include "cli/result/result_manifest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct vqa_job {
    const vqa_arguments *a;
    renyi_vqa *questions;
    vqa_report report;
    vqa_asking asking;
    result_files files; /* of the model, for manifests */
    cli_strings failed; /* "question: why" */
} vqa_job;

/* ---- questions ----------------------------------------------------------------------------- */

static int open_questions(vqa_job *j)
{
    const vqa_arguments *a = j->a;
    const renyi_vqa_options o = {.struct_size = sizeof o,
                                 .shard = a->shard_index,
                                 .n_shards = a->n_shards,
                                 .contiguous = a->num_chunks > 0,
                                 .limit = a->limit,
                                 .annotations = a->annotations,
                                 .scorer = a->scorer && strcmp(a->scorer, "official") == 0
                                               ? RENYI_VQA_SCORER_OFFICIAL
                                               : RENYI_VQA_SCORER_TEXTVQA};
    renyi_error err = {0};

    if (renyi_vqa_open(&j->questions, a->task, a->questions, &o, &err) != RENYI_OK)
        return eval_error("vqa", &err);
    renyi_vqa_get_info(j->questions, &j->report.found);
    const renyi_vqa_info *found = &j->report.found;
    for (uint64_t i = 0; i < found->n_faults; i++) {
        const char *fault = renyi_vqa_get_fault(j->questions, (size_t)i);
        cli_error("%s", fault);
        cli_strings_add(&j->failed, cli_copy(fault));
    }
    cli_note("%llu question%s of %s%s; %llu have known answers",
             (unsigned long long)found->n_questions, found->n_questions == 1 ? "" : "s",
             a->info.title, found->n_questions < found->n_found ? ", a part" : "",
             (unsigned long long)found->n_known);
    if (!found->n_known && a->info.annotations && !a->annotations)
        cli_note("scores need --annotations: %s", a->info.annotations);
    return CLI_OK;
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* Takes ownership of answers and title. */
static void add_run(vqa_job *j, renyi_vqa_answers *answers, char *title)
{
    vqa_report *r = &j->report;

    r->runs = cli_grow(r->runs, r->count + 1, sizeof *r->runs);
    vqa_scored *s = &r->runs[r->count++];
    *s = (vqa_scored){.title = title,
                      .answers = answers,
                      .reported = j->a->reported.given ? j->a->reported.values[0] : NAN};
    renyi_vqa_answers_get_info(answers, &s->info);
    renyi_vqa_get_score(answers, &s->score);
}

static int read_runs(vqa_job *j)
{
    for (size_t i = 0; i < j->a->scored.count; i++) {
        const char *path = j->a->scored.items[i];
        renyi_vqa_answers *answers;
        renyi_error err = {0};
        if (renyi_vqa_read_answers(&answers, j->questions, &path, 1, &err) != RENYI_OK)
            return eval_error("vqa", &err);
        add_run(j, answers, cli_copy(path));
        const vqa_scored *s = &j->report.runs[i];
        if (s->info.n_foreign)
            cli_warn("%s: %llu answer%s to other questions", path,
                     (unsigned long long)s->info.n_foreign,
                     s->info.n_foreign == 1 ? " is" : "s are");
        if (!s->info.n_answered) {
            cli_error("%s: no answer to any of these questions", path);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

/* FILE, or with several policies FOLDER/policy.jsonl; owned, NULL = none. */
static char *answers_path(const vqa_arguments *a, size_t policy)
{
    if (!a->answers || a->policies.count < 2) return a->answers ? cli_copy(a->answers) : NULL;
    return vqa_policy_path(a->answers, a->policies.items[policy], "jsonl");
}

static int write_manifest(vqa_job *j, const vqa_model *m, size_t policy,
                          const renyi_vqa_answers *answers)
{
    const vqa_arguments *a = j->a;
    const result_data data = {.task = a->info.name,
                              .scorer = a->scorer,
                              .questions = a->questions,
                              .annotations = a->annotations,
                              .images = a->images,
                              .limit = a->limit};
    char *path = a->policies.count < 2
                     ? cli_copy(a->manifest)
                     : vqa_policy_path(a->manifest, a->policies.items[policy], "json");
    const int code = result_manifest_write(path, m, &data, j->questions, answers, &j->files);

    free(path);
    return code;
}

static int ask_policy(vqa_job *j, vqa_model *m, size_t policy)
{
    char *path = answers_path(j->a, policy);
    renyi_vqa_answers *answers;
    const int code = vqa_ask_questions(&j->asking, m, j->questions, path, &answers);

    j->report.is_interrupted = j->asking.is_interrupted;
    if (answers) add_run(j, answers, cli_copy(path ? path : m->policy));
    free(path);
    return code == CLI_OK && j->a->manifest ? write_manifest(j, m, policy, answers) : code;
}

/* A folder for the files of several policies. 0 after reporting. */
static int make_policy_folder(const vqa_arguments *a, const char *folder)
{
    if (!folder || a->policies.count < 2 || make_directories(folder) == 0) return 1;
    cli_error("%s: cannot make this folder: %s", folder, strerror(errno));
    return 0;
}

static int ask_all(vqa_job *j)
{
    vqa_model m;
    if (!vqa_has_images(j->a->images) || !make_policy_folder(j->a, j->a->answers) ||
        !make_policy_folder(j->a, j->a->manifest))
        return CLI_FAILED;
    int code = vqa_model_open(&m, "vqa", &j->a->llava, &j->a->sampling);

    m.max_new_tokens = j->a->sampling.max_new_tokens;
    catch_interrupt();
    if (code == CLI_OK && j->a->manifest) code = result_files_hash(&j->files, &j->a->llava);
    for (size_t i = 0; code == CLI_OK && i < j->a->policies.count; i++) {
        code = vqa_model_choose_policy(&m, "vqa", j->a->policies.items[i]);
        if (code == CLI_OK) code = ask_policy(j, &m, i);
    }
    vqa_model_close(&m);
    const work_progress *p = &j->asking.progress;
    for (size_t i = 0; i < p->failed.count; i++)
        cli_strings_add(&j->failed, cli_format("%s: %s", p->failed.items[i], p->reasons.items[i]));
    return code;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int write_submission(const vqa_job *j)
{
    renyi_error err = {0};

    if (!j->a->submission || !j->report.count || ranks_number()) return CLI_OK;
    if (renyi_vqa_write_submission(j->report.runs[0].answers, j->a->submission, &err) != RENYI_OK)
        return eval_error("vqa", &err);
    cli_note("%s: %s", j->a->submission, j->a->info.submission);
    return CLI_OK;
}

static uint64_t n_answered(const vqa_report *r)
{
    uint64_t n = 0;

    for (size_t i = 0; i < r->count; i++) n += r->runs[i].info.n_answered;
    return n;
}

static void free_job(vqa_job *j)
{
    for (size_t i = 0; i < j->report.count; i++) {
        renyi_vqa_answers_free(j->report.runs[i].answers);
        free(j->report.runs[i].title);
    }
    free(j->report.runs);
    work_progress_free(&j->asking.progress);
    result_files_free(&j->files);
    cli_strings_free(&j->failed);
    renyi_vqa_free(j->questions);
}

int vqa_execute(const vqa_arguments *a)
{
    vqa_job j = {.a = a,
                 .report = {.a = a},
                 .asking = {.verb = "vqa",
                            .images = a->images,
                            .resume = a->resume,
                            .allow_outside = a->allow_outside,
                            .log_freq = a->log_freq,
                            .resume_how = "--answers FILE",
                            .progress = {.title = "vqa"}}};
    int code = open_questions(&j);

    if (code == CLI_OK) {
        code = a->scored.count ? read_runs(&j) : ask_all(&j);
        if (code == CLI_OK || j.report.count) ranks_settle(); /* all ranks know the result */
    }
    j.report.questions = j.questions;
    j.report.failed = &j.failed;
    if (j.report.count && (code == CLI_OK || j.report.is_interrupted)) {
        if (a->json)
            vqa_report_json(&j.report);
        else
            vqa_report_table(&j.report);
    }
    if (code == CLI_OK) code = write_submission(&j);
    if (code == CLI_OK && j.failed.count) code = n_answered(&j.report) ? CLI_PARTIAL : CLI_FAILED;
    free_job(&j);
    return code;
}
