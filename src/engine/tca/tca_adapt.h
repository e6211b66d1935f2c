/* tca_adapt.h - the struct behind a renyi_tca: a reservoir of images that were seen, and the
 * anchors made from it. An image is represented by its class tokens after every block.
 *
 * In a run the session's hook asks for anchors and copies the class tokens into a free slot
 * (tca_adapt.c). When the answer is known, the slot goes to the reservoir and the logits are
 * corrected (tca_reservoir.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TCA_ADAPT_H
#define RY_TCA_ADAPT_H

#include "model/common/hook.h"
#include "renyi/clip.h"

/* The model that a reservoir is for: L blocks of width C. */
typedef struct ry_tca_shape {
    uint32_t n_classes, n_blocks, dim;
    uint64_t key; /* hash of classes and tower: states of another model are refused */
} ry_tca_shape;

typedef struct ry_tca_item {
    uint32_t slot;
    float entropy; /* of its answer, in nats */
} ry_tca_item;

struct renyi_tca {
    renyi_allocator al;
    ry_tca_shape shape;
    renyi_tca_options opt; /* complete */
    size_t bytes;

    /* Slots: one for every item, and one for the current image. */
    uint32_t n_slots;      /* classes * size + 1 */
    uint32_t n_used, free; /* slots below n_used have been used; `free` is for the next image */
    float *tokens;         /* [slots, L, C] class token after each block */
    float *mean;           /* [slots, C] their mean over the blocks, of length 1 */
    int16_t *rows; /* [slots, n_layers * C] similarity rows: tokens scaled to the root of the
                      layer's weight, as multiples of step */
    float *step;   /* [slots] */
    float *now;    /* [n_layers * C] the similarity row of the current image, as floats */

    ry_tca_item *items;       /* [classes, size + 1] of each class, by entropy */
    uint32_t *counts;         /* [classes] */
    uint32_t n_seen, n_ready; /* classes with one, and with two items */

    double *layer_root; /* [L] square roots of the layer weights */
    uint32_t first;     /* layers before it have no weight: n_layers = L - first */

    int has_anchors;
    float *anchors; /* [L, classes, C] mean tokens of the items of each class */
    float *inverse; /* [L, classes] 1 / their lengths */

    uint64_t n_images, n_anchored, n_changed, first_anchored;

    /* The last run. */
    uint32_t max_batch, n_last;
    int is_anchored;           /* the current image has had an anchor */
    renyi_tca_answer *answers; /* [max_batch] */
    float *logits;             /* [max_batch, classes] */
};

/* opt: complete and checked. */
renyi_status ry_tca_create(renyi_tca **out, const ry_tca_shape *shape, const renyi_tca_options *opt,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* RENYI_ERR_ARG if the state was made for another model. */
renyi_status ry_tca_check_model(const renyi_tca *t, const renyi_model *m,
                                renyi_error *err) RENYI_CHECK;

/* Takes memory for the answers of a run. */
renyi_status ry_tca_reserve(renyi_tca *t, uint32_t max_batch, renyi_error *err) RENYI_CHECK;

static inline uint32_t ry_tca_layers(const renyi_tca *t) { return t->shape.n_blocks - t->first; }

static inline float *ry_tca_tokens(const renyi_tca *t, uint32_t slot)
{
    return t->tokens + (size_t)slot * t->shape.n_blocks * t->shape.dim;
}

static inline ry_tca_item *ry_tca_items(const renyi_tca *t, uint32_t c)
{
    return t->items + (size_t)c * (t->opt.size + 1);
}

/* ---- tca_reservoir.c */

/* Layer weights from opt.scale. */
void ry_tca_weigh_layers(renyi_tca *t);

/* Computes mean and rows of a slot from its tokens; its row as floats stays in t->now. */
void ry_tca_fill_slot(renyi_tca *t, uint32_t slot);

/* Offers the image in the free slot, answered with class c, to the reservoir. */
void ry_tca_remember(renyi_tca *t, uint32_t c, float entropy);

/* Computes everything that is not stored, after the items were read from a file. */
void ry_tca_rebuild(renyi_tca *t);

/* The anchor with the largest cosine to a class token after block `layer`, or NULL. */
const float *ry_tca_anchor(const renyi_tca *t, uint32_t layer, const float *token);

/* logits [classes] += lambda * sum over the items of each class of exp(-beta (1 - similarity)) with
 * the image in t->now. */
void ry_tca_correct(const renyi_tca *t, float *logits, unsigned n_threads);

/* ---- a session that adapts, tca_adapt.c */

/* Its hook is between the plan and the policy's hook. */
typedef struct ry_tca_run {
    renyi_tca *tca; /* NULL: the session does not adapt */
    ry_token_hook inner, hook;
    unsigned n_threads;
} ry_tca_run;

/* The hook for the plan; inner: the policy's. */
const ry_token_hook *ry_tca_hook(ry_tca_run *r, const ry_token_hook *inner);

/* Before a run; during it, as ry_vit_input.tap and .answered. user: the ry_tca_run */
void ry_tca_begin(ry_tca_run *r);
void ry_tca_tap(void *user, uint32_t block, const float *x, uint32_t n_tokens);
void ry_tca_answered(void *user, uint32_t image, float *logits);

/* ---- tca_state.c */

/* The state from an open file; nothing changes if it is not valid. */
struct ry_tensors;
renyi_status ry_tca_read(renyi_tca *t, const struct ry_tensors *set, renyi_error *err) RENYI_CHECK;

#endif
