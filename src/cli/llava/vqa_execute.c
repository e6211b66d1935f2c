/* vqa_execute.c - renyi vqa: opens the questions, asks a model or reads answers, and scores them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_job.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"
#include "cli/kit/progress.h"
#include "cli/llava/vqa_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Weights, and conversations with one policy. */
typedef struct vqa_model {
    const vqa_arguments *a;
    renyi_lvlm *weights;
    renyi_conversation *conversation; /* about images */
    renyi_conversation *blind;        /* for questions without one; NULL until there is one */
    int is_shown;                     /* conversation has the image of the question before */
    char *name;                       /* model_id; owned */
    char *condition;                  /* what answers depend on besides model and policy; owned */
    const char *policy;               /* in full; the conversation's */
} vqa_model;

/* ---- the model
 * ----------------------------------------------------------------------------------- */

static int on_prefill(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return was_interrupted();
}

static int on_answer(void *user, const char *text, size_t size)
{
    (void)user, (void)text, (void)size;
    return was_interrupted();
}

static renyi_status open_conversation(const vqa_model *m, renyi_conversation **out,
                                      const char *policy, renyi_error *err)
{
    const renyi_conversation_options o = {.struct_size = sizeof o,
                                          .n_threads = ranks_threads(m->a->llava.threads),
                                          .policy = policy,
                                          .progress = on_prefill};
    return renyi_conversation_new(out, m->weights, &o, err);
}

/* Adds the image's name to an error message without it. */
static renyi_status name_image(const renyi_vqa_request *request, renyi_status st, renyi_error *err)
{
    char message[sizeof err->message];

    if (st == RENYI_OK || strstr(err->message, request->name)) return st;
    snprintf(message, sizeof message, "%s", err->message);
    snprintf(err->message, sizeof err->message, "%.200s: %.280s", request->name, message);
    return st;
}

/* The conversation for a question: it has the image and no text yet. */
static renyi_status begin_question(vqa_model *m, const renyi_vqa_request *request,
                                   renyi_conversation **out, renyi_error *err)
{
    renyi_status st = RENYI_OK;

    if (!request->bytes) {
        m->is_shown = 0;
        if (!m->blind) st = open_conversation(m, &m->blind, "none", err);
        *out = m->blind;
    } else {
        *out = m->conversation;
        if (!request->is_same_photo || !m->is_shown) {
            st = name_image(
                request,
                renyi_conversation_show_bytes(m->conversation, request->bytes, request->size, err),
                err);
            m->is_shown = st == RENYI_OK;
        }
    }
    if (st == RENYI_OK) renyi_conversation_restart(*out);
    return st;
}

/* For renyi_vqa_run_options; `user` is the vqa_model. */
static renyi_status ask_model(void *user, const renyi_vqa_request *request, renyi_vqa_reply *reply,
                              renyi_error *err)
{
    vqa_model *m = user;
    const vqa_arguments *a = m->a;
    const renyi_answer_options o = {.struct_size = sizeof o,
                                    .max_new_tokens = (uint32_t)a->sampling.max_new_tokens,
                                    .temperature = a->sampling.temperature.values[0],
                                    .top_p = a->sampling.top_p.values[0],
                                    .seed = a->sampling.seed,
                                    .on_text = on_answer};
    const double start = cli_now_ms();
    renyi_conversation *conversation;
    renyi_answer answer;

    renyi_status st = begin_question(m, request, &conversation, err);
    if (st == RENYI_OK)
        st = renyi_conversation_ask(conversation, request->question->text, &o, &answer, err);
    if (st != RENYI_OK) return st;
    if (answer.end == RENYI_ANSWER_STOPPED) { /* a part of an answer does not count */
        snprintf(err->message, sizeof err->message, "interrupted");
        return err->code = RENYI_ERR_ABORTED;
    }
    *reply = (renyi_vqa_reply){.text = answer.text,
                               .n_visual = answer.n_visual,
                               .n_tokens = answer.n_ids,
                               .ms = cli_now_ms() - start};
    return RENYI_OK;
}

