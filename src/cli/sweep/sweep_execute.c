/* sweep_execute.c - renyi sweep: opens the models of the grid, runs it and reports it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/cli_ranks.h"
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/shared/models.h"
#include "cli/sweep/sweep_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the callbacks share. */
typedef struct sweep_driver {
    const sweep_arguments *a;
    renyi_grid_info grid;
    char **paths;             /* [grid.n_models] where each model is */
    zeroshot_classes classes; /* of a sweep of CLIP models */
    renyi_classifier **heads; /* [grid.n_models] for them, made when first used */
    uint32_t n_opened; /* models below this were opened before; the grid opens them in order */
    progress_bar bar;
    int is_started;
    uint64_t next_line; /* images of this pass */
    uint32_t pass;
    double start_ms;
} sweep_driver;

/* ---- callbacks ----------------------------------------------------------------------------- */

/* For errors that were reported already: without a message. */
static renyi_status fail_silently(renyi_error *err, renyi_status code)
{
    err->message[0] = 0;
    return err->code = code;
}

/* Turns a CLIP model into a classifier that owns its tower; other models stay as they are. */
static renyi_status add_classes(sweep_driver *d, uint32_t i, const renyi_options *o,
                                renyi_model **model, renyi_error *err)
{
    renyi_model *tower = *model;
    renyi_model_info info;

    renyi_model_get_info(tower, &info);
    if (!d->a->e.zeroshot ||
        (strcmp(info.family, "clip") != 0 && strcmp(info.family, "siglip") != 0) || info.n_classes)
        return RENYI_OK;
    if (!d->heads[i])
        d->heads[i] = zeroshot_classifier(d->grid.models[i], d->a->e.zeroshot, &d->classes, o,
                                          d->a->e.threads);
    if (!d->heads[i] || zeroshot_model(model, tower, d->heads[i], &d->classes) != CLI_OK) {
        *model = tower;
        return fail_silently(err, RENYI_ERR_UNSUPPORTED);
    }
    renyi_model_keep_tower(*model, tower);
    return RENYI_OK;
}

static renyi_status open_model(void *user, const char *model, uint32_t image_size,
                               renyi_dtype dtype, renyi_model **out, renyi_preprocess *preprocess,
                               renyi_error *err)
{
    sweep_driver *d = user;
    renyi_options o = model_options(d->a->e.cpu, NULL, image_size);
    renyi_model_info info;
    image_spec spec;
    uint32_t i = 0;

    o.dtype = dtype;
    while (strcmp(d->grid.models[i], model) != 0) i++;
    renyi_status status = renyi_model_open(out, d->paths[i], &o, err);
    if (status != RENYI_OK) return status;
    if (i >= d->n_opened) {
        progress_end(&d->bar); /* as in on_failure */
        d->is_started = 0;
        model_note_assumed(*out, model);
        d->n_opened = i + 1;
    }
    renyi_model_get_info(*out, &info);
    if (image_spec_make(&spec, "sweep", &info, &d->a->e.over))
        status = fail_silently(err, RENYI_ERR_ARG);
    if (status == RENYI_OK) status = add_classes(d, i, &o, out, err);
    if (status != RENYI_OK) {
        renyi_model_free(*out);
        *out = NULL;
        return status;
    }
    *preprocess = spec.preprocess;
    return RENYI_OK;
}

static void on_failure(void *user, const char *file, const char *message)
{
    sweep_driver *d = user;

    progress_end(&d->bar); /* the message gets its own line; the bar is drawn again below it */
    cli_error("%s: %s", file, message);
    d->is_started = 0;
}

/* ", 4:10 left", or "" while it is unknown. */
static void left_text(const sweep_driver *d, const renyi_sweep_progress *p, char out[32])
{
    const double seconds = (cli_now_ms() - d->start_ms) * 1e-3;
    const double left = fmax(0.0, seconds * (1.0 - p->share) / p->share_now);

    out[0] = 0;
    if (p->share_now > 0 && left < 1e7)
        snprintf(out, 32, ", %.0f:%02.0f left", floor(left / 60.0), floor(fmod(left, 60.0)));
}

