/* trainer_model.c - makes the model that is trained, its optimizer and cuts, and the teacher.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/core/policy_api.h"
#include "engine/write/new_model.h"
#include "model/common/arch.h"
#include "train/run/trainer.h"
#include "train/settings/settings_use.h"

#include <stdio.h>
#include <string.h>

/* ---- configuration --------------------------------------------------------------------------- */

static renyi_status configure_new(ry_vit_config *c, const renyi_train_options *o, renyi_error *err)
{
    const renyi_init_options init = {.struct_size = sizeof init,
                                     .n_classes = 1, /* set when the images are known */
                                     .dim = (uint32_t)o->dim,
                                     .n_blocks = (uint32_t)o->depth,
                                     .n_heads = (uint32_t)o->heads,
                                     .mlp_dim = (uint32_t)o->mlp};
    RY_TRY(ry_new_model_config(c, o->arch, &init, err));
    if (o->patch) c->patch_size = (uint32_t)o->patch;
    if (o->image_size) c->image_size = (uint32_t)o->image_size;
    if (c->image_size % c->patch_size)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "image-size %u is not a multiple of the patch size %u", c->image_size,
                       c->patch_size);
    ry_vit_write_name(c, c->image_size); /* it contains both */
    return RENYI_OK;
}

static void take_preprocess(ry_vit_config *c, renyi_train_options *o)
{
    renyi_preprocess *p = &c->preprocess;
    p->size = c->image_size;
    if (o->crop_mode) p->crop_mode = (renyi_crop_mode)(o->crop_mode - RENYI_TRAIN_CROP_CENTER);
    if (o->crop_pct > 0) p->crop_pct = o->crop_pct;
    const int has_std = o->std[0] > 0;
    const int has_mean = has_std || o->mean[0] != 0 || o->mean[1] != 0 || o->mean[2] != 0;
    for (int i = 0; i < 3; i++) {
        if (has_mean) p->mean[i] = o->mean[i];
        if (has_std) p->std[i] = o->std[i];
        o->mean[i] = p->mean[i];
        o->std[i] = p->std[i];
    }
    o->crop_pct = p->crop_pct;
    o->crop_mode = (renyi_train_crop)((int)p->crop_mode + (int)RENYI_TRAIN_CROP_CENTER);
    o->image_size = c->image_size;
}

static renyi_status configure_model(renyi_train *t, ry_checkpoint *source, renyi_error *err)
{
    renyi_train_options *o = &t->s.opt;
    if (!o->model) return configure_new(&t->config, o, err);
    RY_TRY(ry_checkpoint_open(source, o->model, &o->limits, &t->al, err));
    const renyi_status st = ry_vit_configure(&t->config, source, (uint32_t)o->image_size, err);
    if (st) return ry_fail_in(err, st, o->model);
    if (o->image_size) ry_vit_write_name(&t->config, t->config.image_size);
    return RENYI_OK;
}

/* The configuration of the files that will be written. They have timm's names, unless only
 * transformers has such a head; the text tower of a SigLIP is left out. */
static void become_written(ry_vit_config *c)
{
    const int had_texts = c->is_siglip;
    c->layout = c->pool == RY_POOL_CLASS_MEAN ? RY_LAYOUT_HF : RY_LAYOUT_TIMM;
    c->is_siglip = c->open_clip = 0;
    c->proj_dim = 0;
    c->n_quantized = 0;
    c->quantization[0] = '\0';
    if (had_texts) ry_vit_write_name(c, c->image_size);
    if (c->layout == RY_LAYOUT_TIMM && c->n_placed < c->n_prefix) c->n_placed = 0;
}

renyi_status ry_train_source(renyi_train *t, ry_checkpoint *source, renyi_error *err)
{
    RY_TRY(configure_model(t, source, err));
    RY_TRY(ry_net_trains(&t->config, err));
    become_written(&t->config);
    take_preprocess(&t->config, &t->s.opt);
    return RENYI_OK;
}

