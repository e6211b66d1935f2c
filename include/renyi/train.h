/* train.h - train a Vision Transformer, with pruned tokens if wanted, from scratch or from weights.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Life of a program:
 *   renyi_train_defaults -> renyi_train_recipe, renyi_train_set -> renyi_train_new
 *     -> renyi_train_run -> renyi_train_get_result -> renyi_train_free.
 *
 * Settings  are fields of renyi_train_options; each also has a name, a text and a line of help
 *           (renyi_train_get_setting), so that a program can show and read all of them. Unlike in
 *           the other option structs 0 means 0: begin with renyi_train_defaults.
 * Files     a run lives in one folder: log.jsonl, checkpoint.safetensors, model.safetensors,
 *           model-ema.safetensors, best.safetensors (docs/TRAINING.md). Each appears under its name
 *           only when it is complete; a failure leaves the older one as it was.
 * Results   depend on settings and data alone: not on threads or workers, not on whether a run was
 *           interrupted and resumed. Times do, of course.
 * The rest is as in renyi.h and eval.h.
 */
#ifndef RENYI_TRAIN_H
#define RENYI_TRAIN_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a run reports -------------------------------------------------------------------- */

typedef struct renyi_train_step {
    uint64_t epoch, step;            /* from 0; updates done, this one counted in */
    uint64_t step_in_epoch, n_steps; /* of the epoch, this one counted in */
    uint64_t total_steps;            /* of the whole run */
    uint64_t samples;                /* of this update */
    double loss, lr, keep;           /* mean over the samples; share of tokens that a cut keeps */
    double grad_norm;                /* before clipping */
    double seconds, images_per_second;
    double loss_labels, loss_teacher; /* of which `loss` is the mean by distill_alpha, */
    double loss_tokens;               /* plus this, already weighted; 0 without a teacher */
} renyi_train_step;

/* Answers on the photos of `val`; top-1 and top-5 in per cent. NaN: not evaluated. */
typedef struct renyi_train_score {
    double loss, top1, top5;
} renyi_train_score;

#define RENYI_TRAIN_START UINT64_MAX /* the "epoch" before the first; -1 in the log */

typedef struct renyi_train_epoch {
    uint64_t epoch, step; /* that ended; updates so far */
    double train_loss, lr, keep;
    renyi_train_score val, ema;
    uint32_t is_best; /* 1 = best.safetensors is from now */
    double seconds;   /* since the run began, without the time between its parts */
} renyi_train_epoch;

/* ---- settings ------------------------------------------------------------------------------ */

typedef enum renyi_train_schedule {
    RENYI_SCHEDULE_STEP = 0,      /* the learning rate changes with every update */
    RENYI_SCHEDULE_EPOCH = 1,     /* once an epoch */
    RENYI_SCHEDULE_EPOCH_LATE = 2 /* once an epoch, by the epoch before, as DeiT and EViT do: epochs
                                     0 and 1 have the same */
} renyi_train_schedule;

typedef enum renyi_train_shape {
    RENYI_SHAPE_COSINE = 0,
    RENYI_SHAPE_LINEAR = 1,
    RENYI_SHAPE_CONSTANT = 2
} renyi_train_shape;

typedef enum renyi_train_distill {
    RENYI_DISTILL_SOFT = 0, /* KL divergence from the teacher's softened answer */
    RENYI_DISTILL_HARD = 1  /* cross entropy at the teacher's best class */
} renyi_train_distill;

typedef enum renyi_train_features {
    RENYI_FEATURES_SMOOTH_L1 = 0, /* teacher's tokens have mean 0 and deviation 1 */
    RENYI_FEATURES_MSE = 1,       /* likewise */
    RENYI_FEATURES_COSINE = 2     /* 1 - cosine */
} renyi_train_features;

typedef enum renyi_train_mimic { /* how tokens between the blocks are compared */
                                 RENYI_MIMIC_PROJECT = 0, /* through a LayerNorm and a projection
                                                             that learn beside the model */
                                 RENYI_MIMIC_DIRECT = 1,  /* as they are, in deviations of the
                                                             teacher's; needs its width */
                                 RENYI_MIMIC_FORCED =
                                     2 /* likewise, and every block begins with the teacher's
                                          tokens, so that it learns by itself; needs its depth too,
                                          all layers and no cuts */
} renyi_train_mimic;

