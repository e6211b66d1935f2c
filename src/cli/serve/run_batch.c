/* run_batch.c - runs a batch of images or texts of several requests. The library gives every row
 * the same bits in any batch, so an answer does not depend on its company.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/classify/classify.h"
#include "cli/serve/serve_model.h"

#include <stdlib.h>
#include <string.h>

/* ---- the inputs of a batch ---------------------------------------------------------------------
 */

/* The job may be freed by another thread after its last input. */
static void input_done(job_input *in)
{
    serve_job *job = in->job;

    free(in->pixels);
    in->pixels = NULL;
    if (atomic_fetch_sub(&job->n_left, 1) == 1) pool_add(&job->server->pool, job, job_finish);
}

/* Leaves out the inputs of clients that went away and of jobs that failed. Returns how many stay.
 */
static uint32_t leave_out(job_input **batch, uint32_t n)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        serve_job *job = batch[i]->job;
        const int is_same = kept && batch[kept - 1]->job == job; /* asked a moment ago */
        if (!job->error.status && !is_same && job_client_is_gone(job)) {
            job_fail(job, 499, "client_gone", NULL, "the client closed the connection");
            metrics_add(&job->server->metrics, &job->server->metrics.gone);
        }
        if (atomic_load(&job->server->is_aborting))
            job_fail(job, 503, "stopping", NULL, "the server is stopping");
        if (job->error.status)
            input_done(batch[i]);
        else
            batch[kept++] = batch[i];
    }
    return kept;
}

static void fail_batch(job_input **batch, uint32_t n, const renyi_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        job_fail_library(batch[i]->job, err);
        input_done(batch[i]);
    }
}

static int copy_row(job_input *in, const float *rows, uint32_t i, uint32_t n_row)
{
    in->row = malloc(n_row * sizeof *in->row);
    if (in->row) memcpy(in->row, rows + (size_t)i * n_row, n_row * sizeof *in->row);
    in->job->n_row = n_row;
    return in->row ? 0 : -1;
}

/* ---- images ------------------------------------------------------------------------------------
 */

/* Runs the batch; rows: [n, n_row], owned by the caller. */
static renyi_status run_pixels(const serve_model *m, const served_session *s, job_input **batch,
                               uint32_t n, float **rows, renyi_error *err)
{
    const size_t side = m->info.preprocess.size, size = 3 * side * side;
    uint8_t *pixels = n == 1 ? batch[0]->pixels : malloc(n * size);

    *rows = malloc((size_t)n * s->n_row * sizeof **rows);
    if (!pixels || !*rows) {
        if (n > 1) free(pixels);
        err->code = RENYI_ERR_NOMEM;
        return RENYI_ERR_NOMEM;
    }
    for (uint32_t i = 0; n > 1 && i < n; i++) memcpy(pixels + i * size, batch[i]->pixels, size);
    const renyi_status st = renyi_run_pixels(s->session, pixels, n, *rows, err);
    if (n > 1) free(pixels);
    return st;
}

static void take_result(const serve_model *m, const served_session *s, job_input *in, uint32_t i,
                        const float *rows)
{
    renyi_error err = {.code = RENYI_ERR_NOMEM};

    in->macs = renyi_session_last_macs(s->session);
    in->macs_dense = s->macs_dense;
    if (copy_row(in, rows, i, s->n_row)) job_fail_library(in->job, &err);
    if (!in->job->request.with_trace) return;
    in->trace = trace_json(&m->info, s->session, i, &err);
    if (!in->trace) job_fail_library(in->job, &err);
}

void run_images(serve_model *m, job_input **batch, uint32_t n)
{
    renyi_error err = {0};
    float *rows = NULL;

    n = leave_out(batch, n);
    if (!n) return;
    const served_session *s = session_cache_get(m, batch[0]->job);
    if (!s) { /* the reason is the same for all of them */
        const request_error why = batch[0]->job->error;
        for (uint32_t i = 0; i < n; i++) {
            job_fail(batch[i]->job, why.status, why.code, why.param, "%s", why.message);
            input_done(batch[i]);
        }
        return;
    }
    const double start = cli_now_ms();
    const renyi_status st = run_pixels(m, s, batch, n, &rows, &err);
    const double ms = cli_now_ms() - start;
    if (st != RENYI_OK) {
        fail_batch(batch, n, &err);
    } else {
        const metric_batch done = {n, ms / 1e3, renyi_session_last_macs(s->session), s->macs_dense,
                                   s->dropped};
        metrics_images(&m->server->metrics, &done);
        for (uint32_t i = 0; i < n; i++) {
            batch[i]->ms = ms / n;
            batch[i]->batch = n;
            take_result(m, s, batch[i], i, rows);
            input_done(batch[i]);
        }
    }
    free(rows);
}

/* ---- texts -------------------------------------------------------------------------------------
 */

static renyi_status run_ids(serve_model *m, job_input **batch, uint32_t n, float *rows,
                            renyi_error *err)
{
    const uint32_t context = m->text.info.context;
    int32_t *ids = calloc((size_t)n * context, sizeof *ids);
    uint32_t *lengths = calloc(n, sizeof *lengths);
    renyi_text_session *session = session_cache_text(m, err);
    renyi_status st = session && ids && lengths && rows ? RENYI_OK : err->code;

    for (uint32_t i = 0; !st && i < n; i++) {
        memcpy(ids + (size_t)i * context, batch[i]->ids, context * sizeof *ids);
        lengths[i] = batch[i]->n_ids;
    }
    if (!st) st = renyi_text_run(session, ids, lengths, n, rows, err);
    free(ids);
    free(lengths);
    return st;
}

void run_texts(serve_model *m, job_input **batch, uint32_t n)
{
    const uint32_t dim = m->text.info.embed_dim;
    renyi_error err = {.code = RENYI_ERR_NOMEM};
    uint64_t tokens = 0;

    n = leave_out(batch, n);
    if (!n) return;
    float *rows = malloc((size_t)n * dim * sizeof *rows);
    const double start = cli_now_ms();
    if (run_ids(m, batch, n, rows, &err) != RENYI_OK) {
        fail_batch(batch, n, &err);
        free(rows);
        return;
    }
    for (uint32_t i = 0; i < n; i++) tokens += batch[i]->n_ids;
    metrics_texts(&m->server->metrics, n, tokens);
    err.code = RENYI_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        batch[i]->ms = (cli_now_ms() - start) / n;
        if (copy_row(batch[i], rows, i, dim)) job_fail_library(batch[i]->job, &err);
        input_done(batch[i]);
    }
    free(rows);
}
