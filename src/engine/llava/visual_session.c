/* visual_session.c - runs an image through the visual side of a LLaVA: image tower, pruning inside
 * or behind it, projector.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/visual_session.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/policy_api.h"
#include "engine/llava/visual_smaller.h"
#include "image/fit.h"
#include "image/patches.h"

#include <string.h>

/* ---- making -------------------------------------------------------------------------------- */

/* Rows that the cuts inside the tower leave at most. */
static uint32_t rows_left(const renyi_visual_session *s)
{
    const uint32_t prefix = s->side->config.tower.n_prefix;
    uint32_t n = s->side->tower.n_patches + prefix;
    for (uint32_t i = 0; i < s->policy.n_cuts; i++)
        n = ry_policy_tokens_after(&s->policy, i, n, prefix);
    return n - prefix;
}

/* The policy of one square. With budget=image its number changes from square to square. */
static ry_policy square_policy(const renyi_visual_session *s)
{
    const uint32_t P = s->side->tower.n_patches;
    ry_policy p = s->policy;
    if (!p.over_image) return p;
    const uint32_t n = ry_policy_visual_count(&p, ry_tile_most_squares(&s->side->config.tiles) * P);
    p.budget = RY_BUDGET_COUNT;
    p.cuts[0].count = n < P ? n : P;
    return p;
}

static renyi_status make_choice(renyi_visual_session *s, const renyi_relevance *relevance,
                                ry_visual_plan_options *plan, renyi_error *err)
{
    const ry_policy policy = square_policy(s);
    const ry_visual_choice_spec spec = {&policy, s->side, relevance, plan->n_threads,
                                        s->visual->level};
    RY_TRY(ry_visual_choice_new(&s->choice, &spec, &s->visual->al, err));
    s->n_most = ry_visual_rule_most(ry_visual_choice_rule(s->choice));
    plan->look = ry_visual_choice_looks_behind(s->choice);
    plan->hook = ry_visual_choice_hook(s->choice);
    return RENYI_OK;
}

static renyi_status make_hook(renyi_visual_session *s, const ry_token_hook **hook, renyi_error *err)
{
    const renyi_visual *v = s->visual;
    const ry_vit_config *c = &s->side->config.tower;
    const uint32_t P = s->side->tower.n_patches;
    RY_TRY(ry_policy_pruner(&s->pruner, &s->policy, c, P, 1, v->level, &v->al, err));
    s->n_most = rows_left(s);
    if (!s->pruner) return RENYI_OK;
    s->hook = ry_pruner_hook(s->pruner);
    RY_TRY(ry_trace_new(&s->trace, &s->hook, c, P, 1, &v->al, err));
    *hook = ry_trace_hook(s->trace);
    return RENYI_OK;
}

/* The policy, and the side that it runs on. */
static renyi_status read_policy(renyi_visual_session *s, const char *text, renyi_error *err)
{
    const ry_visual *v = &s->visual->side;
    const uint32_t P = v->tower.n_patches;
    s->side = v;
    RY_TRY(ry_policy_for_visual(&s->policy, text, &v->config.tower, P,
                                ry_tile_most_squares(&v->config.tiles), err));
    ry_policy_print(s->policy_text, &s->policy);
    if (s->policy.rule != RY_RULE_DOWNSAMPLE) return RENYI_OK;
    s->side = &s->smaller;
    return ry_visual_smaller(&s->smaller, &s->positions, v, ry_policy_smaller_grid(&s->policy, P),
                             &s->visual->al, err);
}