/* ---- the net --------------------------------------------------------------------------------- */

/* As many samples as make about 1600 rows, or fewer if that is an even divisor of the batch; a
 * small batch as a whole. Depends on the settings only, because it decides the order of sums. */
static uint32_t choose_micro_batch(const renyi_train *t)
{
    enum { ROWS = 1600 };
    const ry_vit_config *c = &t->config;
    const uint32_t side = c->image_size / c->patch_size, tokens = side * side + c->n_prefix;
    const uint32_t batch = (uint32_t)t->s.opt.batch;
    uint32_t most = ROWS / tokens < 2 ? 2 : ROWS / tokens;
    if (batch <= most) return batch;
    for (uint32_t m = most; m >= 2 && 2 * m > most; m--)
        if (batch % m == 0 && m % 2 == 0) return m;
    return most & ~1u;
}

/* Even, so that the two samples of a pair stay together. */
static void take_micro_batch(renyi_train *t)
{
    renyi_train_options *o = &t->s.opt;
    if (!o->micro_batch) o->micro_batch = choose_micro_batch(t);
    if (o->micro_batch > o->batch) o->micro_batch = o->batch;
    o->micro_batch += o->micro_batch % 2;
}

static renyi_status take_policy(renyi_train *t, renyi_error *err)
{
    const ry_vit_config *c = &t->config;
    const uint32_t side = c->image_size / c->patch_size;
    const renyi_status st = ry_policy_for(&t->policy, t->s.opt.prune, c, side * side, err);
    if (st) return ry_fail_in(err, st, "prune");
    t->now = t->policy;
    ry_policy_print(t->policy_text, &t->policy);
    const renyi_status fits =
        ry_net_prune(t->net, t->policy.rule == RY_RULE_NONE ? NULL : &t->policy, err);
    if (fits) return ry_fail_in(err, fits, "prune");
    t->macs_forward = ry_net_macs(t->net);
    t->now_is_dense = t->policy.rule == RY_RULE_NONE;
    return RENYI_OK;
}

static renyi_status make_optimizer(renyi_train *t, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    ry_optim_options opt = ry_optim_defaults();
    opt.level = t->level;
    opt.n_threads = t->n_threads;
    opt.beta1 = o->betas[0];
    opt.beta2 = o->betas[1];
    opt.eps = o->eps;
    opt.weight_decay = o->weight_decay;
    opt.average = o->ema > 0;
    RY_TRY(ry_optim_new(&t->optim, ry_net_params(t->net), &opt, &t->al, err));
    ry_optim_layer_decay(t->optim, o->layer_decay);
    return RENYI_OK;
}

static renyi_status fill_weights(renyi_train *t, const ry_checkpoint *source, renyi_error *err)
{
    int new_head = 0;
    ry_net_init(t->net, t->s.opt.seed);
    if (!source->tensors) return RENYI_OK;
    RY_TRY(ry_net_load(t->net, source, &new_head, err));
    if (new_head) ry_train_note(t, "the head is new: random, for %u classes", t->config.n_classes);
    return RENYI_OK;
}

renyi_status ry_train_net(renyi_train *t, const ry_checkpoint *source, renyi_error *err)
{
    renyi_train_options *o = &t->s.opt;
    take_micro_batch(t);
    const ry_net_options opt = {.level = t->level,
                                .dtype = o->dtype,
                                .n_threads = t->n_threads,
                                .micro_batch = (uint32_t)o->micro_batch,
                                .checkpoint_activations = o->checkpoint_activations != 0,
                                .feature_dim = t->teacher ? ry_teacher_dim(t->teacher) : 0,
                                .taps = t->taps,
                                .n_taps = t->n_taps,
                                .direct = o->mimic != RENYI_MIMIC_PROJECT,
                                .feature_prefix = t->teacher ? ry_teacher_prefix(t->teacher) : 0};
    RY_TRY(ry_net_new(&t->net, &t->config, &opt, &t->al, err));
    RY_TRY(fill_weights(t, source, err));
    RY_TRY(ry_settings_freeze(ry_net_params(t->net), t->config.n_blocks, o, err));
    RY_TRY(make_optimizer(t, err));
    return take_policy(t, err);
}

