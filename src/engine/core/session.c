/* session.c - makes sessions: one caller's plan, memory and policy of a model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/session.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "image/patches.h"
#include "kernels/linear/linear.h"

enum { MAX_BATCH = 4096 };

static renyi_status check_streams(renyi_session_options *o, renyi_error *err)
{
    if (!o->n_streams) o->n_streams = 1;
    if (o->n_streams > RY_MAX_STREAMS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u streams; at most %d", o->n_streams,
                       RY_MAX_STREAMS);
    if (o->n_streams > o->n_threads)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%u streams on %u thread%s; each stream needs a thread: ask for fewer "
                       "streams or more threads",
                       o->n_streams, o->n_threads, o->n_threads == 1 ? "" : "s");
    if (o->adapt && o->n_streams > 1)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a session that adapts runs its images one after the other: one stream");
    return RENYI_OK;
}

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
    return check_streams(o, err);
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

static renyi_status take_keys(renyi_session *s, renyi_error *err)
{
    if (s->image_keys) return RENYI_OK;
    s->image_keys = ry_calloc(&s->model->al, s->max_batch, sizeof *s->image_keys);
    return s->image_keys ? RENYI_OK : ry_fail_nomem(err, s->max_batch * sizeof *s->image_keys);
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
    if (ry_policy_draws(policy)) RY_TRY(take_keys(s, err));
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
    RY_TRY(bind_tca(s, o, err));
    RY_TRY(make_hook(s, o, policy, &plan.hook, err));
    return ry_vit_plan_new(&s->plan, &m->vit, &plan, &m->al, err);
}

/* One pass: the plan and memory of n_threads threads. */
static renyi_status new_pass(renyi_session **out, const renyi_model *m,
                             const renyi_session_options *o, const ry_policy *policy,
                             renyi_error *err)
{
    *out = ry_calloc(&m->al, 1, sizeof **out);
    if (!*out) return ry_fail_nomem(err, sizeof **out);
    (*out)->model = m; /* so that it can be freed */
    return fill_session(*out, m, o, policy, err);
}

/* Adds the second pass of a cascade to a stream that runs the first. */
static renyi_status add_second(renyi_session *s, const renyi_session_options *o,
                               const ry_cascade *cascade, renyi_error *err)
{
    if (!cascade->is_cascade) return RENYI_OK;
    ry_cascade_print(s->policy, cascade);
    RY_TRY(new_pass(&s->second, s->model, o, &cascade->second, err));
    if (s->second->image_keys) RY_TRY(take_keys(s, err));
    return ry_cascade_run_new(&s->cascade, cascade, s->plan, s->second->plan, &s->model->al, err);
}

/* Bytes of an image in s->pixels. */
static size_t image_bytes(const renyi_model *m)
{
    return (size_t)m->vit.config.image_size * m->vit.config.image_size * 3;
}

/* Threads and images are divided as evenly as possible; the first streams get what is left. */
static renyi_status fill_streams(renyi_session *s, const renyi_model *m,
                                 const renyi_session_options *o, const ry_cascade *policy,
                                 renyi_error *err)
{
    const size_t n_others = o->n_streams - 1, bytes = o->max_batch * image_bytes(m);
    renyi_session_options part = *o;
    part.max_batch = (o->max_batch + o->n_streams - 1) / o->n_streams;
    part.n_threads = o->n_threads / o->n_streams + (o->n_threads % o->n_streams != 0);
    s->model = m;
    s->pixels = ry_alloc(&m->al, bytes, 1);
    if (!s->pixels) return ry_fail_nomem(err, bytes);
    RY_TRY(fill_session(s, m, &part, &policy->first, err));
    RY_TRY(add_second(s, &part, policy, err));
    s->n_streams = 1;
    s->n_threads = o->n_threads;
    s->max_batch = o->max_batch;
    if (!n_others) return RENYI_OK;
    s->others = ry_calloc(&m->al, n_others, sizeof *s->others);
    if (!s->others) return ry_fail_nomem(err, n_others * sizeof *s->others);
    part.progress = ry_session_is_stopped;
    part.progress_user = s;
    for (uint32_t i = 1; i < o->n_streams; i++) {
        part.n_threads = o->n_threads / o->n_streams + (i < o->n_threads % o->n_streams);
        s->n_streams++;
        RY_TRY(new_pass(&s->others[i - 1], m, &part, &policy->first, err));
        RY_TRY(add_second(s->others[i - 1], &part, policy, err));
    }
    return RENYI_OK;
}