typedef enum renyi_train_crop { /* renyi_crop_mode, or what the model says */
                                RENYI_TRAIN_CROP_MODEL = 0,
                                RENYI_TRAIN_CROP_CENTER = 1,
                                RENYI_TRAIN_CROP_SQUASH = 2,
                                RENYI_TRAIN_CROP_BORDER = 3
} renyi_train_crop;

typedef enum renyi_save_dtype { RENYI_SAVE_F32 = 0, RENYI_SAVE_F16 = 1 } renyi_save_dtype;

/* Texts are borrowed until renyi_train_new returns; NULL = not said. "auto" is 0, or what the
 * comment says. */
typedef struct renyi_train_options {
    uint32_t struct_size;
    uint32_t
        resume;         /* 1 = go on with the run in `out`: settings come from its checkpoint, and
                           of those given with renyi_train_set only some may be others (`may_change`) */
    const char *out;    /* folder of the run; made if absent, and empty unless resumed */
    const char *recipe; /* name of the last renyi_train_recipe; static */
    uint64_t given[2];  /* bit i: setting i was given with renyi_train_set */

    /* model: weights to begin with, or an architecture to begin at random */
    const char *model, *arch;
    uint64_t dim, depth, heads, mlp, patch; /* with arch; 0 = as its name says */
    uint64_t classes;                       /* 0 = the model's where they fit, else the folders */
    uint64_t image_size;                    /* 0 = the model's */
    double mean[3], std[3];                 /* of pixel / 255; std 0 = the model's */
    renyi_train_crop crop_mode;             /* of photos that are evaluated */
    double crop_pct;                        /* likewise; 0 = the model's */
    const char *freeze;        /* parameters that stay: names or patterns with *, by commas */
    const char *freeze_layers; /* blocks that stay: "0-5,7" */

    /* data */
    const char *data, *val; /* as renyi_dataset_open takes them; DIR/train and DIR/val of DIR */
    const char *class_map;
    uint32_t exif;             /* 1 = turn photos as their EXIF orientation says */
    uint64_t cache_mb;         /* of decoded photos that are kept; 0 = none */
    uint64_t limit, val_limit; /* photos, drawn at random; 0 = all */

    /* length */
    uint64_t epochs;
    uint64_t steps;       /* stop after so many updates in all; 0 = at the end of the epochs */
    uint64_t batch;       /* samples of an update */
    uint64_t micro_batch; /* of them at a time; 0 = about 1600 tokens, a divisor of batch */

    /* learning rate */
    double lr, min_lr, warmup_lr;
    double warmup_epochs;
    uint32_t warmup_prefix; /* 1 = the shape begins after the warm-up */
    uint32_t lr_scale;      /* 1 = lr times batch / 512; the other two are not scaled */
    renyi_train_schedule schedule;
    renyi_train_shape shape;
    double layer_decay; /* factor of the rate from each block to the one before; 1 = none */

    /* optimiser: AdamW */
    double weight_decay, betas[2], eps;
    double clip; /* of the gradient's length over all parameters; 0 = none */
    double ema;  /* decay of the average of the weights; 0 = none */

    /* regularisation */
    double drop_path, smoothing;
    double mixup, cutmix; /* their alpha; 0 = off */
    double mixup_prob, mixup_switch;

    /* augmentation */
    double crop_scale[2], crop_ratio[2]; /* of the random resized crop */
    double flip;
    const char *randaugment; /* timm's words, "m9-mstd0.5-inc1"; NULL or "none" = off */
    double color_jitter;
    uint32_t three_augment; /* 1 = one of grey, solarize, blur (DeiT III) */
    double erasing;
    uint64_t repeats; /* of each photo in an epoch; the epoch stays as long */

    /* pruning */
    const char *prune;                    /* policy; NULL = none */
    uint64_t shrink_start, shrink_epochs; /* keep rate: 1 before, then down to the policy's */

    /* distillation */
    const char *teacher; /* model; NULL = none */
    renyi_train_distill distill;
    double distill_alpha, distill_tau; /* share of the loss; temperature */
    const char *teacher_classes;       /* "0,217,...": its class for each of ours; NULL = by the
                                          names of the photos' folders, or the same */
    double features_weight;            /* of the loss between tokens; 0 = none */
    renyi_train_features features;
    renyi_train_mimic mimic;     /* with features_layers */
    const char *features_layers; /* blocks after which tokens are compared: "0-11"; NULL = patch
                                    tokens after the final LayerNorm */
    renyi_dtype teacher_dtype;

    /* run */
    uint64_t seed;
    renyi_dtype dtype;
    uint64_t threads, workers;       /* 0 = physical cores; 0 = the loader's choice */
    uint32_t checkpoint_activations; /* 1 = keep only what enters a block; slower, less memory */
    uint64_t eval_every;             /* epochs; 0 = only at the end */
    uint32_t eval_start;             /* 1 = before the first update too: epoch RENYI_TRAIN_START */
    uint64_t checkpoint_every;   /* updates; besides, at the end of every epoch. 0 = only then */
    renyi_save_dtype save_dtype; /* of model files */

    /* not settings */
    renyi_cpu cpu;
    renyi_limits limits;
    renyi_allocator allocator;
    const renyi_ranks *ranks; /* borrowed until renyi_train_free; NULL = alone */
    void *user;               /* first argument of the callbacks; each may be NULL */
    /* After every update; non-zero stops: a checkpoint is written, RENYI_ERR_ABORTED. */
    int (*on_step)(void *user, const renyi_train_step *step);
    void (*on_epoch)(void *user, const renyi_train_epoch *epoch);
    renyi_progress on_eval;                        /* photos evaluated of all; non-zero stops */
    void (*on_note)(void *user, const char *text); /* what the user should know, one line */
} renyi_train_options;

