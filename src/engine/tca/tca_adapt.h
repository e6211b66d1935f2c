/* tca_adapt.h - what stands behind a renyi_tca: the reservoir of pictures that were seen, the
 * anchors made of it, and what it says of a new one. A picture is known by its class tokens after
 * every block.
 *
 * In a run: a session's hook asks for anchors (tca_session.c) and hands in the class tokens, which
 * gather in a free slot; with the answer the slot goes to the reservoir (tca_reservoir.c) and the
 * logits are corrected (tca_correct.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TCA_ADAPT_H
#define RY_TCA_ADAPT_H

#include "model/common/hook.h"
#include "renyi/clip.h"

/* What a reservoir is for. L blocks, C wide. */
typedef struct ry_tca_shape {
    uint32_t n_classes, n_blocks, dim;
    uint64_t key; /* of classes and tower: states of another are refused */
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

    /* Slots: room for every item and for the picture at work. */
    uint32_t n_slots;      /* classes * size + 1 */
    uint32_t n_used, free; /* slots below n_used were used once; `free` is for the next picture */
    float *tokens;         /* [slots, L, C] class token after each block */
    float *mean;           /* [slots, C] their mean over the blocks, of length 1 */
    int16_t *rows;         /* [slots, n_layers * C] what likeness is measured by: tokens of length 1
                              times the root of the layer's weight, in steps of.. */
    float *step;           /* [slots] ..this */
    float *now;            /* [n_layers * C] the same of the picture at work, as floats */

    ry_tca_item *items;       /* [classes, size + 1] of each class, by entropy */
    uint32_t *counts;         /* [classes] */
    uint32_t n_seen, n_ready; /* classes with one, and with two items */

    double *layer_root; /* [L] square roots of the layer weights */
    uint32_t first;     /* layers before it weigh nothing: n_layers = L - first */

    int has_anchors;
    float *anchors; /* [L, classes, C] mean tokens of the items of each class */
    float *inverse; /* [L, classes] 1 / their lengths */

    uint64_t n_images, n_anchored, n_changed, first_anchored;

    /* The last run. */
    uint32_t max_batch, n_last;
    int is_anchored;           /* the picture at work has had an anchor */
    renyi_tca_answer *answers; /* [max_batch] */
    float *logits;             /* [max_batch, classes] */
};

/* opt: complete and checked. */
renyi_status ry_tca_create(renyi_tca **out, const ry_tca_shape *shape, const renyi_tca_options *opt,
                           const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* RENYI_ERR_ARG when it was made for another model. */
renyi_status ry_tca_check_model(const renyi_tca *t, const renyi_model *m,
                                renyi_error *err) RENYI_CHECK;

/* Room for the answers of a run. */
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

/* The picture in the free slot, which was taken for class c. Its tokens are there. */
void ry_tca_remember(renyi_tca *t, uint32_t c, float entropy);

/* After items of a file were put into place. */
void ry_tca_rebuild(renyi_tca *t);

/* The anchor most like a class token (cosine) after block `layer`, or NULL. */
const float *ry_tca_anchor(const renyi_tca *t, uint32_t layer, const float *token);

/* ---- tca_correct.c */

/* Weights of the layers, from opt.scale. */
void ry_tca_weigh_layers(renyi_tca *t);

/* mean and rows of a slot, from its tokens; and into t->now. */
void ry_tca_fill_slot(renyi_tca *t, uint32_t slot);

/* logits [classes] += lambda * sum over the items of each class of exp(-beta (1 - likeness)) of the
 * picture in t->now. */
void ry_tca_correct(const renyi_tca *t, float *logits, unsigned n_threads);

/* ---- tca_session.c */

/* A session's view: its hook stands between the plan and the policy's. */
typedef struct ry_tca_run {
    renyi_tca *tca; /* NULL: the session does not adapt */
    ry_token_hook inner, hook;
    unsigned n_threads;
} ry_tca_run;

/* The hook for the plan; inner: of the policy. */
const ry_token_hook *ry_tca_hook(ry_tca_run *r, const ry_token_hook *inner);

void ry_tca_begin(ry_tca_run *r); /* a run */
/* ry_vit_input.tap and .answered; user: the ry_tca_run. */
void ry_tca_tap(void *user, uint32_t block, const float *x, uint32_t n_tokens);
void ry_tca_answered(void *user, uint32_t image, float *logits);

/* ---- tca_state.c */

struct ry_tensors;
renyi_status ry_tca_read(renyi_tca *t, const struct ry_tensors *set, renyi_error *err) RENYI_CHECK;

#endif
