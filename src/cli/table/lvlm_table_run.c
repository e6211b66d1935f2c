/* lvlm_table_run.c - runs renyi table: asks every benchmark's questions with every policy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/lvlm_table.h"

#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct table_run {
    vqa_asking asking;
    vqa_model model;
    result_files files; /* of the model, for manifests */
} table_run;

static void fill_cell(const table_task *task, table_cell *cell, renyi_vqa_answers *answers)
{
    cell->answers = answers;
    renyi_vqa_answers_get_info(answers, &cell->info);
    renyi_vqa_get_score(answers, &cell->score);
    const int has_total = task->task == RENYI_VQA_MME && cell->score.cognition > 0;
    cell->value = has_total ? cell->score.total : cell->score.score;
}

/* The manifest beside the answers. */
static int write_manifest(const lvlm_table *t, const vqa_model *m, const result_files *files,
                          const char *folder, size_t row, size_t task)
{
    const table_task *of = &t->tasks[task];
    const result_data data = {.task = of->info.name,
                              .questions = of->questions,
                              .annotations = of->annotations,
                              .images = of->images,
                              .limit = t->a->limit};
    char *path = vqa_policy_path(folder, t->rows[row].policy, "json");
    const int code = result_manifest_write(path, m, &data, of->data,
                                           lvlm_table_cell(t, row, task)->answers, files);

    free(path);
    return code;
}

static int ask_cell(lvlm_table *t, table_run *r, size_t row, size_t task)
{
    table_task *of = &t->tasks[task];
    char *folder = t->a->output ? cli_format("%s/%s", t->a->output, of->info.name) : NULL;
    char *path = folder ? vqa_policy_path(folder, t->rows[row].policy, "jsonl") : NULL;
    renyi_vqa_answers *answers = NULL;
    int code = CLI_OK;

    if (folder && make_directories(folder)) {
        cli_error("%s: cannot make this folder: %s", folder, strerror(errno));
        code = CLI_FAILED;
    }
    if (code == CLI_OK) code = vqa_ask_questions(&r->asking, &r->model, of->data, path, &answers);
    if (answers) fill_cell(of, lvlm_table_cell(t, row, task), answers);
    if (code == CLI_OK && folder) code = write_manifest(t, &r->model, &r->files, folder, row, task);
    free(folder);
    free(path);
    return code;
}

static int ask_row(lvlm_table *t, table_run *r, size_t row)
{
    vqa_model *m = &r->model;
    int code = vqa_model_choose_policy(m, "table", t->rows[row].policy);

    for (size_t i = 0; code == CLI_OK && i < t->n_tasks; i++) {
        const table_task *task = &t->tasks[i];
        m->max_new_tokens = t->a->sampling.max_new_tokens ? t->a->sampling.max_new_tokens
                                                          : task->info.max_new_tokens;
        r->asking.images = task->images;
        cli_note("%s, %s", t->rows[row].policy, task->info.title);
        code = ask_cell(t, r, row, i);
    }
    return code;
}

int lvlm_table_run(lvlm_table *t)
{
    const table_arguments *a = t->a;
    table_run r = {.asking = {.verb = "table",
                              .resume = a->resume,
                              .allow_outside = a->allow_outside,
                              .log_freq = a->log_freq,
                              .resume_how = "-o DIR",
                              .progress = {.title = "table"}}};
    const work_progress *p = &r.asking.progress;
    int code = vqa_model_open(&r.model, "table", &a->llava, &a->sampling);

    catch_interrupt();
    if (code == CLI_OK && a->output) code = result_files_hash(&r.files, &a->llava);
    if (code == CLI_OK) t->model = cli_copy(r.model.name);
    for (size_t i = 0; code == CLI_OK && i < t->n_rows; i++) code = ask_row(t, &r, i);
    vqa_model_close(&r.model);
    result_files_free(&r.files);
    t->is_interrupted = r.asking.is_interrupted;
    for (size_t i = 0; i < p->failed.count; i++)
        cli_strings_add(&t->failed, cli_format("%s: %s", p->failed.items[i], p->reasons.items[i]));
    work_progress_free(&r.asking.progress);
    if (code == CLI_OK || t->is_interrupted) ranks_settle();
    return code;
}
