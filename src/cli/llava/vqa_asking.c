/* vqa_asking.c - asks a LLaVA the questions of a benchmark, with progress, notes and failures.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/llava/vqa_asking.h"

#include "cli/eval/eval_job.h"
#include "cli/kit/cli_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    vqa_asking *x = user;
    const int is_stopped = work_on_progress(&x->progress, done, total);

    if (x->log_freq && !x->progress.bar.is_on && done >= x->next_line) {
        cli_note("[%llu/%llu]", (unsigned long long)done, (unsigned long long)total);
        while (x->next_line <= done) x->next_line += x->log_freq;
    }
    return is_stopped;
}

static void on_failure(void *user, const char *question, const char *message)
{
    work_on_failure(&((vqa_asking *)user)->progress, question, message);
}

int vqa_ask_questions(vqa_asking *x, vqa_model *m, const renyi_vqa *questions, const char *path,
                      renyi_vqa_answers **answers)
{
    char *condition = vqa_model_condition(m);
    const renyi_vqa_run_options o = {.struct_size = sizeof o,
                                     .resume = x->resume != 0,
                                     .images = x->images,
                                     .allow_outside = x->allow_outside != 0,
                                     .wanted = x->wanted,
                                     .answers = path,
                                     .model = m->name,
                                     .policy = m->policy,
                                     .condition = condition,
                                     .ranks = ranks_get(),
                                     .ask = vqa_model_ask,
                                     .ask_user = m,
                                     .user = x,
                                     .on_failure = on_failure,
                                     .progress = on_progress};
    renyi_error err = {0};

    *answers = NULL;
    x->next_line = x->log_freq;
    const renyi_status status = renyi_vqa_run(answers, questions, &o, &err);
    free(condition);
    work_progress_end(&x->progress);
    x->is_interrupted = status == RENYI_ERR_ABORTED;
    if (x->is_interrupted) eval_report_interrupt(path != NULL, x->resume_how);
    if (status == RENYI_OK) return CLI_OK;
    return x->is_interrupted ? CLI_FAILED : eval_error(x->verb, &err);
}

int vqa_has_images(const char *folder)
{
    struct stat st;

    if (!folder) return 1;
    const int exists = stat(folder, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) return 1;
    if (exists) errno = ENOTDIR;
    cli_error("%s: %s", folder, strerror(errno));
    return 0;
}

char *vqa_policy_path(const char *folder, const char *policy, const char *suffix)
{
    enum { MOST = 200 }; /* bytes of a file's name, so that a suffix fits */
    char *name = cli_format("%.*s", MOST, policy);
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=.,-", *c))
            *c = '_';
    char *path = cli_format("%s/%s.%s", folder, name, suffix);
    free(name);
    return path;
}
