/* learner.c - renyi_learner_*: single training steps on batches that the caller provides.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/train.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/policy_api.h"
#include "train/net/net.h"
#include "train/run/loss.h"
#include "train/run/optim.h"

#include <string.h>

struct renyi_learner {
    renyi_learner_options opt; /* complete; policy is not kept */
    renyi_allocator al;
    ry_net *net;
    ry_optim *optim;
    char policy[RENYI_POLICY_MAX];
    /* of a micro-batch: [micro_batch, classes] */
    float *logits, *logits_dist, *d, *d_dist, *target;
};

/* ---- new ------------------------------------------------------------------------------------- */

static renyi_status read_options(renyi_learner_options *out, const renyi_learner_options *opt,
                                 renyi_error *err)
{
    *out = (renyi_learner_options){0};
    if (opt) {
        if (opt->struct_size < sizeof opt->struct_size || opt->struct_size > sizeof *out)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_learner_options: struct_size %u, this library knows %zu",
                           opt->struct_size, sizeof *out);
        memcpy(out, opt, opt->struct_size);
    }
    if (!out->allocator.alloc != !out->allocator.release)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "renyi_learner_options: allocator has one of alloc and release; expected both or "
            "none");
    if (!(out->weight_decay >= 0.0) || !(out->clip >= 0.0) ||
        !(out->smoothing >= 0.0 && out->smoothing < 1.0))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "weight_decay %g, clip %g, smoothing %g; none below 0, smoothing below 1",
                       out->weight_decay, out->clip, out->smoothing);
    if (!out->n_threads) out->n_threads = ry_cpu_threads(1);
    return RENYI_OK;
}

static renyi_status load_net(renyi_learner *l, const ry_checkpoint *ckpt, renyi_error *err)
{
    const renyi_learner_options *o = &l->opt;
    const ry_net_options options = {.level = o->cpu,
                                    .dtype = o->dtype,
                                    .n_threads = o->n_threads,
                                    .micro_batch = o->micro_batch,
                                    .checkpoint_activations = o->checkpoint_activations != 0};
    ry_vit_config config;
    RY_TRY(ry_vit_configure(&config, ckpt, o->image_size, err));
    RY_TRY(ry_net_trains(&config, err));
    if (!config.n_classes)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "the model has no classifier, so no loss; 'renyi train' gives it one");
    RY_TRY(ry_net_new(&l->net, &config, &options, &l->al, err));
    RY_TRY(ry_net_load(l->net, ckpt, NULL, err));
    return ry_net_update(l->net, err);
}

static renyi_status set_policy(renyi_learner *l, const char *text, renyi_error *err)
{
    ry_policy policy;
    RY_TRY(ry_policy_for(&policy, text, ry_net_config(l->net), ry_net_patches(l->net), err));
    ry_policy_print(l->policy, &policy);
    return ry_net_prune(l->net, &policy, err);
}

static renyi_status make_optimizer(renyi_learner *l, renyi_error *err)
{
    ry_optim_options options = ry_optim_defaults();
    RY_TRY(ry_cpu_choose(l->opt.cpu, &options.level, err));
    options.n_threads = l->opt.n_threads;
    options.weight_decay = l->opt.weight_decay;
    return ry_optim_new(&l->optim, ry_net_params(l->net), &options, &l->al, err);
}

static renyi_status make_rows(renyi_learner *l, renyi_error *err)
{
    float **const rows[] = {&l->logits, &l->logits_dist, &l->d, &l->d_dist, &l->target};
    const size_t n = (size_t)ry_net_micro_batch(l->net) * ry_net_config(l->net)->n_classes;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!(*rows[i] = ry_alloc(&l->al, n, sizeof **rows[i])))
            return ry_fail_nomem(err, n * sizeof **rows[i]);
    return RENYI_OK;
}

static renyi_status load_parts(renyi_learner *l, const char *path, const char *policy,
                               renyi_error *err)
{
    ry_checkpoint ckpt = {0};
    RY_TRY(ry_checkpoint_open(&ckpt, path, NULL, &l->al, err));
    const renyi_status status = load_net(l, &ckpt, err);
    ry_checkpoint_close(&ckpt, &l->al);
    RY_TRY(status);
    RY_TRY(set_policy(l, policy, err));
    RY_TRY(make_optimizer(l, err));
    return make_rows(l, err);
}

renyi_status renyi_learner_new(renyi_learner **out, const char *path,
                               const renyi_learner_options *opt, renyi_error *err)
{
    renyi_learner_options o;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_learner_new: out is NULL");
    *out = NULL;
    if (!path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_learner_new: path is NULL");
    RY_TRY(read_options(&o, opt, err));
    renyi_learner *l = ry_calloc(&o.allocator, 1, sizeof *l);
    if (!l) return ry_fail_nomem(err, sizeof *l);
    l->opt = o;
    l->opt.policy = NULL;
    l->al = o.allocator;
    const renyi_status status = load_parts(l, path, o.policy, err);
    if (status != RENYI_OK) {
        renyi_learner_free(l);
        return status;
    }
    *out = l;
    return RENYI_OK;
}

void renyi_learner_free(renyi_learner *l)
{
    if (!l) return;
    const renyi_allocator al = l->al;
    float *const rows[] = {l->logits, l->logits_dist, l->d, l->d_dist, l->target};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) ry_free(&al, rows[i]);
    ry_optim_free(l->optim);
    ry_net_free(l->net);
    ry_free(&al, l);
}

