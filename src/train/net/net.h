/* net.h - a Vision Transformer that learns: parameters, the forward pass of a micro-batch with its
 * activations saved, and the way back that adds to their gradients.
 *
 *   ry_net_new -> ry_net_init or ry_net_load -> ry_net_update ->
 *   [ ry_net_prune, ry_net_zero_grad, { ry_net_forward, ry_net_backward } x micro-batches,
 *     (the optimiser changes params->value), ry_net_update ] x steps
 *
 * Gradients of what the rule decides: which tokens stay is constant. A fused token's weights are
 * not: class attention (weights=cls) and Col-Ln scores (weights=score with col or correct) pass
 * their gradient on to the attention; as weights, the other scores (renyi, shannon, colv, random)
 * are constants, and so are the sizes of merged tokens and their logarithms in attention. Mosaic's
 * scaling of merged rows to the mean length of their members is differentiated.
 *
 * The same bits for any number of threads, for a micro-batch with room to spare, and with or
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
    renyi_cpu level;            /* RENYI_CPU_AUTO = the best there is */
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
    int direct;              /* taps are the rows as they are; feature_dim is the width */
    uint32_t feature_prefix; /* with taps: prefix tokens that the teacher has too; its rows are its
                                patches, then these */
} ry_net_options;

/* config: sizes, pooling, activation, eps; n_classes >= 1 (of the head that is trained). Copied.
 * The layout of its file does not matter: names of parameters are timm's. Values and gradients are
 * zero. */
/* RENYI_OK if there are gradients of such a model; else the reason. */
renyi_status ry_net_trains(const ry_vit_config *config, renyi_error *err) RENYI_CHECK;

renyi_status ry_net_new(ry_net **out, const ry_vit_config *config, const ry_net_options *opt,
                        const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_net_free(ry_net *net);

ry_params *ry_net_params(ry_net *net);
const ry_vit_config *ry_net_config(const ry_net *net);
uint32_t ry_net_patches(const ry_net *net);
uint32_t ry_net_micro_batch(const ry_net *net); /* images, what 0 was made of */
int ry_net_is_distilled(const ry_net *net);     /* there is a second head */

/* Weights, positions and tokens from a normal of deviation .02 cut off at two of them, biases 0,
 * LayerNorm 1, as timm and DeiT do. Each parameter has its own generator, seeded by seed and its
 * name. */
void ry_net_init(ry_net *net, uint64_t seed);

/* From any checkpoint that ry_vit_load reads: layouts, 8-bit weights; positions are resampled to
 * the net's grid. Sizes must be the net's, but for the head: one with another number of classes,
 * or none, leaves the net's head as it is (so ry_net_init comes first) and sets *new_head. What the
 * checkpoint does not have (bias of qkv) becomes 0. `new_head` may be NULL. */
renyi_status ry_net_load(ry_net *net, const ry_checkpoint *ckpt, int *new_head,
                         renyi_error *err) RENYI_CHECK;

/* After params->value has changed: pack the weights for the next forward and backward pass. */
renyi_status ry_net_update(ry_net *net, renyi_error *err) RENYI_CHECK;

/* The cuts of the following passes; NULL = none. policy: checked against the model
 * (ry_policy_check, or ry_policy_for of engine/core/policy_api.h). Cheap: between any two steps.
 * Rules whose number of tokens depends on the image (ats) are refused. */
renyi_status ry_net_prune(ry_net *net, const ry_policy *policy, renyi_error *err) RENYI_CHECK;

typedef struct ry_net_batch {
    const float *chw;    /* [n, 3, S, S] normalised */
    uint32_t n;          /* at most micro_batch */
    const float *branch; /* [2 L, n] stochastic depth: what the attention (2 i) and MLP (2 i + 1)
                            branch of block i is multiplied by for each image; NULL = 1 */
    const float
        *forced; /* [L, micro_batch, patches + prefix, C] rows of a teacher after each block:
                    every block but the first begins with those, and gradients do not pass
                    from block to block. Needs direct taps after all blocks and no cuts */
} ry_net_batch;

/* logits, logits_dist: [n, classes] of each head, not averaged; logits_dist only (and needed) when
 * there is a second head. The batch must live until the backward pass is done. */
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

/* With taps instead: all rows after the block of tap k, after a LayerNorm and a projection of the
 * tap's own; `patch` is n_patches + i for prefix token i that the teacher has, too. */
uint32_t ry_net_taps(const ry_net *net);
void ry_net_tap_view(const ry_net *net, uint32_t k, ry_net_features_view *out);
size_t ry_net_tap_floats(const ry_net *net); /* from one tap's gradients to the next one's */

/* After ry_net_forward: adds the gradients of a loss to params->grad. dlogits, dlogits_dist:
 * [n, classes], dfeatures: [n, n_rows, feature_dim], of each tap if there are taps; a NULL one is
 * zero. */
renyi_status ry_net_backward(ry_net *net, const float *dlogits, const float *dlogits_dist,
                             const float *dfeatures, renyi_error *err) RENYI_CHECK;
void ry_net_zero_grad(ry_net *net);

/* Bytes of everything that is saved between the passes and of their scratch. */
size_t ry_net_activation_bytes(const ry_net *net);

/* Multiply-accumulates per image of a forward pass with the cuts of now; a whole step has about
 * three times as many. */
double ry_net_macs(const ry_net *net);

#endif
