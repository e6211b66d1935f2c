/* cmd_tune.c - renyi tune: the command line, the search with its progress, and the exit code.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/shared/models.h"
#include "cli/sweep/tune_report.h"
#include "cli/verbs.h"

#include <stdlib.h>

/* What the callbacks share. */
typedef struct tune_driver {
    const tune_arguments *a;
    char *path; /* of the model */
    progress_bar bar;
    renyi_tune_progress shown; /* the stage that was announced */
    int is_announced, is_started;
} tune_driver;

/* ---- callbacks ----------------------------------------------------------------------------- */

static renyi_status open_model(void *user, const char *name, uint32_t image_size, renyi_dtype dtype,
                               renyi_model **out, renyi_preprocess *preprocess, renyi_error *err)
{
    const tune_driver *d = user;
    renyi_options o = model_options(d->a->e.cpu, NULL, image_size);

    o.dtype = dtype;
    (void)name;
    (void)preprocess; /* the same for all sizes */
    return renyi_model_open(out, d->path, &o, err);
}

static void on_failure(void *user, const char *file, const char *message)
{
    tune_driver *d = user;

    progress_end(&d->bar); /* the message gets its own line; the bar is drawn again below it */
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
        cli_note("rung %u of %u: %u candidates, %llu images", now->rung, now->n_rungs,
                 now->n_candidates, (unsigned long long)now->images);
        break;
    case RENYI_TUNE_LAST_TIMING: cli_note("timing the best %u again", now->n_candidates); break;
    case RENYI_TUNE_CONFIRMING:
        cli_note("confirming on %llu images that the search never saw",
                 (unsigned long long)now->images);
        break;
    }
}

static int on_progress(void *user, const renyi_tune_progress *now)
{
    static const char *const titles[] = {"timing", "search", "timing", "confirm"};
    tune_driver *d = user;
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

static int run_tune(tune_driver *d, renyi_tune *t, tune_report *r)
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
    if (r->is_interrupted) eval_report_interrupt(d->a->e.log_samples != NULL, "--log-samples FILE");
    return exit_code(r);
}

static int make_tune(tune_driver *d, const renyi_model *model, const renyi_dataset *data,
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
        cli_note("data: %llu images in %s, without classes", (unsigned long long)found.n_images,
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
                                  .decode = spec.decode,
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
        code = run_tune(d, t, ((r.tune = t), &r));
    renyi_tune_free(t);
    free(name);
    return code;
}

/* The candidates. Without a spec file and sizes, the usual sizes are tried. */
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
                                  .policies = (const char *const *)a->policies.items,
                                  .n_dtypes = a->e.dtype ? (uint32_t)a->e.dtypes.n : 0,
                                  .dtypes = a->e.dtypes.items};
    return renyi_grid_new(out, &o, &err) == RENYI_OK ? CLI_OK : eval_error("tune", &err);
}

static int open_dataset(const tune_arguments *a, const renyi_model *model, renyi_dataset **out)
{
    renyi_dataset_options o = eval_data_options(&a->e);
    renyi_error err = {0};

    o.unlabelled = a->unlabelled != 0;
    return renyi_dataset_open(out, a->e.data, model, &o, &err) == RENYI_OK
               ? CLI_OK
               : eval_error("tune", &err);
}

/* A dtype that this CPU does not have would only be a candidate that does not fit. */
static int check_dtypes(const eval_arguments *e)
{
    renyi_error err = {0};

    for (size_t i = 0; i < e->dtypes.n; i++) {
        const renyi_dtype dtype = e->dtypes.items[i];
        if (dtype != RENYI_DTYPE_DEFAULT && dtype != RENYI_DTYPE_AUTO &&
            renyi_dtype_check(dtype, cpu_from_name(e->cpu), &err) != RENYI_OK)
            return cli_fail(&err);
    }
    return CLI_OK;
}

static int execute(const tune_arguments *a)
{
    renyi_options opt = model_options(a->e.cpu, NULL, 0);
    tune_driver d = {.a = a};
    renyi_dataset *data = NULL;
    renyi_grid *grid = NULL;

    if (check_dtypes(&a->e) != CLI_OK) return CLI_FAILED;
    opt.dtype = a->e.dtypes.items[0]; /* the dense model is in the first */
    renyi_model *model = model_open_reported(a->e.model, &opt, NULL);
    if (!model) return CLI_FAILED;
    d.path = model_path_resolve(a->e.model);
    int code = d.path ? make_grid(a, model, &grid) : CLI_FAILED;
    if (code == CLI_OK) code = open_dataset(a, model, &data);
    if (code == CLI_OK) code = make_tune(&d, model, data, grid);
    renyi_dataset_free(data);
    renyi_grid_free(grid);
    renyi_model_free(model);
    free(d.path);
    return code;
}

/* ---- the command line
 * ---------------------------------------------------------------------------- */

