/* viz_llava.c - renyi viz with a LLaVA: which patches each policy keeps for the language model, and
 * its scores, as the results that figures and pages draw.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/viz/viz_arguments.h"

#include "cli/shared/models.h"
#include "cli/shared/prune_options.h"
#include "renyi/llava.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 1 }; /* the last block of the tower that runs */

/* A result and the memory behind it. */
typedef struct llava_result {
    renyi_viz_result r;
    uint32_t layers[LAYERS];
    uint8_t *pixels;
    renyi_viz_row *rows;       /* [n_policies] */
    renyi_viz_step *steps;     /* [n_policies] */
    renyi_viz_metric *metrics; /* [n_policies] of those with scores */
    renyi_viz_map *maps;       /* [n_policies] */
    cli_strings texts;         /* policies in full */
} llava_result;

/* ---- what a policy did to the patches -------------------------------------------------------- */

static renyi_viz_answer cost_only(double macs)
{
    return (renyi_viz_answer){.macs = macs, .ms = NAN};
}

static void count_states(renyi_viz_step *s, uint32_t n_patches)
{
    uint32_t *counts[] = {&s->n_kept, &s->n_merged, &s->n_fused, &s->n_dropped};

    for (uint32_t i = 0; i < n_patches; i++) ++*counts[s->state[i]];
}

/* The rows of a smaller picture are no patches of this one. */
static int has_own_picture(const char *policy) { return strncmp(policy, "downsample ", 11) == 0; }

/* A patch of a row is kept. The others are fused if there is a row made of several patches, else
 * dropped. */
static renyi_viz_step make_step(const renyi_visual_tokens *t, const char *policy,
                                uint32_t n_patches, uint32_t layer, double macs)
{
    uint8_t *state = cli_alloc(n_patches, 1), *rescued = cli_alloc(n_patches, 1);
    uint32_t *group = cli_alloc(n_patches, sizeof *group),
             *gone_at = cli_alloc(n_patches, sizeof *gone_at), n_own = 0;
    float *score = cli_alloc(n_patches, sizeof *score);
    const int is_other = has_own_picture(policy);
    int has_several = is_other;

    for (uint32_t i = 0; i < t->n; i++) has_several = has_several || t->kept[i] >= n_patches;
    memset(state, has_several ? RENYI_VIZ_FUSED : RENYI_VIZ_DROPPED, n_patches);
    for (uint32_t i = 0; i < n_patches; i++) {
        group[i] = RENYI_NONE;
        gone_at[i] = layer;
        score[i] = t->scores ? t->scores[i] : NAN;
    }
    for (uint32_t i = 0; !is_other && i < t->n; i++) {
        const uint32_t at = t->kept[i];
        if (at >= n_patches || state[at] == RENYI_VIZ_KEPT) continue;
        state[at] = RENYI_VIZ_KEPT;
        group[at] = at;
        gone_at[at] = RENYI_NONE;
        n_own++;
    }
    renyi_viz_step step = {.layer = layer,
                           .is_cut = t->n < n_patches,
                           .state = state,
                           .rescued = rescued,
                           .group = group,
                           .gone_at = gone_at,
                           .score = score,
                           .n_groups = n_own,
                           .n_tokens = t->n,
                           .macs = macs};
    count_states(&step, n_patches);
    return step;
}

static void free_step(const renyi_viz_step *s)
{
    free((void *)(uintptr_t)s->state);
    free((void *)(uintptr_t)s->rescued);
    free((void *)(uintptr_t)s->group);
    free((void *)(uintptr_t)s->gone_at);
    free((void *)(uintptr_t)s->score);
}

/* ---- scores ---------------------------------------------------------------------------------- */

typedef struct ranked {
    float score;
    uint32_t patch;
} ranked;

/* The best first; ties: the lower patch. */
static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->patch > y->patch) - (x->patch < y->patch);
}

static renyi_viz_map make_map(const float *scores, uint32_t n)
{
    float *copy = cli_alloc(n, sizeof *copy);
    uint32_t *rank = cli_alloc(n, sizeof *rank);
    ranked *order = cli_alloc(n, sizeof *order);

    for (uint32_t i = 0; i < n; i++) {
        copy[i] = scores[i];
        order[i] = (ranked){isfinite(scores[i]) ? scores[i] : -INFINITY, i};
    }
    qsort(order, n, sizeof *order, by_score);
    for (uint32_t i = 0; i < n; i++) rank[order[i].patch] = i;
    const uint32_t cut = n / 100;
    const float high = order[cut].score, low = order[n - 1 - cut].score;
    free(order);
    return (renyi_viz_map){.score = copy,
                           .rank = rank,
                           .low = isfinite(low) ? low : 0,
                           .high = isfinite(high) ? high : 0};
}

/* ---- one image ------------------------------------------------------------------------------- */

/* What all images share. */
typedef struct llava_viz {
    const viz_arguments *a;
    renyi_visual *visual;
    renyi_visual_info info;
    renyi_visual_session *dense, **sessions; /* [n] */
    size_t n;
} llava_viz;

static renyi_status run_session(const llava_viz *v, renyi_visual_session *s,
                                const renyi_image *image, renyi_visual_tokens *out, double *macs,
                                renyi_error *err)
{
    renyi_visual_work before, after;

    (void)v;
    renyi_visual_session_get_work(s, &before);
    const renyi_status st = renyi_visual_run(s, image, out, err);
    renyi_visual_session_get_work(s, &after);
    *macs = after.tower_macs + after.projector_macs - before.tower_macs - before.projector_macs;
    return st;
}

