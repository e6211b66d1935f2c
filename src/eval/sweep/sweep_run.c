/* sweep_run.c - renyi_sweep_run: evaluates each model at each size, in as many passes as the memory
 * of the policies' sessions needs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/sweep/sweep_state.h"

#include <string.h>

enum { MAX_TOGETHER = 1024 }; /* policies of one renyi_eval */
#define DEFAULT_BYTES ((uint64_t)1 << 30)

/* Some policies of a group that run together. */
typedef struct pass {
    renyi_sweep *s;
    const ry_sweep_group *group;
    const renyi_eval *eval;
    size_t first, count;     /* points */
    double gmacs;            /* of these points */
    double share, share_now; /* of the passes before */
    uint64_t answers;        /* of the passes before */
    uint32_t number, n_passes;
} pass;

/* ---- callbacks of the evaluation ----------------------------------------------------------- */

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    const pass *p = user;
    const renyi_sweep *s = p->s;
    renyi_eval_times t;
    if (!s->o.progress) return 0;
    renyi_eval_get_times(p->eval, &t);
    const double part = p->gmacs / s->gmacs / (double)(total ? total : 1);
    const renyi_sweep_progress now = {.model = p->group->model,
                                      .image_size = p->group->image_size,
                                      .dtype = p->group->dtype,
                                      .n_policies = (uint32_t)p->count,
                                      .pass = p->number,
                                      .n_passes = p->n_passes,
                                      .photos = done,
                                      .n_photos = total,
                                      .answers = p->answers + done * p->count,
                                      .n_answers = total * s->n_points,
                                      .share = p->share + part * (double)done,
                                      .share_now = p->share_now + part * (double)t.images};
    return s->o.progress(s->o.user, &now);
}

/* Every pass fails at the same images in the same order, so the search starts after the last one
 * found. */
static int is_known(renyi_sweep *s, const char *file)
{
    for (size_t k = 0; k < s->n_failures; k++) {
        const size_t i = (s->failure_cursor + k) % s->n_failures;
        if (strcmp(s->failures[i].file, file) != 0) continue;
        s->failure_cursor = i + 1;
        return 1;
    }
    return 0;
}

/* Reported once. The list is made after the pass, with the failures of other ranks. */
static void on_failure(void *user, const char *file, const char *message)
{
    renyi_sweep *s = ((pass *)user)->s;
    if (s->o.on_failure && !is_known(s, file)) s->o.on_failure(s->o.user, file, message);
}

static void list_failures(renyi_sweep *s, const renyi_eval *e)
{
    for (size_t i = 0; i < renyi_eval_failure_count(e); i++) {
        renyi_eval_failure f;
        renyi_eval_get_failure(e, i, &f);
        if (is_known(s, f.file)) continue;
        const char *message = ry_pool_copy(&s->pool, ry_text_of(f.message));
        const char *name = ry_pool_copy(&s->pool, ry_text_of(f.file));
        if (message && name &&
            ry_grow(&s->al, (void **)&s->failures, &s->failure_capacity, s->n_failures,
                    sizeof *s->failures)) /* without memory it is reported but not listed */
            s->failures[s->n_failures++] = (renyi_eval_failure){name, message};
        s->failure_cursor = s->n_failures;
    }
}

/* ---- one pass ------------------------------------------------------------------------------ */

static void take_results(renyi_sweep *s, pass *p)
{
    renyi_dataset_info data;
    renyi_eval_times t;
    renyi_dataset_get_info(p->group->data, &data);
    for (size_t k = 0; k < p->count; k++) {
        ry_sweep_point *point = &s->points[p->first + k];
        renyi_eval_get_result(p->eval, (uint32_t)k, &point->result);
        point->result.policy = point->policy; /* the other ends with the evaluation */
        for (size_t i = 0; i < data.n_images; i++) {
            renyi_eval_sample sample;
            if (renyi_eval_get_sample(p->eval, (uint32_t)k, i, &sample))
                point->answers[i] = 2 * sample.prediction + sample.is_top1;
        }
    }
    list_failures(s, p->eval);
    renyi_eval_get_times(p->eval, &t);
    s->times.images += t.images;
    s->times.resumed += t.resumed;
    s->times.seconds += t.seconds;
    s->times.seconds_model += t.seconds_model;
    s->times.seconds_decode += t.seconds_decode;
    s->times.n_ranks = t.n_ranks;
    s->times.n_threads = t.n_threads;
    s->times.batch = t.batch;
    const double part = p->gmacs / s->gmacs;
    p->answers += data.n_images * p->count;
    p->share += part;
    p->share_now += data.n_images ? part * (double)t.images / (double)data.n_images : 0.0;
}

