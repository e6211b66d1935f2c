/* trainer.c - renyi_train_new, _free and _get_*: puts a run together, new or from its checkpoint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/trainer.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "train/files/save_point.h"
#include "train/settings/settings_use.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- for new and resumed runs ---------------------------------------------------------------- */

/* Resolves "auto" to bf16 where that is faster. */
static renyi_status choose_dtype(renyi_train_options *o, renyi_cpu level, renyi_error *err)
{
    if (o->dtype == RENYI_DTYPE_DEFAULT || o->dtype == RENYI_DTYPE_AUTO)
        o->dtype = renyi_dtype_check(RENYI_DTYPE_BF16, level, NULL) == RENYI_OK ? RENYI_DTYPE_BF16
                                                                                : RENYI_DTYPE_F32;
    if (o->dtype == RENYI_DTYPE_INT8)
        return ry_fail(err, RENYI_ERR_ARG, -1, "dtype: training knows f32 and bf16");
    return renyi_dtype_check(o->dtype, level, err);
}

static renyi_status choose_machine(renyi_train *t, renyi_error *err)
{
    renyi_train_options *o = &t->s.opt;
    RY_TRY(ry_cpu_choose(o->cpu, &t->level, err));
    RY_TRY(choose_dtype(o, t->level, err));
    t->n_threads = o->threads ? (unsigned)o->threads : ry_cpu_threads(t->ranks.r.n_sharing);
    return RENYI_OK;
}

/* Everything after model and data are known. */
static renyi_status make_parts(renyi_train *t, const ry_checkpoint *source, renyi_error *err)
{
    RY_TRY(ry_train_teacher(t, err));
    RY_TRY(ry_train_net(t, source, err));
    RY_TRY(ry_train_loader(t, err));
    t->lr = ry_settings_lr(ry_train_opt(t));
    return ry_train_buffers(t, err);
}

static uint64_t fingerprint_of(const renyi_train *t)
{
    renyi_dataset_info info;
    renyi_dataset_get_info(t->data, &info);
    return info.fingerprint;
}

/* Opens the val images on every rank that reads the same file `model` of the run. */
static renyi_status open_val(renyi_train *t, const char *model, renyi_error *err)
{
    RY_TRY(ry_train_same_file(t, model, &t->shares_eval, err));
    if (t->s.opt.val && !t->shares_eval && ry_train_is_first(t))
        ry_train_note(t, "other ranks do not see %s: this one evaluates alone", t->s.opt.out);
    const int opens = t->shares_eval || ry_train_is_first(t);
    return ry_train_agree(t, opens ? ry_train_val(t, model, err) : RENYI_OK, err);
}

/* ---- a new run ------------------------------------------------------------------------------- */

static renyi_status open_log(renyi_train *t, uint64_t keep, renyi_error *err)
{
    const int writes = ry_train_is_first(t);
    return ry_train_agree(
        t, writes ? ry_log_file_open(&t->log, t->folder.log, keep, err) : RENYI_OK, err);
}

static renyi_status fill_folder(renyi_train *t, renyi_error *err)
{
    RY_TRY(ry_train_save_models(t, err));
    RY_TRY(open_val(t, t->folder.model, err));
    RY_TRY(ry_train_agree(t, ry_train_log_config(t, err), err));
    return ry_train_save_checkpoint(t, err);
}

/* Creates the folder after all parts of the run; it has a model and a checkpoint from the start.
 * Without the lock on the log its files belong to another process. */
static renyi_status begin_files(renyi_train *t, renyi_error *err)
{
    const char *path = t->s.opt.out;
    const int is_first = ry_train_is_first(t);
    int made = 0;
    RY_TRY(ry_train_agree(t, is_first ? ry_run_folder_make(&t->folder, path, &made, err) : RENYI_OK,
                          err));
    renyi_status st = open_log(t, 0, err);
    const int is_ours = t->log.fd >= 0;
    if (is_ours) ry_run_folder_clear(&t->folder, path, &t->al);
    if (!st) st = fill_folder(t, err);
    if (st && is_first) ry_run_folder_undo(&t->folder, path, is_ours, made);
    return st;
}

static renyi_status make_new(renyi_train *t, ry_checkpoint *source, renyi_error *err)
{
    RY_TRY(ry_settings_check(ry_train_opt(t), err));
    RY_TRY(choose_machine(t, err));
    RY_TRY(ry_train_source(t, source, err));
    RY_TRY(ry_train_data(t, t->s.opt.model, err));
    RY_TRY(make_parts(t, source, err));
    ry_run_state_begin(&t->state, fingerprint_of(t));
    return ry_net_update(t->net, err);
}