/* Every field gets its default. */
RENYI_API void renyi_train_defaults(renyi_train_options *opt);

/* A recipe's settings on top of what is there, but for those that were given with renyi_train_set.
 * RENYI_ERR_ARG lists the names. */
RENYI_API RENYI_CHECK renyi_status renyi_train_recipe(renyi_train_options *opt, const char *name,
                                                      renyi_error *err);
typedef struct renyi_recipe {
    const char *name, *about;
    const char *const *settings; /* name, text, name, text, ..., NULL */
} renyi_recipe;                  /* static strings */
RENYI_API size_t renyi_recipe_count(void);
RENYI_API void renyi_recipe_get(size_t i, renyi_recipe *out);

typedef enum renyi_setting_kind {
    RENYI_SETTING_TEXT = 0,
    RENYI_SETTING_COUNT = 1,
    RENYI_SETTING_REAL = 2, /* `n` numbers, by commas */
    RENYI_SETTING_FLAG = 3, /* "on" or "off" */
    RENYI_SETTING_CHOICE = 4
} renyi_setting_kind;

typedef struct renyi_train_setting {
    const char *name;  /* "batch-size" */
    const char *group; /* "length" */
    renyi_setting_kind kind;
    uint32_t n;           /* numbers of a REAL: 1, 2 or 3 */
    const char *argument; /* its name in a help page; the words of a CHOICE: "soft|hard" */
    const char *help;
    const char *fallback; /* its default, as text */
    uint32_t may_change;  /* when a run is resumed */
} renyi_train_setting;    /* static strings */
RENYI_API size_t renyi_train_setting_count(void);
RENYI_API void renyi_train_get_setting(size_t i, renyi_train_setting *out);

/* Read a setting from text and mark it as given; "recipe" also applies it. Texts are borrowed.
 * RENYI_ERR_ARG names the setting and what is allowed. */
RENYI_API RENYI_CHECK renyi_status renyi_train_set(renyi_train_options *opt, const char *name,
                                                   const char *text, renyi_error *err);
/* Setting i as the text that renyi_train_set reads back; "" for a text that was not said. */
#define RENYI_SETTING_MAX 4096
RENYI_API void renyi_train_show(const renyi_train_options *opt, size_t i, char *out, size_t room);

/* ---- training ------------------------------------------------------------------------------ */

typedef struct renyi_train renyi_train;

/* With ranks, all of them call renyi_train_new and renyi_train_run with the same settings. Each
 * runs its share of the micro-batches; gradients are added up over all, so that all make the update
 * that one process would make, to rounding. Files are written by rank 0. When one rank fails or is
 * stopped, all return an error; only RENYI_ERR_NOMEM of renyi_train_new may be one rank's own.
 *
 * Opens model, data and teacher, checks every setting, makes the folder. With `resume` reads the
 * checkpoint. On success *out is owned by the caller (renyi_train_free). */