static int on_progress(void *user, const renyi_sweep_progress *p)
{
    sweep_driver *d = user;
    char left[32];
    char *name = model_path_title(p->model);
    char *title = d->grid.n_dtypes > 1 ? cli_format("%s %s", name, renyi_dtype_name(p->dtype))
                                       : cli_copy(name);

    free(name);
    left_text(d, p, left);
    if (!d->is_started) progress_start(&d->bar, "sweep", p->n_answers, 1);
    d->is_started = 1;
    if (progress_is_due(&d->bar)) {
        progress_text(&d->bar, ", %.40s at %u (%u of %u)%s", title, p->image_size, p->pass + 1,
                      p->n_passes, left);
        progress_update(&d->bar, p->answers);
    }
    if (p->pass != d->pass) d->next_line = d->a->e.log_freq;
    d->pass = p->pass;
    if (!d->bar.is_on && (p->photos >= d->next_line || p->photos == p->n_photos)) {
        cli_note("Sweep: [%u/%u] %s at %u, %u %s: %llu of %llu images; %.0f %% of all%s",
                 p->pass + 1, p->n_passes, title, p->image_size, p->n_policies,
                 p->n_policies == 1 ? "policy" : "policies", (unsigned long long)p->photos,
                 (unsigned long long)p->n_photos, 100.0 * p->share, left);
        while (d->next_line <= p->photos) d->next_line += d->a->e.log_freq;
    }
    free(title);
    return was_interrupted();
}

/* ---- report -------------------------------------------------------------------------------- */

static int exit_code(const sweep_view *v)
{
    uint64_t images = 0;

    for (size_t i = 0; i < v->n; i++) images += v->points[i].result.images;
    if (v->is_interrupted || (!images && !v->a->dry_run)) return CLI_FAILED;
    return renyi_sweep_failure_count(v->sweep) ? CLI_PARTIAL : CLI_OK;
}

static int report_sweep(const sweep_driver *d, const renyi_sweep *s, int is_interrupted)
{
    sweep_view v;
    int code = CLI_FAILED;

    if (sweep_view_make(&v, d->a, s, is_interrupted) == 0) {
        if (d->a->e.json)
            json_print(sweep_json(&v));
        else
            sweep_table(&v);
        const int is_unwritten = d->a->dry_run || ranks_number();
        code = is_unwritten || sweep_folder_write(&v) == 0 ? exit_code(&v) : CLI_FAILED;
    }
    if (is_interrupted) eval_report_interrupt(d->a->output != NULL, "-o DIR");
    sweep_view_free(&v);
    return code;
}

static void note_skips(const renyi_sweep *s)
{
    enum { SHOWN = 10 };
    const size_t n = renyi_sweep_skip_count(s);

    for (size_t i = 0; i < n && i < SHOWN; i++) {
        renyi_sweep_skip k;
        renyi_sweep_get_skip(s, i, &k);
        char *title = model_path_title(k.model), *policy = sweep_short_policy(k.policy);
        cli_warn("not run: %s at %u, %s: %s", title, k.image_size, policy, k.message);
        free(title);
        free(policy);
    }
    if (n > SHOWN) cli_warn("not run: %zu more", n - SHOWN);
}

/* ---- run ----------------------------------------------------------------------------------- */

/* An error without a message was reported already. */
static int fail_sweep(const renyi_error *err)
{
    if (err->message[0]) return eval_error("sweep", err);
    return err->code == RENYI_ERR_ARG ? CLI_USAGE : CLI_FAILED;
}

