/* viz_rows.c - runs every policy on the image: the most likely classes, and where every patch is
 * after every cut. A session lives only for its run: a sweep has dozens of policies, and each
 * session would hold the memory of a whole network.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"

#include <math.h>
#include <string.h>

/* ---- the most likely classes --------------------------------------------------------------- */

/* The best k classes by logit, equal ones by number; NaN is left out. Returns how many. */
static uint32_t find_top(uint32_t *top, uint32_t k, const float *logits, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = count;
        while (at > 0 && logits[i] > logits[top[at - 1]]) at--;
        if (at == k || isnan(logits[i])) continue;
        if (count < k) count++;
        for (uint32_t j = count - 1; j > at; j--) top[j] = top[j - 1];
        top[at] = i;
    }
    return count;
}

static float probability(const float *logits, uint32_t n, uint32_t of, uint32_t best)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)logits[best]);
    return (float)(exp((double)logits[of] - (double)logits[best]) / sum);
}

renyi_status ry_viz_fill_answer(const renyi_viz *v, const ry_viz_policy *policy,
                                const float *logits, double ms, renyi_viz_answer *out,
                                ry_pool *pool, renyi_error *err)
{
    const ry_vit_config *c = &v->model->vit.config;
    uint32_t best[RENYI_VIZ_MAX_TOP];
    const uint32_t n = find_top(best, v->n_top, logits, c->n_classes);
    renyi_viz_guess *top = RY_POOL_TAKE(pool, n, renyi_viz_guess);
    if (!top) return ry_fail_nomem(err, n * sizeof *top);
    for (uint32_t i = 0; i < n; i++) {
        top[i] =
            (renyi_viz_guess){.index = best[i],
                              .name = ry_pool_text(pool, v->class_names[best[i]]),
                              .probability = probability(logits, c->n_classes, best[i], best[0])};
        if (!top[i].name) return ry_fail_nomem(err, sizeof *top);
    }
    *out = (renyi_viz_answer){.n_top = n, .top = top, .macs = policy->macs[c->n_blocks], .ms = ms};
    return RENYI_OK;
}

/* ---- patches through the cuts -------------------------------------------------------------- */

/* A patch is named by its place in the image; which token it is in changes at each cut. */

/* Where P patches are after the cuts so far. */
typedef struct walk {
    uint32_t n;        /* P */
    uint32_t *token;   /* [P] the token that the patch is in; RENYI_NONE = dropped */
    uint32_t *members; /* [P] number of patches whose group is this patch */
    uint32_t n_tokens;
    uint8_t *state, *rescued; /* as in renyi_viz_step, from here on */
    uint32_t *group, *gone_at;
    float *score; /* NaN except at a cut */
} walk;

/* The patches before any cut. */
static renyi_status begin_walk(walk *w, const renyi_viz *v, ry_pool *pool, renyi_error *err)
{
    const uint32_t n = v->model->vit.n_patches, prefix = v->model->vit.config.n_prefix;
    *w = (walk){.n = n,
                .token = RY_POOL_TAKE(pool, n, uint32_t),
                .members = RY_POOL_TAKE(pool, n, uint32_t),
                .n_tokens = prefix + n,
                .state = RY_POOL_TAKE(pool, n, uint8_t),
                .rescued = RY_POOL_TAKE(pool, n, uint8_t),
                .group = RY_POOL_TAKE(pool, n, uint32_t),
                .gone_at = RY_POOL_TAKE(pool, n, uint32_t),
                .score = RY_POOL_TAKE(pool, n, float)};
    if (!w->token || !w->members || !w->state || !w->rescued || !w->group || !w->gone_at ||
        !w->score)
        return ry_fail_nomem(err, n * sizeof *w->token);
    for (uint32_t p = 0; p < n; p++) {
        w->token[p] = prefix + p;
        w->group[p] = p;
        w->gone_at[p] = RENYI_NONE;
        w->score[p] = NAN;
    }
    return RENYI_OK;
}

/* One patch through one cut: its new token, and the patch that this token began as. */
static void move_patch(walk *w, const renyi_cut *cut, uint32_t p)
{
    const uint32_t from = w->token[p];
    if (from == RENYI_NONE) return;
    if (cut->position[from] == (int32_t)p) w->score[p] = cut->score[from];
    const uint32_t to = w->token[p] = cut->target[from];
    const uint32_t source = to == RENYI_NONE ? RENYI_NONE : cut->source[to];
    const int32_t origin = source == RENYI_NONE ? RENYI_FUSED : cut->position[source];
    w->rescued[p] = origin >= 0 && cut->rescued[source];
    w->group[p] =
        origin >= 0 ? (uint32_t)origin : RENYI_NONE; /* a prefix or fused token is no patch */
    if (origin < 0 && w->gone_at[p] == RENYI_NONE) w->gone_at[p] = cut->block;
}

