/* viz_execute.c - renyi viz: opens the model, looks at every photo, has it shown.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/viz/viz_arguments.h"

#include "renyi/viz.h"
#include <stdlib.h>
#include <string.h>

/* Forward passes of all photos; how many one takes is known when the first is done. */
typedef struct runs_bar {
    progress_bar bar;
    size_t photo, n_photos;
} runs_bar;

static int show_runs(void *user, uint64_t done, uint64_t total)
{
    runs_bar *b = user;

    if (!b->bar.title) progress_start(&b->bar, "runs", total * b->n_photos, 1);
    progress_update(&b->bar, b->photo * total + done);
    return 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (strcmp(path, "-") == 0) return "(stdin)";
    return slash && slash[1] ? slash + 1 : path;
}

/* One photo into the view; what is wrong with it is told, and the others go on. -1: the policies
 * are at fault or memory is, and no other photo would do better. */
static int look_at(viz_view *v, renyi_viz *viz, const char *path, image_inputs *inputs)
{
    const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = v->a->exif != 0};
    renyi_viz_result *result = NULL;
    renyi_error err = {0};
    renyi_image image;
    char *why;

    if (image_decode(&image, path, v->a->exif, &why)) {
        image_inputs_fail(inputs, path, why);
        free(why);
        return 0;
    }
    const renyi_status st = renyi_viz_run(viz, &image, last_part(path), &result, &err);
    renyi_image_free(&image, &opt);
    if (st == RENYI_OK)
        v->photos[v->n++] = result;
    else if (st != RENYI_ERR_NOMEM)
        image_inputs_fail(inputs, path, err.message);
    else
        cli_error("%s", err.message);
    return st == RENYI_ERR_NOMEM ? -1 : 0;
}

static int show(const viz_view *v)
{
    if (v->n && viz_draw(v)) return CLI_FAILED;
    if (v->a->json) json_print(viz_json(v));
    if (!v->n) return CLI_FAILED;
    if (!v->a->json && !v->a->term && !v->a->svg) viz_table(v);
    return v->inputs->n_failed ? CLI_PARTIAL : CLI_OK;
}

static int look_at_all(const viz_arguments *a, renyi_viz *viz, image_inputs *inputs, runs_bar *bar)
{
    viz_view v = {.a = a, .inputs = inputs};
    int bad = 0;

    v.photos = cli_alloc(inputs->paths.count, sizeof *v.photos);
    bar->n_photos = inputs->paths.count;
    for (; !bad && bar->photo < bar->n_photos; bar->photo++)
        bad = look_at(&v, viz, inputs->paths.items[bar->photo], inputs);
    progress_end(&bar->bar);
    const int code = bad ? CLI_FAILED : show(&v);
    for (size_t i = 0; i < v.n; i++)
        renyi_viz_result_free((renyi_viz_result *)(uintptr_t)v.photos[i]);
    free(v.photos);
    return code;
}

static int with_model(const viz_arguments *a, const renyi_model *model, image_inputs *inputs)
{
    viz_lists lists = {0};
    renyi_viz_options opt;
    renyi_error err = {0};
    renyi_viz *viz = NULL;
    runs_bar bar = {0};
    int code = CLI_USAGE;

    if (viz_options_make(&opt, &lists, a, model) == 0) {
        opt.progress = show_runs;
        opt.progress_user = &bar;
        if (renyi_viz_new(&viz, model, &opt, &err) == RENYI_OK)
            code = look_at_all(a, viz, inputs, &bar);
        else if (err.code == RENYI_ERR_ARG)
            options_usage_error("viz", "%s", err.message);
        else
            cli_error("%s", err.message), code = CLI_FAILED;
    }
    renyi_viz_free(viz);
    viz_lists_free(&lists, model);
    return code;
}

/* More would neither fit in a figure nor in memory. */
static int are_few(const viz_arguments *a, size_t n)
{
    size_t most = RENYI_VIZ_MAX_PHOTOS;

    for (size_t i = 0; i < a->outputs.count; i++)
        if (strcmp(viz_format(a->outputs.items[i]), "html") != 0) most = RENYI_FIGURE_MAX_RESULTS;
    if (a->term || a->svg) most = RENYI_FIGURE_MAX_RESULTS;
    if (n > most) options_usage_error("viz", "%zu photos; at most %zu at a time", n, most);
    return n <= most;
}

int viz_execute(const viz_arguments *a, const cli_strings *words)
{
    image_inputs inputs;
    int code = CLI_FAILED;

    image_inputs_collect(&inputs, words, a->list, a->recursive);
    if (!are_few(a, inputs.paths.count)) {
        code = CLI_USAGE;
    } else if (inputs.paths.count) {
        const renyi_options opt = {.struct_size = sizeof opt,
                                   .cpu = cpu_from_name(a->cpu),
                                   .image_size = (uint32_t)a->image_size,
                                   .dtype = dtype_from_name(a->dtype)};
        renyi_model *model = model_open_reported(a->model, &opt, NULL);
        if (model) code = with_model(a, model, &inputs);
        renyi_model_free(model);
    } else if (!inputs.n_failed) {
        cli_error("%s: the list names no images", a->list);
    }
    image_inputs_free(&inputs);
    return code;
}