/* Returns an exit code; close_model either way. */
static int open_model(vqa_model *m, const vqa_arguments *a)
{
    renyi_lm_info lm;
    renyi_visual_info visual;

    *m = (vqa_model){.a = a};
    m->weights = llava_open_reported(&a->llava);
    if (!m->weights) return CLI_FAILED;
    if (llava_check_tokenizer(m->weights, &a->llava) != CLI_OK) return CLI_FAILED;
    if (!renyi_lvlm_visual(m->weights)) {
        cli_error("%s: a plain Llama without an image tower; vqa needs a LLaVA", a->llava.model);
        return CLI_FAILED;
    }
    renyi_lm_get_info(renyi_lvlm_lm(m->weights), &lm);
    renyi_visual_get_info(renyi_lvlm_visual(m->weights), &visual);
    m->name = model_path_title(a->llava.model);
    m->condition = cli_format("%s %s tokens %llu temperature %g top-p %g seed %llu",
                              renyi_dtype_name(lm.dtype), renyi_dtype_name(visual.dtype),
                              (unsigned long long)a->sampling.max_new_tokens,
                              a->sampling.temperature.values[0], a->sampling.top_p.values[0],
                              (unsigned long long)a->sampling.seed);
    return CLI_OK;
}

/* The policy of the questions from now on. Returns an exit code. */
static int choose_policy(vqa_model *m, const char *policy)
{
    renyi_error err = {0};

    renyi_conversation_free(m->conversation);
    m->conversation = NULL;
    m->is_shown = 0;
    if (open_conversation(m, &m->conversation, policy, &err) != RENYI_OK)
        return prune_error("vqa", policy, &err);
    m->policy = renyi_conversation_policy(m->conversation);
    return CLI_OK;
}

static void close_model(vqa_model *m)
{
    renyi_conversation_free(m->conversation);
    renyi_conversation_free(m->blind);
    renyi_lvlm_free(m->weights);
    free(m->name);
    free(m->condition);
    *m = (vqa_model){0};
}

typedef struct vqa_job {
    const vqa_arguments *a;
    renyi_vqa *questions;
    vqa_report report;
    work_progress progress; /* also lists what failed */
    uint64_t next_line;     /* questions, for notes without a bar */
    cli_strings failed;     /* "question: why" */
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
    vqa_job *j = user;
    const int is_stopped = work_on_progress(&j->progress, done, total);

    if (!j->progress.bar.is_on && done >= j->next_line) {
        cli_note("[%llu/%llu]", (unsigned long long)done, (unsigned long long)total);
        while (j->next_line <= done) j->next_line += j->a->log_freq;
    }
    return is_stopped;
}

static void on_failure(void *user, const char *question, const char *message)
{
    work_on_failure(&((vqa_job *)user)->progress, question, message);
}

static int ask_policy(vqa_job *j, vqa_model *m, size_t policy)
{
    const vqa_arguments *a = j->a;
    char *path = answers_path(a, policy);
    const renyi_vqa_run_options o = {.struct_size = sizeof o,
                                     .resume = a->resume != 0,
                                     .images = a->images,
                                     .allow_outside = a->allow_outside != 0,
                                     .answers = path,
                                     .model = m->name,
                                     .policy = m->policy,
                                     .condition = m->condition,
                                     .ranks = ranks_get(),
                                     .ask = ask_model,
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
    if (j->report.is_interrupted) eval_report_interrupt(path != NULL, "--answers FILE");
    free(path);
    if (status == RENYI_OK) return CLI_OK;
    return j->report.is_interrupted ? CLI_FAILED : eval_error("vqa", &err);
}

/* Without the folder every question would be reported. 0 after reporting. */
static int has_images(const vqa_arguments *a)
{
    struct stat st;

    if (!a->images) return 1;
    const int exists = stat(a->images, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) return 1;
    if (exists) errno = ENOTDIR;
    cli_error("%s: %s", a->images, strerror(errno));
    return 0;
}

/* The folder for the answers of several policies. 0 after reporting. */
static int make_answer_folder(const vqa_arguments *a)
{
    if (!a->answers || a->policies.count < 2 || make_directories(a->answers) == 0) return 1;
    cli_error("%s: cannot make this folder: %s", a->answers, strerror(errno));
    return 0;
}

static int ask_all(vqa_job *j)
{
    vqa_model m;
    if (!has_images(j->a) || !make_answer_folder(j->a)) return CLI_FAILED;
    int code = open_model(&m, j->a);

    catch_interrupt();
    for (size_t i = 0; code == CLI_OK && i < j->a->policies.count; i++) {
        code = choose_policy(&m, j->a->policies.items[i]);
        if (code == CLI_OK) code = ask_policy(j, &m, i);
    }
    close_model(&m);
    for (size_t i = 0; i < j->progress.failed.count; i++)
        cli_strings_add(&j->failed, cli_format("%s: %s", j->progress.failed.items[i],
                                               j->progress.reasons.items[i]));
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
    work_progress_free(&j->progress);
    cli_strings_free(&j->failed);
    renyi_vqa_free(j->questions);
}

int vqa_execute(const vqa_arguments *a)
{
    vqa_job j = {.a = a, .report = {.a = a}, .progress = {.title = "vqa"}};
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