static renyi_status run_policy(const llava_viz *v, llava_result *out, size_t i,
                               const renyi_image *image, renyi_error *err)
{
    renyi_visual_tokens t;
    double macs;
    const renyi_status st = run_session(v, v->sessions[i], image, &t, &macs, err);
    if (st != RENYI_OK) return st;
    cli_strings_add(&out->texts, cli_copy(renyi_visual_session_policy(v->sessions[i])));
    const char *full = out->texts.items[out->texts.count - 1], *label = v->a->policies.items[i];
    out->steps[i] = make_step(&t, full, v->info.n_patches, out->layers[0], macs);
    out->rows[i] = (renyi_viz_row){.policy = full,
                                   .label = label,
                                   .metric = RENYI_NONE,
                                   .norm = RENYI_NONE,
                                   .keep = NAN,
                                   .steps = &out->steps[i],
                                   .answer = cost_only(macs)};
    out->r.n_rows = (uint32_t)i + 1;
    if (!t.scores) return RENYI_OK;
    renyi_viz_map *map = &out->maps[out->r.n_metrics];
    *map = make_map(t.scores, v->info.n_patches);
    out->metrics[out->r.n_metrics++] =
        (renyi_viz_metric){.name = full, .label = label, .order = NAN, .maps = map};
    return RENYI_OK;
}

static void free_result(llava_result *out)
{
    for (uint32_t i = 0; i < out->r.n_rows; i++) free_step(&out->steps[i]);
    for (uint32_t i = 0; i < out->r.n_metrics; i++) {
        free((void *)(uintptr_t)out->maps[i].score);
        free((void *)(uintptr_t)out->maps[i].rank);
    }
    free(out->pixels);
    free(out->rows);
    free(out->steps);
    free(out->metrics);
    free(out->maps);
    cli_strings_free(&out->texts);
    free(out);
}

/* The image as the tower sees it, from the run without pruning. */
static renyi_status begin_result(const llava_viz *v, llava_result *out, const renyi_image *image,
                                 const char *name, renyi_error *err)
{
    const renyi_visual_info *i = &v->info;
    const size_t size = (size_t)i->image_size * i->image_size * 3;
    renyi_visual_tokens t;
    double macs;
    const renyi_status st = run_session(v, v->dense, image, &t, &macs, err);
    if (st != RENYI_OK) return st;
    const uint8_t *pixels = renyi_visual_session_pixels(v->dense);
    if (!pixels) {
        snprintf(err->message, sizeof err->message,
                 "a LLaVA with tiles (LLaVA-NeXT) cannot be drawn yet");
        return err->code = RENYI_ERR_UNSUPPORTED;
    }
    out->pixels = cli_alloc(size, 1);
    memcpy(out->pixels, pixels, size);
    out->layers[0] = i->n_blocks_run - 1;
    out->r = (renyi_viz_result){.photo = {.name = name,
                                          .rgb = out->pixels,
                                          .size = i->image_size,
                                          .grid = i->image_size / i->patch_size,
                                          .patch = i->patch_size},
                                .model = v->a->model,
                                .n_blocks = i->n_blocks_run,
                                .n_patches = i->n_patches,
                                .n_prefix = 1,
                                .n_heads = i->n_heads,
                                .n_layers = LAYERS,
                                .layers = out->layers,
                                .metrics = out->metrics,
                                .rows = out->rows,
                                .dense = cost_only(macs)};
    return RENYI_OK;
}

/* NULL after reporting. */
static llava_result *run_image(const llava_viz *v, const char *path, image_inputs *inputs)
{
    const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = v->a->exif != 0};
    const char *slash = strrchr(path, '/');
    llava_result *out = cli_alloc(1, sizeof *out);
    renyi_error err = {0};
    renyi_image image;
    char *why;

    out->rows = cli_alloc(v->n, sizeof *out->rows);
    out->steps = cli_alloc(v->n, sizeof *out->steps);
    out->metrics = cli_alloc(v->n, sizeof *out->metrics);
    out->maps = cli_alloc(v->n, sizeof *out->maps);
    if (image_decode(&image, path, v->a->exif, &why)) {
        image_inputs_fail(inputs, path, why);
        free(why);
        free_result(out);
        return NULL;
    }
    renyi_status st = begin_result(v, out, &image, slash ? slash + 1 : path, &err);
    for (size_t i = 0; st == RENYI_OK && i < v->n; i++) st = run_policy(v, out, i, &image, &err);
    renyi_image_free(&image, &opt);
    if (st == RENYI_OK) return out;
    image_inputs_fail(inputs, path, cli_reason(&err));
    free_result(out);
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

int viz_llava(const viz_arguments *a, image_inputs *inputs)
{
    llava_viz v = {.a = a};
    viz_view view = {.a = a, .inputs = inputs};
    llava_result **results = cli_alloc(inputs->paths.count, sizeof *results);
    int code = check_llava_options(a);

    view.images = cli_alloc(inputs->paths.count, sizeof *view.images);
    if (code == CLI_OK) code = open_all(&v);
    for (size_t i = 0; code == CLI_OK && i < inputs->paths.count; i++) {
        llava_result *r = run_image(&v, inputs->paths.items[i], inputs);
        if (!r) continue;
        results[view.n] = r;
        view.images[view.n++] = &r->r;
    }
    if (code == CLI_OK) code = viz_show(&view);
    for (size_t i = 0; i < view.n; i++) free_result(results[i]);
    for (size_t i = 0; i < v.n; i++) renyi_visual_session_free(v.sessions[i]);
    renyi_visual_session_free(v.dense);
    renyi_visual_free(v.visual);
    free(v.sessions);
    free(view.images);
    free(results);
    return code;
}
