/* paper_subjects.c - the models that renyi paper makes tables for: found, opened and run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/paper/paper_subjects.h"

#include "cli/pull/hub_cache.h"
#include "cli/shared/models.h"

#include <stdlib.h>
#include <string.h>

const char *paper_state_name(paper_state state)
{
    static const char *const names[] = {"measured", "no weights", "no photos", "not run"};
    return names[state];
}

static paper_subject *add_subject(paper_subjects *list, const char *name)
{
    list->items = cli_grow(list->items, list->count + 1, sizeof *list->items);
    paper_subject *s = &list->items[list->count++];
    *s = (paper_subject){.name = name ? cli_copy(name) : NULL, .state = PAPER_NO_WEIGHTS};
    if (name) s->title = model_path_title(name);
    return s;
}

int paper_in_cache(const char *repository)
{
    char *root = hub_cache_root();
    char *snapshot = root ? hub_find_snapshot(root, repository, "main") : NULL;
    const int found = snapshot != NULL;

    free(snapshot);
    free(root);
    return found;
}

/* ---- plans --------------------------------------------------------------------------------- */

static int make_plan(paper_subject *s, const renyi_model *model, const paper_arguments *a,
                     int own_only)
{
    const renyi_paper_options o = {.struct_size = sizeof o,
                                   .n_tables = a->n_tables,
                                   .tables = a->tables,
                                   .own_only = own_only != 0,
                                   .no_mosaic = a->no_mosaic != 0};
    renyi_error err = {0};

    if (renyi_paper_new(&s->paper, model, s->architecture, &o, &err) == RENYI_OK) return CLI_OK;
    return eval_error("paper", &err);
}

/* ---- running ------------------------------------------------------------------------------- */

static int take_results(paper_subject *s, const renyi_eval *e)
{
    renyi_error err = {0};
    renyi_eval_result first;

    if (renyi_paper_take(s->paper, e, &err) != RENYI_OK) return eval_error("paper", &err);
    renyi_eval_get_result(e, 0, &first);
    renyi_eval_get_times(e, &s->times);
    s->state = PAPER_RUN;
    s->n_images = first.images;
    s->n_failed = first.failed;
    for (size_t i = 0; i < renyi_eval_failure_count(e); i++) {
        renyi_eval_failure f;
        renyi_eval_get_failure(e, i, &f);
        cli_strings_add(&s->failed_files, cli_format("%s: %s", f.file, f.message));
    }
    return CLI_OK;
}

static int measure_model(paper_subjects *list, paper_subject *s, const renyi_model *model,
                         const paper_arguments *a)
{
    eval_job job = {.verb = "paper",
                    .a = &a->run,
                    .model_name = s->name,
                    .model = model,
                    /* later models append to the log that an earlier one began */
                    .resume = a->run.resume || list->n_started};
    renyi_dataset *data = NULL;
    renyi_eval *e = NULL;
    image_spec spec;

    job.policies = renyi_paper_policies(s->paper, &job.n_policies);
    if (!job.n_policies) return CLI_OK; /* no row of these tables fits the model */
    int code = eval_open_data("paper", &a->run, model, &data);
    job.data = data;
    if (code == CLI_OK) {
        cli_note("%s: %u policies", s->title, job.n_policies);
        list->n_started++;
        code = eval_job_run(&job, &e, &spec, &list->is_interrupted);
    }
    if (code == CLI_OK) code = take_results(s, e);
    if (data) renyi_dataset_get_info(data, &s->data);
    s->run = e ? &a->run : NULL;
    renyi_eval_free(e);
    renyi_dataset_free(data);
    return code;
}

/* Opens a model, makes its tables and runs them if there are images. */
static int run_model(paper_subjects *list, paper_subject *s, const paper_arguments *a, int own_only)
{
    const renyi_options opt = model_options(a->run.cpu, a->run.dtype, a->run.image_size);
    renyi_model_info info;
    renyi_model *model = model_open_reported(s->name, &opt, &info);

    if (!model) return CLI_FAILED;
    s->architecture = cli_copy(info.architecture);
    s->dtype = renyi_dtype_name(info.dtype);
    s->state = list->is_interrupted ? PAPER_NOT_RUN : PAPER_NO_IMAGES;
    int code = make_plan(s, model, a, own_only);
    if (code == CLI_OK && a->run.data && !list->is_interrupted)
        code = measure_model(list, s, model, a);
    renyi_model_free(model);
    return code;
}

