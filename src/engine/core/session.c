/* session.c - runs images through a model: a session is one caller's plan, memory and policy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/model_handle.h"
#include "engine/core/policy_api.h"
#include "engine/core/trace_record.h"
#include "engine/tca/tca_adapt.h"
#include "image/patches.h"
#include "kernels/linear/linear.h"
#include "model/vit/vit_plan.h"

struct renyi_session {
    const renyi_model *model;        /* borrowed */
    char policy[RY_MAX_POLICY_TEXT]; /* in full */
    ry_pruner *pruner;               /* NULL: dense */
    ry_trace *trace;                 /* NULL: not asked for */
    ry_token_hook hook;              /* the pruner's */
    ry_tca_run adapt;                /* its tca is NULL if the session does not adapt */
    int has_own_rule;                /* the policy's rule is the caller's own */
    uint64_t *image_keys; /* [max_batch] for a policy that draws random numbers; else NULL */
    ry_vit_plan *plan;
    uint32_t max_batch, n_last; /* images per run at most, and in the last one */
    renyi_progress progress;
    void *progress_user;
    float lut[3][256]; /* normalized value of each byte, per channel */
    uint8_t *pixels;   /* [max_batch, S, S, 3] fitted images of renyi_run */
};

enum { MAX_BATCH = 4096 };

static renyi_status check_options(renyi_session_options *o, renyi_error *err)
{
    if (!o->max_batch) o->max_batch = 1;
    if (o->max_batch > MAX_BATCH)
        return ry_fail(err, RENYI_ERR_ARG, -1, "batch of %u images; at most %d", o->max_batch,
                       MAX_BATCH);
    RY_TRY(ry_threads_choose(&o->n_threads, err));
    if (o->output > RENYI_OUTPUT_PATCHES)
        return ry_fail(err, RENYI_ERR_ARG, -1, "output %d is not one of renyi_output",
                       (int)o->output);
    if (o->adapt && o->output != RENYI_OUTPUT_AUTO)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a session adapts its logits: leave output at RENYI_OUTPUT_AUTO");
    return RENYI_OK;
}

/* Is this output possible with this model and policy? */
static renyi_status check_output(renyi_output output, const ry_vit_config *c,
                                 const ry_policy *policy, renyi_error *err)
{
    if (output == RENYI_OUTPUT_CLASS && !ry_vit_class_rows(c))
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "features of the class token, and this model has none; use those of the mean "
            "or of the patches");
    if (output == RENYI_OUTPUT_PATCHES && policy->rule != RY_RULE_NONE)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "features of every patch, and a policy that removes some; use those of the "
                       "class token or of the mean, or no policy");
    return RENYI_OK;
}

/* The policy's hook, with a trace and anchors in front of it if asked for; *hook is NULL for a
 * dense run. */
static renyi_status make_hook(renyi_session *s, const renyi_session_options *o,
                              const ry_policy *policy, const ry_token_hook **hook, renyi_error *err)
{
    const renyi_model *m = s->model;
    const ry_vit_config *c = &m->vit.config;
    *hook = NULL;
    ry_policy_print(s->policy, policy);
    RY_TRY(ry_policy_pruner(&s->pruner, policy, c, m->vit.n_patches, o->max_batch, m->level, &m->al,
                            err));
    if (!s->pruner) return RENYI_OK;
    s->hook = ry_pruner_hook(s->pruner);
    s->has_own_rule = policy->own != NULL;
    *hook = &s->hook;
    if (ry_policy_draws(policy)) {
        s->image_keys = ry_calloc(&m->al, o->max_batch, sizeof *s->image_keys);
        if (!s->image_keys) return ry_fail_nomem(err, o->max_batch * sizeof *s->image_keys);
    }
    if (o->trace) {
        RY_TRY(ry_trace_new(&s->trace, &s->hook, c, m->vit.n_patches, o->max_batch, &m->al, err));
        *hook = ry_trace_hook(s->trace);
    }
    if (o->adapt) *hook = ry_tca_hook(&s->adapt, *hook);
    return RENYI_OK;
}

static renyi_status bind_tca(renyi_session *s, const renyi_session_options *o, renyi_error *err)
{
    s->adapt.tca = o->adapt;
    s->adapt.n_threads = o->n_threads;
    if (!o->adapt) return RENYI_OK;
    RY_TRY(ry_tca_check_model(o->adapt, s->model, err));
    return ry_tca_reserve(o->adapt, o->max_batch, err);
}

static renyi_status fill_session(renyi_session *s, const renyi_model *m,
                                 const renyi_session_options *o, const ry_policy *policy,
                                 renyi_error *err)
{
    const ry_vit_config *c = &m->vit.config;
    const size_t bytes = (size_t)o->max_batch * c->image_size * c->image_size * 3;
    ry_vit_plan_options plan = {.level = m->level,
                                .max_batch = o->max_batch,
                                .n_threads = o->n_threads,
                                .output = o->output,
                                .one_by_one = o->adapt != NULL};
    s->model = m;
    s->max_batch = o->max_batch;
    s->progress = o->progress;
    s->progress_user = o->progress_user;
    ry_normalize_lut(s->lut, c->preprocess.mean, c->preprocess.std);
    s->pixels = ry_alloc(&m->al, bytes, 1);
    if (!s->pixels) return ry_fail_nomem(err, bytes);
    RY_TRY(bind_tca(s, o, err));
    RY_TRY(make_hook(s, o, policy, &plan.hook, err));
    return ry_vit_plan_new(&s->plan, &m->vit, &plan, &m->al, err);
}

