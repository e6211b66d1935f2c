/* trainer_run.c - the course of a run: updates, epochs, what is saved when.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"
#include "base/status.h"
#include "train/run/trainer.h"

#include <math.h>

static uint64_t total_steps(const renyi_train *t)
{
    const uint64_t all = t->s.opt.epochs * t->steps_per_epoch, most = t->s.opt.steps;
    return most && most < all ? most : all;
}

/* ---- the end of an epoch ------------------------------------------------------------------- */

/* The better of weights and running mean, if it is the best so far. */
static renyi_status keep_best(renyi_train *t, uint32_t *is_best, renyi_error *err)
{
    ry_run_state *s = &t->state;
    const int ema_wins = !isnan(s->ema.top1) && s->ema.top1 > s->val.top1;
    const double top1 = ema_wins ? s->ema.top1 : s->val.top1;
    *is_best = !isnan(top1) && !(top1 <= s->best_top1); /* NaN: the first */
    if (!*is_best) return RENYI_OK;
    s->best_top1 = top1;
    s->best_epoch = s->epoch;
    return ry_train_save_best(t, ema_wins, err);
}

/* Model files, their accuracy, a line in the log. */
static renyi_status report(renyi_train *t, const char *kind, int evaluates, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const renyi_train_score none = {NAN, NAN, NAN};
    ry_run_state *s = &t->state;
    uint32_t is_best = 0;
    RY_TRY(ry_train_agree(t, ry_train_prune(t, err), err));
    RY_TRY(ry_train_save_models(t, err));
    s->val = s->ema = none;
    if (evaluates) {
        RY_TRY(ry_train_evaluate(t, err));
        if (s->step) RY_TRY(keep_best(t, &is_best, err));
    }
    const renyi_train_epoch e = {.epoch = s->step ? s->epoch : RENYI_TRAIN_START,
                                 .step = s->step,
                                 .train_loss = s->loss_sum / (double)s->step_in_epoch,
                                 .lr = ry_lr_at(&t->lr, ry_train_moment(t)),
                                 .keep = t->keep,
                                 .val = s->val,
                                 .ema = s->ema,
                                 .is_best = is_best,
                                 .seconds = ry_train_seconds(t)};
    RY_TRY(ry_train_agree(t, ry_train_log_epoch(t, kind, &e, err), err));
    if (o->on_epoch) o->on_epoch(o->user, &e);
    return RENYI_OK;
}

/* The checkpoint comes first: a run that is killed while it evaluates only evaluates again. */
static renyi_status end_epoch(renyi_train *t, renyi_error *err)
{
    const uint64_t every = t->s.opt.eval_every, done = t->state.epoch + 1;
    const int is_last = done >= t->s.opt.epochs || t->state.step >= total_steps(t);
    RY_TRY(ry_train_save_checkpoint(t, err));
    RY_TRY(report(t, "epoch", is_last || (every && done % every == 0), err));
    t->state.train_loss = t->state.loss_sum / (double)t->state.step_in_epoch;
    t->state.epoch++;
    t->state.step_in_epoch = 0;
    t->state.loss_sum = 0;
    return is_last ? ry_train_save_checkpoint(t, err) : RENYI_OK;
}

/* ---- updates ------------------------------------------------------------------------------- */

/* The update and its line. RENYI_ERR_ABORTED: made, but the caller wants no more. */
static renyi_status make_step(renyi_train *t, renyi_train_step *step, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    RY_TRY(ry_train_step(t, step, err));
    step->total_steps = total_steps(t);
    RY_TRY(ry_train_log_step(t, step, err));
    if (o->on_step && o->on_step(o->user, step))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped after update %llu",
                       (unsigned long long)step->step);
    return RENYI_OK;
}

static renyi_status one_step(renyi_train *t, renyi_error *err)
{
    const uint64_t every = t->s.opt.checkpoint_every;
    renyi_train_step step = {0};
    renyi_error late = {0};
    const renyi_status st = ry_train_agree(t, make_step(t, &step, err), err);
    if (st == RENYI_ERR_ABORTED) {
        const renyi_status saved = ry_train_save_checkpoint(t, &late);
        if (saved && err) *err = late;
        return saved ? saved : st;
    }
    if (st) return st;
    if (every && step.step % every == 0 && step.step_in_epoch < step.n_steps)
        return ry_train_save_checkpoint(t, err);
    return RENYI_OK;
}

/* `steps` ends a run inside an epoch: the checkpoint is of there, and so are the files. */
static renyi_status stop_early(renyi_train *t, renyi_error *err)
{
    RY_TRY(ry_train_save_checkpoint(t, err));
    return report(t, "stop", 1, err);
}

static renyi_status run(renyi_train *t, renyi_error *err)
{
    const uint64_t total = total_steps(t);
    if (t->s.opt.eval_start && !t->state.step) RY_TRY(report(t, "epoch", 1, err));
    for (;;) {
        if (t->state.step_in_epoch >= t->steps_per_epoch)
            RY_TRY(end_epoch(t, err));
        else if (t->state.step >= total)
            break;
        else
            RY_TRY(one_step(t, err));
    }
    const int is_inside = t->state.step_in_epoch > 0;
    return is_inside ? stop_early(t, err) : RENYI_OK;
}

renyi_status renyi_train_run(renyi_train *t, renyi_error *err)
{
    if (!t) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_train_run: NULL");
    const renyi_status st = run(t, err);
    t->is_complete = st == RENYI_OK;
    return st;
}
