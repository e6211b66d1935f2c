/* evaluation_run.c - renyi_eval_run: runs every batch of this rank's images through the session of
 * every policy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "eval/run/evaluation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one batch ----------------------------------------------------------------------------- */

ry_failure *ry_eval_add_failure(renyi_eval *e, size_t image, uint32_t policy, const char *message)
{
    renyi_dataset_image entry;
    renyi_dataset_get_image(e->data, image, &entry);
    const char *copy = ry_pool_copy(&e->pool, ry_text_of(message));
    if (!copy || !ry_grow(&e->al, (void **)&e->failures, &e->failure_capacity, e->n_failures,
                          sizeof *e->failures))
        return NULL;
    ry_failure *f = &e->failures[e->n_failures++];
    *f = (ry_failure){{entry.file, copy}, image, policy};
    return f;
}

static renyi_status fail_image(renyi_eval *e, size_t image, uint32_t policy, const char *message,
                               renyi_error *err)
{
    const ry_failure *f = ry_eval_add_failure(e, image, policy, message);
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
        ry_answer *a = ry_eval_answer(e, policy, b->images[i]);
        renyi_dataset_image image;
        renyi_dataset_get_image(e->data, b->images[i], &image);
        *a = (ry_answer){
            .ms = (float)(1e3 * seconds / b->n), .is_cold = (uint8_t)is_cold, .is_fresh = 1};
        if (p->gmacs_second > 0) a->passes = (uint8_t)renyi_session_passes(p->session, i);
        ry_answer_read(a, e->logits + (size_t)i * e->choice.n, &e->choice, image.label);
        ry_answer_judge(a, &image);
    }
    return RENYI_OK;
}

/* Image by image, so that the log is the same for any batch size. */
static renyi_status report_image(renyi_eval *e, size_t image, renyi_error *err)
{
    for (uint32_t p = 0; p < e->o.n_policies; p++) {
        renyi_eval_sample sample;
        if (!renyi_eval_get_sample(e, p, image, &sample)) {
            char message[64 + RENYI_POLICY_MAX];
            snprintf(message, sizeof message, "the logits of policy \"%s\" are not numbers",
                     e->policies[p].text);
            RY_TRY(fail_image(e, image, p, message, err));
            continue;
        }
        if (e->o.on_sample) e->o.on_sample(e->o.user, &sample);
        RY_TRY(ry_eval_put_answer(e, p, image, err));
    }
    return RENYI_OK;
}

/* Time of the batch without the model: waiting for images, and log lines of the batch before. */
static void set_rest_times(renyi_eval *e, const ry_batch *b, double seconds_model)
{
    const double now = ry_clock();
    const float rest = (float)(1e3 * (now - e->batch_end - seconds_model) / b->n);
    e->batch_end = now;
    for (uint32_t p = 0; p < e->o.n_policies; p++)
        for (uint32_t i = 0; i < b->n; i++) ry_eval_answer(e, p, b->images[i])->ms_rest = rest;
}

static renyi_status run_batch(renyi_eval *e, const ry_batch *b, renyi_error *err)
{
    const int is_cold = e->times.images == 0;
    const double before = e->times.seconds_model;
    for (uint32_t i = 0; i < b->n_faults; i++)
        RY_TRY(fail_image(e, b->faults[i].image, RY_ALL_POLICIES, b->faults[i].message, err));
    for (uint32_t p = 0; b->n && p < e->o.n_policies; p++)
        RY_TRY(run_policy(e, p, b, is_cold, err));
    if (b->n) set_rest_times(e, b, e->times.seconds_model - before);
    for (uint32_t i = 0; i < b->n; i++) RY_TRY(report_image(e, b->images[i], err));
    e->times.images += b->n;
    e->times.seconds = ry_clock() - e->started;
    return ry_sample_log_flush(&e->log, err);
}

/* ---- this rank's batches ------------------------------------------------------------------- */

static int is_done(const void *user, size_t image)
{
    const renyi_eval *e = user;
    for (uint32_t p = 0; p < e->o.n_policies; p++)
        if (ry_eval_answer(e, p, image)->state != RY_ANSWER_GIVEN) return 0;
    return 1;
}

static renyi_status run_batches(renyi_eval *e, ry_pipeline *p, renyi_error *err)
{
    for (const ry_batch *b; !e->shared.ranks.n_stopped && (b = ry_pipeline_next(p));) {
        RY_TRY(run_batch(e, b, err));
        RY_TRY(ry_shared_run_advance(&e->shared, b->n + b->n_faults, err));
    }
    return RENYI_OK;
}

static renyi_status run_images(void *user, renyi_error *err)
{
    renyi_eval *e = user;
    size_t *todo = NULL, n_todo = 0;
    ry_pipeline *pipeline = NULL;
    const uint32_t cores = ry_eval_cores(e);
    const uint32_t spare = cores > e->o.n_threads ? cores - e->o.n_threads : 0;
    RY_TRY(ry_shared_run_list(&e->shared, e->n_images, is_done, e, &e->al, &todo, &n_todo, err));
    e->times.resumed = e->shared.n_before;
    const ry_pipeline_options o = {.source = {.data = e->data},
                                   .todo = todo,
                                   .n_todo = n_todo,
                                   .spec = e->spec,
                                   .batch = e->images_per_run,
                                   .n_beside = e->o.n_workers ? e->o.n_workers : spare,
                                   .n_threads = cores,
                                   .normalize = e->normalize};
    renyi_status st = ry_pipeline_new(&pipeline, &o, &e->al, err);
    if (!st) st = run_batches(e, pipeline, err);
    if (pipeline) e->times.seconds_decode = ry_pipeline_decode_seconds(pipeline);
    e->times.seconds = ry_clock() - e->started;
    ry_pipeline_free(pipeline);
    ry_free(&e->al, todo);
    return st;
}

/* ---- all ranks ----------------------------------------------------------------------------- */

static renyi_status share_results(void *user, renyi_error *err) { return ry_eval_share(user, err); }

static renyi_status complete_log(void *user, renyi_error *err)
{
    return ry_eval_complete_log(user, err);
}

static int compare_failures(const void *a, const void *b)
{
    const ry_failure *x = a, *y = b;
    if (x->image != y->image) return x->image < y->image ? -1 : 1;
    return (x->policy > y->policy) - (x->policy < y->policy);
}

static void reset_run(renyi_eval *e)
{
    e->started = e->batch_end = ry_clock();
    e->times = ry_eval_no_times(e);
    e->n_failures = 0;
    for (uint32_t p = 0; p < e->o.n_policies; p++)
        e->policies[p].own = e->policies[p].others = (ry_work){0};
    for (size_t i = 0; i < e->n_images * e->o.n_policies; i++) e->answers[i].is_fresh = 0;
}

renyi_status renyi_eval_run(renyi_eval *e, renyi_error *err)
{
    const ry_run_steps steps = {run_images, share_results, complete_log};
    if (!e) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_run: NULL argument");
    if (e->merged)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_run: a merged evaluation has no model");
    reset_run(e);
    RY_TRY(ry_eval_compare_ranks(e, err));
    const renyi_status st = ry_shared_run_execute(&e->shared, &e->log.file, &steps, e, err);
    if (e->n_failures) qsort(e->failures, e->n_failures, sizeof *e->failures, compare_failures);
    return st;
}