static renyi_status fill_session(renyi_visual_session *s, const renyi_visual_session_options *o,
                                 renyi_error *err)
{
    const renyi_visual *v = s->visual;
    ry_visual_plan_options plan = {.level = v->level, .n_threads = o->n_threads};
    s->progress = o->progress;
    s->progress_user = o->progress_user;
    RY_TRY(read_policy(s, o->policy, err));
    const ry_vit_config *c = &s->side->config.tower;
    const size_t P = s->side->tower.n_patches, S = c->image_size;
    ry_normalize_lut(s->lut, c->preprocess.mean, c->preprocess.std);
    const int tiles = s->side->config.tiles.n > 0;
    s->pixels = tiles ? NULL : ry_alloc(&v->al, S * S, 3);
    s->kept = ry_alloc(&v->al, P + 1, sizeof *s->kept);
    if ((!tiles && !s->pixels) || !s->kept) return ry_fail_nomem(err, S * S * 3);
    if (ry_policy_is_visual(&s->policy) && s->side != &s->smaller)
        RY_TRY(make_choice(s, o->relevance, &plan, err));
    else
        RY_TRY(make_hook(s, &plan.hook, err));
    if (tiles) plan.max_rows = s->n_most = ry_tile_session_most(s, s->n_most);
    RY_TRY(ry_visual_plan_new(&s->plan, s->side, &plan, &v->al, err));
    return tiles ? ry_tile_session_new(s, err) : RENYI_OK;
}

