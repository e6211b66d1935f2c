/* visual_session.c - runs an image through the visual side of a LLaVA: image tower, pruning inside
 * or behind it, projector.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/policy_api.h"
#include "engine/core/trace_record.h"
#include "engine/llava/llava_handles.h"
#include "image/fit.h"
#include "image/patches.h"
#include "model/llava/visual_plan.h"
#include "prune/rules/visual_rules.h"

#include <string.h>

struct renyi_visual_session {
    const renyi_visual *visual; /* borrowed */
    ry_policy policy;
    char policy_text[RY_MAX_POLICY_TEXT]; /* in full */
    /* For a policy that cuts inside the tower; else NULL. */
    ry_pruner *pruner;
    ry_trace *trace;
    ry_token_hook hook; /* the pruner's, or one that only copies scores */
    /* For a rule that acts behind the tower; else NULL. */
    ry_visual_rule *rule;
    ry_visual_rule_needs needs;
    float *class_row, *columns; /* [N] of the tower's last block, for rules that score by it */
    ry_visual_plan *plan;
    renyi_progress progress;
    void *progress_user;
    float lut[3][256];
    uint8_t *pixels; /* [S, S, 3] the fitted image */
    uint32_t *kept;  /* [patches + 1] */
    uint32_t n_most; /* rows that an image gives at most */
};

/* ---- making -------------------------------------------------------------------------------- */

/* Rows that the cuts inside the tower leave at most. */
static uint32_t rows_left(const renyi_visual_session *s)
{
    const uint32_t prefix = s->visual->side.config.tower.n_prefix;
    uint32_t n = s->visual->side.tower.n_patches + prefix;
    for (uint32_t i = 0; i < s->policy.n_cuts; i++)
        n = ry_policy_tokens_after(&s->policy, i, n, prefix);
    return n - prefix;
}

/* A hook that copies the scores of the last block and changes nothing. */
static void scores_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const renyi_visual_session *s = self;
    *out = (ry_block_needs){.n_after = n_tokens};
    if (block + 1 != s->visual->side.config.tower.n_blocks) return;
    out->look = 1;
    out->what = RY_NEED_CLASS_ROW | (s->needs.columns ? RY_NEED_COLUMNS : 0);
    out->columns = s->needs.spec;
}

static void copy_scores(void *self, const ry_block_view *view, const ry_cut *cut)
{
    renyi_visual_session *s = self;
    (void)cut;
    if (!view->class_row) return;
    memcpy(s->class_row, view->class_row, view->n_tokens * sizeof(float));
    if (s->needs.columns) memcpy(s->columns, view->columns, view->n_tokens * sizeof(float));
}

static renyi_status make_rule(renyi_visual_session *s, ry_visual_plan_options *plan,
                              renyi_error *err)
{
    const renyi_visual *v = s->visual;
    const uint32_t P = v->side.tower.n_patches;
    const ry_visual_rule_spec spec = {&s->policy, P, v->side.config.tower.dim, plan->n_threads,
                                      v->level};
    ry_visual_rule_needs_of(&s->needs, &s->policy);
    if (s->needs.behind && !v->side.qk)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "prumerge scores by the block after the one that the features come from; this "
            "model takes them from the last of its %u blocks; use vispruner",
            v->side.config.n_blocks);
    RY_TRY(ry_visual_rule_new(&s->rule, &spec, &v->al, err));
    s->n_most = ry_visual_rule_most(s->rule);
    plan->look = s->needs.behind;
    if (s->needs.behind) return RENYI_OK;
    s->class_row = ry_alloc(&v->al, 2 * ((size_t)P + 1), sizeof(float));
    if (!s->class_row) return ry_fail_nomem(err, 2 * ((size_t)P + 1) * sizeof(float));
    s->columns = s->class_row + P + 1;
    s->hook = (ry_token_hook){scores_needs, NULL, NULL, copy_scores, s, NULL};
    plan->hook = &s->hook;
    return RENYI_OK;
}

static renyi_status make_hook(renyi_visual_session *s, const ry_token_hook **hook, renyi_error *err)
{
    const renyi_visual *v = s->visual;
    const ry_vit_config *c = &v->side.config.tower;
    const uint32_t P = v->side.tower.n_patches;
    RY_TRY(ry_policy_pruner(&s->pruner, &s->policy, c, P, 1, v->level, &v->al, err));
    s->n_most = rows_left(s);
    if (!s->pruner) return RENYI_OK;
    s->hook = ry_pruner_hook(s->pruner);
    RY_TRY(ry_trace_new(&s->trace, &s->hook, c, P, 1, &v->al, err));
    *hook = ry_trace_hook(s->trace);
    return RENYI_OK;
}

static renyi_status fill_session(renyi_visual_session *s, const renyi_visual_session_options *o,
                                 renyi_error *err)
{
    const renyi_visual *v = s->visual;
    const ry_vit_config *c = &v->side.config.tower;
    const size_t P = v->side.tower.n_patches, S = c->image_size;
    ry_visual_plan_options plan = {.level = v->level, .n_threads = o->n_threads};
    s->progress = o->progress;
    s->progress_user = o->progress_user;
    ry_normalize_lut(s->lut, c->preprocess.mean, c->preprocess.std);
    RY_TRY(ry_policy_for_visual(&s->policy, o->policy, c, (uint32_t)P, err));
    ry_policy_print(s->policy_text, &s->policy);
    s->pixels = ry_alloc(&v->al, S * S, 3);
    s->kept = ry_alloc(&v->al, P + 1, sizeof *s->kept);
    if (!s->pixels || !s->kept) return ry_fail_nomem(err, S * S * 3);
    if (ry_policy_is_visual(&s->policy))
        RY_TRY(make_rule(s, &plan, err));
    else
        RY_TRY(make_hook(s, &plan.hook, err));
    return ry_visual_plan_new(&s->plan, &v->side, &plan, &v->al, err);
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
    ry_visual_rule_free(s->rule, al);
    ry_free(al, s->class_row);
    ry_free(al, s->pixels);
    ry_free(al, s->kept);
    ry_free(al, s);
}