/* ---- the paper's own models ------------------------------------------------------------------ */

static int is_wanted(const paper_arguments *a, uint32_t number)
{
    for (uint32_t i = 0; i < a->n_tables; i++)
        if (a->tables[i] == number) return 1;
    return a->n_tables == 0;
}

/* Is this model of the paper one of the subjects already? */
static int is_known(const paper_subjects *list, const char *architecture)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < renyi_paper_part_count(list->items[i].paper); k++) {
            renyi_paper_part part;
            renyi_paper_row r;
            renyi_paper_get_part(list->items[i].paper, k, &part);
            renyi_paper_get_row(part.table, part.first_row, &r);
            if (part.is_own && strcmp(r.architecture, architecture) == 0) return 1;
        }
    return 0;
}

/* From the cache if no model was given, else by its architecture alone. */
static int add_papers_model(paper_subjects *list, const renyi_paper_row *r,
                            const paper_arguments *a)
{
    const int is_cached = paper_in_cache(r->weights);
    const int is_used = is_cached && !a->models.count;
    paper_subject *s = add_subject(list, is_used ? r->weights : NULL);

    s->weights = r->weights;
    if (is_used) return run_model(list, s, a, 1);
    s->title = cli_copy(r->architecture);
    s->architecture = cli_copy(r->architecture);
    if (is_cached) s->state = PAPER_NOT_RUN;
    return make_plan(s, NULL, a, 1);
}

static int add_papers_models(paper_subjects *list, const paper_arguments *a)
{
    for (size_t i = 0; i < renyi_paper_table_count(); i++) {
        renyi_paper_table t;
        renyi_paper_get_table(i, &t);
        for (uint32_t row = 0; is_wanted(a, t.number) && row < t.n_rows; row++) {
            renyi_paper_row r;
            renyi_paper_get_row(i, row, &r);
            if (is_known(list, r.architecture)) continue;
            const int code = add_papers_model(list, &r, a);
            if (code != CLI_OK) return code;
        }
    }
    return CLI_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Reports unknown and repeated models before a long run. */
static int check_models(const cli_strings *names)
{
    for (size_t i = 0; i < names->count; i++) {
        char *path = model_path_resolve(names->items[i]);
        free(path);
        if (!path) return CLI_FAILED;
        for (size_t j = 0; j < i; j++)
            if (strcmp(names->items[i], names->items[j]) == 0)
                return options_usage_error("paper", "-m %s is given twice", names->items[i]);
    }
    return CLI_OK;
}

int paper_subjects_exit_code(const paper_subjects *list)
{
    int code = CLI_OK;

    if (list->is_interrupted) return CLI_FAILED;
    for (size_t i = 0; i < list->count; i++) {
        const paper_subject *s = &list->items[i];
        if (s->state != PAPER_RUN) continue;
        if (!s->n_images) return CLI_FAILED;
        if (s->n_failed) code = CLI_PARTIAL;
    }
    return code;
}

int paper_subjects_make(paper_subjects *list, const paper_arguments *a)
{
    if (!a->n_tables && a->n_given) return CLI_OK; /* only tables whose results come from files */
    int code = check_models(&a->models);

    for (size_t i = 0; code == CLI_OK && i < a->models.count; i++) {
        paper_subject *s = add_subject(list, a->models.items[i]);
        code = run_model(list, s, a, 0);
    }
    return code == CLI_OK ? add_papers_models(list, a) : code;
}

void paper_subjects_free(paper_subjects *list)
{
    for (size_t i = 0; i < list->count; i++) {
        paper_subject *s = &list->items[i];
        renyi_paper_free(s->paper);
        cli_strings_free(&s->failed_files);
        free(s->name);
        free(s->title);
        free(s->architecture);
    }
    free(list->items);
    *list = (paper_subjects){0};
}
