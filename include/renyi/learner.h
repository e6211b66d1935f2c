/* learner.h - the training step alone, for programs with a loop and pictures of their own: a model,
 * its gradients, AdamW. Whole runs are train.h's. SPDX-License-Identifier: Apache-2.0
 *
 *   renyi_learner_new -> renyi_learner_step x many -> renyi_learner_free
 *
 * A batch goes through the model in micro-batches whose gradients add up, so that memory does not
 * depend on its size. The same bits for any number of threads. The rest is as in renyi.h.
 */
#ifndef RENYI_LEARNER_H
#define RENYI_LEARNER_H

#include "renyi/renyi.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