/* Exactly one of the three goals. */
static int take_goal(tune_arguments *a)
{
    const struct {
        const option_reals *value;
        renyi_tune_goal goal;
    } goals[] = {{&a->max_drop, RENYI_TUNE_MAX_DROP},
                 {&a->target_ms, RENYI_TUNE_TARGET_MS},
                 {&a->target_gmacs, RENYI_TUNE_TARGET_GMACS}};
    int given = 0;

    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++) {
        if (!goals[i].value->given) continue;
        a->goal = goals[i].goal;
        a->bound = goals[i].value->values[0];
        given++;
    }
    if (given == 1) return CLI_OK;
    return options_usage_error("tune", "%s",
                               given ? "--max-drop, --target-ms and --target-gmacs "
                                       "exclude each other: give one"
                                     : "a goal is missing: --max-drop POINTS, "
                                       "--target-ms MS or --target-gmacs N");
}

static int check_arguments(tune_arguments *a, const cli_strings *arguments)
{
    eval_arguments *e = &a->e;

    if (eval_take_data("tune", e, arguments) != CLI_OK) return CLI_USAGE;
    if (a->unlabelled && (e->ground_truth || e->class_map || e->real_labels || e->valid_labels))
        return options_usage_error("tune", "--unlabeled takes no label files");
    if (a->search.given && !(a->search.values[0] > 0 && a->search.values[0] < 1))
        return options_usage_error("tune", "option '--search': %g is not above 0 and below 1",
                                   a->search.values[0]);
    e->shuffle = 1; /* so that --limit does not take only the first classes */
    if (eval_check_arguments("tune", e)) return CLI_USAGE;
    if (take_goal(a) != CLI_OK) return CLI_USAGE;
    e->model = model_or_builtin(e->model);
    return CLI_OK;
}

/* clang-format off */
#define GOAL_OPTION_ROWS(a) \
    {"max-drop", 0, OPTION_REAL, &(a)->max_drop, "POINTS", "the fastest that loses at most POINTS of top-1", 0, 0}, \
    {"target-ms", 0, OPTION_REAL, &(a)->target_ms, "MS", "the most accurate that takes at most MS per image", 0, 0}, \
    {"target-gmacs", 0, OPTION_REAL, &(a)->target_gmacs, "N", "the most accurate with at most N GMACs per image", 0, 0}

#define SPACE_OPTION_ROWS(a) \
    {"space", 0, OPTION_STRING, &(a)->space, "SPEC", "candidates from a spec file of 'renyi sweep'", 0, 0}, \
    {"prune", 0, OPTION_STRINGS, &(a)->policies, "POLICY", "candidates instead of the usual; values may be a|b|c; may be repeated", 0, 0}, \
    {"image-size", 0, OPTION_COUNTS, &(a)->sizes, "N,...", "input sides to try (the model's, 6/7, 5/7 and 4/7 of it)", 1, 16384}

#define SPLIT_OPTION_ROWS(a) \
    {"limit", 0, OPTION_COUNT, &(a)->e.limit, "N", "at most N images, drawn at random", 1, 0}, \
    {"seed", 0, OPTION_COUNT, &(a)->e.seed, "N", "seed of the draw and of the split (0)", 0, 0}, \
    {"search", 0, OPTION_REAL, &(a)->search, "X", "share of the images to search with; the rest confirms (0.5)", 0, 0}, \
    {"unlabeled", 0, OPTION_FLAG, &(a)->unlabelled, "", "images without classes: the dense model's answers count as right", 0, 0}

#define TIMING_OPTION_ROWS(a) \
    {"batch-size", 'b', OPTION_COUNT, &(a)->batch, "N", "images run together when times are measured (1)", 1, 1024}, \
    THREAD_OPTION_ROWS(a), \
    JSON_OPTION_ROW(a)
/* clang-format on */

static option_outcome parse_options(tune_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->e.model, "MODEL", MODEL_HELP_BUILTIN, 0, 0},
        GOAL_OPTION_ROWS(a),
        LABEL_OPTION_ROWS(&a->e),
        SPLIT_OPTION_ROWS(a),
        SPACE_OPTION_ROWS(a),
        TIMING_OPTION_ROWS(&a->e),
        DTYPES_OPTION_ROW(&a->e),
        LOG_OPTION_ROWS(&a->e),
        FIT_OPTION_ROWS(&a->e),
    };
    const verb_syntax syntax = {
        "tune",
        "[-m MODEL] --data-dir DIR {--max-drop POINTS | --target-ms MS | --target-gmacs N} [options]",
        "Finds the policy and input size to use: the fastest within a loss of accuracy, or the most accurate\n"
        "within a time, on your images and this machine. Half of the images are used to search, by successive\n"
        "halving; the other half, which the search never saw, confirms. Losses are in points of top-1 below\n"
        "the dense model at its own size, in the first --dtype. The last line on stdout is what to add to\n"
        "'classify', 'eval' or 'bench'. The exit code is 1 when nothing meets the target, 3 when images could\n"
        "not be read.",
        "  renyi tune -m model.safetensors --data-dir images --max-drop 1\n"
        "  renyi tune -m model.safetensors --data-dir images --target-ms 10 -t 1\n"
        "  renyi tune -m vit.safetensors --data-dir images --max-drop 2 --prune 'mosaic keep=0.6|0.7 layers=3,6,9'\n"
        "  renyi tune -m model.safetensors --data-dir any/images --unlabeled --max-drop 5\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_tune(int argc, char **argv)
{
    tune_arguments a = {.e = {.log_freq = 100}};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&a, &arguments)) == CLI_OK)
        code = execute(&a);
    cli_strings_free(&a.policies);
    cli_strings_free(&arguments);
    return code;
}
