/* masks.h - does a metric keep the object? Photos with masks tell which patches show it; this
 * header says how well a metric ranks them above the background, and what a policy does to them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Life of a program:
 *   renyi_model_open -> renyi_dataset_open (unlabelled = 1) -> renyi_masks_new -> renyi_masks_run
 * -> results -> free.
 *
 * A mask goes through the geometry of its photo (resize, centre crop) exactly, as areas: nothing is
 * interpolated. Of each patch the areas of object, background and what is neither (a trimap's
 * border, padding) are measured. A patch is left out if less than half of its area is object or
 * background; otherwise it is an object's if at least half of that is object, else background's.
 * Photos without a patch of either kind are counted apart and in no mean; all other photos weigh
 * the same. Threads, memory and results are as in eval.h.
 */
#ifndef RENYI_MASKS_H
#define RENYI_MASKS_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct renyi_masks renyi_masks;

/* What the numbers of a mask mean. */
typedef enum renyi_mask_kind {
    RENYI_MASK_AUTO = 0,   /* by the numbers of each file: 1, 2, 3 alone are a trimap, 0 and at most
                              one other a binary mask, anything else an error */
    RENYI_MASK_TRIMAP = 1, /* Oxford Pets: 1 object, 2 background, 3 border; others are an error */
    RENYI_MASK_BINARY = 2  /* 0 background, all others object */
} renyi_mask_kind;

/* Strings and arrays are borrowed for the call. */
typedef struct renyi_masks_options {
    uint32_t struct_size;
    const char *folder; /* of the masks: for photo a/b.jpg the PNG a/b.png or else b.png, grey or
                           with a palette, of the photo's size */
    renyi_mask_kind kind;
    uint32_t border_is_object;   /* 1 = a trimap's border counts as object; 0 = as neither */
    double keep;                 /* rate at which kept patches are counted; 0 = 0.7 */
    uint32_t n_metrics;          /* 0 = renyi_masks_default_metrics */
    const char *const *metrics;  /* [n_metrics] what a policy says behind metric=: "col n=4" */
    uint32_t n_policies;         /* 0 = none */
    const char *const *policies; /* [n_policies] policy texts to follow cut by cut */
    uint32_t batch;              /* photos run together; 0 = 8 */
    uint32_t n_threads;          /* 0 = physical cores */
    uint32_t apply_exif;         /* 1 = turn each photo and each mask as its own EXIF says */
    const renyi_preprocess *preprocess; /* NULL = the model's; size must be the model's */
    renyi_limits limits;                /* of photos and masks */
    renyi_allocator allocator;
    void *user; /* first argument of the callbacks; each may be NULL */
    void (*on_failure)(void *user, const char *file, const char *message); /* photo skipped */
    renyi_progress progress; /* after every batch: photos done of all; with `user`. Non-zero stops:
                                renyi_masks_run returns RENYI_ERR_ABORTED, results so far hold */
} renyi_masks_options;

/* The metrics that are taken when none are named, for a model with or without a class token. */
RENYI_API const char *const *renyi_masks_default_metrics(int has_class_token, uint32_t *count);

/* Borrows m and d: both must outlive the study. On success *out is owned by the caller. */
RENYI_API RENYI_CHECK renyi_status renyi_masks_new(renyi_masks **out, const renyi_model *m,
                                                   const renyi_dataset *d,
                                                   const renyi_masks_options *opt,
                                                   renyi_error *err);
RENYI_API void renyi_masks_free(renyi_masks *s);

/* Run all photos; one dense pass serves all metrics. A photo that has no mask, or whose mask cannot
 * be read or does not fit it, is reported, counted and skipped. A second call starts again. */
RENYI_API RENYI_CHECK renyi_status renyi_masks_run(renyi_masks *s, renyi_error *err);

typedef struct renyi_masks_info {
    uint64_t images;             /* that all means are over */
    uint64_t one_sided;          /* masks that show no object, or no background, in any patch */
    uint64_t failed;             /* see renyi_masks_get_failure */
    uint64_t n_trimap, n_binary; /* kinds of the masks that were read */
    uint32_t n_blocks, n_metrics, n_policies, n_patches;
    uint32_t n_kept; /* patches that stay at `keep` */
    double keep;
    double object, background, left_out; /* patches of a photo, mean */
    double seconds;                      /* of renyi_masks_run */
} renyi_masks_info;
RENYI_API void renyi_masks_get_info(const renyi_masks *s, renyi_masks_info *out);

/* Borrowed until renyi_masks_free. A metric with every word that is not a default, a policy in
 * full.
 */
RENYI_API const char *renyi_masks_metric(const renyi_masks *s, uint32_t metric);
RENYI_API const char *renyi_masks_policy(const renyi_masks *s, uint32_t policy);

/* A mean over photos and its 95 % interval (Student's t). NaN without photos. */
typedef struct renyi_estimate {
    double mean;
    renyi_interval range;
} renyi_estimate;

/* A metric at a block of the unpruned model. */
typedef struct renyi_masks_ranking {
    renyi_estimate auc; /* how often a patch of the object outranks one of the background, ties
                           half: the area under the ROC curve */
    renyi_estimate kept_object, kept_background; /* share of each that stays at `keep` */
} renyi_masks_ranking;
RENYI_API void renyi_masks_get_ranking(const renyi_masks *s, uint32_t metric, uint32_t block,
                                       renyi_masks_ranking *out);

/* The area of metric b minus that of a, photo by photo. */
RENYI_API void renyi_masks_get_difference(const renyi_masks *s, uint32_t a, uint32_t b,
                                          uint32_t block, renyi_estimate *out);

/* What has become of patches: shares that sum to 1. */
typedef struct renyi_masks_fates {
    renyi_estimate alone;  /* still a token of its own */
    renyi_estimate merged; /* in a token with others, the one they joined too */
    renyi_estimate fused;  /* in a token that all leftovers of a cut went into */
    renyi_estimate dropped;
} renyi_masks_fates;

/* A policy after a block, counted in patches of the picture. */
typedef struct renyi_masks_survival {
    int is_cut; /* this block cuts; else all is as after the one before */
    renyi_masks_fates object, background;
} renyi_masks_survival;
RENYI_API void renyi_masks_get_survival(const renyi_masks *s, uint32_t policy, uint32_t block,
                                        renyi_masks_survival *out);

/* Photos that could not be used; strings are borrowed until renyi_masks_free. */
RENYI_API size_t renyi_masks_failure_count(const renyi_masks *s);
RENYI_API void renyi_masks_get_failure(const renyi_masks *s, size_t i, renyi_eval_failure *out);

#ifdef __cplusplus
}
#endif
#endif
