/* policy_api.h - a policy text prepared for one encoder: parsed, checked, as a token hook, with its
 * cost, and in a session.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_POLICY_API_H
#define RY_POLICY_API_H

#include "model/vit/vit.h"
#include "prune/policy/cascade.h"
#include "prune/rules/pruner.h"

/* Parses text (NULL = "none") and checks it against a model, whose own rules it may name. */
renyi_status ry_policy_for_model(ry_policy *out, const char *text, const renyi_model *m,
                                 renyi_error *err) RENYI_CHECK;

/* The same for a text that may be a cascade. */
renyi_status ry_cascade_for_model(ry_cascade *out, const char *text, const renyi_model *m,
                                  renyi_error *err) RENYI_CHECK;

/* ry_policy_for_model for an encoder with these patches that is no model. */
renyi_status ry_policy_for(ry_policy *out, const char *text, const ry_vit_config *config,
                           uint32_t n_patches, renyi_error *err) RENYI_CHECK;

/* The same for a tower whose rows go to a language model: rules behind the tower are allowed. An
 * image has at most n_squares base and tiles, or is one square (1). */
renyi_status ry_policy_for_visual(ry_policy *out, const char *text, const ry_vit_config *config,
                                  uint32_t n_patches, uint32_t n_squares,
                                  renyi_error *err) RENYI_CHECK;

/* The pruner of a checked policy. *out is NULL for "none" and for rules behind the tower.
 * max_batch 0 = the pruner only counts tokens. */
renyi_status ry_policy_pruner(ry_pruner **out, const ry_policy *policy, const ry_vit_config *config,
                              uint32_t n_patches, uint32_t max_batch, renyi_cpu level,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* The two public functions below for a policy that ry_policy_for_model has parsed and checked for
 * this model. The session ignores opt->policy. */
renyi_status ry_policy_cost(const renyi_model *m, const ry_policy *policy, renyi_cost *out,
                            renyi_layer_cost *layers, size_t max_layers,
                            renyi_error *err) RENYI_CHECK;
renyi_status ry_session_new(renyi_session **out, const renyi_model *m,
                            const renyi_session_options *opt, const ry_policy *policy,
                            renyi_error *err) RENYI_CHECK;

/* Multiply-accumulates of one image without pruning; LayerNorm is not counted. */
double ry_dense_macs(const ry_vit_config *config, uint32_t n_patches);

#endif
