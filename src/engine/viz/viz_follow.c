/* viz_follow.c - follows the patches of a photo through the cuts of a run. A patch is known by its
 * place in the picture from the first cut to the last; which token it is in changes at each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"

#include <math.h>
#include <string.h>

/* Where P patches are after the cuts so far. */
typedef struct walk {
    uint32_t n;        /* P */
    uint32_t *token;   /* [P] in the list of tokens; RENYI_NONE = dropped */
    uint32_t *members; /* [P] patches whose group is this one */
    uint32_t n_tokens;
    uint8_t *state, *rescued; /* as in renyi_viz_step, from here on */
    uint32_t *group, *gone_at;
    float *score; /* NaN throughout but at a cut */
} walk;

/* Sets the lists to those of the picture before any cut. */
static renyi_status begin(walk *w, const renyi_viz *v, ry_stash *stash, renyi_error *err)
{
    const uint32_t n = v->model->vit.n_patches, prefix = v->model->vit.config.n_prefix;
    *w = (walk){.n = n,
                .token = RY_STASH_TAKE(stash, uint32_t, n),
                .members = RY_STASH_TAKE(stash, uint32_t, n),
                .n_tokens = prefix + n,
                .state = RY_STASH_TAKE(stash, uint8_t, n),
                .rescued = RY_STASH_TAKE(stash, uint8_t, n),
                .group = RY_STASH_TAKE(stash, uint32_t, n),
                .gone_at = RY_STASH_TAKE(stash, uint32_t, n),
                .score = RY_STASH_TAKE(stash, float, n)};
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

/* One patch through one cut: its token, and the patch that this token grew from. */
static void move(walk *w, const renyi_cut *cut, uint32_t p)
{
    const uint32_t from = w->token[p];
    if (from == RENYI_NONE) return;
    if (cut->position[from] == (int32_t)p) w->score[p] = cut->score[from];
    const uint32_t to = w->token[p] = cut->target[from];
    const uint32_t source = to == RENYI_NONE ? RENYI_NONE : cut->source[to];
    const int32_t grew = source == RENYI_NONE ? RENYI_FUSED : cut->position[source];
    w->rescued[p] = grew >= 0 && cut->rescued[source];
    w->group[p] = grew >= 0 ? (uint32_t)grew : RENYI_NONE; /* a prefix or fused token is no patch */
    if (grew < 0 && w->gone_at[p] == RENYI_NONE) w->gone_at[p] = cut->block;
}

static void apply(walk *w, const renyi_cut *cut)
{
    memset(w->members, 0, w->n * sizeof *w->members);
    for (uint32_t p = 0; p < w->n; p++) {
        w->score[p] = NAN;
        move(w, cut, p);
        if (w->group[p] != RENYI_NONE) w->members[w->group[p]]++;
    }
    for (uint32_t p = 0; p < w->n; p++)
        w->state[p] = (uint8_t)(w->token[p] == RENYI_NONE     ? RENYI_VIZ_DROPPED
                                : w->group[p] == RENYI_NONE   ? RENYI_VIZ_FUSED
                                : w->members[w->group[p]] > 1 ? RENYI_VIZ_MERGED
                                                              : RENYI_VIZ_KEPT);
    w->n_tokens = cut->n_out;
}

static void *copy_of(ry_stash *stash, const void *from, size_t count, size_t size)
{
    void *to = ry_stash_take(stash, count, size);
    return to ? memcpy(to, from, count * size) : NULL;
}

static void count(renyi_viz_step *s, const walk *w)
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

static renyi_status take_step(const walk *w, renyi_viz_step *out, ry_stash *stash, renyi_error *err)
{
    out->state = copy_of(stash, w->state, w->n, sizeof *w->state);
    out->rescued = copy_of(stash, w->rescued, w->n, sizeof *w->rescued);
    out->group = copy_of(stash, w->group, w->n, sizeof *w->group);
    out->gone_at = copy_of(stash, w->gone_at, w->n, sizeof *w->gone_at);
    out->score = copy_of(stash, w->score, w->n, sizeof *w->score);
    if (!out->state || !out->rescued || !out->group || !out->gone_at || !out->score)
        return ry_fail_nomem(err, w->n * sizeof *w->group);
    out->n_tokens = w->n_tokens;
    count(out, w);
    return RENYI_OK;
}

renyi_status ry_viz_follow(const renyi_viz *v, const renyi_session *s, const ry_viz_policy *policy,
                           renyi_viz_step *steps, ry_stash *stash, renyi_error *err)
{
    const size_t cuts = renyi_session_cut_count(s);
    size_t next = 0;
    walk w;
    RY_TRY(begin(&w, v, stash, err));
    for (uint32_t i = 0; i < v->n_layers; i++) {
        const uint32_t layer = v->layers[i];
        renyi_viz_step *step = &steps[i];
        *step = (renyi_viz_step){.layer = layer, .macs = policy->macs[layer]};
        for (uint32_t p = 0; p < w.n; p++) w.score[p] = NAN;
        for (; next < cuts; next++) {
            renyi_cut cut;
            RY_TRY(renyi_session_cut(s, 0, next, &cut, err));
            if (cut.block > layer) break;
            apply(&w, &cut);
            step->is_cut = cut.block == layer;
        }
        if (!step->is_cut)
            for (uint32_t p = 0; p < w.n; p++) w.score[p] = NAN;
        RY_TRY(take_step(&w, step, stash, err));
    }
    return RENYI_OK;
}