static void apply_cut(walk *w, const renyi_cut *cut)
{
    memset(w->members, 0, w->n * sizeof *w->members);
    for (uint32_t p = 0; p < w->n; p++) {
        w->score[p] = NAN;
        move_patch(w, cut, p);
        if (w->group[p] != RENYI_NONE) w->members[w->group[p]]++;
    }
    for (uint32_t p = 0; p < w->n; p++)
        w->state[p] = (uint8_t)(w->token[p] == RENYI_NONE     ? RENYI_VIZ_DROPPED
                                : w->group[p] == RENYI_NONE   ? RENYI_VIZ_FUSED
                                : w->members[w->group[p]] > 1 ? RENYI_VIZ_MERGED
                                                              : RENYI_VIZ_KEPT);
    w->n_tokens = cut->n_out;
}

static void *copy_of(ry_pool *pool, const void *from, size_t count, size_t size)
{
    void *to = ry_pool_take(pool, count, size);
    return to ? memcpy(to, from, count * size) : NULL;
}

static void count_states(renyi_viz_step *s, const walk *w)
{
    for (uint32_t p = 0; p < w->n; p++) {
        s->n_kept += w->state[p] == RENYI_VIZ_KEPT;
        s->n_merged += w->state[p] == RENYI_VIZ_MERGED;
        s->n_fused += w->state[p] == RENYI_VIZ_FUSED;
        s->n_dropped += w->state[p] == RENYI_VIZ_DROPPED;
        s->n_rescued += w->rescued[p];
        s->n_groups += w->group[p] == p;
    }
}

static renyi_status copy_step(const walk *w, renyi_viz_step *out, ry_pool *pool, renyi_error *err)
{
    out->state = copy_of(pool, w->state, w->n, sizeof *w->state);
    out->rescued = copy_of(pool, w->rescued, w->n, sizeof *w->rescued);
    out->group = copy_of(pool, w->group, w->n, sizeof *w->group);
    out->gone_at = copy_of(pool, w->gone_at, w->n, sizeof *w->gone_at);
    out->score = copy_of(pool, w->score, w->n, sizeof *w->score);
    if (!out->state || !out->rescued || !out->group || !out->gone_at || !out->score)
        return ry_fail_nomem(err, w->n * sizeof *w->group);
    out->n_tokens = w->n_tokens;
    count_states(out, w);
    return RENYI_OK;
}

/* Where the patches are after each of the layers. steps: [n_layers] to fill */
static renyi_status follow_patches(const renyi_viz *v, const renyi_session *s,
                                   const ry_viz_policy *policy, renyi_viz_step *steps,
                                   ry_pool *pool, renyi_error *err)
{
    const size_t cuts = renyi_session_cut_count(s);
    size_t next = 0;
    walk w;
    RY_TRY(begin_walk(&w, v, pool, err));
    for (uint32_t i = 0; i < v->n_layers; i++) {
        const uint32_t layer = v->layers[i];
        renyi_viz_step *step = &steps[i];
        *step = (renyi_viz_step){.layer = layer, .macs = policy->macs[layer]};
        for (uint32_t p = 0; p < w.n; p++) w.score[p] = NAN;
        for (; next < cuts; next++) {
            renyi_cut cut;
            RY_TRY(renyi_session_cut(s, 0, next, &cut, err));
            if (cut.block > layer) break;
            apply_cut(&w, &cut);
            step->is_cut = cut.block == layer;
        }
        if (!step->is_cut)
            for (uint32_t p = 0; p < w.n; p++) w.score[p] = NAN;
        RY_TRY(copy_step(&w, step, pool, err));
    }
    return RENYI_OK;
}

/* ---- one session per policy ---------------------------------------------------------------- */

