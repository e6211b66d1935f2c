/* tune_execute.c - renyi tune: opens model and data, searches with progress, has it reported.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/shared/models.h"
#include "cli/sweep/tune_report.h"

#include <stdlib.h>

/* What the callbacks share. */
typedef struct driver {
    const tune_arguments *a;
    char *path; /* of the model */
    progress_bar bar;
    renyi_tune_progress shown; /* the stage that was announced */
    int is_announced, is_started;
} driver;

/* ---- callbacks ----------------------------------------------------------------------------- */

static renyi_status open_model(void *user, const char *name, uint32_t image_size, renyi_model **out,
                               renyi_preprocess *preprocess, renyi_error *err)
{
    const driver *d = user;
    const renyi_options o = {.struct_size = sizeof o,
                             .cpu = cpu_from_name(d->a->e.cpu),
                             .image_size = image_size,
                             .dtype = dtype_from_name(d->a->e.dtype)};

    (void)name;
    (void)preprocess; /* the same but for the size */
    return renyi_model_open(out, d->path, &o, err);
}

static void on_failure(void *user, const char *file, const char *message)
{
    driver *d = user;

    progress_end(&d->bar); /* the message gets a line of its own; the bar comes back below it */
    cli_error("%s: %s", file, message);
    d->is_started = 0;
}

static void announce(const renyi_tune_progress *now)
{
    switch (now->stage) {
    case RENYI_TUNE_TIMING:
        if (now->n_candidates > 1) cli_note("timing %u candidates", now->n_candidates);
        break;
    case RENYI_TUNE_RUNG:
        cli_note("rung %u of %u: %u candidates, %llu photos", now->rung, now->n_rungs,
                 now->n_candidates, (unsigned long long)now->images);
        break;
    case RENYI_TUNE_LAST_TIMING: cli_note("timing the best %u again", now->n_candidates); break;
    case RENYI_TUNE_CONFIRMING:
        cli_note("confirming on %llu photos that the search never saw",
                 (unsigned long long)now->images);
        break;
    }
}

static int on_progress(void *user, const renyi_tune_progress *now)
{
    static const char *const titles[] = {"timing", "search", "timing", "confirm"};
    driver *d = user;
    const int is_new = !d->is_announced || d->shown.stage != now->stage ||
                       d->shown.rung != now->rung || d->shown.n_candidates != now->n_candidates ||
                       now->done < d->shown.done;

    if (is_new || !d->is_started) progress_end(&d->bar);
    if (is_new) announce(now);
    if (is_new || !d->is_started) progress_start(&d->bar, titles[now->stage], now->total, 1);
    d->is_announced = d->is_started = 1;
    d->shown = *now;
    progress_update(&d->bar, now->done);
    return was_interrupted();
}

/* ---- run ----------------------------------------------------------------------------------- */

static int exit_code(const tune_report *r)
{
    renyi_tune_result result;

    renyi_tune_get_result(r->tune, &result);
    if (r->is_interrupted || !result.is_found) return CLI_FAILED;
    return result.n_failed ? CLI_PARTIAL : CLI_OK;
}

static int run(driver *d, renyi_tune *t, tune_report *r)
{
    renyi_error err = {0};

    cli_note("candidates: %zu, and the dense model", renyi_tune_count(t) - 1);
    catch_interrupt();
    const renyi_status status = renyi_tune_run(t, &err);
    progress_end(&d->bar);
    r->is_interrupted = status == RENYI_ERR_ABORTED;
    if (status != RENYI_OK && !r->is_interrupted) return eval_error("tune", &err);
    if (d->a->e.json)
        json_print(tune_report_json(r));
    else if (!r->is_interrupted)
        tune_report_text(r);
    if (r->is_interrupted)
        cli_error("interrupted; %s", d->a->e.log_samples
                                         ? "the same command with --resume goes on from here"
                                         : "with --log-samples FILE a search can be resumed");
    return exit_code(r);
}