renyi_status ry_session_new(renyi_session **out, const renyi_model *m,
                            const renyi_session_options *opt, const ry_policy *policy,
                            renyi_error *err)
{
    renyi_session_options o = *opt;
    *out = NULL;
    RY_TRY(check_options(&o, err));
    RY_TRY(check_output(o.output, &m->vit.config, policy, err));
    renyi_session *s = ry_calloc(&m->al, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    const renyi_status st = fill_session(s, m, &o, policy, err);
    if (st) {
        renyi_session_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

renyi_status renyi_session_new(renyi_session **out, const renyi_model *m,
                               const renyi_session_options *opt, renyi_error *err)
{
    renyi_session_options o;
    ry_policy policy;
    if (!out || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_session_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_session_options", err));
    RY_TRY(ry_policy_for_model(&policy, o.policy, m, err));
    return ry_session_new(out, m, &o, &policy, err);
}

void renyi_session_free(renyi_session *s)
{
    if (!s) return;
    const renyi_allocator *al = &s->model->al;
    ry_vit_plan_free(s->plan, al);
    ry_trace_free(s->trace, al);
    ry_pruner_free(s->pruner, al);
    ry_free(al, s->image_keys);
    ry_free(al, s->pixels);
    ry_free(al, s);
}

uint32_t renyi_model_outputs(const renyi_model *m, renyi_output output)
{
    return ry_vit_outputs(&m->vit.config, output);
}

uint32_t renyi_session_outputs(const renyi_session *s) { return s ? s->plan->n_outputs : 0; }

size_t renyi_session_bytes(const renyi_session *s)
{
    if (!s) return 0;
    const size_t side = s->model->vit.config.image_size;
    return s->plan->arena_bytes + s->max_batch * side * side * 3 +
           (s->pruner ? ry_pruner_bytes(s->pruner) : 0) + (s->trace ? ry_trace_bytes(s->trace) : 0);
}

double renyi_session_macs(const renyi_session *s) { return s ? ry_vit_plan_macs(s->plan) : 0.0; }

double renyi_session_last_macs(const renyi_session *s) { return s ? s->plan->last_macs : 0.0; }

const char *renyi_session_policy(const renyi_session *s) { return s ? s->policy : ""; }

size_t renyi_session_cut_count(const renyi_session *s)
{
    return s && s->trace ? ry_trace_cuts(s->trace) : 0;
}

renyi_status renyi_session_cut(const renyi_session *s, uint32_t image, size_t i, renyi_cut *out,
                               renyi_error *err)
{
    if (!s || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_session_cut: NULL argument");
    if (!s->trace)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       s->pruner ? "the session keeps no trace; set renyi_session_options.trace"
                                 : "the session prunes nothing");
    if (i >= ry_trace_cuts(s->trace))
        return ry_fail(err, RENYI_ERR_ARG, -1, "cut %zu of %zu", i, ry_trace_cuts(s->trace));
    if (image >= s->n_last)
        return ry_fail(err, RENYI_ERR_ARG, -1, "image %u; the last run had %u", image, s->n_last);
    ry_trace_get(s->trace, image, i, out);
    return RENYI_OK;
}

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
    ry_pruner_name_images(s->pruner, s->image_keys, n);
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

static renyi_status run_forward(renyi_session *s, ry_vit_input *in, float *out, renyi_error *err)
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

renyi_status renyi_run_pixels(renyi_session *s, const uint8_t *pixels, uint32_t n, float *out,
                              renyi_error *err)
{
    RY_TRY(check_run(s, pixels, n, out, err));
    name_images(s, pixels, input_values(s), n);
    ry_vit_input in = {.pixels = pixels, .lut = (const float(*)[256])s->lut, .n = n};
    return run_forward(s, &in, out, err);
}

renyi_status renyi_run_tensor(renyi_session *s, const float *chw, uint32_t n, float *out,
                              renyi_error *err)
{
    RY_TRY(check_run(s, chw, n, out, err));
    name_images(s, chw, input_values(s) * sizeof *chw, n);
    ry_vit_input in = {.chw = chw, .n = n};
    return run_forward(s, &in, out, err);
}

renyi_status renyi_run(renyi_session *s, const renyi_image *images, uint32_t n, float *out,
                       renyi_error *err)
{
    RY_TRY(check_run(s, images, n, out, err));
    const ry_vit_config *c = &s->model->vit.config;
    const size_t each = (size_t)c->image_size * c->image_size * 3;
    for (uint32_t i = 0; i < n; i++)
        RY_TRY(
            renyi_image_fit(s->pixels + i * each, &images[i], &c->preprocess, &s->model->al, err));
    return renyi_run_pixels(s, s->pixels, n, out, err);
}

renyi_status renyi_measure_peak(uint32_t n_threads, double *gflops, renyi_error *err)
{
    if (!gflops) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_measure_peak: NULL argument");
    return ry_measure_peak(n_threads ? n_threads : ry_cpu_threads(1), gflops, err);
}