static int run_sweep(sweep_driver *d, renyi_sweep *s)
{
    renyi_error err = {0};
    renyi_dataset_info found;
    renyi_status status = RENYI_OK;

    renyi_sweep_get_data(s, &found);
    eval_note_data(&d->a->e, &found);
    char dtypes[32] = "";
    if (d->grid.n_dtypes > 1) snprintf(dtypes, sizeof dtypes, "%u dtypes, ", d->grid.n_dtypes);
    cli_note("grid: %zu point%s; %u model%s, %u size%s, %s%u %s", renyi_sweep_count(s),
             renyi_sweep_count(s) == 1 ? "" : "s", d->grid.n_models,
             d->grid.n_models == 1 ? "" : "s", d->grid.n_sizes, d->grid.n_sizes == 1 ? "" : "s",
             dtypes, d->grid.n_policies, d->grid.n_policies == 1 ? "policy" : "policies");
    note_skips(s);
    d->start_ms = cli_now_ms();
    d->next_line = d->a->e.log_freq;
    if (!d->a->dry_run) {
        catch_interrupt();
        status = renyi_sweep_run(s, &err);
        progress_end(&d->bar);
    }
    if (status != RENYI_OK && status != RENYI_ERR_ABORTED) return fail_sweep(&err);
    ranks_settle();
    return report_sweep(d, s, status == RENYI_ERR_ABORTED);
}

static int make_sweep(sweep_driver *d, const renyi_grid *grid)
{
    const eval_arguments *e = &d->a->e;
    const renyi_dataset_options data = eval_data_options(e);
    const renyi_sweep_options o = {.struct_size = sizeof o,
                                   .batch = (uint32_t)e->batch,
                                   .n_threads = (uint32_t)e->threads,
                                   .n_workers = (uint32_t)e->workers,
                                   .apply_exif = e->exif != 0,
                                   .decode = image_decode_mode(e->over.decode),
                                   .data = e->data,
                                   .dataset = &data,
                                   .log = e->log_samples,
                                   .resume = e->resume != 0,
                                   .max_bytes = d->a->memory_mb << 20,
                                   .user = d,
                                   .open_model = open_model,
                                   .on_failure = on_failure,
                                   .progress = on_progress,
                                   .ranks = ranks_get(),
                                   .condition = d->classes.condition};
    renyi_error err = {0};
    renyi_sweep *s;

    if (renyi_sweep_new(&s, grid, &o, &err) != RENYI_OK) return fail_sweep(&err);
    const int code = run_sweep(d, s);
    renyi_sweep_free(s);
    return code;
}

/* The classes of CLIP models must be known before the first is opened. The sweep itself opens the
 * data again. */
static int run_with_classes(sweep_driver *d, const renyi_grid *grid)
{
    renyi_dataset *data = NULL;
    int code = CLI_OK;

    if (!d->a->e.zeroshot) return make_sweep(d, grid);
    code = eval_open_data("sweep", &d->a->e, NULL, &data);
    if (code == CLI_OK) code = zeroshot_classes_make(&d->classes, "sweep", d->a->e.zeroshot, data);
    if (code == CLI_OK) code = make_sweep(d, grid);
    zeroshot_classes_free(&d->classes);
    renyi_dataset_free(data);
    return code;
}

static void free_driver(sweep_driver *d)
{
    for (uint32_t i = 0; i < d->grid.n_models; i++) {
        free(d->paths[i]);
        renyi_classifier_free(d->heads[i]);
    }
    free(d->paths);
    free(d->heads);
}

int sweep_execute(const sweep_arguments *a, const renyi_grid *grid)
{
    sweep_driver d = {.a = a};
    int code = CLI_OK;

    renyi_grid_get_info(grid, &d.grid);
    d.paths = cli_alloc(d.grid.n_models, sizeof *d.paths);
    d.heads = cli_alloc(d.grid.n_models, sizeof *d.heads);
    for (uint32_t i = 0; code == CLI_OK && i < d.grid.n_models; i++)
        if (!(d.paths[i] = model_path_resolve(d.grid.models[i]))) code = CLI_FAILED;
    if (code == CLI_OK && !a->dry_run && sweep_folder_make(a)) code = CLI_FAILED;
    if (code == CLI_OK) code = run_with_classes(&d, grid);
    free_driver(&d);
    return code;
}