renyi_status renyi_visual_session_new(renyi_visual_session **out, const renyi_visual *v,
                                      const renyi_visual_session_options *opt, renyi_error *err)
{
    renyi_visual_session_options o;
    if (!out || !v)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_session_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_visual_session_options", err));
    RY_TRY(ry_threads_choose(&o.n_threads, err));
    renyi_visual_session *s = ry_calloc(&v->al, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    s->visual = v;
    const renyi_status st = fill_session(s, &o, err);
    if (st) {
        renyi_visual_session_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

void renyi_visual_session_free(renyi_visual_session *s)
{
    if (!s) return;
    const renyi_allocator *al = &s->visual->al;
    ry_visual_plan_free(s->plan, al);
    ry_trace_free(s->trace, al);
    ry_pruner_free(s->pruner, al);
    ry_visual_choice_free(s->choice, al);
    ry_tile_session_free(s->tiles, al);
    ry_free(al, s->positions);
    ry_free(al, s->pixels);
    ry_free(al, s->kept);
    ry_free(al, s);
}

size_t renyi_visual_session_bytes(const renyi_visual_session *s)
{
    if (!s) return 0;
    const size_t side = s->side->config.tower.image_size;
    return ry_visual_plan_bytes(s->plan) +
           (s->tiles ? ry_tile_session_bytes(s->tiles) : side * side * 3) +
           (s->pruner ? ry_pruner_bytes(s->pruner) : 0) +
           (s->choice ? ry_visual_choice_bytes(s->choice) : 0) +
           (s->trace ? ry_trace_bytes(s->trace) : 0);
}

const char *renyi_visual_session_policy(const renyi_visual_session *s)
{
    return s ? s->policy_text : "";
}

const uint8_t *renyi_visual_session_pixels(const renyi_visual_session *s) { return s->pixels; }

/* The square of an image without tiles. */
static int only_square(const renyi_visual_session *s, uint32_t square, renyi_visual_square *out)
{
    const ry_vit_config *c = &s->side->config.tower;
    const uint32_t n = c->image_size / c->patch_size;
    if (square || !s->n_rows) return 0;
    *out = (renyi_visual_square){s->pixels, c->image_size, 0, 0, n, n, s->n_rows};
    return 1;
}

renyi_status renyi_visual_session_get_square(const renyi_visual_session *s, uint32_t square,
                                             renyi_visual_square *out, renyi_error *err)
{
    if (!s || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_session_get_square: NULL argument");
    *out = (renyi_visual_square){0};
    if (s->tiles ? ry_tile_session_square(s, square, out) : only_square(s, square, out))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "renyi_visual_session_get_square: the last image has no square %u", square);
}

void renyi_visual_session_get_work(const renyi_visual_session *s, renyi_visual_work *out)
{
    const ry_visual_work *w = &s->plan->work;
    *out = (renyi_visual_work){w->tower_macs, w->project_macs, 1e3 * w->choice_seconds};
}

uint32_t renyi_visual_session_tokens(const renyi_visual_session *s) { return s ? s->n_most : 0; }

/* ---- running ------------------------------------------------------------------------------- */

/* The patch of every row that the tower left. */
static void trace_rows(renyi_visual_session *s, uint32_t n)
{
    const size_t cuts = s->trace ? ry_trace_cuts(s->trace) : 0;
    renyi_cut cut;
    if (!cuts) {
        for (uint32_t i = 0; i < n; i++) s->kept[i] = i;
        return;
    }
    ry_trace_get(s->trace, 0, cuts - 1, &cut);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = cut.source[cut.n_prefix + i];
        const int32_t place = from == RENYI_NONE ? RENYI_FUSED : cut.position[from];
        s->kept[i] = place < 0 ? RENYI_NONE : (uint32_t)place;
    }
}

/* Takes all rows that the tower left; returns how many. */
static uint32_t take_all_rows(renyi_visual_session *s)
{
    const ry_vit_config *c = &s->side->config.tower;
    const uint32_t n = s->plan->n_tokens - c->n_prefix;
    memcpy(s->plan->features, s->plan->x + (size_t)c->n_prefix * c->dim,
           (size_t)n * c->dim * sizeof(float));
    trace_rows(s, n);
    return n;
}

/* Takes the rows that the rule behind the tower chooses; returns how many. */
static uint32_t choose_rows(renyi_visual_session *s, uint64_t image_key)
{
    const uint32_t n = ry_visual_choice_run(s->choice, s->plan, image_key);
    memcpy(s->kept, ry_visual_rule_kept(ry_visual_choice_rule(s->choice)), n * sizeof *s->kept);
    return n;
}

static ry_relevance *relevance_of(const renyi_visual_session *s)
{
    return s->choice ? ry_visual_choice_relevance(s->choice) : NULL;
}

int ry_visual_session_asks(const renyi_visual_session *s) { return relevance_of(s) != NULL; }

renyi_status renyi_visual_session_question(renyi_visual_session *s, const char *question,
                                           renyi_error *err)
{
    if (!s || !question)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_session_question: NULL argument");
    return relevance_of(s) ? ry_relevance_question(relevance_of(s), question, err) : RENYI_OK;
}

static renyi_status check_question(const renyi_visual_session *s, renyi_error *err)
{
    if (!relevance_of(s) || ry_relevance_has_question(relevance_of(s))) return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_ARG, -1,
        "cdpruner metric=text chooses by a question, and none was given "
        "(--question TEXT; in C renyi_visual_session_question); or say metric=cls or metric=col");
}

renyi_status ry_visual_run_square(renyi_visual_session *s, const ry_visual_square *square,
                                  uint32_t *n, renyi_error *err)
{
    const size_t side = s->side->config.tower.image_size;
    const int draws = ry_policy_draws(&s->policy);
    const uint64_t key = draws ? ry_hash(square->pixels, side * side * 3) : 0;
    const ry_vit_input in = {.pixels = square->pixels,
                             .lut = (const float(*)[256])s->lut,
                             .n = 1,
                             .progress = square->progress,
                             .progress_user = square->progress_user};
    RY_TRY(check_question(s, err));
    if (s->pruner && draws) ry_pruner_name_images(s->pruner, &key, 1);
    if (ry_visual_tower(s->plan, &in))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "the run was stopped by its progress callback");
    *n = s->choice ? choose_rows(s, key) : take_all_rows(s);
    return RENYI_OK;
}

/* Projects the n rows that the tower or the choice left. */
static void give_rows(renyi_visual_session *s, uint32_t n, renyi_visual_tokens *out)
{
    const ry_visual_config *c = &s->side->config;
    if (s->choice)
        ry_visual_choice_project(s->choice, s->plan, n);
    else
        ry_visual_project(s->plan, n);
    *out = (renyi_visual_tokens){.n = n,
                                 .lm_dim = c->lm_dim,
                                 .dim = c->tower.dim,
                                 .rows = s->plan->rows,
                                 .features = s->plan->features,
                                 .kept = s->kept,
                                 .scores = ry_visual_scores(s),
                                 .n_full = s->visual->side.tower.n_patches,
                                 .n_squares = 1};
    s->n_rows = n;
}

