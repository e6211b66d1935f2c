/* trainer_run.c - the loop of a run: updates, evaluation at the end of an epoch, what is saved
 * when.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/trainer.h"

#include "base/cpu.h"
#include "base/status.h"

#include <math.h>

/* ---- evaluation ------------------------------------------------------------------------------ */

/* With `shared` all ranks call this, each with its share of the images. */
static renyi_status evaluate_with(renyi_train *t, const renyi_model *model, const char *policy,
                                  int shared, renyi_train_score *out, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const renyi_eval_options e = {.struct_size = sizeof e,
                                  .n_policies = 1,
                                  .policies = &policy,
                                  .n_threads = t->n_threads,
                                  .n_workers = (uint32_t)o->workers,
                                  .ranks = shared ? o->ranks : NULL,
                                  .apply_exif = o->exif,
                                  .limits = o->limits,
                                  .allocator = t->al,
                                  .user = o->user,
                                  .progress = o->on_eval};
    renyi_eval *eval = NULL;
    renyi_eval_result r = {0};
    renyi_status st = renyi_eval_new(&eval, model, t->val, &e, err);
    if (shared) st = ry_train_agree(t, st, err);
    if (!st) st = renyi_eval_run(eval, err);
    if (!st) renyi_eval_get_result(eval, 0, &r);
    if (!st && r.failed) { /* accuracies over different images cannot be compared */
        renyi_eval_failure f = {"", "logits that are NaN"};
        if (renyi_eval_failure_count(eval)) renyi_eval_get_failure(eval, 0, &f);
        st = ry_fail(err, RENYI_ERR_IO, -1, "evaluation: %s: %s", f.file, f.message);
    }
    if (!st) *out = (renyi_train_score){r.loss, r.top1, r.top5};
    renyi_eval_free(eval);
    return st;
}

static renyi_status open_and_evaluate(renyi_train *t, const char *path, int shared,
                                      renyi_train_score *out, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = o->cpu,
                               .limits = o->limits,
                               .allocator = t->al,
                               .dtype = o->dtype};
    char policy[RY_MAX_POLICY_TEXT] = "none";
    renyi_model *model = NULL;
    if (!t->now_is_dense) ry_policy_print(policy, &t->now);
    renyi_status st = renyi_model_open(&model, path, &opt, err);
    if (shared) st = ry_train_agree(t, st, err);
    if (!st) st = evaluate_with(t, model, policy, shared, out, err);
    renyi_model_free(model);
    return st;
}

/* On all ranks if they read the same file, else on rank 0 while the others wait. */
static renyi_status evaluate_file(renyi_train *t, const char *path, renyi_train_score *out,
                                  renyi_error *err)
{
    int shared = t->shares_eval;
    renyi_status st = RENYI_OK;
    if (shared) RY_TRY(ry_train_same_file(t, path, &shared, err));
    if (shared || ry_train_is_first(t)) st = open_and_evaluate(t, path, shared, out, err);
    RY_TRY(ry_train_agree(t, st, err));
    return ry_train_share_score(t, out, err);
}

/* The current model files on the val images: state.val and, with a running mean, state.ema. */
static renyi_status evaluate_models(renyi_train *t, renyi_error *err)
{
    if (!t->s.opt.val) return RENYI_OK;
    RY_TRY(evaluate_file(t, t->folder.model, &t->state.val, err));
    return t->optim->ema ? evaluate_file(t, t->folder.model_ema, &t->state.ema, err) : RENYI_OK;
}

static uint64_t total_steps(const renyi_train *t)
{
    const uint64_t all = t->s.opt.epochs * t->steps_per_epoch, most = t->s.opt.steps;
    return most && most < all ? most : all;
}

/* ---- the end of an epoch --------------------------------------------------------------------- */

/* Saves the better of weights and running mean if it is the best so far. */
static renyi_status keep_best(renyi_train *t, uint32_t *is_best, renyi_error *err)
{
    ry_run_state *s = &t->state;
    const int ema_wins = !isnan(s->ema.top1) && s->ema.top1 > s->val.top1;
    const double top1 = ema_wins ? s->ema.top1 : s->val.top1;
    *is_best = !isnan(top1) && !(top1 <= s->best_top1); /* true for the first: best_top1 is NaN */
    if (!*is_best) return RENYI_OK;
    s->best_top1 = top1;
    s->best_epoch = s->epoch;
    return ry_train_save_best(t, ema_wins, err);
}

/* Writes the model files, their accuracy and a line of the log. */
static renyi_status report_epoch(renyi_train *t, const char *kind, int evaluates, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const renyi_train_score none = {NAN, NAN, NAN};
    ry_run_state *s = &t->state;
    uint32_t is_best = 0;
    RY_TRY(ry_train_agree(t, ry_train_prune(t, err), err));
    RY_TRY(ry_train_save_models(t, err));
    s->val = s->ema = none;
    if (evaluates) {
        RY_TRY(evaluate_models(t, err));
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

/* The checkpoint comes first: a run killed during evaluation repeats only the evaluation. */
static renyi_status end_epoch(renyi_train *t, renyi_error *err)
{
    const uint64_t every = t->s.opt.eval_every, done = t->state.epoch + 1;
    const int is_last = done >= t->s.opt.epochs || t->state.step >= total_steps(t);
    RY_TRY(ry_train_save_checkpoint(t, err));
    RY_TRY(report_epoch(t, "epoch", is_last || (every && done % every == 0), err));
    t->state.train_loss = t->state.loss_sum / (double)t->state.step_in_epoch;
    t->state.epoch++;
    t->state.step_in_epoch = 0;
    t->state.loss_sum = 0;
    return is_last ? ry_train_save_checkpoint(t, err) : RENYI_OK;
}

/* ---- updates --------------------------------------------------------------------------------- */

/* One update and its line of the log. RENYI_ERR_ABORTED: made, but the caller asked to stop. */
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

static renyi_status step_and_save(renyi_train *t, renyi_error *err)
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

/* `steps` ended the run inside an epoch: saves and evaluates the model of this point. */
static renyi_status stop_early(renyi_train *t, renyi_error *err)
{
    RY_TRY(ry_train_save_checkpoint(t, err));
    return report_epoch(t, "stop", 1, err);
}

static renyi_status run_epochs(renyi_train *t, renyi_error *err)
{
    const uint64_t total = total_steps(t);
    if (t->s.opt.eval_start && !t->state.step) RY_TRY(report_epoch(t, "epoch", 1, err));
    for (;;) {
        if (t->state.step_in_epoch >= t->steps_per_epoch)
            RY_TRY(end_epoch(t, err));
        else if (t->state.step >= total)
            break;
        else
            RY_TRY(step_and_save(t, err));
    }
    const int is_inside = t->state.step_in_epoch > 0;
    return is_inside ? stop_early(t, err) : RENYI_OK;
}

renyi_status renyi_train_run(renyi_train *t, renyi_error *err)
{
    if (!t) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_train_run: NULL");
    const renyi_status st = run_epochs(t, err);
    t->is_complete = st == RENYI_OK;
    return st;
}
