/* session_run.c - runs images through a session: divides them among its streams.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/status.h"
#include "engine/core/session.h"

static renyi_status check_run(const renyi_session *s, const void *input, uint32_t n,
                              const float *out, renyi_error *err)
{
    if (!s || !input || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_run: NULL argument");
    if (n == 0 || n > s->max_batch)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u images; the session takes 1 to %u", n,
                       s->max_batch);
    return RENYI_OK;
}

/* The key of an image is a hash of its bytes, so that it gets the same random numbers in any batch
 * and at any place in it. */
static void name_images(renyi_session *s, const void *input, size_t bytes_each, uint32_t n)
{
    if (!s->image_keys) return;
    for (uint32_t i = 0; i < n; i++)
        s->image_keys[i] = ry_hash((const unsigned char *)input + i * bytes_each, bytes_each);
    if (s->pruner) ry_pruner_name_images(s->pruner, s->image_keys, n);
}

static size_t input_values(const renyi_session *s)
{
    return (size_t)3 * s->model->vit.config.image_size * s->model->vit.config.image_size;
}

/* The progress callback of a session whose rule is the caller's own: a fault stops the run. */
static int stop_at_fault(void *user, uint64_t done, uint64_t total)
{
    const renyi_session *s = user;
    if (ry_pruner_fault(s->pruner, NULL)) return 1;
    return s->progress ? s->progress(s->progress_user, done, total) : 0;
}

static renyi_status run_pass(renyi_session *s, ry_vit_input *in, float *out, renyi_error *err)
{
    s->n_last = 0;
    in->progress = s->has_own_rule ? stop_at_fault : s->progress;
    in->progress_user = s->has_own_rule ? s : s->progress_user;
    if (s->has_own_rule) ry_pruner_begin(s->pruner);
    if (s->adapt.tca) {
        ry_tca_begin(&s->adapt);
        in->tap = ry_tca_tap;
        in->answered = ry_tca_answered;
        in->tap_user = in->answered_user = &s->adapt;
    }
    const renyi_status st = ry_vit_forward(s->plan, in, out);
    if (s->has_own_rule) RY_TRY(ry_pruner_fault(s->pruner, err));
    if (st) return ry_fail(err, st, -1, "stopped by the progress callback");
    s->n_last = in->n;
    return RENYI_OK;
}

static renyi_status run_second(const renyi_session *s, renyi_error *err)
{
    renyi_session *second = s->second;
    ry_vit_input in = ry_cascade_input(s->cascade);
    for (uint32_t i = 0; second->image_keys && i < in.n; i++)
        second->image_keys[i] = s->image_keys[in.pick[i]];
    if (second->image_keys) ry_pruner_name_images(second->pruner, second->image_keys, in.n);
    return run_pass(second, &in, s->cascade->logits, err);
}

static renyi_status run_forward(renyi_session *s, ry_vit_input *in, float *out, renyi_error *err)
{
    if (s->cascade) ry_cascade_tap(s->cascade, s->plan, in);
    RY_TRY(run_pass(s, in, out, err));
    if (!s->cascade) return RENYI_OK;
    ry_cascade_decide(s->cascade, out, in->n);
    if (!s->cascade->n_unsure) return RENYI_OK;
    const renyi_status st = run_second(s, err);
    if (st)
        s->n_last = 0;
    else
        ry_cascade_combine(s->cascade, out);
    return st;
}

/* ---- streams ------------------------------------------------------------------------------- */

int ry_session_is_stopped(void *user, uint64_t done, uint64_t total)
{
    renyi_session *s = user;
    (void)done;
    (void)total;
    return atomic_load_explicit(&s->stops, memory_order_relaxed);
}

/* A run: images as bytes or as floats. */
typedef struct run_call {
    renyi_session *s;
    const uint8_t *pixels;
    const float *chw;
    uint32_t n;
    float *out;
} run_call;

/* The images of one stream. */
static renyi_status run_part(void *user, uint32_t stream, renyi_error *err)
{
    const run_call *c = user;
    renyi_session *s = stream ? c->s->others[stream - 1] : c->s;
    const uint32_t first = stream * c->s->part, left = c->n - first;
    const uint32_t n = left < c->s->part ? left : c->s->part;
    const size_t at = first * input_values(s);
    ry_vit_input in = {.lut = (const float(*)[256])s->lut, .n = n};
    if (c->pixels) {
        in.pixels = c->pixels + at;
        name_images(s, in.pixels, input_values(s), n);
    } else {
        in.chw = c->chw + at;
        name_images(s, in.chw, input_values(s) * sizeof *in.chw, n);
    }
    const renyi_status st = run_forward(s, &in, c->out + (size_t)first * s->plan->n_outputs, err);
    if (st && !stream) atomic_store_explicit(&s->stops, 1, memory_order_relaxed);
    return st;
}

static renyi_status run_all(run_call *c, renyi_error *err)
{
    renyi_session *s = c->s;
    s->part = (c->n + s->n_streams - 1) / s->n_streams;
    for (uint32_t i = 1; i < s->n_streams; i++) s->others[i - 1]->n_last = 0;
    atomic_store_explicit(&s->stops, 0, memory_order_relaxed);
    const renyi_status st = ry_streams_run((c->n + s->part - 1) / s->part, run_part, c, err);
    s->n_last = st ? 0 : c->n;
    return st;
}

/* ---- public functions ---------------------------------------------------------------------- */

renyi_status renyi_run_pixels(renyi_session *s, const uint8_t *pixels, uint32_t n, float *out,
                              renyi_error *err)
{
    RY_TRY(check_run(s, pixels, n, out, err));
    return run_all(&(run_call){.s = s, .pixels = pixels, .n = n, .out = out}, err);
}

renyi_status renyi_run_tensor(renyi_session *s, const float *chw, uint32_t n, float *out,
                              renyi_error *err)
{
    RY_TRY(check_run(s, chw, n, out, err));
    return run_all(&(run_call){.s = s, .chw = chw, .n = n, .out = out}, err);
}

renyi_status renyi_run(renyi_session *s, const renyi_image *images, uint32_t n, float *out,
                       renyi_error *err)
{
    RY_TRY(check_run(s, images, n, out, err));
    const ry_vit_config *c = &s->model->vit.config;
    const size_t each = input_values(s);
    for (uint32_t i = 0; i < n; i++)
        RY_TRY(
            renyi_image_fit(s->pixels + i * each, &images[i], &c->preprocess, &s->model->al, err));
    return renyi_run_pixels(s, s->pixels, n, out, err);
}