/* ---- a resumed run --------------------------------------------------------------------------- */

static renyi_status check_place(const renyi_train *t, renyi_error *err)
{
    const ry_run_state *s = &t->state;
    if (s->fingerprint != fingerprint_of(t))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: the images are not those that the run began with (names or classes "
                       "differ); give the same with --data-dir",
                       t->s.opt.data);
    if (s->step_in_epoch > t->steps_per_epoch ||
        s->step != s->epoch * t->steps_per_epoch + s->step_in_epoch)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: update %llu in epoch %llu does not match %llu updates per epoch",
                       t->folder.checkpoint, (unsigned long long)s->step,
                       (unsigned long long)s->epoch, (unsigned long long)t->steps_per_epoch);
    return RENYI_OK;
}

static renyi_status read_checkpoint(renyi_train *t, const renyi_train_options *given,
                                    ry_checkpoint *source, renyi_error *err)
{
    RY_TRY(ry_checkpoint_open(source, t->folder.checkpoint, &given->limits, &t->al, err));
    RY_TRY(ry_save_point_state(&t->state, &t->s, source, &t->al, err));
    RY_TRY(ry_settings_merge(&t->s, given, &t->al, err));
    RY_TRY(ry_settings_check(ry_train_opt(t), err));
    const renyi_status st = ry_vit_configure(&t->config, source, 0, err);
    return st ? ry_fail_in(err, st, t->folder.checkpoint) : RENYI_OK;
}

static renyi_status make_resumed(renyi_train *t, const renyi_train_options *given,
                                 ry_checkpoint *source, renyi_error *err)
{
    const ry_checkpoint random = {0};
    RY_TRY(read_checkpoint(t, given, source, err));
    RY_TRY(choose_machine(t, err));
    RY_TRY(ry_train_data(t, t->folder.checkpoint, err));
    RY_TRY(make_parts(t, &random, err));
    RY_TRY(check_place(t, err));
    RY_TRY(ry_save_point_load(t->optim, t->state.step, source, err));
    return ry_net_update(t->net, err);
}

static renyi_status take_up_files(renyi_train *t, renyi_error *err)
{
    RY_TRY(open_val(t, t->folder.checkpoint, err));
    if (ry_train_is_first(t)) ry_run_folder_sweep(t->s.opt.out, &t->al);
    return open_log(t, t->state.log_bytes, err);
}

/* ---- both ------------------------------------------------------------------------------------ */

static renyi_status seek_loader(renyi_train *t, renyi_error *err)
{
    const int waits = t->state.step_in_epoch == t->steps_per_epoch; /* for its evaluation */
    t->first_step = t->state.step;
    t->seconds_before = t->state.seconds;
    t->started = ry_clock();
    return ry_loader_seek(t->loader, (uint32_t)t->state.epoch + (waits ? 1 : 0),
                          waits ? 0 : (uint32_t)t->state.step_in_epoch, err);
}

/* The steps that need no other rank. */
static renyi_status make_run(renyi_train *t, const renyi_train_options *given,
                             ry_checkpoint *source, renyi_error *err)
{
    RY_TRY(ry_settings_copy(&t->s, given, &t->al, err));
    if (!given->out || !*given->out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "the folder of the run is missing (-o RUN_DIR)");
    RY_TRY(ry_run_folder_name(&t->folder, given->out, &t->al, err));
    if (given->resume && ry_run_folder_is_unbegun(&t->folder, given->out)) {
        if (!given->data || (!given->model && !given->arch))
            return ry_fail(err, RENYI_ERR_IO, -1,
                           "%s: this run was ended before its first checkpoint; give model and "
                           "images (-m or --arch, --data-dir) too and it starts again",
                           given->out);
        t->s.opt.resume = 0;
    }
    return t->s.opt.resume ? make_resumed(t, given, source, err) : make_new(t, source, err);
}

static renyi_status open_run(renyi_train *t, const renyi_train_options *given, renyi_error *err)
{
    ry_checkpoint source = {0};
    renyi_status st = ry_train_agree(t, make_run(t, given, &source, err), err);
    if (!st) st = ry_train_compare(t, err);
    if (!st) st = t->s.opt.resume ? take_up_files(t, err) : begin_files(t, err);
    if (!st) st = ry_train_agree(t, seek_loader(t, err), err);
    ry_checkpoint_close(&source, &t->al);
    return st;
}

