/* viz_llava.c - renyi viz with a LLaVA: options, sessions of the policies, and their runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/viz/viz_arguments.h"

#include "cli/shared/models.h"
#include "cli/shared/prune_options.h"
#include "cli/viz/viz_squares.h"
#include "renyi/llava.h"

#include <stdlib.h>
#include <string.h>

/* ---- one image ------------------------------------------------------------------------------- */

/* What all images share. */
typedef struct llava_viz {
    const viz_arguments *a;
    renyi_visual *visual;
    renyi_visual_info info;
    char *name;                              /* of the model, without folders */
    renyi_visual_session *dense, **sessions; /* [n] */
    size_t n;
} llava_viz;

static renyi_status run_session(viz_run *out, renyi_visual_session *s, const renyi_image *image,
                                renyi_error *err)
{
    renyi_visual_work before, after;

    renyi_visual_session_get_work(s, &before);
    const renyi_status st = renyi_visual_run(s, image, &out->t, err);
    renyi_visual_session_get_work(s, &after);
    out->session = s;
    out->macs = after.tower_macs + after.projector_macs - before.tower_macs - before.projector_macs;
    return st;
}

static renyi_status run_policies(const llava_viz *v, viz_picture **out, const renyi_image *image,
                                 const char *name, renyi_error *err)
{
    viz_run run;
    renyi_status st = run_session(&run, v->dense, image, err);

    if (st == RENYI_OK) st = viz_picture_new(out, &v->info, &run, v->n, v->name, name, err);
    for (size_t i = 0; st == RENYI_OK && i < v->n; i++) {
        st = run_session(&run, v->sessions[i], image, err);
        if (st == RENYI_OK) st = viz_picture_add(*out, &run, v->a->policies.items[i], err);
    }
    return st;
}

/* NULL after reporting. */
static viz_picture *run_image(const llava_viz *v, const char *path, image_inputs *inputs)
{
    const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = v->a->exif != 0};
    const char *slash = strrchr(path, '/');
    viz_picture *out = NULL;
    renyi_error err = {0};
    renyi_image image;
    char *why;

    if (image_decode(&image, path, v->a->exif, &why)) {
        image_inputs_fail(inputs, path, why);
        free(why);
        return NULL;
    }
    const renyi_status st = run_policies(v, &out, &image, slash ? slash + 1 : path, &err);
    renyi_image_free(&image, &opt);
    if (st == RENYI_OK) return out;
    image_inputs_fail(inputs, path, cli_reason(&err));
    viz_picture_free(out);
    return NULL;
}

/* ---- the model ------------------------------------------------------------------------------- */

int viz_is_llava(const char *model)
{
    char *path = model_path_find(model);
    const renyi_options opt = {.struct_size = sizeof opt};
    renyi_lm_info info = {0};
    const int is_llava =
        path && renyi_lm_describe(path, &opt, &info, NULL) == RENYI_OK && info.is_llava;

    free(path);
    return is_llava;
}

/* Options that ask for what a LLaVA does not have. */
static int check_llava_options(const viz_arguments *a)
{
    const struct {
        const char *name;
        int given;
    } vision[] = {{"metrics", a->metrics != NULL},
                  {"layers", a->layers != NULL},
                  {"orders", a->orders != NULL},
                  {"keep", a->keeps != NULL},
                  {"rule", a->rule != NULL},
                  {"sweep", a->sweep != NULL},
                  {"attention", a->attention != NULL},
                  {"labels", a->labels != NULL},
                  {"time", a->time}};

    for (size_t i = 0; i < sizeof vision / sizeof *vision; i++)
        if (vision[i].given)
            return options_usage_error("viz", "--%s is for vision models; for a LLaVA give --prune",
                                       vision[i].name);
    if (!a->policies.count)
        return options_usage_error("viz", "with a LLaVA --prune POLICY is needed, or several");
    return CLI_OK;
}

static int open_session(const llava_viz *v, renyi_visual_session **out, const char *policy)
{
    const renyi_visual_session_options o = {
        .struct_size = sizeof o, .n_threads = (uint32_t)v->a->threads, .policy = policy};
    renyi_error err = {0};

    if (renyi_visual_session_new(out, v->visual, &o, &err) == RENYI_OK) return CLI_OK;
    return prune_error("viz", policy, &err);
}

static int open_all(llava_viz *v)
{
    const renyi_options opt = model_options(v->a->cpu, v->a->dtype, 0);
    char *path = model_path_resolve(v->a->model);
    renyi_error err = {0};
    int code = CLI_FAILED;

    if (path && renyi_visual_open(&v->visual, path, NULL, &opt, &err) != RENYI_OK)
        cli_fail(&err);
    else if (path)
        code = open_session(v, &v->dense, "none");
    free(path);
    if (code != CLI_OK) return code;
    renyi_visual_get_info(v->visual, &v->info);
    v->sessions = cli_alloc(v->a->policies.count, sizeof *v->sessions);
    for (; code == CLI_OK && v->n < v->a->policies.count; v->n++)
        code = open_session(v, &v->sessions[v->n], v->a->policies.items[v->n]);
    return code;
}

/* The last part of a path, which may end with a slash. */
static char *last_name(const char *path)
{
    char *copy = cli_copy(path);
    size_t n = strlen(copy);

    while (n > 1 && copy[n - 1] == '/') copy[--n] = 0;
    const char *slash = strrchr(copy, '/');
    char *name = cli_copy(slash && slash[1] ? slash + 1 : copy);
    free(copy);
    return name;
}

int viz_llava(const viz_arguments *a, image_inputs *inputs)
{
    llava_viz v = {.a = a, .name = last_name(a->model)};
    viz_view view = {.a = a, .inputs = inputs};
    viz_picture **pictures = cli_alloc(inputs->paths.count, sizeof *pictures);
    int code = check_llava_options(a);

    view.images = cli_alloc(inputs->paths.count, sizeof *view.images);
    view.tiles = cli_alloc(inputs->paths.count, sizeof *view.tiles);
    if (code == CLI_OK) code = open_all(&v);
    for (size_t i = 0; code == CLI_OK && i < inputs->paths.count; i++) {
        viz_picture *p = run_image(&v, inputs->paths.items[i], inputs);
        if (!p) continue;
        pictures[view.n] = p;
        view.tiles[view.n] = p->tiles.across ? &p->tiles : NULL;
        view.images[view.n++] = &p->squares[0].r;
    }
    if (code == CLI_OK) code = viz_show(&view);
    for (size_t i = 0; i < view.n; i++) viz_picture_free(pictures[i]);
    for (size_t i = 0; i < v.n; i++) renyi_visual_session_free(v.sessions[i]);
    renyi_visual_session_free(v.dense);
    renyi_visual_free(v.visual);
    free(v.sessions);
    free(v.name);
    free(view.images);
    free(view.tiles);
    free(pictures);
    return code;
}
