/* trainer_eval.c - how good the model files are on photos that training never sees.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "train/run/trainer.h"

#include <math.h>

/* With `shared` all ranks are here, each with its own part of the photos. */
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
    if (!st && r.failed) { /* a curve over photos that come and go means nothing */
        renyi_eval_failure f = {"", "answers that are not numbers"};
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

/* By all ranks if they see the file, else by the first while the others wait. */
static renyi_status evaluate_file(renyi_train *t, const char *path, renyi_train_score *out,
                                  renyi_error *err)
{
    int shared = t->shares_eval;
    renyi_status st = RENYI_OK;
    if (shared) RY_TRY(ry_train_see(t, path, &shared, err));
    if (shared || ry_train_is_first(t)) st = open_and_evaluate(t, path, shared, out, err);
    RY_TRY(ry_train_agree(t, st, err));
    return ry_train_tell(t, out, err);
}

renyi_status ry_train_evaluate(renyi_train *t, renyi_error *err)
{
    if (!t->s.opt.val) return RENYI_OK;
    RY_TRY(evaluate_file(t, t->folder.model, &t->state.val, err));
    return t->optim->ema ? evaluate_file(t, t->folder.model_ema, &t->state.ema, err) : RENYI_OK;
}
