/* settings_use.c - checks settings and turns them into the options of the trainer's parts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/settings/settings_use.h"

#include "base/decimal.h"
#include "base/status.h"
#include "prune/policy/policy_spec.h"
#include "train/settings/settings.h"

#include <string.h>

/* ---- augmentation ---------------------------------------------------------------------------- */

static renyi_status fail_randaugment(const char *text, const char *part, size_t n, renyi_error *err)
{
    return ry_fail(
        err, RENYI_ERR_ARG, -1,
        "randaugment: '%.*s' in '%.60s'; expected m0-10, mstd, inc1, n, p joined by '-', "
        "such as m9-mstd0.5-inc1-n2, or none",
        n > 40 ? 40 : (int)n, part, text);
}

static renyi_status read_randaugment_part(ry_augment *a, const char *text, const char *part,
                                          size_t n, renyi_error *err)
{
    const size_t letters = strspn(part, "abcdefghijklmnopqrstuvwxyz");
    double x = 0;
    if (letters == 4 && n == 4 && memcmp(part, "rand", 4) == 0) return RENYI_OK;
    if (letters >= n || !ry_number_read(part + letters, n - letters, &x) || x < 0)
        return fail_randaugment(text, part, n, err);
    if (letters == 1 && part[0] == 'm' && x <= 10)
        a->rand_magnitude = x;
    else if (letters == 1 && part[0] == 'n' && x >= 1 && x <= 15 && x == (double)(uint32_t)x)
        a->rand_ops = (uint32_t)x;
    else if (letters == 1 && part[0] == 'p' && x <= 1)
        a->rand_prob = x;
    else if (letters == 4 && memcmp(part, "mstd", 4) == 0 && x <= 100)
        a->rand_std = x;
    else if (letters == 3 && memcmp(part, "inc", 3) == 0 && x == 1)
        return RENYI_OK; /* strength grows with the magnitude: the only mode there is */
    else
        return fail_randaugment(text, part, n, err);
    return RENYI_OK;
}

static renyi_status read_randaugment(ry_augment *a, const char *text, renyi_error *err)
{
    a->rand_ops = 0;
    if (!text || strcmp(text, "none") == 0) return RENYI_OK;
    a->rand_ops = 2; /* timm's */
    a->rand_prob = 0.5;
    a->rand_magnitude = 10;
    a->rand_std = 0;
    for (const char *at = text;;) {
        const size_t n = strcspn(at, "-");
        RY_TRY(read_randaugment_part(a, text, at, n, err));
        at += n;
        if (!*at++) return RENYI_OK;
    }
}

renyi_status ry_settings_augment(ry_augment *out, const renyi_train_options *o, renyi_error *err)
{
    *out = (ry_augment){
        .crop_scale = {o->crop_scale[0], o->crop_scale[1]},
        .crop_ratio = {o->crop_ratio[0], o->crop_ratio[1]},
        .filter = RENYI_BICUBIC,
        .flip = o->flip,
        .color_jitter = o->color_jitter,
        .three_augment = o->three_augment != 0,
        .erase = o->erasing,
        .mixup_alpha = o->mixup,
        .cutmix_alpha = o->cutmix,
        .mix_prob = o->mixup_prob,
        .mix_switch_prob = o->mixup_switch,
    };
    RY_TRY(read_randaugment(out, o->randaugment, err));
    return ry_augment_check(out, err);
}

/* ---- learning rate --------------------------------------------------------------------------- */

ry_lr_schedule ry_settings_lr(const renyi_train_options *o)
{
    static const ry_lr_tick ticks[] = {RY_LR_PER_STEP, RY_LR_PER_EPOCH, RY_LR_PER_EPOCH_LATE};
    static const ry_lr_shape shapes[] = {RY_LR_COSINE, RY_LR_LINEAR, RY_LR_CONSTANT};
    return (ry_lr_schedule){
        .shape = shapes[o->shape],
        .tick = ticks[o->schedule],
        .peak = o->lr_scale ? ry_lr_for_batch(o->lr, (uint32_t)o->batch) : o->lr,
        .min = o->min_lr,
        .epochs = (double)o->epochs,
        .warmup_epochs = o->warmup_epochs,
        .warmup_lr = o->warmup_lr,
        .warmup_prefix = o->warmup_prefix != 0,
    };
}

/* ---- frozen parameters ----------------------------------------------------------------------- */

/* 1 = the pattern of n bytes matches the name; '*' matches any text. */
static int matches_pattern(const char *pattern, size_t n, const char *name)
{
    while (n && *pattern != '*') {
        if (*pattern != *name) return 0;
        pattern++, name++, n--;
    }
    if (!n) return !*name;
    for (;; name++) {
        if (matches_pattern(pattern + 1, n - 1, name)) return 1;
        if (!*name) return 0;
    }
}

