/* evaluation_run.c - renyi_eval_run: every batch of a share through every policy's session.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "eval/run/evaluation.h"
#include "eval/run/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one batch ----------------------------------------------------------------------------- */

ry_failure *ry_eval_add_failure(renyi_eval *e, size_t photo, uint32_t policy, const char *message)
{
    renyi_dataset_image image;
    renyi_dataset_get_image(e->data, photo, &image);
    const char *copy = ry_pool_copy(&e->pool, ry_text_of(message));
    if (!copy || !ry_grow(&e->al, (void **)&e->failures, &e->failure_capacity, e->n_failures,
                          sizeof *e->failures))
        return NULL;
    ry_failure *f = &e->failures[e->n_failures++];
    *f = (ry_failure){{image.file, copy}, photo, policy};
    return f;
}

static renyi_status fail_photo(renyi_eval *e, size_t photo, uint32_t policy, const char *message,
                               renyi_error *err)
{
    const ry_failure *f = ry_eval_add_failure(e, photo, policy, message);
    if (!f) return ry_fail_nomem(err, strlen(message));
    if (e->o.on_failure) e->o.on_failure(e->o.user, f->shown.file, f->shown.message);
    return ry_eval_put_failure(e, f, err);
}

static renyi_status run_policy(renyi_eval *e, uint32_t policy, const ry_batch *b, int is_cold,
                               renyi_error *err)
{
    ry_eval_policy *p = &e->policies[policy];
    const double start = ry_clock();
    RY_TRY(b->chw ? renyi_run_tensor(p->session, b->chw, b->n, e->logits, err)
                  : renyi_run_pixels(p->session, b->pixels, b->n, e->logits, err));
    const double seconds = ry_clock() - start;
    p->own.macs += renyi_session_last_macs(p->session) * b->n;
    p->own.n_run += b->n;
    e->times.seconds_model += seconds;
    for (uint32_t i = 0; i < b->n; i++) {
        ry_answer *a = ry_eval_answer(e, policy, b->photos[i]);
        renyi_dataset_image image;
        renyi_dataset_get_image(e->data, b->photos[i], &image);
        *a = (ry_answer){
            .ms = (float)(1e3 * seconds / b->n), .is_cold = (uint8_t)is_cold, .is_fresh = 1};
        ry_answer_read(a, e->logits + (size_t)i * e->choice.n, &e->choice, image.label);
        ry_answer_judge(a, &image);
    }
    return RENYI_OK;
}

/* Photo by photo, so that the log is the same for any batch size. */
static renyi_status report_photo(renyi_eval *e, size_t photo, renyi_error *err)
{
    for (uint32_t p = 0; p < e->o.n_policies; p++) {
        renyi_eval_sample sample;
        if (!renyi_eval_get_sample(e, p, photo, &sample)) {
            char message[64 + RENYI_POLICY_MAX];
            snprintf(message, sizeof message, "policy \"%s\" answered with no numbers",
                     e->policies[p].text);
            RY_TRY(fail_photo(e, photo, p, message, err));
            continue;
        }
        if (e->o.on_sample) e->o.on_sample(e->o.user, &sample);
        RY_TRY(ry_eval_put_answer(e, p, photo, err));
    }
    return RENYI_OK;
}

/* What the batch took beside the model: waiting for photos, and the lines of the one before. */
static void share_rest(renyi_eval *e, const ry_batch *b, double seconds_model)
{
    const double now = ry_clock();
    const float rest = (float)(1e3 * (now - e->batch_end - seconds_model) / b->n);
    e->batch_end = now;
    for (uint32_t p = 0; p < e->o.n_policies; p++)
        for (uint32_t i = 0; i < b->n; i++) ry_eval_answer(e, p, b->photos[i])->ms_rest = rest;
}

static renyi_status run_batch(renyi_eval *e, const ry_batch *b, renyi_error *err)
{
    const int is_cold = e->times.images == 0;
    const double before = e->times.seconds_model;
    for (uint32_t i = 0; i < b->n_faults; i++)
        RY_TRY(fail_photo(e, b->faults[i].photo, RY_ALL_POLICIES, b->faults[i].message, err));
    for (uint32_t p = 0; b->n && p < e->o.n_policies; p++)
        RY_TRY(run_policy(e, p, b, is_cold, err));
    if (b->n) share_rest(e, b, e->times.seconds_model - before);
    for (uint32_t i = 0; i < b->n; i++) RY_TRY(report_photo(e, b->photos[i], err));
    e->times.images += b->n;
    e->times.seconds = ry_clock() - e->started;
    return ry_sample_log_flush(&e->log, err);
}

/* ---- this rank's batches ------------------------------------------------------------------- */

static int is_done(const renyi_eval *e, size_t photo)
{
    for (uint32_t p = 0; p < e->o.n_policies; p++)
        if (ry_eval_answer(e, p, photo)->state != RY_ANSWER_GIVEN) return 0;
    return 1;
}

/* Photos that a policy has not answered yet, in dataset order; every n-th of them is for this one
 * of n ranks. */
