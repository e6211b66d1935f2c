/* train.h - trains Vision Transformers, with or without pruning, from scratch or from weights.
 *
 * Call order: renyi_train_defaults -> renyi_train_recipe, renyi_train_set -> renyi_train_new ->
 * renyi_train_run -> renyi_train_get_result -> renyi_train_free.
 *
 * Settings  Fields of renyi_train_options. Each also has a name, a text form and a line of help
 *           (renyi_train_get_setting). Unlike in other option structs, 0 means 0: start with
 *           renyi_train_defaults.
 * Files     A run has one folder: log.jsonl, checkpoint.safetensors, model.safetensors,
 *           model-ema.safetensors, best.safetensors (docs/TRAINING.md). Each file appears only when
 *           complete; a failure leaves the older file unchanged.
 * Results   Results depend only on settings and data: not on threads, workers or resuming. Times
 *           may differ.
 *
 * The rules of renyi.h and eval.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TRAIN_H
#define RENYI_TRAIN_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- progress of a run ----------------------------------------------------------------------- */

/* Structs that the callbacks of renyi_train_options get after every update and every epoch. */

typedef struct renyi_train_step {
    uint64_t epoch, step;            /* epoch from 0; updates done, this one included */
    uint64_t step_in_epoch, n_steps; /* updates of the epoch: done, all */
    uint64_t total_steps;            /* updates of the whole run */
    uint64_t samples;                /* samples of this update */
    double loss, lr, keep;           /* loss: mean over the samples; keep: share of tokens that a
                                        cut keeps */
    double grad_norm;                /* before clipping */
    double seconds, images_per_second;
    double loss_labels, loss_teacher; /* `loss` is their mean weighted by distill_alpha, */
    double loss_tokens;               /* plus this one, already weighted; 0 without a teacher */
} renyi_train_step;

/* Results on the `val` images, top-1 and top-5 in percent. NaN = not evaluated. */
typedef struct renyi_train_score {
    double loss, top1, top5;
} renyi_train_score;

#define RENYI_TRAIN_START UINT64_MAX /* the "epoch" before the first; -1 in the log */

typedef struct renyi_train_epoch {
    uint64_t epoch, step; /* the epoch that ended; updates so far */
    double train_loss, lr, keep;
    renyi_train_score val, ema;
    uint32_t is_best; /* 1 = best.safetensors was written now */
    double seconds;   /* training time since the start, without interruptions */
} renyi_train_epoch;

/* ---- settings -------------------------------------------------------------------------------- */

/* Call order: renyi_train_defaults -> renyi_train_recipe (optional) -> set fields, or
 * renyi_train_set by name -> renyi_train_new. */

typedef enum renyi_train_schedule {
    RENYI_SCHEDULE_STEP = 0,      /* the learning rate changes after every update */
    RENYI_SCHEDULE_EPOCH = 1,     /* once per epoch */
    RENYI_SCHEDULE_EPOCH_LATE = 2 /* once per epoch, by the previous epoch, as in DeiT and EViT:
                                     epochs 0 and 1 have the same rate */
} renyi_train_schedule;

typedef enum renyi_train_shape {
    RENYI_SHAPE_COSINE = 0,
    RENYI_SHAPE_LINEAR = 1,
    RENYI_SHAPE_CONSTANT = 2
} renyi_train_shape;

typedef enum renyi_train_distill {
    RENYI_DISTILL_SOFT = 0, /* KL divergence from the teacher's softened prediction */
    RENYI_DISTILL_HARD = 1  /* cross entropy with the teacher's best class */
} renyi_train_distill;

typedef enum renyi_train_features {
    RENYI_FEATURES_SMOOTH_L1 = 0, /* the teacher's tokens are normalized to mean 0 and deviation
                                     1 */
    RENYI_FEATURES_MSE = 1,       /* the same */
    RENYI_FEATURES_COSINE = 2     /* 1 - cosine */
} renyi_train_features;

/* How tokens between the blocks are compared. */
typedef enum renyi_train_mimic {
    RENYI_MIMIC_PROJECT = 0, /* through a LayerNorm and a projection that are trained too */
    RENYI_MIMIC_DIRECT = 1,  /* directly, in deviations of the teacher's tokens; needs the same
                                width */
    RENYI_MIMIC_FORCED = 2   /* as DIRECT, and every block starts from the teacher's tokens; also
                                needs the same depth, all layers and no cuts */
} renyi_train_mimic;