static int tune(driver *d, const renyi_model *model, const renyi_dataset *data,
                const renyi_grid *grid)
{
    const tune_arguments *a = d->a;
    renyi_model_info info;
    renyi_dataset_info found;
    image_spec spec;
    renyi_error err = {0};
    tune_report r = {.a = a, .model = &info, .data = &found, .spec = &spec};
    renyi_tune *t;

    renyi_model_get_info(model, &info);
    renyi_dataset_get_info(data, &found);
    if (image_spec_make(&spec, "tune", &info, &a->e.over)) return CLI_USAGE;
    image_spec_note(&spec);
    if (a->unlabelled)
        cli_note("data: %llu photos of %s, without classes", (unsigned long long)found.n_images,
                 a->e.data);
    else
        eval_note_data(&a->e, &found);
    char *name = model_path_title(a->e.model);
    const renyi_tune_options o = {.struct_size = sizeof o,
                                  .goal = a->goal,
                                  .bound = a->bound,
                                  .grid = grid,
                                  .batch = (uint32_t)a->e.batch,
                                  .n_threads = (uint32_t)a->e.threads,
                                  .n_workers = (uint32_t)a->e.workers,
                                  .unlabelled = a->unlabelled != 0,
                                  .search = a->search.values[0],
                                  .seed = a->e.seed,
                                  .apply_exif = a->e.exif != 0,
                                  .resume = a->e.resume != 0,
                                  .preprocess = &spec.preprocess,
                                  .name = name,
                                  .log = a->e.log_samples,
                                  .user = d,
                                  .open_model = open_model,
                                  .on_failure = on_failure,
                                  .progress = on_progress};
    int code;
    if (renyi_tune_new(&t, model, data, &o, &err) != RENYI_OK)
        code = eval_error("tune", &err);
    else
        code = run(d, t, ((r.tune = t), &r));
    renyi_tune_free(t);
    free(name);
    return code;
}

/* The candidates: without a file, the usual sizes where none are given. */
static int make_grid(const tune_arguments *a, const renyi_model *model, renyi_grid **out)
{
    uint32_t sizes[OPTION_MAX_COUNTS + RENYI_TUNE_SIZES];
    uint32_t n_sizes = a->space ? 0 : renyi_tune_usual_sizes(model, sizes);
    renyi_error err = {0};

    if (a->sizes.count) n_sizes = (uint32_t)a->sizes.count;
    for (size_t i = 0; i < a->sizes.count; i++) sizes[i] = (uint32_t)a->sizes.values[i];
    const renyi_grid_options o = {.struct_size = sizeof o,
                                  .file = a->space,
                                  .n_models = 1,
                                  .models = &a->e.model,
                                  .n_sizes = n_sizes,
                                  .sizes = sizes,
                                  .n_policies = (uint32_t)a->policies.count,
                                  .policies = (const char *const *)a->policies.items};
    return renyi_grid_new(out, &o, &err) == RENYI_OK ? CLI_OK : eval_error("tune", &err);
}

static int open_data(const tune_arguments *a, const renyi_model *model, renyi_dataset **out)
{
    renyi_dataset_options o = eval_data_options(&a->e);
    renyi_error err = {0};

    o.unlabelled = a->unlabelled != 0;
    return renyi_dataset_open(out, a->e.data, model, &o, &err) == RENYI_OK
               ? CLI_OK
               : eval_error("tune", &err);
}

int tune_execute(const tune_arguments *a)
{
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = cpu_from_name(a->e.cpu),
                               .dtype = dtype_from_name(a->e.dtype)};
    driver d = {.a = a};
    renyi_dataset *data = NULL;
    renyi_grid *grid = NULL;

    renyi_model *model = model_open_reported(a->e.model, &opt, NULL);
    if (!model) return CLI_FAILED;
    d.path = model_path_resolve(a->e.model);
    int code = d.path ? make_grid(a, model, &grid) : CLI_FAILED;
    if (code == CLI_OK) code = open_data(a, model, &data);
    if (code == CLI_OK) code = tune(&d, model, data, grid);
    renyi_dataset_free(data);
    renyi_grid_free(grid);
    renyi_model_free(model);
    free(d.path);
    return code;
}
