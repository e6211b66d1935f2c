/* trainer.c - bodies of train.h: making a run, questions about it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/trainer.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
                       "allocator has one of alloc and release; both or none wanted");
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
    if (!st) st = ry_train_open(t, opt, err);
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

static uint64_t photos_of(const renyi_dataset *d)
{
    renyi_dataset_info info = {0};
    if (d) renyi_dataset_get_info(d, &info);
    return info.n_images;
}

void renyi_train_get_info(const renyi_train *t, renyi_train_info *out)
{
    const ry_params *params = t->optim->params;
    const uint64_t steps = t->s.opt.steps, all = t->s.opt.epochs * t->steps_per_epoch;
    const size_t blocks = t->optim->ema ? 5 : 4; /* weights, gradients, two moments, mean */
    *out = (renyi_train_info){.architecture = t->config.architecture,
                              .image_size = t->config.image_size,
                              .n_tokens = ry_net_patches(t->net) + t->config.n_prefix,
                              .n_classes = t->config.n_classes,
                              .n_photos = photos_of(t->data),
                              .n_val = photos_of(t->val),
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
                       2 * out->n_params * sizeof(float); /* packed, both ways round */
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
