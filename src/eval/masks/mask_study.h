/* mask_study.h - the struct behind renyi_masks: sessions, sums over images, buffers of a batch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MASK_STUDY_H
#define RY_MASK_STUDY_H

#include "engine/viz/scores.h"
#include "eval/data/text_lines.h"
#include "eval/masks/mask.h"
#include "eval/run/pipeline.h"
#include "eval/run/stats.h"

/* An image of the current batch; any thread may fill it. */
typedef struct ry_mask_item {
    size_t index;    /* in the dataset */
    uint8_t *pixels; /* [size, size, 3] */
    uint8_t *sides;  /* [patches] ry_side */
    uint32_t n_object, n_background;
    renyi_mask_kind kind;
    renyi_error err; /* code RENYI_OK: usable */
} ry_mask_item;

/* At one block: the kept shares of a metric, or the fates of a policy, over all images. */
typedef struct ry_mask_kept {
    ry_moments object, background;
} ry_mask_kept;

typedef struct ry_mask_fates {
    ry_moments object[RY_FATES], background[RY_FATES];
    int is_cut;
} ry_mask_fates;

typedef struct ry_mask_policy {
    renyi_session *session;
    ry_mask_fates *blocks; /* [n_blocks] */
} ry_mask_policy;

struct renyi_masks {
    renyi_allocator al;
    renyi_masks_options o;     /* defaults filled in; its pointers are not used after _new */
    const renyi_dataset *data; /* borrowed */
    char *folder;
    size_t n_images; /* of the dataset */
    uint32_t n_prefix, n_outputs;
    renyi_masks_info info;
    ry_image_spec image;
    ry_mask_spec mask;
    int normalize; /* mean or std differ from the model's */
    ry_scores *scores;
    ry_mask_policy *policies; /* [n_policies] */
    double *auc;              /* [n_images, n_metrics, n_blocks], the first info.images filled */
    ry_mask_kept *kept;       /* [n_metrics, n_blocks] */
    ry_moments patches[3];    /* per image, by ry_side */
    /* One batch. */
    ry_mask_item *items; /* [batch] */
    uint8_t *pixels;     /* [batch, size, size, 3] */
    uint8_t *sides;      /* [batch, patches] */
    float *chw;          /* [batch, 3, size, size], only with `normalize` */
    float *logits;       /* [batch, n_outputs]; not used further */
    /* Scratch of one image. */
    uint32_t *order, *rows, *members; /* [tokens] */
    uint64_t *radix;                  /* [2 tokens] */
    uint8_t *fate;                    /* [patches] */
    ry_pool pool;                     /* messages of failures */
    renyi_eval_failure *failures;
    size_t n_failures, failure_capacity;
};

static inline double *ry_mask_auc(const renyi_masks *s, size_t image, uint32_t metric)
{
    return s->auc + (image * s->info.n_metrics + metric) * s->info.n_blocks;
}

static inline ry_mask_kept *ry_mask_kept_at(const renyi_masks *s, uint32_t metric, uint32_t block)
{
    return &s->kept[metric * s->info.n_blocks + block];
}

#endif
