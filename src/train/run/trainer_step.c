/* trainer_step.c - one update: micro-batches forward and backward, then AdamW.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "train/run/loss.h"
#include "train/run/trainer.h"

#include <math.h>
#include <string.h>

ry_moment ry_train_moment(const renyi_train *t)
{
    const uint64_t last = t->steps_per_epoch - 1;
    return (ry_moment){(uint32_t)t->state.epoch,
                       (uint32_t)(t->state.step_in_epoch < last ? t->state.step_in_epoch : last),
                       (uint32_t)t->steps_per_epoch};
}

/* ---- buffers --------------------------------------------------------------------------------- */

static int allocate_buffer(renyi_train *t, float **out, size_t per_image)
{
    *out = ry_calloc(&t->al, per_image * (size_t)t->s.opt.micro_batch, sizeof **out);
    return *out != NULL;
}

renyi_status ry_train_buffers(renyi_train *t, renyi_error *err)
{
    ry_step_buffers *b = &t->buffers;
    const size_t classes = t->config.n_classes;
    const size_t taps = t->n_taps ? t->n_taps : 1;
    const size_t rows = ry_net_patches(t->net) + 1 + t->config.n_prefix,
                 dim = t->teacher ? ry_teacher_dim(t->teacher) : 0;
    int ok = allocate_buffer(t, &b->logits, classes) && allocate_buffer(t, &b->d, classes);
    if (ry_net_is_distilled(t->net))
        ok = ok && allocate_buffer(t, &b->logits_dist, classes) &&
             allocate_buffer(t, &b->d_dist, classes);
    if (t->teacher) ok = ok && allocate_buffer(t, &b->teacher, classes);
    if (dim)
        ok = ok &&
             allocate_buffer(t, &b->teacher_tokens, taps * ry_teacher_rows(t->teacher) * dim) &&
             allocate_buffer(t, &b->d_features, taps * rows * dim);
    if (t->s.opt.drop_path > 0)
        ok = ok && allocate_buffer(t, &b->branch, 2 * (size_t)t->config.n_blocks);
    return ok ? RENYI_OK : ry_fail_nomem(err, classes * sizeof(float));
}

/* ---- pruning --------------------------------------------------------------------------------- */

/* 1 = both keep the same numbers of tokens at every cut. */
static int keep_the_same(const renyi_train *t, const ry_policy *a, const ry_policy *b)
{
    const uint32_t prefix = t->config.n_prefix;
    uint32_t of_a = ry_net_patches(t->net) + prefix, of_b = of_a;
    for (uint32_t i = 0; i < a->n_cuts; i++) {
        of_a = ry_policy_tokens_after(a, i, of_a, prefix);
        of_b = ry_policy_tokens_after(b, i, of_b, prefix);
        if (of_a != of_b) return 0;
    }
    return 1;
}

static int is_dense(const renyi_train *t, const ry_policy *p)
{
    const uint32_t prefix = t->config.n_prefix, all = ry_net_patches(t->net) + prefix;
    uint32_t tokens = all;
    for (uint32_t i = 0; i < p->n_cuts; i++) tokens = ry_policy_tokens_after(p, i, tokens, prefix);
    return tokens == all;
}

/* Share of the patches that remain after the first cut. */
static double first_share(const renyi_train *t, const ry_policy *p)
{
    const uint32_t prefix = t->config.n_prefix, patches = ry_net_patches(t->net);
    if (!p->n_cuts) return 1.0;
    if (p->budget == RY_BUDGET_KEEP) return p->cuts[0].keep;
    return (double)(ry_policy_tokens_after(p, 0, patches + prefix, prefix) - prefix) / patches;
}