/* A renyi_crop_mode, or that of the model. */
typedef enum renyi_train_crop {
    RENYI_TRAIN_CROP_MODEL = 0,
    RENYI_TRAIN_CROP_CENTER = 1,
    RENYI_TRAIN_CROP_SQUASH = 2,
    RENYI_TRAIN_CROP_BORDER = 3
} renyi_train_crop;

typedef enum renyi_save_dtype { RENYI_SAVE_F32 = 0, RENYI_SAVE_F16 = 1 } renyi_save_dtype;

/* Texts are borrowed until renyi_train_new returns; NULL = not set. "auto" is 0 unless a comment
 * says otherwise. */
typedef struct renyi_train_options {
    uint32_t struct_size;
    uint32_t resume;    /* 1 = continue the run in `out`. Settings come from its checkpoint;
                           of those given with renyi_train_set only some may differ
                           (`may_change`). If the run was ended before its first checkpoint
                           it starts again with the settings given here */
    const char *out;    /* folder of the run; created if absent; must be empty unless resumed, or
                           of a run that was ended before its first checkpoint */
    const char *recipe; /* name of the last renyi_train_recipe; static */
    uint64_t given[2];  /* bit i = setting i was given with renyi_train_set */

    /* model: weights to start from, or an architecture with random weights */
    const char *model, *arch;
    uint64_t dim, depth, heads, mlp, patch; /* with arch; 0 = as its name says */
    uint64_t classes;                       /* 0 = the model's if they fit, else the number of
                                               folders */
    uint64_t image_size;                    /* 0 = that of the model */
    double mean[3], std[3];                 /* of pixel / 255; std 0 = those of the model */
    renyi_train_crop crop_mode;             /* for evaluation */
    double crop_pct;                        /* for evaluation; 0 = that of the model */
    const char *freeze;        /* parameters that are not trained: names or patterns with *,
                                  separated by commas */
    const char *freeze_layers; /* blocks that are not trained: "0-5,7" */

    /* data */
    const char *data, *val; /* paths for renyi_dataset_open; for DIR with subfolders DIR/train and
                               DIR/val */
    const char *class_map;
    uint32_t exif;             /* 1 = apply the EXIF orientation */
    uint64_t cache_mb;         /* MB of decoded images that are kept in memory; 0 = none */
    uint64_t limit, val_limit; /* number of images, drawn at random; 0 = all */

    /* length */
    uint64_t epochs;
    uint64_t steps;       /* stop after this many updates in total; 0 = at the end of the epochs */
    uint64_t batch;       /* samples per update */
    uint64_t micro_batch; /* samples per pass, a divisor of batch; 0 = about 1600 tokens */

    /* learning rate */
    double lr, min_lr, warmup_lr;
    double warmup_epochs;
    uint32_t warmup_prefix; /* 1 = the schedule starts after the warm-up */
    uint32_t lr_scale;      /* 1 = multiply lr by batch / 512; min_lr and warmup_lr are not
                               scaled */
    renyi_train_schedule schedule;
    renyi_train_shape shape;
    double layer_decay; /* factor of the rate from each block to the one before it; 1 = none */

    /* optimizer: AdamW */
    double weight_decay, betas[2], eps;
    double clip; /* largest norm of the gradient over all parameters; 0 = no limit */
    double ema;  /* decay of the moving average of the weights; 0 = none */

    /* regularization */
    double drop_path, smoothing;
    double mixup, cutmix; /* alpha of each; 0 = off */
    double mixup_prob, mixup_switch;

    /* augmentation */
    double crop_scale[2], crop_ratio[2]; /* range of the random resized crop */
    double flip;
    const char *randaugment; /* in timm's notation, "m9-mstd0.5-inc1"; NULL or "none" = off */
    double color_jitter;
    uint32_t three_augment; /* 1 = one of gray, solarize, blur (DeiT III) */
    double erasing;
    uint64_t repeats; /* of each image in an epoch; the length of an epoch stays the same */

    /* pruning */
    const char *prune;                    /* policy; NULL = none */
    uint64_t shrink_start, shrink_epochs; /* the keep rate is 1 before shrink_start, then decreases
                                             to the policy's */

    /* distillation */
    const char *teacher; /* path of a model; NULL = none */
    renyi_train_distill distill;
    double distill_alpha, distill_tau; /* weight in the loss; temperature */
    const char *teacher_classes;       /* "0,217,...": the teacher's class for each class; NULL = by
                                          the names of the image folders, or the same classes */
    double features_weight;            /* weight of the loss between tokens; 0 = none */
    renyi_train_features features;
    renyi_train_mimic mimic;     /* with features_layers */
    const char *features_layers; /* blocks after which tokens are compared: "0-11"; NULL = patch
                                    tokens after the final LayerNorm */
    renyi_dtype teacher_dtype;

    /* run */
    uint64_t seed;
    renyi_dtype dtype;
    uint64_t threads, workers;       /* 0 = as in renyi_session_options; 0 = chosen by the loader */
    uint32_t checkpoint_activations; /* 1 = store only the input of each block: slower, less
                                        memory */
    uint64_t eval_every;             /* in epochs; 0 = only at the end */
    uint32_t eval_start;             /* 1 = also before the first update, as epoch
                                        RENYI_TRAIN_START */
    uint64_t checkpoint_every;       /* in updates, in addition to the end of every epoch; 0 = only
                                        there */
    renyi_save_dtype save_dtype;     /* format of model files */

    /* not settings: resources and callbacks */
    renyi_cpu cpu;
    renyi_limits limits;
    renyi_allocator allocator;
    const renyi_ranks *ranks; /* several processes; NULL = one. Borrowed until renyi_train_free */
    void *user;               /* first argument of the callbacks; each may be NULL */
    /* Called after every update. Non-zero stops: a checkpoint is written, RENYI_ERR_ABORTED. */
    int (*on_step)(void *user, const renyi_train_step *step);
    void (*on_epoch)(void *user, const renyi_train_epoch *epoch);
    renyi_progress on_eval;                        /* images evaluated, all images; non-zero
                                                      stops */
    void (*on_note)(void *user, const char *text); /* a message for the user, one line */
} renyi_train_options;