void renyi_learner_get_info(const renyi_learner *l, renyi_learner_info *out)
{
    if (!out) return;
    *out = (renyi_learner_info){0};
    if (!l) return;
    const ry_vit_config *c = ry_net_config(l->net);
    const ry_params *p = ry_net_params(l->net);
    out->image_size = c->image_size;
    out->n_tokens = ry_net_patches(l->net) + c->n_prefix;
    out->n_classes = c->n_classes;
    out->micro_batch = ry_net_micro_batch(l->net);
    for (uint32_t i = 0; i < p->n; i++) out->n_params += p->list[i].size;
    out->bytes_activations = ry_net_activation_bytes(l->net);
    out->bytes_parameters = 6 * p->total * sizeof(float); /* values, packed both ways, gradients,
                                                             two moments */
    out->macs_forward = ry_net_macs(l->net);
    memcpy(out->policy, l->policy, sizeof out->policy);
}

/* ---- passes ---------------------------------------------------------------------------------- */

static size_t pixels_of(const renyi_learner *l)
{
    const size_t side = ry_net_config(l->net)->image_size;
    return 3 * side * side;
}

static renyi_status forward_part(renyi_learner *l, const float *chw, uint32_t n, renyi_error *err)
{
    const ry_net_batch batch = {.chw = chw, .n = n};
    return ry_net_forward(l->net, &batch, l->logits,
                          ry_net_is_distilled(l->net) ? l->logits_dist : NULL, err);
}

renyi_status renyi_learner_forward(renyi_learner *l, const float *chw, uint32_t n, float *logits,
                                   renyi_error *err)
{
    if (!l || !chw || !logits)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_learner_forward: an argument is NULL");
    const uint32_t micro = ry_net_micro_batch(l->net), classes = ry_net_config(l->net)->n_classes;
    for (uint32_t first = 0; first < n; first += micro) {
        const uint32_t here = n - first < micro ? n - first : micro;
        RY_TRY(forward_part(l, chw + first * pixels_of(l), here, err));
        memcpy(logits + (size_t)first * classes, l->logits,
               (size_t)here * classes * sizeof *logits);
    }
    return RENYI_OK;
}

/* Smoothed labels as target rows. */
static void fill_targets(renyi_learner *l, const uint32_t *labels, uint32_t n)
{
    const uint32_t classes = ry_net_config(l->net)->n_classes;
    const double off = l->opt.smoothing / classes;
    for (uint32_t i = 0; i < n; i++) {
        float *row = l->target + (size_t)i * classes;
        for (uint32_t k = 0; k < classes; k++) row[k] = (float)off;
        row[labels[i]] = (float)(1.0 - l->opt.smoothing + off);
    }
}

/* Adds the gradient of these images' part of the batch's mean, and their losses to *sum. */
static renyi_status learn_part(renyi_learner *l, const float *chw, const uint32_t *labels,
                               uint32_t n, double scale, double *sum, renyi_error *err)
{
    const int distilled = ry_net_is_distilled(l->net);
    const ry_loss_spec spec = {.distil = RY_DISTIL_NONE};
    RY_TRY(forward_part(l, chw, n, err));
    fill_targets(l, labels, n);
    const ry_loss_batch answers = {.n = n,
                                   .n_classes = ry_net_config(l->net)->n_classes,
                                   .logits = l->logits,
                                   .logits_dist = distilled ? l->logits_dist : NULL,
                                   .target = l->target};
    *sum += ry_loss(&spec, &answers, scale, l->d, distilled ? l->d_dist : NULL).total;
    return ry_net_backward(l->net, l->d, distilled ? l->d_dist : NULL, NULL, err);
}

static renyi_status check_labels(const renyi_learner *l, const uint32_t *labels, uint32_t n,
                                 renyi_error *err)
{
    const uint32_t classes = ry_net_config(l->net)->n_classes;
    if (!n) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_learner_step: no images");
    for (uint32_t i = 0; i < n; i++)
        if (labels[i] >= classes)
            return ry_fail(err, RENYI_ERR_ARG, -1, "label %u is %u; the model has %u classes", i,
                           labels[i], classes);
    return RENYI_OK;
}

renyi_status renyi_learner_step(renyi_learner *l, const float *chw, const uint32_t *labels,
                                uint32_t n, double lr, double *loss, renyi_error *err)
{
    double sum = 0.0;
    if (!l || !chw || !labels)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_learner_step: an argument is NULL");
    RY_TRY(check_labels(l, labels, n, err));
    const uint32_t micro = ry_net_micro_batch(l->net);
    ry_net_zero_grad(l->net);
    for (uint32_t first = 0; first < n; first += micro) {
        const uint32_t here = n - first < micro ? n - first : micro;
        RY_TRY(learn_part(l, chw + first * pixels_of(l), labels + first, here, 1.0 / n, &sum, err));
    }
    const double clip =
        l->opt.clip > 0.0 ? ry_optim_clip(ry_optim_norm(l->optim, 1.0), l->opt.clip) : 1.0;
    if (loss) *loss = sum / n;
    ry_optim_step(l->optim, lr, clip);
    return ry_net_update(l->net, err);
}
