/* viz_rows.c - runs every policy on the photo. A session lives for its run alone: a sweep has
 * dozens of policies, and each would hold the memory of a whole network.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/viz/viz_plan.h"

#include <math.h>

/* One run, and the fastest of those that are timed. */
static renyi_status run(const renyi_viz *v, renyi_session *s, const uint8_t *rgb, float *logits,
                        double *ms, renyi_error *err)
{
    *ms = NAN;
    RY_TRY(renyi_run_pixels(s, rgb, 1, logits, err));
    for (uint32_t i = 0; i < v->time; i++) {
        const double start = ry_clock();
        RY_TRY(renyi_run_pixels(s, rgb, 1, logits, err));
        *ms = fmin(*ms, (ry_clock() - start) * 1e3); /* of a NaN and a number, the number */
    }
    return RENYI_OK;
}

static renyi_status open_session(const renyi_viz *v, const ry_viz_policy *p, renyi_session **out,
                                 renyi_error *err)
{
    const renyi_session_options o = {
        .struct_size = sizeof o, .n_threads = v->n_threads, .policy = p->text, .trace = 1};
    return renyi_session_new(out, v->model, &o, err);
}

static renyi_status time_dense(const renyi_viz *v, renyi_viz_result *r, float *logits,
                               renyi_error *err)
{
    renyi_session *s;
    RY_TRY(open_session(v, &v->policies[0], &s, err));
    const renyi_status st = run(v, s, r->photo.rgb, logits, &r->dense.ms, err);
    renyi_session_free(s);
    return st;
}

static renyi_status read_row(const renyi_viz *v, const ry_viz_policy *p, const renyi_session *s,
                             const float *logits, double ms, renyi_viz_row *out, ry_stash *stash,
                             renyi_error *err)
{
    renyi_viz_step *steps = RY_STASH_TAKE(stash, renyi_viz_step, v->n_layers);
    *out = (renyi_viz_row){.policy = ry_stash_text(stash, p->text),
                           .label = ry_stash_text(stash, p->label),
                           .metric = p->metric,
                           .norm = p->norm,
                           .keep = p->keep,
                           .merges = p->merges,
                           .adaptive = p->adaptive,
                           .steps = steps};
    if (!steps || !out->policy || !out->label)
        return ry_fail_nomem(err, v->n_layers * sizeof *steps);
    RY_TRY(ry_viz_follow(v, s, p, steps, stash, err));
    return ry_viz_fill_answer(v, p, logits, ms, &out->answer, stash, err);
}

static renyi_status fill_row(const renyi_viz *v, const ry_viz_policy *p, const uint8_t *rgb,
                             float *logits, renyi_viz_row *out, ry_stash *stash, renyi_error *err)
{
    renyi_session *s;
    double ms;
    RY_TRY(open_session(v, p, &s, err));
    renyi_status st = run(v, s, rgb, logits, &ms, err);
    if (!st) st = read_row(v, p, s, logits, ms, out, stash, err);
    renyi_session_free(s);
    return st;
}

/* The dense run is done when rows are begun. */
static renyi_status report(const renyi_viz *v, size_t rows_done, size_t rows, renyi_error *err)
{
    if (!v->progress || !v->progress(v->progress_user, 1 + rows_done, 1 + rows)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
}

static renyi_status fill_all(const renyi_viz *v, renyi_viz_result *r, float *logits,
                             ry_stash *stash, renyi_error *err)
{
    const size_t n = (size_t)v->n_rows + v->n_sweep;
    renyi_viz_row *rows = RY_STASH_TAKE(stash, renyi_viz_row, n);
    if (!rows) return ry_fail_nomem(err, n * sizeof *rows);
    if (v->time) RY_TRY(time_dense(v, r, logits, err));
    RY_TRY(report(v, 0, n, err));
    for (size_t i = 0; i < n; i++) {
        RY_TRY(fill_row(v, &v->policies[1 + i], r->photo.rgb, logits, &rows[i], stash, err));
        RY_TRY(report(v, i + 1, n, err));
    }
    r->n_rows = v->n_rows;
    r->rows = rows;
    r->n_sweep = v->n_sweep;
    r->sweep = v->n_sweep ? rows + v->n_rows : NULL;
    return RENYI_OK;
}

renyi_status ry_viz_fill_rows(const renyi_viz *v, renyi_viz_result *r, ry_stash *stash,
                              renyi_error *err)
{
    const size_t n = ry_vit_outputs(&v->model->vit.config, RENYI_OUTPUT_AUTO);
    float *logits = ry_alloc(&v->stash.al, n, sizeof *logits);
    if (!logits) return ry_fail_nomem(err, n * sizeof *logits);
    const renyi_status st = fill_all(v, r, logits, stash, err);
    ry_free(&v->stash.al, logits);
    return st;
}
