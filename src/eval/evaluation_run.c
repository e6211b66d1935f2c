/* evaluation_run.c - renyi_eval_run: every batch through every policy's session.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/status.h"
#include "eval/evaluation.h"
#include "eval/pipeline.h"

#include <stdio.h>
#include <string.h>

/* ---- one batch ----------------------------------------------------------------------------- */

static renyi_status fail_photo(renyi_eval *e, size_t photo, const char *message, renyi_error *err)
{
    renyi_dataset_image image;
    renyi_dataset_get_image(e->data, photo, &image);
    char *copy = ry_pool_copy(&e->pool, ry_text_of(message));
    if (!copy || !ry_grow(&e->al, (void **)&e->failures, &e->failure_capacity, e->n_failures,
                          sizeof *e->failures))
        return ry_fail_nomem(err, strlen(message));
    e->failures[e->n_failures++] = (renyi_eval_failure){image.file, copy};
    if (e->o.on_failure) e->o.on_failure(e->o.user, image.file, copy);
    return ry_sample_log_fault(&e->log, &image, copy, err);
}

static renyi_status run_policy(renyi_eval *e, uint32_t policy, const ry_batch *b, int is_cold,
                               renyi_error *err)
{
    ry_eval_policy *p = &e->policies[policy];
    const double start = ry_clock();
    RY_TRY(b->chw ? renyi_run_tensor(p->session, b->chw, b->n, e->logits, err)
                  : renyi_run_pixels(p->session, b->pixels, b->n, e->logits, err));
    const double seconds = ry_clock() - start;
    p->seconds += seconds;
    p->macs += renyi_session_last_macs(p->session) * b->n;
    p->n_run += b->n;
    e->times.seconds_model += seconds;
    for (uint32_t i = 0; i < b->n; i++) {
        ry_answer *a = ry_eval_answer(e, policy, b->photos[i]);
        renyi_dataset_image image;
        renyi_dataset_get_image(e->data, b->photos[i], &image);
        *a = (ry_answer){.ms = (float)(1e3 * seconds / b->n), .is_cold = (uint8_t)is_cold};
        ry_answer_read(a, e->logits + (size_t)i * e->choice.n, &e->choice, image.label);
    }
    return RENYI_OK;
}

/* Photo by photo, so that the log is the same for any batch size. */
static renyi_status report_photo(renyi_eval *e, size_t photo, renyi_error *err)
{
    for (uint32_t p = 0; p < e->o.n_policies; p++) {
        const char *policy = renyi_session_policy(e->policies[p].session);
        renyi_eval_sample sample;
        if (!renyi_eval_get_sample(e, p, photo, &sample)) {
            char message[64 + RENYI_POLICY_MAX];
            snprintf(message, sizeof message, "policy \"%s\" answered with no numbers", policy);
            RY_TRY(fail_photo(e, photo, message, err));
            continue;
        }
        if (e->o.on_sample) e->o.on_sample(e->o.user, &sample);
        RY_TRY(ry_sample_log_put(&e->log, &sample, policy, err));
    }
    return RENYI_OK;
}

static renyi_status run_batch(renyi_eval *e, const ry_batch *b, renyi_error *err)
{
    const int is_cold = e->times.images == 0;
    for (uint32_t i = 0; i < b->n_faults; i++)
        RY_TRY(fail_photo(e, b->faults[i].photo, b->faults[i].message, err));
    e->n_unreadable += b->n_faults;
    for (uint32_t p = 0; b->n && p < e->o.n_policies; p++)
        RY_TRY(run_policy(e, p, b, is_cold, err));
    for (uint32_t i = 0; i < b->n; i++) RY_TRY(report_photo(e, b->photos[i], err));
    e->times.images += b->n;
    e->times.seconds = ry_clock() - e->started;
    return ry_sample_log_flush(&e->log, err);
}

/* ---- all batches --------------------------------------------------------------------------- */

/* Photos that a policy has not answered yet, in dataset order. */
static renyi_status list_todo(renyi_eval *e, size_t **out, size_t *count, renyi_error *err)
{
    size_t *todo = ry_alloc(&e->al, e->n_images, sizeof *todo), n = 0;
    if (!todo) return ry_fail_nomem(err, e->n_images * sizeof *todo);
    for (size_t i = 0; i < e->n_images; i++) {
        int is_done = 1;
        for (uint32_t p = 0; p < e->o.n_policies; p++)
            is_done &= ry_eval_answer(e, p, i)->state == RY_ANSWER_GIVEN;
        if (!is_done) todo[n++] = i;
    }
    *out = todo;
    *count = n;
    e->times.resumed = e->n_images - n;
    return RENYI_OK;
}

static renyi_status run_batches(renyi_eval *e, ry_pipeline *p, size_t n_todo, renyi_error *err)
{
    uint64_t done = e->n_images - n_todo;
    for (const ry_batch *b; (b = ry_pipeline_next(p));) {
        RY_TRY(run_batch(e, b, err));
        done += b->n + b->n_faults;
        if (e->o.progress && e->o.progress(e->o.user, done, e->n_images))
            return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    }
    return RENYI_OK;
}

renyi_status renyi_eval_run(renyi_eval *e, renyi_error *err)
{
    size_t *todo = NULL, n_todo = 0;
    ry_pipeline *pipeline = NULL;
    if (!e) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_eval_run: NULL argument");
    e->started = ry_clock();
    const uint32_t cores = ry_cpu_cores();
    const uint32_t spare = cores > e->o.n_threads ? cores - e->o.n_threads : 0;
    e->times = (renyi_eval_times){.n_ranks = 1};
    e->n_failures = e->n_unreadable = 0;
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
    if (!st) st = run_batches(e, pipeline, n_todo, err);
    if (pipeline) e->times.seconds_decode = ry_pipeline_decode_seconds(pipeline);
    e->times.seconds = ry_clock() - e->started;
    ry_pipeline_free(pipeline);
    ry_free(&e->al, todo);
    return st;
}