/* One run that warms up, then v->time runs; *ms is the fastest of these, NaN if there are none. */
static renyi_status run_timed(const renyi_viz *v, renyi_session *s, const uint8_t *rgb,
                              float *logits, double *ms, renyi_error *err)
{
    *ms = NAN;
    RY_TRY(renyi_run_pixels(s, rgb, 1, logits, err));
    for (uint32_t i = 0; i < v->time; i++) {
        const double start = ry_clock();
        RY_TRY(renyi_run_pixels(s, rgb, 1, logits, err));
        *ms = fmin(*ms, (ry_clock() - start) * 1e3); /* fmin of NaN and a number is the number */
    }
    return RENYI_OK;
}

static renyi_status open_session(const renyi_viz *v, const ry_viz_policy *p, renyi_session **out,
                                 renyi_error *err)
{
    const renyi_session_options o = {
        .struct_size = sizeof o, .n_threads = v->n_threads, .trace = 1};
    return ry_session_new(out, v->model, &o, &p->policy, err);
}

static renyi_status time_dense(const renyi_viz *v, renyi_viz_result *r, float *logits,
                               renyi_error *err)
{
    renyi_session *s;
    RY_TRY(open_session(v, &v->policies[0], &s, err));
    const renyi_status st = run_timed(v, s, r->photo.rgb, logits, &r->dense.ms, err);
    renyi_session_free(s);
    return st;
}

static renyi_status read_row(const renyi_viz *v, const ry_viz_policy *p, const renyi_session *s,
                             const float *logits, double ms, renyi_viz_row *out, ry_pool *pool,
                             renyi_error *err)
{
    renyi_viz_step *steps = RY_POOL_TAKE(pool, v->n_layers, renyi_viz_step);
    *out = (renyi_viz_row){.policy = ry_pool_text(pool, p->text),
                           .label = ry_pool_text(pool, p->label),
                           .metric = p->metric,
                           .norm = p->norm,
                           .keep = p->keep,
                           .merges = p->merges,
                           .adaptive = p->adaptive,
                           .steps = steps};
    if (!steps || !out->policy || !out->label)
        return ry_fail_nomem(err, v->n_layers * sizeof *steps);
    RY_TRY(follow_patches(v, s, p, steps, pool, err));
    return ry_viz_fill_answer(v, p, logits, ms, &out->answer, pool, err);
}

static renyi_status fill_row(const renyi_viz *v, const ry_viz_policy *p, const uint8_t *rgb,
                             float *logits, renyi_viz_row *out, ry_pool *pool, renyi_error *err)
{
    renyi_session *s;
    double ms;
    RY_TRY(open_session(v, p, &s, err));
    renyi_status st = run_timed(v, s, rgb, logits, &ms, err);
    if (!st) st = read_row(v, p, s, logits, ms, out, pool, err);
    renyi_session_free(s);
    return st;
}

/* Counts the dense run, which comes before all rows. */
static renyi_status report_progress(const renyi_viz *v, size_t rows_done, size_t rows,
                                    renyi_error *err)
{
    if (!v->progress || !v->progress(v->progress_user, 1 + rows_done, 1 + rows)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
}

static renyi_status fill_rows(const renyi_viz *v, renyi_viz_result *r, float *logits, ry_pool *pool,
                              renyi_error *err)
{
    const size_t n = (size_t)v->n_rows + v->n_sweep;
    renyi_viz_row *rows = RY_POOL_TAKE(pool, n, renyi_viz_row);
    if (!rows) return ry_fail_nomem(err, n * sizeof *rows);
    if (v->time) RY_TRY(time_dense(v, r, logits, err));
    RY_TRY(report_progress(v, 0, n, err));
    for (size_t i = 0; i < n; i++) {
        RY_TRY(fill_row(v, &v->policies[1 + i], r->photo.rgb, logits, &rows[i], pool, err));
        RY_TRY(report_progress(v, i + 1, n, err));
    }
    r->n_rows = v->n_rows;
    r->rows = rows;
    r->n_sweep = v->n_sweep;
    r->sweep = v->n_sweep ? rows + v->n_rows : NULL;
    return RENYI_OK;
}

renyi_status ry_viz_fill_rows(const renyi_viz *v, renyi_viz_result *r, ry_pool *pool,
                              renyi_error *err)
{
    const size_t n = ry_vit_outputs(&v->model->vit.config, RENYI_OUTPUT_AUTO);
    float *logits = ry_alloc(&v->al, n, sizeof *logits);
    if (!logits) return ry_fail_nomem(err, n * sizeof *logits);
    const renyi_status st = fill_rows(v, r, logits, pool, err);
    ry_free(&v->al, logits);
    return st;
}
