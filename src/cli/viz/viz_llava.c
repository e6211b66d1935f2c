/* viz_llava.c - renyi viz with a LLaVA: options, sessions of the policies, and their runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/viz/viz_arguments.h"

#include "cli/llava/llava_options.h"
#include "cli/viz/viz_squares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one image ------------------------------------------------------------------------------- */

/* A policy: in the tower or behind it, or in the language model; then `talk` is set. */
typedef struct policy_runner {
    renyi_visual_session *session;
    renyi_conversation *talk;
    uint32_t *kept; /* of its last run */
    float *scores;
} policy_runner;

/* What all images share. */
typedef struct llava_viz {
    const viz_arguments *a;
    renyi_lvlm *lvlm; /* with a question; then it owns `visual` */
    renyi_visual *visual;
    renyi_visual_info info;
    char *name;                     /* of the model, without folders */
    policy_runner dense, *policies; /* [n] */
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
    out->policy = renyi_visual_session_policy(s);
    out->macs = after.tower_macs + after.projector_macs - before.tower_macs - before.projector_macs;
    return st;
}

/* The patches that are left after the last cut; the scores of the first cut, which all of them
 * reach. */
static void take_cuts(policy_runner *p, const renyi_answer *a, size_t n_patches)
{
    const renyi_lm_cut *first = &a->cuts[0], *last = &a->cuts[a->n_cuts - 1];

    free(p->kept);
    free(p->scores);
    p->kept = cli_alloc(last->n_kept, sizeof *p->kept);
    p->scores = first->scores ? cli_alloc(n_patches, sizeof *p->scores) : NULL;
    for (uint32_t i = 0; i < last->n_kept; i++)
        p->kept[i] = last->kept[i] == RENYI_NONE ? RENYI_NONE : a->kept[last->kept[i]];
    for (size_t i = 0; p->scores && i < n_patches; i++) p->scores[i] = NAN;
    for (uint32_t i = 0; p->scores && i < first->n_in; i++)
        if (a->kept[i] < n_patches) p->scores[a->kept[i]] = first->scores[i];
}

/* Reads the image with its question. *out: of the run without pruning, in which the tower is the
 * same. */
static renyi_status run_talk(const llava_viz *v, viz_run *out, policy_runner *p,
                             const renyi_image *image, renyi_error *err)
{
    const renyi_answer_options one = {.struct_size = sizeof one, .max_new_tokens = 1};
    renyi_answer answer;
    renyi_status st = renyi_conversation_show(p->talk, image, err);

    if (st == RENYI_OK) st = renyi_conversation_ask(p->talk, v->a->question, &one, &answer, err);
    if (st != RENYI_OK) return st;
    take_cuts(p, &answer, (size_t)out->t.n_squares * v->info.n_patches);
    out->policy = renyi_conversation_policy(p->talk);
    out->session = NULL;
    out->t.n = answer.cuts[answer.n_cuts - 1].n_kept;
    out->t.kept = p->kept;
    out->t.scores = p->scores;
    return RENYI_OK;
}

static renyi_status run_policies(const llava_viz *v, viz_picture **out, const renyi_image *image,
                                 const char *name, renyi_error *err)
{
    viz_run dense;
    renyi_status st = run_session(&dense, v->dense.session, image, err);

    if (st == RENYI_OK) st = viz_picture_new(out, &v->info, &dense, v->n, v->name, name, err);
    for (size_t i = 0; st == RENYI_OK && i < v->n; i++) {
        policy_runner *p = &v->policies[i];
        viz_run run = dense;
        st = p->talk ? run_talk(v, &run, p, image, err) : run_session(&run, p->session, image, err);
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
    if (a->text_tower && !a->question)
        return options_usage_error("viz", "--text-tower needs --question TEXT");
    if (!a->policies.count)
        return options_usage_error("viz", "with a LLaVA --prune POLICY is needed, or several");
    return CLI_OK;
}

/* What a policy needs to run: a session of the tower, or with a question that of the language
 * model, if it acts there. */
static int open_policy(const llava_viz *v, policy_runner *out, const char *policy,
                       const renyi_relevance *relevance)
{
    const renyi_visual_session_options o = {.struct_size = sizeof o,
                                            .n_threads = (uint32_t)v->a->threads,
                                            .policy = policy,
                                            .relevance = relevance};
    const renyi_conversation_options c = {
        .struct_size = sizeof c, .n_threads = (uint32_t)v->a->threads, .policy = policy};
    renyi_error err = {0};
    renyi_status st = renyi_visual_session_new(&out->session, v->visual, &o, &err);

    if (st == RENYI_ERR_ARG && v->lvlm) st = renyi_conversation_new(&out->talk, v->lvlm, &c, &err);
    if (st == RENYI_OK && out->session && v->a->question)
        st = renyi_visual_session_question(out->session, v->a->question, &err);
    return st == RENYI_OK ? CLI_OK : prune_error("viz", policy, &err);
}

static int open_model(llava_viz *v)
{
    const llava_arguments whole = {.model = v->a->model,
                                   .text_tower = v->a->text_tower,
                                   .tokenizer = v->a->tokenizer,
                                   .cpu = v->a->cpu,
                                   .dtype = v->a->dtype,
                                   .tower_dtype = v->a->dtype};

    if (!v->a->question) {
        v->visual = visual_open_reported(&whole);
        return v->visual ? CLI_OK : CLI_FAILED;
    }
    v->lvlm = llava_open_reported(&whole);
    if (!v->lvlm || llava_check_tokenizer(v->lvlm, &whole)) return CLI_FAILED;
    v->visual = (renyi_visual *)(uintptr_t)renyi_lvlm_visual(v->lvlm);
    return CLI_OK;
}

static int open_all(llava_viz *v)
{
    int code = open_model(v);

    if (code != CLI_OK) return code;
    const renyi_relevance *relevance = v->lvlm ? renyi_lvlm_relevance(v->lvlm) : NULL;
    renyi_visual_get_info(v->visual, &v->info);
    code = open_policy(v, &v->dense, "none", NULL);
    v->policies = cli_alloc(v->a->policies.count, sizeof *v->policies);
    for (; code == CLI_OK && v->n < v->a->policies.count; v->n++)
        code = open_policy(v, &v->policies[v->n], v->a->policies.items[v->n], relevance);
    return code;
}

static void free_policy(policy_runner *p)
{
    renyi_visual_session_free(p->session);
    renyi_conversation_free(p->talk);
    free(p->kept);
    free(p->scores);
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
    for (size_t i = 0; i < v.n; i++) free_policy(&v.policies[i]);
    free_policy(&v.dense);
    if (v.lvlm)
        renyi_lvlm_free(v.lvlm);
    else
        renyi_visual_free(v.visual);
    free(v.policies);
    free(v.name);
    free(view.images);
    free(view.tiles);
    free(pictures);
    return code;
}
