/* vqa_execute.c - renyi vqa: opens the questions, asks a model or reads answers, has them scored.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_job.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/progress.h"
#include "cli/llava/vqa_model.h"
#include "cli/llava/vqa_report.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const vqa_arguments *a;
    renyi_vqa *questions;
    vqa_report report;
    work_progress progress; /* what failed is remembered in it */
    uint64_t next_line;     /* questions, for notes where there is no bar */
    cli_strings failed;     /* "question: why" */
} job;

/* ---- questions ----------------------------------------------------------------------------- */

static int open_questions(job *j)
{
    const vqa_arguments *a = j->a;
    const renyi_vqa_options o = {.struct_size = sizeof o,
                                 .shard = a->shard_index,
                                 .n_shards = a->n_shards,
                                 .contiguous = a->num_chunks > 0,
                                 .limit = a->limit,
                                 .annotations = a->annotations};
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
    cli_note("%llu question%s of %s%s; the right answers of %llu are known",
             (unsigned long long)found->n_questions, found->n_questions == 1 ? "" : "s",
             a->info.title, found->n_questions < found->n_found ? ", a part" : "",
             (unsigned long long)found->n_known);
    if (!found->n_known && a->info.annotations && !a->annotations)
        cli_note("scores need --annotations: %s", a->info.annotations);
    return CLI_OK;
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* Takes answers and title. */
static void add_run(job *j, renyi_vqa_answers *answers, char *title)
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

static int read_runs(job *j)
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
            cli_warn("%s: %llu answer%s to none of these questions", path,
                     (unsigned long long)s->info.n_foreign,
                     s->info.n_foreign == 1 ? " is" : "s are");
        if (!s->info.n_answered) {
            cli_error("%s: no answer to any of these questions", path);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

/* FILE, or of several policies FOLDER/policy.jsonl; owned, NULL = none. */
static char *answers_path(const vqa_arguments *a, size_t policy)
{
    if (!a->answers || a->policies.count < 2) return a->answers ? cli_copy(a->answers) : NULL;
    char *name = cli_copy(a->policies.items[policy]);
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=.,-", *c))
            *c = '_';
    char *path = cli_format("%s/%s.jsonl", a->answers, name);
    free(name);
    return path;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    job *j = user;
    const int is_stopped = work_on_progress(&j->progress, done, total);

    if (!j->progress.bar.is_on && done >= j->next_line) {
        cli_note("[%llu/%llu]", (unsigned long long)done, (unsigned long long)total);
        while (j->next_line <= done) j->next_line += j->a->log_freq;
    }
    return is_stopped;
}

static void on_failure(void *user, const char *question, const char *message)
{
    work_on_failure(&((job *)user)->progress, question, message);
}

static int ask_policy(job *j, vqa_model *m, size_t policy)
{
    const vqa_arguments *a = j->a;
    char *path = answers_path(a, policy);
    const renyi_vqa_run_options o = {.struct_size = sizeof o,
                                     .resume = a->resume != 0,
                                     .images = a->images,
                                     .answers = path,
                                     .model = m->name,
                                     .policy = m->policy,
                                     .condition = m->condition,
                                     .ranks = ranks_get(),
                                     .ask = vqa_model_ask,
                                     .ask_user = m,
                                     .user = j,
                                     .on_failure = on_failure,
                                     .progress = on_progress};
    renyi_vqa_answers *answers;
    renyi_error err = {0};

    j->next_line = a->log_freq;
    const renyi_status status = renyi_vqa_run(&answers, j->questions, &o, &err);
    work_progress_end(&j->progress);
    j->report.is_interrupted = status == RENYI_ERR_ABORTED;
    if (answers) add_run(j, answers, cli_copy(path ? path : m->policy));
    if (j->report.is_interrupted)
        cli_error("interrupted; %s", path ? "the same command with --resume goes on from here"
                                          : "with --answers FILE a run can be resumed");
    free(path);
    if (status == RENYI_OK) return CLI_OK;
    return j->report.is_interrupted ? CLI_FAILED : eval_error("vqa", &err);
}

/* Else every question would be named. 0 after reporting. */
static int has_images(const vqa_arguments *a)
{
    DIR *folder = a->images ? opendir(a->images) : NULL;

    if (a->images && !folder) cli_error("%s: %s", a->images, strerror(errno));
    if (folder) closedir(folder);
    return !a->images || folder;
}

static int ask_all(job *j)
{
    vqa_model m;
    if (!has_images(j->a)) return CLI_FAILED;
    int code = vqa_model_open(&m, j->a);

    catch_interrupt();
    for (size_t i = 0; code == CLI_OK && i < j->a->policies.count; i++) {
        code = vqa_model_choose(&m, j->a->policies.items[i]);
        if (code == CLI_OK) code = ask_policy(j, &m, i);
    }
    vqa_model_close(&m);
    for (size_t i = 0; i < j->progress.failed.count; i++)
        cli_strings_add(&j->failed, cli_format("%s: %s", j->progress.failed.items[i],
                                               j->progress.reasons.items[i]));
    return code;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int write_submission(const job *j)
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

static void job_free(job *j)
{
    for (size_t i = 0; i < j->report.count; i++) {
        renyi_vqa_answers_free(j->report.runs[i].answers);
        free(j->report.runs[i].title);
    }
    free(j->report.runs);
    work_progress_free(&j->progress);
    cli_strings_free(&j->failed);
    renyi_vqa_free(j->questions);
}

int vqa_execute(const vqa_arguments *a)
{
    job j = {.a = a, .report = {.a = a}, .progress = {.title = "vqa"}};
    int code = open_questions(&j);

    if (code == CLI_OK) {
        code = a->scored.count ? read_runs(&j) : ask_all(&j);
        if (code == CLI_OK || j.report.count) ranks_settle(); /* all ranks know how that went */
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
    job_free(&j);
    return code;
}