renyi_status ry_visual_session_ask(renyi_visual_session *s, const char *question,
                                   renyi_visual_tokens *out, renyi_error *err)
{
    RY_TRY(renyi_visual_session_question(s, question, err));
    give_rows(s, choose_rows(s, 0), out);
    return RENYI_OK;
}

/* Runs s->pixels. */
static renyi_status run_pixels(renyi_visual_session *s, renyi_visual_tokens *out, renyi_error *err)
{
    const ry_visual_square square = {s->pixels, s->progress, s->progress_user};
    uint32_t n;
    *out = (renyi_visual_tokens){0};
    s->n_rows = 0;
    RY_TRY(ry_visual_run_square(s, &square, &n, err));
    give_rows(s, n, out);
    return RENYI_OK;
}

static renyi_status check_run(const renyi_visual_session *s, const void *input,
                              const renyi_visual_tokens *out, renyi_error *err)
{
    if (s && input && out) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_run: NULL argument");
}

/* Fits an image to the square or the squares that the tower reads, and runs it. */
static renyi_status run_image(renyi_visual_session *s, const renyi_image *image,
                              renyi_visual_tokens *out, renyi_error *err)
{
    const ry_visual_config *c = &s->side->config;
    if (s->tiles) return ry_tile_session_run(s, image, out, err);
    const renyi_preprocess *spec = &c->tower.preprocess;
    const ry_resize_kernels *kernels = ry_resize_best();
    const renyi_allocator *al = &s->visual->al;
    if (c->pad_to_square)
        RY_TRY(ry_fit_square(s->pixels, image, spec, kernels, al, err));
    else
        RY_TRY(ry_fit(s->pixels, image, spec, kernels, al, err));
    return run_pixels(s, out, err);
}

renyi_status renyi_visual_run_pixels(renyi_visual_session *s, const uint8_t *pixels,
                                     renyi_visual_tokens *out, renyi_error *err)
{
    RY_TRY(check_run(s, pixels, out, err));
    const uint32_t size = s->visual->side.config.tower.image_size;
    const renyi_image image = {pixels, size, size, 0};
    if (s->tiles || s->side == &s->smaller) return run_image(s, &image, out, err);
    memmove(s->pixels, pixels, (size_t)size * size * 3);
    return run_pixels(s, out, err);
}

renyi_status renyi_visual_run(renyi_visual_session *s, const renyi_image *image,
                              renyi_visual_tokens *out, renyi_error *err)
{
    RY_TRY(check_run(s, image, out, err));
    return run_image(s, image, out, err);
}

static renyi_image_options image_options(const renyi_visual *v)
{
    return (renyi_image_options){
        .struct_size = sizeof(renyi_image_options), .limits = v->limits, .allocator = v->al};
}

renyi_status renyi_visual_run_bytes(renyi_visual_session *s, const void *bytes, size_t size,
                                    renyi_visual_tokens *out, renyi_error *err)
{
    RY_TRY(check_run(s, bytes, out, err));
    const renyi_image_options opt = image_options(s->visual);
    renyi_image image;
    RY_TRY(renyi_image_decode(&image, bytes, size, &opt, err));
    const renyi_status st = renyi_visual_run(s, &image, out, err);
    renyi_image_free(&image, &opt);
    return st;
}

renyi_status renyi_visual_run_file(renyi_visual_session *s, const char *path,
                                   renyi_visual_tokens *out, renyi_error *err)
{
    RY_TRY(check_run(s, path, out, err));
    const renyi_image_options opt = image_options(s->visual);
    renyi_image image;
    renyi_status st = renyi_image_load(&image, path, &opt, err);
    if (!st) st = renyi_visual_run(s, &image, out, err);
    renyi_image_free(&image, &opt);
    return st ? ry_fail_in(err, st, path) : RENYI_OK;
}