renyi_status ry_train_prune(renyi_train *t, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    ry_policy next = t->policy;
    t->keep = 1.0;
    if (t->policy.rule == RY_RULE_NONE) return RENYI_OK;
    for (uint32_t i = 0; next.budget == RY_BUDGET_KEEP && i < next.n_cuts; i++) {
        const ry_keep_schedule k = {next.cuts[i].keep, (uint32_t)o->shrink_start,
                                    (uint32_t)o->shrink_epochs};
        next.cuts[i].keep = ry_keep_at(&k, ry_train_moment(t));
    }
    t->keep = first_share(t, &next);
    const int same = keep_the_same(t, &next, &t->now);
    t->now = next;
    if (same) return RENYI_OK;
    t->now_is_dense = is_dense(t, &next);
    return ry_net_prune(t->net, t->now_is_dense ? NULL : &t->now, err);
}

/* ---- a micro-batch --------------------------------------------------------------------------- */

/* Loss between the tokens of tap k, summed over images; its gradient goes to d_features. */
static double tap_loss(renyi_train *t, uint32_t k, uint32_t n, double scale)
{
    static const ry_feature_distance distances[] = {RY_FEATURE_SMOOTH_L1, RY_FEATURE_MSE,
                                                    RY_FEATURE_COSINE};
    const renyi_train_options *o = ry_train_opt(t);
    const ry_feature_spec spec = {.distance = distances[o->features],
                                  .relative = o->mimic != RENYI_MIMIC_PROJECT};
    const uint32_t rows = ry_teacher_rows(t->teacher), dim = ry_teacher_dim(t->teacher);
    ry_net_features_view view;
    if (t->n_taps)
        ry_net_tap_view(t->net, k, &view);
    else
        ry_net_features(t->net, &view);
    const ry_feature_batch f = {.n = n,
                                .n_rows = view.n_rows,
                                .n_patches = rows,
                                .dim = dim,
                                .rows = view.rows,
                                .patch = view.patch,
                                .teacher =
                                    t->buffers.teacher_tokens + k * o->micro_batch * rows * dim};
    return ry_loss_features(&spec, &f, scale,
                            t->buffers.d_features + k * ry_net_tap_floats(t->net));
}

/* The mean of the taps' losses, weighted and summed over images. */
static double feature_loss(renyi_train *t, const ry_train_batch *b, double scale)
{
    const int taps = t->n_taps ? (int)t->n_taps : 1;
    const double weight = ry_train_opt(t)->features_weight / taps;
    double of_tap[RY_MAX_BLOCKS], sum = 0.0;
#pragma omp parallel for num_threads(t->n_threads) schedule(dynamic)
    for (int k = 0; k < taps; k++) of_tap[k] = tap_loss(t, (uint32_t)k, b->n, scale * weight);
    for (int k = 0; k < taps; k++) sum += weight * of_tap[k];
    return sum;
}

/* Adds the samples' losses to `sums`; the gradients of the mean over the whole batch go to the
 * buffers. */
static void add_losses(renyi_train *t, const ry_train_batch *b, ry_step_losses *sums)
{
    const renyi_train_options *o = ry_train_opt(t);
    const double scale = 1.0 / b->batch;
    const ry_distil kind = !t->teacher                        ? RY_DISTIL_NONE
                           : o->distill == RENYI_DISTILL_HARD ? RY_DISTIL_HARD
                                                              : RY_DISTIL_SOFT;
    const ry_loss_spec spec = {kind, o->distill_alpha, o->distill_tau};
    const ry_loss_batch batch = {.n = b->n,
                                 .n_classes = t->config.n_classes,
                                 .logits = t->buffers.logits,
                                 .logits_dist = t->buffers.logits_dist,
                                 .target = b->target,
                                 .teacher = t->buffers.teacher};
    const ry_loss_sum of = ry_loss(&spec, &batch, scale, t->buffers.d, t->buffers.d_dist);
    const double tokens = t->buffers.d_features ? feature_loss(t, b, scale) : 0.0;
    sums->total += of.total + tokens;
    sums->labels += of.labels;
    sums->teacher += of.teacher;
    sums->tokens += tokens;
}