static int count_stars(const char *pattern, size_t n)
{
    int count = 0;
    for (size_t i = 0; i < n; i++) count += pattern[i] == '*';
    return count;
}

static renyi_status freeze_names(ry_params *params, const char *list, renyi_error *err)
{
    enum { MOST_STARS = 8 }; /* the time to match grows with their number */
    for (const char *at = list;;) {
        const size_t n = strcspn(at, ",");
        int hits = 0;
        if (count_stars(at, n) > MOST_STARS)
            return ry_fail(err, RENYI_ERR_ARG, -1, "freeze: more than %d '*' in '%.60s'",
                           MOST_STARS, at);
        for (uint32_t i = 0; i < params->n; i++)
            if (matches_pattern(at, n, params->list[i].name)) hits += params->list[i].frozen = 1;
        if (!hits)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "freeze: no parameter is called '%.*s'; names are timm's, such as "
                           "blocks.0.attn.qkv.weight and head.bias",
                           n > 100 ? 100 : (int)n, at);
        at += n;
        if (!*at++) return RENYI_OK;
    }
}

static int is_in_block(ry_tensor_role role) { return role >= RY_NORM1_W && role <= RY_FC2_B; }

/* Parses "3" or "0-5", n bytes. `setting` is for the message. */
static renyi_status read_block_range(const char *setting, uint32_t n_blocks, const char *text,
                                     size_t n, uint64_t *low, uint64_t *high, renyi_error *err)
{
    const char *dash = memchr(text, '-', n);
    const size_t first = dash ? (size_t)(dash - text) : n;
    int ok = n_blocks && ry_read_whole(text, first, n_blocks - 1, low);
    *high = *low;
    if (ok && dash)
        ok = ry_read_whole(dash + 1, n - first - 1, n_blocks - 1, high) && *high >= *low;
    if (ok) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s: '%.*s' is not a block or a range of blocks; blocks are 0 to %u", setting,
                   n > 40 ? 40 : (int)n, text, n_blocks - 1);
}

renyi_status ry_settings_blocks(const char *setting, const char *list, uint32_t n_blocks,
                                uint8_t *chosen, renyi_error *err)
{
    for (const char *at = list; at && *at;) {
        const size_t n = strcspn(at, ",");
        uint64_t low = 0, high = 0;
        RY_TRY(read_block_range(setting, n_blocks, at, n, &low, &high, err));
        memset(chosen + low, 1, (size_t)(high - low + 1));
        at += n + (at[n] == ',');
    }
    return RENYI_OK;
}

static renyi_status freeze_layers(ry_params *params, uint32_t n_blocks, const char *list,
                                  renyi_error *err)
{
    uint8_t chosen[RY_MAX_BLOCKS] = {0};
    RY_TRY(ry_settings_blocks("freeze-layers", list, n_blocks, chosen, err));
    for (uint32_t i = 0; i < params->n; i++) {
        ry_param *p = &params->list[i];
        if (is_in_block(p->role) && chosen[p->block]) p->frozen = 1;
    }
    return RENYI_OK;
}

renyi_status ry_settings_freeze(ry_params *params, uint32_t n_blocks, const renyi_train_options *o,
                                renyi_error *err)
{
    if (o->freeze) RY_TRY(freeze_names(params, o->freeze, err));
    RY_TRY(freeze_layers(params, n_blocks, o->freeze_layers, err));
    for (uint32_t i = 0; i < params->n; i++)
        if (!params->list[i].frozen) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "freeze: no parameter is left to train");
}

/* ---- checks ---------------------------------------------------------------------------------- */

static renyi_status fail_arg(renyi_error *err, const char *what)
{
    return ry_fail(err, RENYI_ERR_ARG, -1, "%s", what);
}

static renyi_status check_model(const renyi_train_options *o, renyi_error *err)
{
    if (!o->out) return fail_arg(err, "the folder of the run is missing (-o RUN_DIR)");
    if (!o->data) return fail_arg(err, "the training images are missing (data-dir)");
    if (!o->model && !o->arch)
        return fail_arg(err, "either model (weights to begin with) or arch (random weights) is "
                             "needed");
    if (o->model && o->arch) return fail_arg(err, "model and arch exclude each other");
    if (!o->arch && (o->dim || o->depth || o->heads || o->mlp || o->patch))
        return fail_arg(err, "dim, blocks, heads, mlp-dim and patch are for arch");
    if (o->std[0] > 0 && !(o->std[1] > 0 && o->std[2] > 0))
        return fail_arg(err, "std: three numbers above 0 expected");
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
        return fail_arg(err, "mimic forced excludes prune: it needs every token of the teacher");
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