static renyi_status run_pass(pass *p, const renyi_model *m, const char **policies, renyi_error *err)
{
    renyi_sweep *s = p->s;
    renyi_eval *e;
    for (size_t i = 0; i < p->count; i++) policies[i] = s->points[p->first + i].policy;
    const renyi_eval_options o = {.struct_size = sizeof o,
                                  .n_policies = (uint32_t)p->count,
                                  .policies = policies,
                                  .batch = s->o.batch,
                                  .n_threads = s->o.n_threads,
                                  .n_workers = s->o.n_workers,
                                  .apply_exif = s->o.apply_exif,
                                  .decode = s->o.decode,
                                  .preprocess = &p->group->preprocess,
                                  .name = p->group->model,
                                  .log = s->o.log,
                                  .resume = s->o.resume || p->number > 0,
                                  .limits = s->o.limits,
                                  .allocator = s->al,
                                  .user = p,
                                  .on_failure = on_failure,
                                  .progress = on_progress,
                                  .ranks = s->o.ranks,
                                  .condition = s->o.condition};
    RY_TRY(renyi_eval_new(&e, m, p->group->data, &o, err));
    p->eval = e;
    const renyi_status st = renyi_eval_run(e, err);
    if (!st || st == RENYI_ERR_ABORTED) take_results(s, p);
    renyi_eval_free(e);
    return st;
}

/* ---- all ----------------------------------------------------------------------------------- */

/* How many points from `first` on fit in memory together. Each session is made once to measure it,
 * which takes less than a millisecond. */
static renyi_status fit_memory(const renyi_sweep *s, const ry_sweep_group *g, const renyi_model *m,
                               size_t first, size_t *count, renyi_error *err)
{
    const uint64_t most = s->o.max_bytes ? s->o.max_bytes : DEFAULT_BYTES;
    uint64_t bytes = 0;
    for (*count = 0; first + *count < g->first + g->count && *count < MAX_TOGETHER; ++*count) {
        const renyi_session_options o = {.struct_size = sizeof o,
                                         .max_batch = s->o.batch ? s->o.batch : 8,
                                         .n_threads = s->o.n_threads,
                                         .policy = s->points[first + *count].policy};
        renyi_session *session;
        RY_TRY(renyi_session_new(&session, m, &o, err));
        bytes += renyi_session_bytes(session);
        renyi_session_free(session);
        if (*count && bytes > most) break;
    }
    return RENYI_OK;
}

static renyi_status run_group(pass *p, const renyi_model *m, const char **policies,
                              renyi_error *err)
{
    const ry_sweep_group *g = p->group;
    for (p->first = g->first; p->first < g->first + g->count; p->first += p->count) {
        RY_TRY(fit_memory(p->s, g, m, p->first, &p->count, err));
        p->gmacs = 0;
        for (size_t i = 0; i < p->count; i++) p->gmacs += p->s->points[p->first + i].result.gmacs;
        p->n_passes += p->first + p->count < g->first + g->count;
        RY_TRY(run_pass(p, m, policies, err));
        p->number++;
    }
    return RENYI_OK;
}

renyi_status renyi_sweep_run(renyi_sweep *s, renyi_error *err)
{
    if (!s) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_sweep_run: NULL argument");
    pass p = {.s = s, .n_passes = (uint32_t)s->n_groups};
    const char **policies = ry_alloc(&s->al, MAX_TOGETHER, sizeof *policies);
    if (!policies) return ry_fail_nomem(err, MAX_TOGETHER * sizeof *policies);
    renyi_status st = RENYI_OK;
    s->times = (renyi_eval_times){0};
    for (size_t i = 0; !st && i < s->n_groups; i++) {
        renyi_preprocess unused;
        renyi_model *m;
        p.group = &s->groups[i];
        st = ry_sweep_open(s, p.group->model, p.group->asked_size, p.group->asked_dtype, &m,
                           &unused, err);
        if (st) break;
        st = run_group(&p, m, policies, err);
        renyi_model_free(m);
    }
    ry_free(&s->al, policies);
    return st;
}
