/* viz_execute.c - renyi viz: opens the model, looks at every photo, has it shown.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json_out.h"
#include "model_path.h"
#include "photo.h"
#include "terminal.h"
#include "viz_arguments.h"

#include <stdlib.h>
#include <string.h>

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

    if (photo_decode(&image, path, v->a->exif, &why)) {
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

static int look_at_all(const viz_arguments *a, renyi_viz *viz, image_inputs *inputs)
{
    viz_view v = {.a = a, .inputs = inputs};
    progress_bar bar;
    int bad = 0;

    v.photos = cli_alloc(inputs->paths.count, sizeof *v.photos);
    progress_start(&bar, "photos", inputs->paths.count, inputs->paths.count > 1);
    for (size_t i = 0; !bad && i < inputs->paths.count; i++) {
        bad = look_at(&v, viz, inputs->paths.items[i], inputs);
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
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
    int code = CLI_USAGE;

    if (viz_options_make(&opt, &lists, a, model) == 0) {
        if (renyi_viz_new(&viz, model, &opt, &err) == RENYI_OK)
            code = look_at_all(a, viz, inputs);
        else if (err.code == RENYI_ERR_ARG)
            options_usage_error("viz", "%s", err.message);
        else
            cli_error("%s", err.message), code = CLI_FAILED;
    }
    renyi_viz_free(viz);
    viz_lists_free(&lists, model);
    return code;
}

int viz_execute(const viz_arguments *a, const cli_strings *words)
{
    image_inputs inputs;
    int code = CLI_FAILED;

    image_inputs_collect(&inputs, words, a->list, a->recursive);
    if (inputs.paths.count) {
        const renyi_options opt = {.struct_size = sizeof opt,
                                   .cpu = cpu_from_name(a->cpu),
                                   .image_size = (uint32_t)a->image_size,
                                   .dtype = dtype_from_name(a->dtype)};
        renyi_model *model = model_open_reported(a->model, &opt);
        if (model) code = with_model(a, model, &inputs);
        renyi_model_free(model);
    } else if (!inputs.n_failed) {
        cli_error("%s: the list names no images", a->list);
    }
    image_inputs_free(&inputs);
    return code;
}