size_t renyi_visual_session_bytes(const renyi_visual_session *s)
{
    if (!s) return 0;
    const size_t side = s->visual->side.config.tower.image_size;
    return ry_visual_plan_bytes(s->plan) + side * side * 3 +
           (s->pruner ? ry_pruner_bytes(s->pruner) : 0) +
           (s->rule ? ry_visual_rule_bytes(s->rule) : 0) +
           (s->trace ? ry_trace_bytes(s->trace) : 0);
}

const char *renyi_visual_session_policy(const renyi_visual_session *s)
{
    return s ? s->policy_text : "";
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
    const ry_vit_config *c = &s->visual->side.config.tower;
    const uint32_t n = s->plan->n_tokens - c->n_prefix;
    memcpy(s->plan->features, s->plan->x + (size_t)c->n_prefix * c->dim,
           (size_t)n * c->dim * sizeof(float));
    trace_rows(s, n);
    return n;
}

/* What a rule behind the tower may see of the last image. */
static ry_visual_rule_view rule_view(const renyi_visual_session *s)
{
    const ry_visual_plan *p = s->plan;
    const size_t C = s->visual->side.config.tower.dim;
    const float *class_row = s->needs.behind ? p->class_row : s->class_row;
    const float *columns = s->needs.behind ? p->columns : s->columns;
    ry_visual_rule_view v = {.x = p->x + C, .class_row = class_row + 1, .columns = columns + 1};
    v.class_column = columns[0];
    if (s->needs.behind) {
        v.key_row = ry_visual_qk_row(p);
        v.keys = p->qk_rows + v.key_row + C;
    }
    return v;
}

typedef struct choice {
    renyi_visual_session *s;
    ry_visual_rule_view view;
} choice;

static void choose_on_thread(ry_runner *r, void *user)
{
    const choice *c = user;
    const renyi_visual_session *s = c->s;
    for (uint32_t phase = 0; phase < RY_VISUAL_PHASES; phase++) {
        ry_step step = ry_runner_step(r, ry_visual_rule_tiles(s->rule, phase));
        for (size_t t; ry_step_next(&step, &t);)
            ry_visual_rule_work(s->rule, &c->view, s->plan->features, phase, (uint32_t)t,
                                r->thread);
        ry_step_end(&step);
    }
}

/* Takes the rows that the rule chooses; returns how many. */
static uint32_t choose_rows(renyi_visual_session *s)
{
    if (s->needs.behind) ry_visual_look(s->plan, s->needs.columns ? &s->needs.spec : NULL);
    choice c = {s, rule_view(s)};
    ry_team_run(&s->plan->team, choose_on_thread, &c);
    const uint32_t n = ry_visual_rule_count(s->rule);
    memcpy(s->kept, ry_visual_rule_kept(s->rule), n * sizeof *s->kept);
    return n;
}

static renyi_status run_pixels(renyi_visual_session *s, const uint8_t *pixels,
                               renyi_visual_tokens *out, renyi_error *err)
{
    const ry_visual_config *c = &s->visual->side.config;
    const size_t side = c->tower.image_size;
    const ry_vit_input in = {.pixels = pixels,
                             .lut = (const float(*)[256])s->lut,
                             .n = 1,
                             .progress = s->progress,
                             .progress_user = s->progress_user};
    *out = (renyi_visual_tokens){0};
    if (s->pruner && ry_policy_draws(&s->policy)) {
        const uint64_t key = ry_hash(pixels, side * side * 3);
        ry_pruner_name_images(s->pruner, &key, 1);
    }
    if (ry_visual_tower(s->plan, &in))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "the run was stopped by its progress callback");
    const uint32_t n = s->rule ? choose_rows(s) : take_all_rows(s);
    ry_visual_project(s->plan, n);
    *out = (renyi_visual_tokens){.n = n,
                                 .lm_dim = c->lm_dim,
                                 .dim = c->tower.dim,
                                 .rows = s->plan->rows,
                                 .features = s->plan->features,
                                 .kept = s->kept,
                                 .scores = s->rule ? ry_visual_rule_scores(s->rule) : NULL};
    return RENYI_OK;
}

static renyi_status check_run(const renyi_visual_session *s, const void *input,
                              const renyi_visual_tokens *out, renyi_error *err)
{
    if (s && input && out) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visual_run: NULL argument");
}

renyi_status renyi_visual_run_pixels(renyi_visual_session *s, const uint8_t *pixels,
                                     renyi_visual_tokens *out, renyi_error *err)
{
    RY_TRY(check_run(s, pixels, out, err));
    return run_pixels(s, pixels, out, err);
}

renyi_status renyi_visual_run(renyi_visual_session *s, const renyi_image *image,
                              renyi_visual_tokens *out, renyi_error *err)
{
    RY_TRY(check_run(s, image, out, err));
    const ry_visual_config *c = &s->visual->side.config;
    const renyi_preprocess *spec = &c->tower.preprocess;
    const ry_resize_kernels *kernels = ry_resize_best();
    const renyi_allocator *al = &s->visual->al;
    if (c->pad_to_square)
        RY_TRY(ry_fit_square(s->pixels, image, spec, kernels, al, err));
    else
        RY_TRY(ry_fit(s->pixels, image, spec, kernels, al, err));
    return run_pixels(s, s->pixels, out, err);
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