/* ---- the public functions -------------------------------------------------------------------- */

void ry_train_note(const renyi_train *t, const char *fmt, ...)
{
    char text[512];
    va_list args;
    if (!t->s.opt.on_note) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    t->s.opt.on_note(t->s.opt.user, text);
}

double ry_train_seconds(const renyi_train *t)
{
    return t->started > 0 ? t->seconds_before + ry_clock() - t->started : t->seconds_before;
}

static renyi_status check_options(const renyi_train_options *opt, renyi_error *err)
{
    if (opt->struct_size != sizeof *opt)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_train_options: struct_size %u, this library knows %zu; begin with "
                       "renyi_train_defaults",
                       opt->struct_size, sizeof *opt);
    if (!opt->allocator.alloc != !opt->allocator.release)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "allocator has one of alloc and release; expected both or none");
    return RENYI_OK;
}

renyi_status renyi_train_new(renyi_train **out, const renyi_train_options *opt, renyi_error *err)
{
    if (!out || !opt) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_train_new: NULL argument");
    *out = NULL;
    RY_TRY(check_options(opt, err));
    renyi_train *t = ry_calloc(&opt->allocator, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    t->al = opt->allocator;
    t->log.fd = -1;
    renyi_status st = ry_ranks_open(&t->ranks, opt->ranks, &t->al, err);
    if (!st) st = open_run(t, opt, err);
    if (st) {
        renyi_train_free(t);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

static void free_buffers(ry_step_buffers *b, const renyi_allocator *al)
{
    float *const all[] = {b->logits,  b->logits_dist,    b->d,          b->d_dist,
                          b->teacher, b->teacher_tokens, b->d_features, b->branch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ry_free(al, all[i]);
}

void renyi_train_free(renyi_train *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_loader_free(t->loader);
    ry_optim_free(t->optim);
    ry_net_free(t->net);
    ry_teacher_free(t->teacher);
    renyi_model_free(t->teacher_model);
    renyi_dataset_free(t->data);
    renyi_dataset_free(t->val);
    free_buffers(&t->buffers, &al);
    ry_class_labels_free(&t->labels, &al);
    ry_log_file_close(&t->log);
    ry_run_folder_free(&t->folder, &al);
    ry_settings_free(&t->s, &al);
    ry_ranks_close(&t->ranks, &al);
    ry_free(&al, t);
}

const renyi_train_options *renyi_train_settings(const renyi_train *t) { return &t->s.opt; }

static uint64_t images_of(const renyi_dataset *d)
{
    renyi_dataset_info info = {0};
    if (d) renyi_dataset_get_info(d, &info);
    return info.n_images;
}

void renyi_train_get_info(const renyi_train *t, renyi_train_info *out)
{
    const ry_params *params = t->optim->params;
    const uint64_t steps = t->s.opt.steps, all = t->s.opt.epochs * t->steps_per_epoch;
    const size_t blocks = t->optim->ema ? 5 : 4; /* weights, gradients, two moments, running mean */
    *out = (renyi_train_info){.architecture = t->config.architecture,
                              .image_size = t->config.image_size,
                              .n_tokens = ry_net_patches(t->net) + t->config.n_prefix,
                              .n_classes = t->config.n_classes,
                              .n_photos = images_of(t->data),
                              .n_val = images_of(t->val),
                              .steps_per_epoch = t->steps_per_epoch,
                              .total_steps = steps && steps < all ? steps : all,
                              .first_step = t->first_step,
                              .bytes_activations = ry_net_activation_bytes(t->net),
                              .macs_forward = t->macs_forward,
                              .policy = t->policy_text};
    for (uint32_t i = 0; i < params->n; i++) {
        const ry_param *p = &params->list[i];
        if (p->is_model) out->n_params += p->size;
        if (!p->frozen) out->n_trained += p->size;
    }
    out->bytes_total = out->bytes_activations + blocks * params->total * sizeof(float) +
                       2 * out->n_params * sizeof(float); /* packed for forward and backward */
}

void renyi_train_get_result(const renyi_train *t, renyi_train_result *out)
{
    const ry_run_state *s = &t->state;
    *out = (renyi_train_result){.epochs = s->epoch,
                                .steps = s->step,
                                .train_loss = s->train_loss,
                                .val = s->val,
                                .ema = s->ema,
                                .best_top1 = s->best_top1,
                                .best_epoch = s->best_epoch,
                                .seconds = ry_train_seconds(t),
                                .is_complete = t->is_complete != 0};
}