static renyi_status run_micro_batch(renyi_train *t, const ry_train_batch *b, ry_step_losses *sums,
                                    renyi_error *err)
{
    ry_step_buffers *u = &t->buffers;
    const ry_drop_path drop = {t->s.opt.drop_path, t->config.n_blocks, t->s.opt.seed};
    const float *forced = ry_train_opt(t)->mimic == RENYI_MIMIC_FORCED ? u->teacher_tokens : NULL;
    const ry_net_batch batch = {b->chw, b->n, u->branch, forced};
    if (u->branch) ry_drop_path_draw(&drop, ry_train_moment(t), b->sample, b->n, u->branch);
    if (t->teacher)
        RY_TRY(ry_teacher_run(t->teacher, b->chw, b->n, u->teacher, u->teacher_tokens, err));
    RY_TRY(ry_net_forward(t->net, &batch, u->logits, u->logits_dist, err));
    add_losses(t, b, sums);
    return ry_net_backward(t->net, u->d, u->d_dist, u->d_features, err);
}

/* This rank's micro-batches of the step. */
static renyi_status own_gradients(renyi_train *t, ry_step_losses *sums, uint32_t *samples,
                                  renyi_error *err)
{
    ry_train_batch b;
    RY_TRY(ry_train_prune(t, err));
    ry_net_zero_grad(t->net);
    do {
        RY_TRY(ry_loader_next(t->loader, &b, err));
        if (b.n) RY_TRY(run_micro_batch(t, &b, sums, err));
    } while (!b.last_of_step);
    *samples = b.batch;
    return RENYI_OK;
}

/* All micro-batches of the step: gradients of the mean loss are in the parameters. */
static renyi_status batch_gradients(renyi_train *t, ry_step_losses *mean, uint32_t *samples,
                                    renyi_error *err)
{
    ry_step_losses sums = {0};
    RY_TRY(ry_train_agree(t, own_gradients(t, &sums, samples, err), err));
    RY_TRY(ry_train_sum(t, &sums, err));
    *mean = (ry_step_losses){sums.total / *samples, sums.labels / *samples, sums.teacher / *samples,
                             sums.tokens / *samples};
    return RENYI_OK;
}

/* ---- the update ------------------------------------------------------------------------------ */

static renyi_status fail_number(const renyi_train *t, const char *what, double value, double lr,
                                renyi_error *err)
{
    return ry_fail(
        err, RENYI_ERR_FORMAT, -1,
        "the %s is %s in update %llu (epoch %llu, learning rate %g): training has "
        "diverged. The update was not made; %s has the state before it. Try a smaller lr, a "
        "longer warm-up or --clip 1",
        what, isnan(value) ? "NaN" : "infinite", (unsigned long long)t->state.step + 1,
        (unsigned long long)t->state.epoch, lr, t->folder.checkpoint);
}

renyi_status ry_train_step(renyi_train *t, renyi_train_step *out, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const double lr = ry_lr_at(&t->lr, ry_train_moment(t)), begun = ry_clock();
    uint32_t samples = 0;
    ry_step_losses mean = {0};
    RY_TRY(batch_gradients(t, &mean, &samples, err));
    const double loss = mean.total;
    if (!isfinite(loss)) return fail_number(t, "loss", loss, lr, err);
    const double norm = ry_optim_norm(t->optim, 1.0);
    if (!isfinite(norm)) return fail_number(t, "gradient", norm, lr, err);
    ry_optim_step(t->optim, lr, o->clip > 0 ? ry_optim_clip(norm, o->clip) : 1.0);
    if (o->ema > 0) ry_optim_average(t->optim, o->ema);
    RY_TRY(ry_net_update(t->net, err));
    t->state.step++;
    t->state.step_in_epoch++;
    t->state.samples += samples;
    t->state.loss_sum += loss;
    *out = (renyi_train_step){.epoch = t->state.epoch,
                              .step = t->state.step,
                              .step_in_epoch = t->state.step_in_epoch,
                              .n_steps = t->steps_per_epoch,
                              .samples = samples,
                              .loss = loss,
                              .loss_labels = mean.labels,
                              .loss_teacher = mean.teacher,
                              .loss_tokens = mean.tokens,
                              .lr = lr,
                              .keep = t->keep,
                              .grad_norm = norm,
                              .seconds = ry_train_seconds(t),
                              .images_per_second = samples / (ry_clock() - begun)};
    return RENYI_OK;
}
