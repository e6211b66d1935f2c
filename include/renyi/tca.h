/* tca.h - classification that adapts while it prunes: Token Condensation as Adaptation (TCA).
 * SPDX-License-Identifier: Apache-2.0
 *
 *   renyi_model_zeroshot (clip.h) -> renyi_tca_new -> a session with the policy "tca" and
 *   renyi_session_options.adapt -> renyi_run*: logits come corrected -> renyi_tca_get_info
 *
 * The policy "tca" alone condenses tokens: some are kept, some merged around four centres, the rest
 * fused (docs/PRUNING.md). What is here remembers pictures that were seen before. Per class it
 * keeps the few whose answers were surest and unlike each other (the reservoir). As soon as every
 * class has two of them, their mean class tokens take part in the attention of later cuts (the
 * anchors). And a logit grows with the likeness of a picture to the items of its class (the
 * correction). No labels are seen and nothing is trained.
 *
 * Pictures of a run go one after the other, and each leaves its trace: the order matters, threads
 * and batches do not. One renyi_tca belongs to one session at a time. The rest is as in renyi.h.
 */
#ifndef RENYI_TCA_H
#define RENYI_TCA_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct renyi_tca_options {
    uint32_t struct_size;
    uint32_t size;       /* items of a class in the reservoir, 2 to 1024; 0 = 3 */
    double scale;        /* of the layer weights exp(l / (L - 1) / scale): small = the last layers
                            alone; 0 = 0.1 */
    double lambda;       /* weight of the correction; 0 = 3 */
    double beta;         /* its sharpness; 0 = 5. Those of each data set: collections.h */
    uint32_t no_anchors; /* 1 = none, ever */
    uint32_t no_correction; /* 1 = logits stay as they are */
} renyi_tca_options;

/* For a model with a classifier and a class token: for its classes and its tower, so that sessions
 * of others refuse it. The memory of a full reservoir is taken here; m is not needed after the
 * call, its allocator is. On success *out is owned by the caller (renyi_tca_free). */
RENYI_API RENYI_CHECK renyi_status renyi_tca_new(renyi_tca **out, const renyi_model *m,
                                                 const renyi_tca_options *opt, renyi_error *err);
RENYI_API void renyi_tca_free(renyi_tca *t);
RENYI_API void renyi_tca_reset(renyi_tca *t); /* as if nothing had been seen */

typedef struct renyi_tca_info {
    uint32_t n_classes, size;
    double scale, lambda, beta;
    uint64_t n_images;        /* seen so far */
    uint64_t n_anchored;      /* that ran with anchors */
    uint64_t n_changed;       /* whose answer the correction changed */
    uint64_t first_anchored;  /* place of the first that ran with anchors, from 0; UINT64_MAX =
                                 none did */
    uint32_t n_items;         /* in the reservoir */
    uint32_t n_seen_classes;  /* with an item */
    uint32_t n_ready_classes; /* with two: when it is all, there are anchors */
    uint32_t has_anchors;     /* 1 = the next picture runs with them */
    size_t bytes;             /* that it holds */
} renyi_tca_info;
RENYI_API void renyi_tca_get_info(const renyi_tca *t, renyi_tca_info *info);

/* What became of picture `image` of the last run. */
typedef struct renyi_tca_answer {
    const float *logits;       /* [n_classes] before the correction; borrowed until the next run */
    uint32_t label, corrected; /* the likeliest class before and after it */
    double entropy;            /* of the softmax of the logits before it, in nats */
    uint32_t anchored;         /* 1 = it ran with anchors */
} renyi_tca_answer;
RENYI_API RENYI_CHECK renyi_status renyi_tca_last(const renyi_tca *t, uint32_t image,
                                                  renyi_tca_answer *out, renyi_error *err);

/* The state as a safetensors file, which appears only when complete; and such a file in place of
 * the state that is there. A run then goes on with the same bits. Options are not part of it. A
 * file of other classes or another tower is RENYI_ERR_FORMAT, and *t stays as it was. */
RENYI_API RENYI_CHECK renyi_status renyi_tca_save(const renyi_tca *t, const char *path,
                                                  renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_tca_load(renyi_tca *t, const char *path, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