/* ---- the teacher ----------------------------------------------------------------------------- */

static renyi_status map_classes(renyi_train *t, uint32_t *map, renyi_error *err)
{
    const uint32_t n = t->config.n_classes;
    if (t->s.opt.teacher_classes)
        return ry_teacher_class_list(map, t->teacher_model, t->s.opt.teacher_classes, n, &t->al,
                                     err);
    return ry_teacher_classes(map, t->teacher_model, (const char *const *)t->labels.names, n,
                              &t->al, err);
}

/* Block taps[i] of the student is compared with the teacher's block of[i], at the same relative
 * depth. */
static renyi_status take_taps(renyi_train *t, uint32_t *of, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const uint32_t L = t->config.n_blocks;
    uint8_t chosen[RY_MAX_BLOCKS] = {0};
    renyi_model_info teacher;
    t->n_taps = 0;
    if (o->features_weight <= 0) return RENYI_OK;
    renyi_model_get_info(t->teacher_model, &teacher);
    RY_TRY(ry_settings_blocks("features-layers", o->features_layers, L, chosen, err));
    for (uint32_t i = 0; i < L; i++) {
        if (!chosen[i]) continue;
        t->taps[t->n_taps] = i;
        of[t->n_taps++] = ((i + 1) * teacher.n_blocks + L - 1) / L - 1;
    }
    if (o->mimic == RENYI_MIMIC_FORCED &&
        (t->n_taps != L || teacher.n_blocks != L || teacher.n_prefix != t->config.n_prefix))
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "mimic forced: the student has %u blocks and %u prefix tokens, the teacher %u "
            "and %u; they must be the same, and features-layers 0-%u",
            L, t->config.n_prefix, teacher.n_blocks, teacher.n_prefix, L - 1);
    return RENYI_OK;
}

static renyi_status make_teacher(renyi_train *t, uint32_t *map, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const ry_teacher_tokens tokens = o->features_weight <= 0           ? RY_TOKENS_NONE
                                     : o->mimic == RENYI_MIMIC_PROJECT ? RY_TOKENS_WHITE
                                                                       : RY_TOKENS_RAW;
    uint32_t taps[RY_MAX_BLOCKS];
    RY_TRY(map_classes(t, map, err));
    RY_TRY(take_taps(t, taps, err));
    const ry_teacher_options opt = {.max_batch = (uint32_t)o->micro_batch,
                                    .n_threads = t->n_threads,
                                    .class_map = map,
                                    .tokens = tokens,
                                    .taps = taps,
                                    .n_taps = t->n_taps};
    return ry_teacher_new(&t->teacher, t->teacher_model, &t->config, &opt, &t->al, err);
}

renyi_status ry_train_teacher(renyi_train *t, renyi_error *err)
{
    renyi_train_options *o = &t->s.opt;
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = o->cpu,
                               .image_size = t->config.image_size,
                               .limits = o->limits,
                               .allocator = t->al,
                               .dtype = o->teacher_dtype};
    if (!o->teacher) return RENYI_OK;
    take_micro_batch(t);
    renyi_status st = renyi_model_open(&t->teacher_model, o->teacher, &opt, err);
    if (st) return ry_fail_in(err, st, "teacher");
    uint32_t *map = ry_alloc(&t->al, t->config.n_classes, sizeof *map);
    if (!map) return ry_fail_nomem(err, t->config.n_classes * sizeof *map);
    st = make_teacher(t, map, err);
    ry_free(&t->al, map);
    return st ? ry_fail_in(err, st, "teacher") : RENYI_OK;
}
