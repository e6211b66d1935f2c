/* settings_check.c - settings that do not go together, and what may change when a run is resumed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "prune/policy/policy_spec.h"
#include "train/settings/settings.h"
#include "train/settings/settings_use.h"

#include <string.h>

static renyi_status fail_arg(renyi_error *err, const char *what)
{
    return ry_fail(err, RENYI_ERR_ARG, -1, "%s", what);
}

static renyi_status check_model(const renyi_train_options *o, renyi_error *err)
{
    if (!o->out) return fail_arg(err, "the folder of the run is missing (-o RUN_DIR)");
    if (!o->data) return fail_arg(err, "photos to learn from are missing (data-dir)");
    if (!o->model && !o->arch)
        return fail_arg(err, "either model (weights to begin with) or arch (random weights) is "
                             "needed");
    if (o->model && o->arch) return fail_arg(err, "model and arch exclude each other");
    if (!o->arch && (o->dim || o->depth || o->heads || o->mlp || o->patch))
        return fail_arg(err, "dim, depth, heads, mlp-dim and patch are for arch");
    if (o->std[0] > 0 && !(o->std[1] > 0 && o->std[2] > 0))
        return fail_arg(err, "std: three numbers above 0 wanted");
    return RENYI_OK;
}

static renyi_status check_lr(const renyi_train_options *o, renyi_error *err)
{
    if (!(o->lr > 0)) return fail_arg(err, "lr must be above 0");
    if (o->min_lr > o->lr && !o->lr_scale)
        return ry_fail(err, RENYI_ERR_ARG, -1, "min-lr %g is above lr %g", o->min_lr, o->lr);
    if (o->warmup_epochs > (double)o->epochs)
        return ry_fail(err, RENYI_ERR_ARG, -1, "warmup-epochs %g are more than epochs %llu",
                       o->warmup_epochs, (unsigned long long)o->epochs);
    if (!(o->layer_decay > 0)) return fail_arg(err, "layer-decay must be above 0");
    return RENYI_OK;
}

static renyi_status check_shares(const renyi_train_options *o, renyi_error *err)
{
    const struct {
        const char *name;
        double value;
    } below_one[] = {{"betas", o->betas[0]},
                     {"betas", o->betas[1]},
                     {"ema", o->ema},
                     {"drop-path", o->drop_path},
                     {"smoothing", o->smoothing}};
    for (size_t i = 0; i < sizeof below_one / sizeof *below_one; i++)
        if (!(below_one[i].value < 1))
            return ry_fail(err, RENYI_ERR_ARG, -1, "%s must be below 1", below_one[i].name);
    if (!(o->eps > 0)) return fail_arg(err, "eps must be above 0");
    if (o->crop_scale[0] > o->crop_scale[1] || o->crop_ratio[0] > o->crop_ratio[1])
        return fail_arg(err, "scale and ratio: the smaller number comes first");
    return RENYI_OK;
}

static renyi_status check_pruning(const renyi_train_options *o, renyi_error *err)
{
    ry_policy policy;
    if (!o->prune) return RENYI_OK;
    const renyi_status st = ry_policy_parse(&policy, o->prune, err);
    if (st) return ry_fail_in(err, st, "prune");
    if ((o->shrink_start || o->shrink_epochs) &&
        (policy.rule == RY_RULE_NONE || policy.budget != RY_BUDGET_KEEP))
        return fail_arg(err, "shrink-start and shrink-epochs need a policy with a keep rate");
    if (o->mimic == RENYI_MIMIC_FORCED && policy.rule != RY_RULE_NONE)
        return fail_arg(err, "mimic forced takes no prune: the teacher's tokens are all there");
    return RENYI_OK;
}

static renyi_status check_teacher(const renyi_train_options *o, renyi_error *err)
{
    if (o->mimic != RENYI_MIMIC_PROJECT && (!o->features_layers || o->features_weight <= 0))
        return fail_arg(err, "mimic direct and forced need features and features-layers");
    if (o->teacher) return RENYI_OK;
    if (o->features_weight > 0) return fail_arg(err, "features need a teacher");
    if (o->features_layers) return fail_arg(err, "features-layers need a teacher");
    if (o->teacher_classes) return fail_arg(err, "teacher-classes need a teacher");
    return RENYI_OK;
}

renyi_status ry_settings_check(const renyi_train_options *o, renyi_error *err)
{
    ry_augment augment;
    RY_TRY(check_model(o, err));
    RY_TRY(check_lr(o, err));
    RY_TRY(check_shares(o, err));
    RY_TRY(check_pruning(o, err));
    RY_TRY(check_teacher(o, err));
    return ry_settings_augment(&augment, o, err);
}

/* ---- resuming ------------------------------------------------------------------------------ */

static renyi_status merge_one(ry_settings_owned *s, const renyi_train_options *given, size_t i,
                              const renyi_allocator *al, renyi_error *err)
{
    char was[RENYI_SETTING_MAX], now[RENYI_SETTING_MAX];
    size_t n;
    const ry_setting *setting = ry_settings(&n) + i;
    ry_setting_print(setting, &s->opt, was, sizeof was);
    ry_setting_print(setting, given, now, sizeof now);
    if (strcmp(was, now) == 0) return RENYI_OK;
    if (setting->flags & RY_SETTING_CHANGES) return ry_settings_put(s, i, now, al, err);
    if (strcmp(now, "auto") == 0) return RENYI_OK; /* was made of it */
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s is '%.80s' in the checkpoint and '%.80s' now: a run that is resumed keeps "
                   "its settings; begin a new one in another folder",
                   setting->name, was, now);
}

renyi_status ry_settings_merge(ry_settings_owned *s, const renyi_train_options *given,
                               const renyi_allocator *al, renyi_error *err)
{
    size_t n;
    (void)ry_settings(&n);
    for (size_t i = 0; i < n; i++)
        if (given->given[i / 64] >> i % 64 & 1) RY_TRY(merge_one(s, given, i, al, err));
    return RENYI_OK;
}
