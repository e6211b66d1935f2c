/* metric.h - what a token is worth: the scores of the paper and its neighbours, from what a block
 * shows. Larger is better for all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_METRIC_H
#define RY_METRIC_H

#include "base/rng.h"
#include "prune/rules/rule.h"

/* Adds to *needs what the policy's metric must see of a block. */
void ry_metric_needs(const ry_pruner *p, ry_block_needs *needs);

/* score: [N], prefix included (0 where the metric does not score it).
 *   cls      class row
 *   pool     the same row of the pooling head's probe
 *   col      column norm
 *   correct  column norm; the class ranking goes by view->class_row
 *   renyi    minus the entropy of the normalized column, so that the most concentrated is best
 *   shannon  the same for order 1
 *   colv     column norm times |v_j|, the value rows of all heads together
 *   random   uniform in [0, 1), its own draw for every (seed, image, block)
 * and what a rule of the caller's own says. */
void ry_metric_score(const ry_pruner *p, const ry_block_view *view, float *score);

/* The lots of an image at a block: its own numbers for every (seed, image, block). */
ry_rng ry_metric_draw(const ry_pruner *p, const ry_block_view *view);

/* What a token weighs in a fused one when the policy says weights=score. Scores that are not
 * already a share of attention are divided by their sum over all tokens, class token included,
 * plus 1e-6 (as the official EViT code does); of an entropy H the share is taken of exp(-H), one
 * over the number of rows that the column is effectively spread over. weight: [N]. */
void ry_metric_weights(const ry_pruner *p, const float *score, uint32_t n_tokens, float *weight);

#endif