/* Sets every field to its default. */
RENYI_API void renyi_train_defaults(renyi_train_options *opt);

/* Applies a recipe, except to settings that were given with renyi_train_set. RENYI_ERR_ARG lists
 * the names. */
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
    RENYI_SETTING_REAL = 2, /* `n` numbers separated by commas */
    RENYI_SETTING_FLAG = 3, /* "on" or "off" */
    RENYI_SETTING_CHOICE = 4
} renyi_setting_kind;

typedef struct renyi_train_setting {
    const char *name;  /* "batch-size" */
    const char *group; /* "length" */
    renyi_setting_kind kind;
    uint32_t n;           /* numbers in a REAL: 1, 2 or 3 */
    const char *argument; /* placeholder for help texts; the choices of a CHOICE: "soft|hard" */
    const char *help;
    const char *fallback; /* default value as text */
    uint32_t may_change;  /* 1 = may change when a run is resumed */
} renyi_train_setting;    /* static strings */
RENYI_API size_t renyi_train_setting_count(void);
RENYI_API void renyi_train_get_setting(size_t i, renyi_train_setting *out);

/* Sets a setting from text and marks it as given; "recipe" also applies the recipe. Texts are
 * borrowed. RENYI_ERR_ARG names the setting and what is allowed. */
RENYI_API RENYI_CHECK renyi_status renyi_train_set(renyi_train_options *opt, const char *name,
                                                   const char *text, renyi_error *err);
/* Writes setting i as text that renyi_train_set reads back; "" = not set. */
#define RENYI_SETTING_MAX 4096
RENYI_API void renyi_train_show(const renyi_train_options *opt, size_t i, char *out, size_t size);

/* ---- training -------------------------------------------------------------------------------- */

/* Call order: renyi_train_new -> renyi_train_get_info -> renyi_train_run -> renyi_train_get_result
 * -> renyi_train_free. */

typedef struct renyi_train renyi_train;

/* Opens model, data and teacher, checks every setting and creates the folder. With `resume` it
 * reads the checkpoint. On success *out is owned by the caller (renyi_train_free).
 *
 * With ranks, all ranks call renyi_train_new and renyi_train_run with the same settings. Each rank
 * runs a share of the micro-batches. Gradients are summed over all ranks, so every rank makes the
 * same update as one process would, up to rounding. Rank 0 writes the files. If one rank fails or
 * is stopped, all return an error; only RENYI_ERR_NOMEM of renyi_train_new may occur on a single
 * rank. */
