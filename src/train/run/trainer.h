/* trainer.h - struct renyi_train: the parts of a training run and its progress.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TRAINER_H
#define RY_TRAINER_H

#include "base/ranks.h"
#include "prune/policy/policy_spec.h"
#include "train/data/batch_loader.h"
#include "train/files/run_folder.h"
#include "train/files/run_state.h"
#include "train/net/net.h"
#include "train/run/optim.h"
#include "train/run/teacher.h"
#include "train/settings/schedule.h"
#include "train/settings/settings.h"

/* Names of the classes, each owned; NULL = none. */
typedef struct ry_class_labels {
    char **names; /* [n], or NULL = no names at all */
    uint32_t n;
} ry_class_labels;

/* Over the samples of an update: the loss that is minimized, and its parts. */
typedef struct ry_step_losses {
    double total;
    double labels, teacher; /* without weights */
    double tokens;          /* weighted */
} ry_step_losses;

/* One micro-batch's numbers, [micro_batch, ...]. */
typedef struct ry_step_buffers {
    float *logits, *logits_dist, *d, *d_dist; /* [n, classes]; _dist NULL without a second head */
    float *teacher;                           /* [n, classes] */
    float *teacher_tokens;                    /* [taps or 1, n, teacher's rows, its dim] */
    float *d_features; /* for each tap, of all rows that the student can have */
    float *branch;     /* [2 L, n] */
} ry_step_buffers;

struct renyi_train {
    renyi_allocator al;
    ry_settings_owned s; /* as used: "auto" resolved */
    renyi_cpu level;
    unsigned n_threads;
    ry_ranks ranks;  /* one rank when alone */
    int shares_eval; /* all ranks have the val images and read the same files as rank 0 */
    ry_run_folder folder;
    /* parts */
    ry_vit_config config;
    ry_class_labels labels;
    renyi_dataset *data, *val; /* val NULL = not evaluated */
    ry_net *net;
    ry_optim *optim;
    ry_loader *loader;
    renyi_model *teacher_model;
    ry_teacher *teacher;
    uint32_t taps[RY_MAX_BLOCKS]; /* [n_taps] blocks after which tokens are compared */
    uint32_t n_taps;
    ry_step_buffers buffers;
    ry_log_file log;
    /* pruning */
    ry_policy policy; /* checked; from the settings */
    ry_policy now;    /* with the current keep rates */
    int now_is_dense; /* no cut removes anything */
    double keep;      /* current rate of the first cut; 1 = all */
    char policy_text[RY_MAX_POLICY_TEXT];
    double macs_forward;
    /* progress */
    ry_lr_schedule lr;
    ry_run_state state;
    uint64_t steps_per_epoch, first_step;
    double started; /* ry_clock when this process started the run */
    double seconds_before;
    int is_complete;
};

static inline const renyi_train_options *ry_train_opt(const renyi_train *t) { return &t->s.opt; }

/* Sends a line to the on_note function of the caller. */
void ry_train_note(const renyi_train *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

double ry_train_seconds(const renyi_train *t);

/* ---- trainer_ranks.c: all of it collective, as in base/ranks.h ------------------------------- */

int ry_train_is_first(const renyi_train *t); /* the rank that writes files */
renyi_status ry_train_agree(renyi_train *t, renyi_status mine, renyi_error *err) RENYI_CHECK;
/* Every rank has the same settings, images, weights and CPU level, or an error that names what
 * differs. */
renyi_status ry_train_compare(renyi_train *t, renyi_error *err) RENYI_CHECK;
/* Gradients and *sums become the sums over all ranks. */
renyi_status ry_train_sum(renyi_train *t, ry_step_losses *sums, renyi_error *err) RENYI_CHECK;
/* *is_seen = 1: all ranks read the same bytes at `path`. */
renyi_status ry_train_same_file(renyi_train *t, const char *path, int *is_seen,
                                renyi_error *err) RENYI_CHECK;
/* *score becomes that of rank 0. */
renyi_status ry_train_share_score(renyi_train *t, renyi_train_score *score,
                                  renyi_error *err) RENYI_CHECK;

/* ---- trainer_model.c ------------------------------------------------------------------------- */

/* The model that training begins with: its configuration at the requested size, and the
 * open checkpoint if it has weights (source->tensors NULL = random weights). */
renyi_status ry_train_source(renyi_train *t, ry_checkpoint *source, renyi_error *err) RENYI_CHECK;
/* The net, its weights (those of `source`, or random), frozen parameters, optimizer, policy. */
renyi_status ry_train_net(renyi_train *t, const ry_checkpoint *source,
                          renyi_error *err) RENYI_CHECK;
renyi_status ry_train_teacher(renyi_train *t, renyi_error *err) RENYI_CHECK;

/* ---- trainer_data.c -------------------------------------------------------------------------- */

/* Training images, the number of classes, and their names. `model` (may be NULL): the file whose
 * classes are used if the images belong to them. */
renyi_status ry_train_data(renyi_train *t, const char *model, renyi_error *err) RENYI_CHECK;
/* Images to evaluate on, with the classes of the run's file `model`. */
renyi_status ry_train_val(renyi_train *t, const char *model, renyi_error *err) RENYI_CHECK;
renyi_status ry_train_loader(renyi_train *t, renyi_error *err) RENYI_CHECK;
void ry_class_labels_free(ry_class_labels *l, const renyi_allocator *al);

/* ---- trainer_step.c -------------------------------------------------------------------------- */

/* The position of the run; after the last update of an epoch, that of this update. */
ry_moment ry_train_moment(const renyi_train *t);
renyi_status ry_train_buffers(renyi_train *t, renyi_error *err) RENYI_CHECK;
/* Sets the current keep rates, and the net's cuts if they change. */
renyi_status ry_train_prune(renyi_train *t, renyi_error *err) RENYI_CHECK;
/* One update. On failure the parameters are as they were. */
renyi_status ry_train_step(renyi_train *t, renyi_train_step *out, renyi_error *err) RENYI_CHECK;

/* ---- trainer_files.c ------------------------------------------------------------------------- */

renyi_status ry_train_save_checkpoint(renyi_train *t, renyi_error *err) RENYI_CHECK;
renyi_status ry_train_save_models(renyi_train *t, renyi_error *err) RENYI_CHECK;
/* best.safetensors: the weights, or with ema = 1 their running mean. */
renyi_status ry_train_save_best(renyi_train *t, int ema, renyi_error *err) RENYI_CHECK;

renyi_status ry_train_log_config(renyi_train *t, renyi_error *err) RENYI_CHECK;
renyi_status ry_train_log_step(renyi_train *t, const renyi_train_step *s,
                               renyi_error *err) RENYI_CHECK;
renyi_status ry_train_log_epoch(renyi_train *t, const char *kind, const renyi_train_epoch *e,
                                renyi_error *err) RENYI_CHECK;

#endif