RENYI_API RENYI_CHECK renyi_status renyi_train_new(renyi_train **out,
                                                   const renyi_train_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_train_free(renyi_train *t);

/* The settings as they are used: "auto" resolved, those of the checkpoint when resumed. Texts are
 * borrowed until renyi_train_free. */
RENYI_API const renyi_train_options *renyi_train_settings(const renyi_train *t);

typedef struct renyi_train_info {
    const char *architecture; /* borrowed until renyi_train_free */
    uint32_t image_size, n_tokens, n_classes;
    uint64_t n_params, n_trained; /* numbers; those that are not frozen */
    uint64_t n_photos, n_val;
    uint64_t steps_per_epoch, total_steps, first_step; /* first_step > 0: resumed */
    uint64_t bytes_activations, bytes_total;           /* of one process, photos left out */
    double macs_forward;                               /* of one image, at the policy's keep rate */
    const char *policy;                                /* in full; "none" */
} renyi_train_info;
RENYI_API void renyi_train_get_info(const renyi_train *t, renyi_train_info *out);

/* Until the end of the settings' length, or until stopped. NaN or infinity in the loss is an error
 * that names the update; the checkpoint is then the last good one. */
RENYI_API RENYI_CHECK renyi_status renyi_train_run(renyi_train *t, renyi_error *err);

typedef struct renyi_train_result {
    uint64_t epochs, steps; /* done in all */
    double train_loss;      /* of the last whole epoch; NaN = none */
    renyi_train_score val, ema;
    double best_top1; /* NaN = never evaluated */
    uint64_t best_epoch;
    double seconds;
    uint32_t is_complete; /* nothing is left to do */
} renyi_train_result;
RENYI_API void renyi_train_get_result(const renyi_train *t, renyi_train_result *out);

/* ---- one training step ----------------------------------------------------------------------- */

/* the training step alone, for programs with a loop and pictures of their own: a model,
 * its gradients, AdamW. Whole runs are train.h's.
 * *
 *   renyi_learner_new -> renyi_learner_step x many -> renyi_learner_free
 *
 * A batch goes through the model in micro-batches whose gradients add up, so that memory does not
 * depend on its size. The same bits for any number of threads. The rest is as in renyi.h. */

typedef struct renyi_learner renyi_learner;

/* Zero is the default of every field. */
typedef struct renyi_learner_options {
    uint32_t struct_size;
    uint32_t micro_batch; /* pictures at a time; 0 = about 1600 tokens */
    uint32_t n_threads;   /* 0 = physical cores */
    uint32_t image_size;  /* 0 = what the model was made for */
    renyi_dtype dtype;    /* of products with weights: f32 (the default) or bf16; all else is f32 */
    renyi_cpu cpu;
    uint32_t checkpoint_activations; /* 1 = keep only what enters a block: slower, less memory */
    uint32_t reserved;
    const char *policy;  /* cuts of every pass; NULL = none */
    double weight_decay; /* of matrices; not of biases, LayerNorm, positions and class token */
    double clip;         /* of the gradient's length over all parameters; 0 = none */
    double smoothing;    /* of labels */
    renyi_allocator allocator;
} renyi_learner_options;

/* Reads the weights of `path` (a file or folder as renyi_model_open takes it); it needs a
 * classifier head. */
RENYI_API RENYI_CHECK renyi_status renyi_learner_new(renyi_learner **out, const char *path,
                                                     const renyi_learner_options *opt,
                                                     renyi_error *err);
RENYI_API void renyi_learner_free(renyi_learner *l);

typedef struct renyi_learner_info {
    uint32_t image_size, n_tokens, n_classes, micro_batch;
    uint64_t n_params;
    uint64_t bytes_activations; /* saved between the passes, and their scratch */
    uint64_t bytes_parameters;  /* weights, packed too, gradients and moments */
    double macs_forward; /* of one picture, cuts counted; a step has about three times these */
    char policy[RENYI_POLICY_MAX]; /* in full */
} renyi_learner_info;
RENYI_API void renyi_learner_get_info(const renyi_learner *l, renyi_learner_info *out);

/* Answers: chw [n, 3, S, S] normalised -> logits [n, classes] of the class token's head. */
RENYI_API RENYI_CHECK renyi_status renyi_learner_forward(renyi_learner *l, const float *chw,
                                                         uint32_t n, float *logits,
                                                         renyi_error *err);

/* One update by the mean cross entropy with `labels` [n] < classes, which goes to *loss (may be
 * NULL) as it was before the update. A distilled DeiT learns in both heads, by their mean. */
RENYI_API RENYI_CHECK renyi_status renyi_learner_step(renyi_learner *l, const float *chw,
                                                      const uint32_t *labels, uint32_t n, double lr,
                                                      double *loss, renyi_error *err);

/* ---- logs of training runs ------------------------------------------------------------------- */

/* what training runs wrote into their logs: numbers and curves.
 * *
 * A run is a folder of renyi_train with its log.jsonl. The log of a run that was interrupted, or is
 * still going on, can be read too. For charts see renyi_report_curves in report.h.
 * The rest is as in renyi.h. */

typedef struct renyi_run_log renyi_run_log; /* a log that was read; immutable */

typedef struct renyi_run_options {
    uint32_t struct_size;
    uint64_t max_bytes; /* of one log; 0 = 1 GiB */
    uint64_t max_lines; /* steps and epochs of all its stages; 0 = 4,194,304 */
    renyi_allocator allocator;
} renyi_run_options;

/* `path` is a folder with log.jsonl or a log; "a+b" (each as before) is one run in two stages, the
 * second after the first, unless "a+b" itself exists. Lines of steps that were done again after a
 * resume replace the older ones. A line that was cut short at the end, lines that are no JSON and
 * lines of other kinds are passed over and counted; no step and no epoch at all is an error.
 * opt may be NULL. On success *out is owned by the caller (renyi_run_log_free). */
RENYI_API RENYI_CHECK renyi_status renyi_run_log_open(renyi_run_log **out, const char *path,
                                                      const renyi_run_options *opt,
                                                      renyi_error *err);
RENYI_API void renyi_run_log_free(renyi_run_log *r);

/* What is not known is NaN, for every number here and below. Lines without a number of steps or
 * seconds have those of the line before. */
typedef struct renyi_run_info {
    const char *path;   /* as given */
    const char *policy; /* that it was trained with, "none" for dense; NULL = unknown */
    const char *model;  /* weights or architecture that it began with; NULL = unknown */
    uint32_t n_stages;
    uint64_t n_steps, n_epochs;    /* lines of each */
    uint64_t n_other, n_bad;       /* lines of other kinds; lines that are no JSON */
    uint64_t first_bad;            /* number of the first of them in its log; 0 = none */
    int is_cut;                    /* the last line is not whole: interrupted, or being written */
    double epochs, steps, seconds; /* done; of all stages */
    double loss;                   /* of training: mean of the last epoch, or of its last steps */
    double val_loss, top1, top5;   /* last that were measured; per cent */
    double best_top1, best_epoch;  /* highest, and the epochs that were done then */
    double images_per_second;      /* mean of the steps */
} renyi_run_info;                  /* pointers are borrowed until renyi_run_log_free */
RENYI_API void renyi_run_log_get_info(const renyi_run_log *r, renyi_run_info *out);

typedef enum renyi_run_quantity {
    RENYI_RUN_LOSS = 0,       /* of every step */
    RENYI_RUN_EPOCH_LOSS = 1, /* of training, mean of every epoch */
    RENYI_RUN_VAL_LOSS = 2,
    RENYI_RUN_TOP1 = 3,
    RENYI_RUN_TOP5 = 4,
    RENYI_RUN_LR = 5,
    RENYI_RUN_KEEP = 6,  /* share of tokens that a cut keeps */
    RENYI_RUN_SPEED = 7, /* images per second */
    RENYI_RUN_EMA_TOP1 = 8
} renyi_run_quantity;

typedef enum renyi_run_axis {
    RENYI_RUN_BY_EPOCH = 0, /* epochs done: 0.5 is in the middle of the first */
    RENYI_RUN_BY_STEP = 1,
    RENYI_RUN_BY_SECONDS = 2
} renyi_run_axis;

typedef struct renyi_run_curve {
    double *x, *y; /* [n] x never falls; only finite numbers */
    size_t n;
    renyi_allocator allocator; /* that made it; for renyi_run_curve_free */
} renyi_run_curve;

/* A quantity over time; n is 0 where nothing is known of it. With smooth > 1 every value of a step
 * is the mean of the `smooth` values around it, fewer at both ends. Then, if there are more than
 * `most` (0 = 1000), neighbours are averaged. Values of epochs are not smoothed. On success *out is
 * owned by the caller (renyi_run_curve_free). */
RENYI_API RENYI_CHECK renyi_status renyi_run_log_get_curve(renyi_run_curve *out,
                                                           const renyi_run_log *r,
                                                           renyi_run_quantity what,
                                                           renyi_run_axis axis, uint64_t smooth,
                                                           size_t most, renyi_error *err);
RENYI_API void renyi_run_curve_free(renyi_run_curve *c); /* an empty one is fine */

#ifdef __cplusplus
}
#endif
#endif
