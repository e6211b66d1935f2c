/* tca_correct.c - how like two pictures are by their class tokens in every layer, and what that
 * adds to the logits.
 *
 * The likeness sum_l w_l cos(a_l, b_l) is one dot product of rows that are made once: the tokens of
 * all layers, each of length 1 times the root of its weight, one after the other. A full reservoir
 * of 1000 classes is read for every picture, so these rows are kept in 16 bits: half the bytes, and
 * a likeness within some 1e-6. Layers that cannot move it by as much as a rounding are left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/tca/tca_adapt.h"
#include "kernels/rows/rows.h"

#include <math.h>

#define NO_WEIGHT 1e-8 /* of a layer against the last one's */

enum { WORTH_A_THREAD = 1 << 18 }; /* products; below that a thread costs more than it does */

void ry_tca_weigh_layers(renyi_tca *t)
{
    const uint32_t L = t->shape.n_blocks;
    double sum = 0.0;
    t->first = 0;
    for (uint32_t l = 0; l < L; l++) {
        /* The last layer has exp(0): no scale is too small. */
        const double depth = L > 1 ? (double)l / (L - 1) : 1.0;
        const double weight = exp((depth - 1.0) / t->opt.scale);
        if (weight < NO_WEIGHT) t->first = l + 1;
        sum += t->layer_root[l] = weight;
    }
    for (uint32_t l = 0; l < L; l++) t->layer_root[l] = sqrt(t->layer_root[l] / sum);
}

void ry_tca_fill_slot(renyi_tca *t, uint32_t slot)
{
    const size_t L = t->shape.n_blocks, C = t->shape.dim;
    const float *tokens = ry_tca_tokens(t, slot);
    float *mean = t->mean + slot * C;

    ry_row_scale(mean, tokens, 1.0f, C);
    for (size_t l = 1; l < L; l++) ry_row_add(mean, tokens + l * C, 1.0f, C);
    ry_row_to_length(mean, C, 1.0);
    for (size_t l = t->first; l < L; l++) {
        float *to = t->now + (l - t->first) * C;
        ry_row_scale(to, tokens + l * C, 1.0f, C);
        ry_row_to_length(to, C, t->layer_root[l]);
    }
    const size_t row = ry_tca_layers(t) * C;
    t->step[slot] = ry_row_to_i16(t->rows + slot * row, t->now, row);
}

/* What the items of class c add. */
static double support(const renyi_tca *t, uint32_t c)
{
    const size_t row = (size_t)ry_tca_layers(t) * t->shape.dim;
    const ry_tca_item *list = ry_tca_items(t, c);
    double sum = 0.0;
    for (uint32_t i = 0; i < t->counts[c]; i++) {
        const uint32_t slot = list[i].slot;
        const double like =
            (double)t->step[slot] * (double)ry_row_dot_i16(t->rows + slot * row, t->now, row);
        sum += exp(-t->opt.beta * (1.0 - like));
    }
    return t->opt.lambda * sum;
}

void ry_tca_correct(const renyi_tca *t, float *logits, unsigned n_threads)
{
    const double work = (double)t->n_used * ry_tca_layers(t) * t->shape.dim;
    const uint32_t G = t->shape.n_classes;
    const int threads = work > WORTH_A_THREAD ? (int)n_threads : 1;
    /* Every class by itself: the bits do not depend on the threads. */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (uint32_t c = 0; c < G; c++)
        if (t->counts[c]) logits[c] = (float)((double)logits[c] + support(t, c));
}