RENYI_API RENYI_CHECK renyi_status renyi_train_new(renyi_train **out,
                                                   const renyi_train_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_train_free(renyi_train *t);

/* The settings in use: "auto" resolved, those of the checkpoint if resumed. Borrowed until
 * renyi_train_free. */
RENYI_API const renyi_train_options *renyi_train_settings(const renyi_train *t);

typedef struct renyi_train_info {
    const char *architecture; /* borrowed until renyi_train_free */
    uint32_t image_size, n_tokens, n_classes;
    uint64_t n_params, n_trained; /* all parameters; those that are trained */
    uint64_t n_photos, n_val;
    uint64_t steps_per_epoch, total_steps, first_step; /* first_step > 0 = resumed */
    uint64_t bytes_activations, bytes_total;           /* memory of one process, without images */
    double macs_forward;                               /* per image, at the policy's keep rate */
    const char *policy;                                /* with all defaults; "none" = no pruning */
} renyi_train_info;
RENYI_API void renyi_train_get_info(const renyi_train *t, renyi_train_info *out);

/* Trains until the end or until stopped. A loss of NaN or infinity is an error that names the
 * update; the checkpoint is then the last good one. */
RENYI_API RENYI_CHECK renyi_status renyi_train_run(renyi_train *t, renyi_error *err);

typedef struct renyi_train_result {
    uint64_t epochs, steps; /* total so far */
    double train_loss;      /* of the last complete epoch; NaN = none */
    renyi_train_score val, ema;
    double best_top1;    /* NaN = never evaluated */
    uint64_t best_epoch; /* from 0 */
    double seconds;
    uint32_t is_complete; /* 1 = nothing is left to do */
} renyi_train_result;
RENYI_API void renyi_train_get_result(const renyi_train *t, renyi_train_result *out);

/* ---- one training step ----------------------------------------------------------------------- */

/* For programs with their own training loop and data: a model, its gradients and AdamW. Call order:
 * renyi_learner_new -> renyi_learner_step (any number) -> renyi_learner_free. A batch runs in
 * micro-batches whose gradients are summed, so memory does not depend on the batch size. Results
 * are bit-identical for any number of threads. */

typedef struct renyi_learner renyi_learner;

/* Zero is the default of every field. */
typedef struct renyi_learner_options {
    uint32_t struct_size;
    uint32_t micro_batch; /* images per pass; 0 = about 1600 tokens */
    uint32_t n_threads;   /* 0 = as in renyi_session_options */
    uint32_t image_size;  /* 0 = the size the model was made for */
    renyi_dtype dtype;    /* format of products with weights: f32 (default) or bf16; everything else
                             is f32 */
    renyi_cpu cpu;
    uint32_t checkpoint_activations; /* 1 = store only the input of each block: slower, less
                                        memory */
    uint32_t reserved;
    const char *policy;  /* pruning policy of every pass; NULL = none */
    double weight_decay; /* for matrices; not for biases, LayerNorm, positions and class token */
    double clip;         /* largest norm of the gradient over all parameters; 0 = no limit */
    double smoothing;    /* label smoothing */
    renyi_allocator allocator;
} renyi_learner_options;

/* Reads the weights of `path` (as for renyi_model_open). The model needs a classifier. On success
 * *out is owned by the caller (renyi_learner_free). */
RENYI_API RENYI_CHECK renyi_status renyi_learner_new(renyi_learner **out, const char *path,
                                                     const renyi_learner_options *opt,
                                                     renyi_error *err);
RENYI_API void renyi_learner_free(renyi_learner *l);

typedef struct renyi_learner_info {
    uint32_t image_size, n_tokens, n_classes, micro_batch;
    uint64_t n_params;
    uint64_t bytes_activations;    /* activations kept for the backward pass, and scratch memory */
    uint64_t bytes_parameters;     /* weights (also packed), gradients and moments */
    double macs_forward;           /* per image, with cuts; a step has about three times as many */
    char policy[RENYI_POLICY_MAX]; /* with all defaults */
} renyi_learner_info;
RENYI_API void renyi_learner_get_info(const renyi_learner *l, renyi_learner_info *out);

/* Computes logits [n, n_classes] of the class token's head from normalized images chw [n, 3, S,
 * S]. */
RENYI_API RENYI_CHECK renyi_status renyi_learner_forward(renyi_learner *l, const float *chw,
                                                         uint32_t n, float *logits,
                                                         renyi_error *err);

/* Makes one update with the mean cross entropy of labels [n], each < n_classes. chw: [n, 3, S, S],
 * normalized. *loss (may be NULL) is the loss before the update. A distilled DeiT trains both
 * heads, by their mean. */
RENYI_API RENYI_CHECK renyi_status renyi_learner_step(renyi_learner *l, const float *chw,
                                                      const uint32_t *labels, uint32_t n, double lr,
                                                      double *loss, renyi_error *err);

/* ---- logs of training runs ------------------------------------------------------------------- */

/* Reads log.jsonl of a run of renyi_train, also of an interrupted or running one. Call order:
 * renyi_run_log_open -> renyi_run_log_get_info, renyi_run_log_get_curve -> renyi_run_log_free.
 * renyi_report_curves in report.h draws the curves. */

typedef struct renyi_run_log renyi_run_log; /* contents of a log; immutable */

typedef struct renyi_run_options {
    uint32_t struct_size;
    uint64_t max_bytes; /* size of one log; 0 = 1 GiB */
    uint64_t max_lines; /* steps and epochs of all stages; 0 = 4,194,304 */
    renyi_allocator allocator;
} renyi_run_options;

/* Opens a log. `path` is a folder with log.jsonl or a log file. "a+b" (each of them a path) is one
 * run in two stages, unless a file named "a+b" exists. Lines of steps that were repeated after a
 * resume replace the older ones. A truncated last line, lines that are not JSON and lines of other
 * kinds are skipped and counted. A log without steps and epochs is an error. opt may be NULL. On
 * success *out is owned by the caller (renyi_run_log_free). */
RENYI_API RENYI_CHECK renyi_status renyi_run_log_open(renyi_run_log **out, const char *path,
                                                      const renyi_run_options *opt,
                                                      renyi_error *err);
RENYI_API void renyi_run_log_free(renyi_run_log *r);

/* Unknown numbers are NaN, here and below. A line without steps or seconds has those of the line
 * before it. */
typedef struct renyi_run_info {
    const char *path;         /* as given */
    const char *policy;       /* policy of the training, "none" = no pruning; NULL = unknown */
    const char *model;        /* weights or architecture at the start; NULL = unknown */
    const char *architecture; /* of the model; NULL = unknown */
    uint64_t n_val;           /* images to evaluate on; 0 = unknown */
    uint32_t n_stages;
    uint64_t n_steps, n_epochs;    /* number of lines of each */
    uint64_t n_other, n_bad;       /* lines of other kinds; lines that are not JSON */
    uint64_t first_bad;            /* line number of the first bad line in its log; 0 = none */
    int is_cut;                    /* 1 = the last line is incomplete: interrupted, or being
                                      written */
    double epochs, steps, seconds; /* done, in all stages */
    double loss;                   /* training loss: mean of the last epoch or of its last steps */
    double val_loss, top1, top5;   /* last measured; percent */
    double top1_epoch;             /* epochs done when top1 was measured */
    double best_top1, best_epoch;  /* the highest, and the epochs done at that time */
    double images_per_second;      /* mean over the steps */
} renyi_run_info;                  /* pointers are borrowed until renyi_run_log_free */
RENYI_API void renyi_run_log_get_info(const renyi_run_log *r, renyi_run_info *out);

typedef enum renyi_run_quantity {
    RENYI_RUN_LOSS = 0,       /* training loss of every step */
    RENYI_RUN_EPOCH_LOSS = 1, /* training loss, mean of every epoch */
    RENYI_RUN_VAL_LOSS = 2,
    RENYI_RUN_TOP1 = 3,
    RENYI_RUN_TOP5 = 4,
    RENYI_RUN_LR = 5,
    RENYI_RUN_KEEP = 6,  /* share of tokens that a cut keeps */
    RENYI_RUN_SPEED = 7, /* images per second */
    RENYI_RUN_EMA_TOP1 = 8
} renyi_run_quantity;

typedef enum renyi_run_axis {
    RENYI_RUN_BY_EPOCH = 0, /* epochs done: 0.5 = middle of the first */
    RENYI_RUN_BY_STEP = 1,
    RENYI_RUN_BY_SECONDS = 2
} renyi_run_axis;

typedef struct renyi_run_curve {
    double *x, *y; /* [n] x never decreases; all numbers are finite */
    size_t n;
    renyi_allocator allocator; /* used by renyi_run_curve_free */
} renyi_run_curve;

/* Returns a quantity over time; n is 0 if nothing is known. smooth > 1: each value of a step is the
 * mean of the `smooth` values around it, fewer at both ends. If there are then more than `most`
 * values (0 = 1000), neighbors are averaged. Values of epochs are not smoothed. On success *out is
 * owned by the caller (renyi_run_curve_free). */
RENYI_API RENYI_CHECK renyi_status renyi_run_log_get_curve(renyi_run_curve *out,
                                                           const renyi_run_log *r,
                                                           renyi_run_quantity what,
                                                           renyi_run_axis axis, uint64_t smooth,
                                                           size_t most, renyi_error *err);
RENYI_API void renyi_run_curve_free(renyi_run_curve *c); /* an empty curve is allowed */

#ifdef __cplusplus
}
#endif
#endif