static renyi_status list_todo(renyi_eval *e, size_t **out, size_t *count, renyi_error *err)
{
    size_t *todo = ry_alloc(&e->al, e->n_images, sizeof *todo), n = 0, n_mine = 0;
    if (!todo) return ry_fail_nomem(err, e->n_images * sizeof *todo);
    for (size_t i = 0; i < e->n_images; i++)
        if (!is_done(e, i) && n++ % e->ranks.r.n_ranks == e->ranks.r.rank) todo[n_mine++] = i;
    *out = todo;
    *count = n_mine;
    e->times.resumed = e->n_images - n;
    return RENYI_OK;
}

/* Tell the caller how far everyone is, the others as they said last. */
static renyi_status show_progress(const renyi_eval *e, const ry_beat *beat, renyi_error *err)
{
    const uint64_t done = e->times.resumed + e->ranks.others_done + beat->done;
    if (e->o.progress && e->o.progress(e->o.user, done, e->n_images))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

static renyi_status run_batches(renyi_eval *e, ry_pipeline *p, ry_beat *beat, renyi_error *err)
{
    for (const ry_batch *b; !e->ranks.n_stopped && (b = ry_pipeline_next(p));) {
        RY_TRY(run_batch(e, b, err));
        beat->done += b->n + b->n_faults;
        RY_TRY(ry_ranks_beat(&e->ranks, beat, 0, err));
        RY_TRY(show_progress(e, beat, err));
    }
    return RENYI_OK;
}

static renyi_status run_share(renyi_eval *e, ry_beat *beat, renyi_error *err)
{
    size_t *todo = NULL, n_todo = 0;
    ry_pipeline *pipeline = NULL;
    const uint32_t cores = ry_eval_cores(e);
    const uint32_t spare = cores > e->o.n_threads ? cores - e->o.n_threads : 0;
    RY_TRY(list_todo(e, &todo, &n_todo, err));
    const ry_pipeline_options o = {.data = e->data,
                                   .todo = todo,
                                   .n_todo = n_todo,
                                   .spec = e->spec,
                                   .batch = e->o.batch,
                                   .n_beside = e->o.n_workers ? e->o.n_workers : spare,
                                   .n_threads = cores,
                                   .normalise = e->normalise};
    renyi_status st = ry_pipeline_new(&pipeline, &o, &e->al, err);
    if (!st) st = run_batches(e, pipeline, beat, err);
    if (pipeline) e->times.seconds_decode = ry_pipeline_decode_seconds(pipeline);
    e->times.seconds = ry_clock() - e->started;
    ry_pipeline_free(pipeline);
    ry_free(&e->al, todo);
    return st;
}

/* ---- all ranks ----------------------------------------------------------------------------- */

/* Until everyone is through with its share. `st` is how ours went; a stop now reaches the others.
 */
static renyi_status await_others(renyi_eval *e, ry_beat *beat, renyi_status st, renyi_error *err)
{
    ry_ranks *k = &e->ranks;
    beat->is_over = 1;
    while (k->n_over < k->r.n_ranks) {
        renyi_error talk = {0};
        beat->is_stopped = st != RENYI_OK;
        const renyi_status talked = ry_ranks_beat(k, beat, 1, &talk);
        if (talked) return st ? st : ry_fail(err, talked, -1, "%s", talk.message);
        if (!st && k->n_over < k->r.n_ranks) st = show_progress(e, beat, err);
    }
    return st;
}

static int by_photo(const void *a, const void *b)
{
    const ry_failure *x = a, *y = b;
    if (x->photo != y->photo) return x->photo < y->photo ? -1 : 1;
    return (x->policy > y->policy) - (x->policy < y->policy);
}

/* Every rank gets everything, rank 0 writes it down, and only then the parts of the log go. */
static renyi_status bring_together(renyi_eval *e, renyi_error *err)
{
    RY_TRY(ry_eval_share(e, err));
    RY_TRY(ry_ranks_agree(&e->ranks, ry_eval_complete_log(e, err), err));
    ry_sample_log_drop_parts(&e->log);
    return RENYI_OK;
}

static void start_afresh(renyi_eval *e)
{
    e->started = e->batch_end = ry_clock();
    e->times = (renyi_eval_times){.n_ranks = 1};
    e->n_failures = 0;
    e->ranks.others_done = 0;
    e->ranks.n_over = e->ranks.n_stopped = 0;
    for (uint32_t p = 0; p < e->o.n_policies; p++)
        e->policies[p].own = e->policies[p].others = (ry_work){0};
    for (size_t i = 0; i < e->n_images * e->o.n_policies; i++) e->answers[i].is_fresh = 0;
}

renyi_status renyi_eval_run(renyi_eval *e, renyi_error *err)
{
    ry_beat beat = {0};
    renyi_error late = {0};
    if (!e) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_run: NULL argument");
    if (e->merged)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_run: a merged evaluation has no model");
    start_afresh(e);
    RY_TRY(ry_eval_meet(e, err));
    RY_TRY(ry_ranks_agree(&e->ranks, ry_sample_log_begin(&e->log, err), err));
    renyi_status st = await_others(e, &beat, run_share(e, &beat, err), err);
    const renyi_status after = bring_together(e, &late);
    if (!st && after) st = ry_fail(err, after, -1, "%s", late.message);
    if (e->n_failures) qsort(e->failures, e->n_failures, sizeof *e->failures, by_photo);
    return ry_ranks_agree(&e->ranks, st, err);
}
