/* net.h - a Vision Transformer in training: parameters, a forward pass of a micro-batch that saves
 * its activations, and a backward pass that adds to the gradients.
 *
 *   ry_net_new -> ry_net_init or ry_net_load -> ry_net_update ->
 *   [ ry_net_prune, ry_net_zero_grad, { ry_net_forward, ry_net_backward } x micro-batches,
 *     (the optimizer changes params->value), ry_net_update ] x steps
 *
 * Gradients of a rule's decision: which tokens stay is constant. The weights of a fused token have
 * a gradient into the attention if they are class attention (weights=cls) or Col-Ln scores
 * (weights=score with col or correct); other scores (renyi, shannon, colv, random) and the
 * attention of a pooling head's probe (pool) are constants, and so are the sizes of merged tokens
 * and their logarithms in attention. Mosaic's scaling of merged rows to a length of their
 * members is differentiated.
 *
 * Results are bit-identical for any number of threads, for any micro-batch that fits, and with or
 * without checkpoint_activations.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NET_H
#define RY_NET_H

#include "formats/checkpoint.h"
#include "model/vit/vit.h"
#include "prune/policy/policy_spec.h"
#include "train/net/params.h"

typedef struct ry_net ry_net;

typedef struct ry_net_options {
    renyi_cpu level;            /* RENYI_CPU_AUTO = the best of this CPU */
    renyi_dtype dtype;          /* of the blocks' products with weights: f32 (0 too), bf16, or auto:
                                   bf16 where it is faster; the gradients of weights are summed in
                                   f32 */
    unsigned n_threads;         /* 0 = physical cores */
    uint32_t micro_batch;       /* most images of a forward pass; 0 = as many as make 1600 rows */
    int checkpoint_activations; /* keep only the blocks' inputs, compute the rest twice */
    uint32_t feature_dim;       /* of the teacher's tokens; 0 = no features. With features the last
                                   block finishes all rows */
    const uint32_t *taps;       /* [n_taps] blocks after which tokens are compared, ascending, each
                                   once; copied. None: after the final LayerNorm */
    uint32_t n_taps;
    int direct; /* taps are the rows without LayerNorm and projection; feature_dim = C */
    uint32_t feature_prefix; /* with taps: prefix tokens that the teacher has too; its rows are its
                                patches, then these */
} ry_net_options;

/* RENYI_OK if such a model can be trained; else the reason. */
renyi_status ry_net_trains(const ry_vit_config *config, renyi_error *err) RENYI_CHECK;

/* config: sizes, pooling, activation, eps; n_classes >= 1 (of the head that is trained). Copied.
 * Its layout is ignored: parameters have timm's names (ry_params.files: those of files). Values and
 * gradients are zero. */
renyi_status ry_net_new(ry_net **out, const ry_vit_config *config, const ry_net_options *opt,
                        const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_net_free(ry_net *net);

ry_params *ry_net_params(ry_net *net);
const ry_vit_config *ry_net_config(const ry_net *net);
uint32_t ry_net_patches(const ry_net *net);
uint32_t ry_net_micro_batch(const ry_net *net); /* images; the chosen number if the option was 0 */
int ry_net_is_distilled(const ry_net *net);     /* it has a second head */

/* Random values as in timm and DeiT: weights, positions and tokens from a normal distribution of
 * deviation 0.02 truncated at two deviations, biases 0, LayerNorm 1. Each parameter has its own
 * generator, seeded by `seed` and its name. */
void ry_net_init(ry_net *net, uint64_t seed);

/* Values from any checkpoint that ry_vit_load reads: all layouts, 8-bit weights; positions are
 * resampled to the net's grid. Sizes must be the net's, except for the head: if it is missing or
 * has another number of classes, the net's head is not changed (so call ry_net_init first) and
 * *new_head is set. A missing bias of qkv becomes 0. `new_head` may be NULL. */
renyi_status ry_net_load(ry_net *net, const ry_checkpoint *ckpt, int *new_head,
                         renyi_error *err) RENYI_CHECK;

/* Packs the weights for the next passes; call it after params->value has changed. */
renyi_status ry_net_update(ry_net *net, renyi_error *err) RENYI_CHECK;

/* Sets the cuts of the following passes; NULL = none. policy: checked against the model
 * (ry_policy_check, or ry_policy_for of engine/core/policy_api.h). Cheap; may change between any
 * two steps. Rules whose number of tokens depends on the image (ats) are refused. */
renyi_status ry_net_prune(ry_net *net, const ry_policy *policy, renyi_error *err) RENYI_CHECK;

typedef struct ry_net_batch {
    const float *chw;    /* [n, 3, S, S] normalized */
    uint32_t n;          /* at most micro_batch */
    const float *branch; /* [2 L, n] stochastic depth: what the attention (2 i) and MLP (2 i + 1)
                            branch of block i is multiplied by for each image; NULL = 1 */
    const float
        *forced; /* [L, micro_batch, patches + prefix, C] rows of a teacher: each block but the
                    first starts from those after the block before it, and gradients do not
                    pass between blocks. Needs direct taps after all blocks and no cuts */
} ry_net_batch;

/* logits, logits_dist: [n, classes] of each head, not averaged; logits_dist only (and needed) when
 * there is a second head. The batch must stay valid until the backward pass is done. */
renyi_status ry_net_forward(ry_net *net, const ry_net_batch *batch, float *logits,
                            float *logits_dist, renyi_error *err) RENYI_CHECK;

/* Patch rows after the final LayerNorm and a projection to the teacher's width, of the last forward
 * pass; valid until the next. Only with feature_dim. */
typedef struct ry_net_features_view {
    const float *rows;     /* [n, n_rows, feature_dim] */
    const uint32_t *patch; /* [n, n_rows] the patch that each row is or continues, or RY_NO_TOKEN
                              for a fused one */
    uint32_t n_rows;
} ry_net_features_view;
void ry_net_features(const ry_net *net, ry_net_features_view *out);

/* With taps instead: all rows after the block of tap k, after the tap's own LayerNorm and
 * projection; `patch` is n_patches + i for prefix token i, if the teacher has it too. */
uint32_t ry_net_taps(const ry_net *net);
void ry_net_tap_view(const ry_net *net, uint32_t k, ry_net_features_view *out);
size_t ry_net_tap_floats(const ry_net *net); /* between the gradients of two taps */

/* After ry_net_forward: adds the gradients of a loss to params->grad. dlogits, dlogits_dist:
 * [n, classes], dfeatures: [n, n_rows, feature_dim], for each tap if there are taps; NULL = zero.
 */
renyi_status ry_net_backward(ry_net *net, const float *dlogits, const float *dlogits_dist,
                             const float *dfeatures, renyi_error *err) RENYI_CHECK;
void ry_net_zero_grad(ry_net *net);

/* Bytes of the saved activations and of scratch. */
size_t ry_net_activation_bytes(const ry_net *net);

/* Multiply-accumulates per image of a forward pass with the current cuts; a training step has about
 * three times as many. */
double ry_net_macs(const ry_net *net);

#endif
