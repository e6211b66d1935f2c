/* session.c - bodies of the session part of renyi.h: a plan of a model for one caller.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/model.h"
#include "image/patches.h"
#include "kernels/peak.h"
#include "model/vit_plan.h"

#include <string.h>

struct renyi_session {
    const renyi_model *model; /* borrowed */
    ry_vit_plan *plan;
    uint32_t max_batch;
    renyi_progress progress;
    void *progress_user;
    float lut[3][256]; /* normalised value of each byte, per channel */
    uint8_t *pixels;   /* [max_batch, S, S, 3] fitted pictures of renyi_run */
};

enum { MAX_BATCH = 4096, MAX_THREADS = 1024 };

static renyi_status check_options(renyi_session_options *o, renyi_error *err)
{
    if (!o->max_batch) o->max_batch = 1;
    if (!o->n_threads) o->n_threads = ry_cpu_cores();
    if (o->max_batch > MAX_BATCH)
        return ry_fail(err, RENYI_ERR_ARG, -1, "batch of %u images; at most %d", o->max_batch,
                       MAX_BATCH);
    if (o->n_threads > MAX_THREADS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u threads; at most %d", o->n_threads, MAX_THREADS);
    if (o->policy && strcmp(o->policy, "none") != 0)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "policy \"%s\" is not known; allowed: none",
                       o->policy);
    return RENYI_OK;
}

renyi_status renyi_session_new(renyi_session **out, const renyi_model *m,
                               const renyi_session_options *opt, renyi_error *err)
{
    renyi_session_options o = {0};
    if (!out || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_session_new: NULL argument");
    *out = NULL;
    if (opt) {
        if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_session_options: struct_size %u, this library knows %zu",
                           opt->struct_size, sizeof o);
        memcpy(&o, opt, opt->struct_size);
    }
    RY_TRY(check_options(&o, err));
    if (!m->vit.head)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "the model has no classifier head");
    const renyi_allocator *al = &m->al;
    renyi_session *s = ry_calloc(al, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    s->model = m;
    s->max_batch = o.max_batch;
    s->progress = o.progress;
    s->progress_user = o.progress_user;
    const ry_vit_config *c = &m->vit.config;
    ry_normalize_lut(s->lut, c->preprocess.mean, c->preprocess.std);
    const size_t bytes = (size_t)o.max_batch * c->image_size * c->image_size * 3;
    s->pixels = ry_alloc(al, bytes, 1);
    renyi_status st = s->pixels ? RENYI_OK : ry_fail_nomem(err, bytes);
    const ry_vit_plan_options plan = {
        .level = m->level, .max_batch = o.max_batch, .n_threads = o.n_threads};
    if (!st) st = ry_vit_plan_new(&s->plan, &m->vit, &plan, al, err);
    if (st) {
        renyi_session_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

void renyi_session_free(renyi_session *s)
{
    if (!s) return;
    const renyi_allocator *al = &s->model->al;
    ry_vit_plan_free(s->plan, al);
    ry_free(al, s->pixels);
    ry_free(al, s);
}

size_t renyi_session_bytes(const renyi_session *s) { return s ? s->plan->arena_bytes : 0; }

double renyi_session_macs(const renyi_session *s) { return s ? ry_vit_plan_macs(s->plan) : 0.0; }

static renyi_status check_run(const renyi_session *s, const void *input, uint32_t n,
                              const float *logits, renyi_error *err)
{
    if (!s || !input || !logits) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_run: NULL argument");
    if (n == 0 || n > s->max_batch)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u images; the session takes 1 to %u", n,
                       s->max_batch);
    return RENYI_OK;
}

static renyi_status forward(renyi_session *s, ry_vit_input *in, float *logits, renyi_error *err)
{
    in->progress = s->progress;
    in->progress_user = s->progress_user;
    const renyi_status st = ry_vit_forward(s->plan, in, logits);
    return st ? ry_fail(err, st, -1, "stopped by the progress callback") : RENYI_OK;
}

renyi_status renyi_run_pixels(renyi_session *s, const uint8_t *pixels, uint32_t n, float *logits,
                              renyi_error *err)
{
    RY_TRY(check_run(s, pixels, n, logits, err));
    ry_vit_input in = {.pixels = pixels, .lut = (const float(*)[256])s->lut, .n = n};
    return forward(s, &in, logits, err);
}

renyi_status renyi_run_tensor(renyi_session *s, const float *chw, uint32_t n, float *logits,
                              renyi_error *err)
{
    RY_TRY(check_run(s, chw, n, logits, err));
    ry_vit_input in = {.chw = chw, .n = n};
    return forward(s, &in, logits, err);
}

renyi_status renyi_run(renyi_session *s, const renyi_image *images, uint32_t n, float *logits,
                       renyi_error *err)
{
    RY_TRY(check_run(s, images, n, logits, err));
    const ry_vit_config *c = &s->model->vit.config;
    const size_t each = (size_t)c->image_size * c->image_size * 3;
    for (uint32_t i = 0; i < n; i++)
        RY_TRY(
            renyi_image_fit(s->pixels + i * each, &images[i], &c->preprocess, &s->model->al, err));
    return renyi_run_pixels(s, s->pixels, n, logits, err);
}

renyi_status renyi_measure_peak(uint32_t n_threads, double *gflops, renyi_error *err)
{
    if (!gflops) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_measure_peak: NULL argument");
    return ry_measure_peak(n_threads ? n_threads : ry_cpu_cores(), gflops, err);
}