/* Can a cascade run with these options? It decides by logits. */
static renyi_status check_cascade(const renyi_model *m, const renyi_session_options *o,
                                  renyi_error *err)
{
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    if (!info.n_classes || o->output != RENYI_OUTPUT_AUTO)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a cascade decides by the logits of a classifier, and this %s; use a policy "
                       "of one pass",
                       info.n_classes ? "session returns embeddings" : "model has none");
    if (o->adapt)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a session that adapts runs each image once; use a policy of one pass");
    if (o->trace)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a trace shows the cuts of one pass, and a cascade has two; trace its "
                       "policies one by one");
    return RENYI_OK;
}

static renyi_status new_session(renyi_session **out, const renyi_model *m,
                                const renyi_session_options *opt, const ry_cascade *policy,
                                renyi_error *err)
{
    renyi_session_options o = *opt;
    *out = NULL;
    RY_TRY(check_options(&o, err));
    if (policy->is_cascade) RY_TRY(check_cascade(m, &o, err));
    RY_TRY(check_output(o.output, &m->vit.config, &policy->first, err));
    renyi_session *s = ry_calloc(&m->al, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    const renyi_status st = fill_streams(s, m, &o, policy, err);
    if (st) {
        renyi_session_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

renyi_status ry_session_new(renyi_session **out, const renyi_model *m,
                            const renyi_session_options *opt, const ry_policy *policy,
                            renyi_error *err)
{
    const ry_cascade alone = {.first = *policy};
    return new_session(out, m, opt, &alone, err);
}

renyi_status renyi_session_new(renyi_session **out, const renyi_model *m,
                               const renyi_session_options *opt, renyi_error *err)
{
    renyi_session_options o;
    ry_cascade policy;
    if (!out || !m) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_session_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_session_options", err));
    RY_TRY(ry_cascade_for_model(&policy, o.policy, m, err));
    return new_session(out, m, &o, &policy, err);
}

void renyi_session_free(renyi_session *s)
{
    if (!s) return;
    const renyi_allocator *al = &s->model->al;
    for (uint32_t i = 1; s->others && i < s->n_streams; i++) renyi_session_free(s->others[i - 1]);
    ry_free(al, s->others);
    renyi_session_free(s->second);
    ry_cascade_run_free(s->cascade, al);
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
    size_t bytes = s->plan->arena_bytes + renyi_session_bytes(s->second) +
                   (s->cascade ? s->cascade->bytes : 0) +
                   (s->pruner ? ry_pruner_bytes(s->pruner) : 0) +
                   (s->trace ? ry_trace_bytes(s->trace) : 0);
    if (s->pixels) bytes += s->max_batch * image_bytes(s->model);
    for (uint32_t i = 1; i < s->n_streams; i++) bytes += renyi_session_bytes(s->others[i - 1]);
    return bytes;
}

double renyi_session_macs(const renyi_session *s)
{
    if (!s) return 0.0;
    const double macs = ry_vit_plan_macs(s->plan);
    if (!s->cascade) return macs;
    const ry_vit_plan *second = s->second->plan;
    return macs + ry_vit_plan_macs(second) - ry_vit_macs_before(second, s->cascade->shared);
}

/* The mean over the n images that a stream ran. */
static double stream_macs(const renyi_session *s, uint32_t n)
{
    const double macs = s->plan->last_macs;
    if (!s->cascade || !s->cascade->n_unsure || !n) return macs;
    return macs + s->second->plan->last_macs * s->cascade->n_unsure / n;
}

/* The mean over images, in a form that is exact if all streams have the same. */
double renyi_session_last_macs(const renyi_session *s)
{
    if (!s) return 0.0;
    const double first = stream_macs(s, s->others && s->n_last ? s->part : s->n_last);
    double macs = first;
    for (uint32_t i = 1; s->n_last && i < s->n_streams; i++) {
        const renyi_session *other = s->others[i - 1];
        macs +=
            (stream_macs(other, other->n_last) - first) * (double)other->n_last / (double)s->n_last;
    }
    return macs;
}

uint32_t renyi_session_passes(const renyi_session *s, uint32_t image)
{
    if (!s || image >= s->n_last) return 0;
    if (s->others && image >= s->part)
        return renyi_session_passes(s->others[image / s->part - 1], image % s->part);
    for (uint32_t i = 0; s->cascade && i < s->cascade->n_unsure; i++)
        if (s->cascade->unsure[i] == image) return 2;
    return 1;
}

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
    if (s->others && image >= s->part)
        return renyi_session_cut(s->others[image / s->part - 1], image % s->part, i, out, err);
    ry_trace_get(s->trace, image, i, out);
    return RENYI_OK;
}

renyi_status renyi_measure_peak(uint32_t n_threads, double *gflops, renyi_error *err)
{
    if (!gflops) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_measure_peak: NULL argument");
    return ry_measure_peak(n_threads ? n_threads : ry_cpu_threads(1), gflops, err);
}
