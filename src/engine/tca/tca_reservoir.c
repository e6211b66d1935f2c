/* tca_reservoir.c - TCA's reservoir: for every class the few images that were answered with most
 * certainty and are least similar to each other; the anchors, which are their means, once every
 * class has two; and what the reservoir adds to the logits of a new image.
 *
 * The similarity sum_l w_l cos(a_l, b_l) of two images is one dot product of rows that are computed
 * once: the class tokens of all layers, each scaled to the root of its layer's weight, in one row.
 * A full reservoir of 1000 classes is read for every image, so these rows are kept in 16 bits: half
 * the bytes, and a similarity within about 1e-6. Layers with a weight below rounding are left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/tca/tca_adapt.h"
#include "kernels/rows/rows.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define NO_WEIGHT 1e-8 /* a layer's weight, relative to the last one's, that counts as none */

enum { MIN_ITEMS = 2 }; /* items that every class must have before there are anchors */
static const double MIN_PRODUCTS = 1 << 18; /* with fewer, threads cost more time than they save */

/* ---- what images are compared by ----------------------------------------------------------- */

void ry_tca_weigh_layers(renyi_tca *t)
{
    const uint32_t L = t->shape.n_blocks;
    double sum = 0.0;
    t->first = 0;
    for (uint32_t l = 0; l < L; l++) {
        /* The last layer has weight exp(0) = 1, however small the scale. */
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

/* ---- items --------------------------------------------------------------------------------- */

/* Mean cosine of item i with the n - 1 others. */
static double mean_similarity(const renyi_tca *t, const ry_tca_item *list, uint32_t n, uint32_t i)
{
    const size_t C = t->shape.dim;
    double sum = 0.0;
    for (uint32_t k = 0; k < n; k++)
        if (k != i)
            sum += (double)ry_row_dot(t->mean + list[i].slot * C, t->mean + list[k].slot * C, C);
    return sum / (n - 1);
}

/* The item that is least certain and most similar to the others; of equal ones the first. */
static uint32_t find_worst(const renyi_tca *t, const ry_tca_item *list, uint32_t n)
{
    uint32_t worst = 0;
    double most = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const double value = (double)list[i].entropy + mean_similarity(t, list, n, i);
        if (i && !(value > most)) continue;
        worst = i;
        most = value;
    }
    return worst;
}

static void remove_item(ry_tca_item *list, uint32_t n, uint32_t i)
{
    memmove(list + i, list + i + 1, (n - i - 1) * sizeof *list);
}

/* Moves the last item to its place by entropy, after equal ones. */
static void sort_last(ry_tca_item *list, uint32_t n)
{
    const ry_tca_item last = list[n - 1];
    uint32_t i = n - 1;
    for (; i && list[i - 1].entropy > last.entropy; i--) list[i] = list[i - 1];
    list[i] = last;
}

/* ---- anchors ------------------------------------------------------------------------------- */

static void make_anchor(renyi_tca *t, uint32_t c)
{
    const size_t L = t->shape.n_blocks, C = t->shape.dim, G = t->shape.n_classes;
    const ry_tca_item *list = ry_tca_items(t, c);
    const uint32_t n = t->counts[c];
    for (size_t l = 0; l < L; l++) {
        float *to = t->anchors + (l * G + c) * C;
        memset(to, 0, C * sizeof *to);
        for (uint32_t i = 0; i < n; i++)
            ry_row_add(to, ry_tca_tokens(t, list[i].slot) + l * C, 1.0f / (float)n, C);
        const float length = ry_row_length(to, C);
        t->inverse[l * G + c] = length > 0.0f ? 1.0f / length : 0.0f;
    }
}

/* Makes all anchors when every class has enough items; later only that of class c, which changed.
 */
static void update_anchors(renyi_tca *t, uint32_t c)
{
    if (t->opt.no_anchors || t->n_ready < t->shape.n_classes) return;
    if (t->has_anchors)
        make_anchor(t, c);
    else
        for (uint32_t k = 0; k < t->shape.n_classes; k++) make_anchor(t, k);
    t->has_anchors = 1;
}

const float *ry_tca_anchor(const renyi_tca *t, uint32_t layer, const float *token)
{
    const size_t C = t->shape.dim, G = t->shape.n_classes;
    if (!t->has_anchors) return NULL;
    const float *rows = t->anchors + layer * G * C, *inverse = t->inverse + layer * G;
    size_t best = 0;
    float most = 0.0f;
    for (size_t c = 0; c < G; c++) {
        const float value = ry_row_dot(rows + c * C, token, C) * inverse[c];
        if (c && !(value > most)) continue;
        best = c;
        most = value;
    }
    return rows + best * C;
}

/* ---- the reservoir ------------------------------------------------------------------------- */

void ry_tca_remember(renyi_tca *t, uint32_t c, float entropy)
{
    ry_tca_item *list = ry_tca_items(t, c);
    uint32_t n = t->counts[c];

    list[n++] = (ry_tca_item){t->free, entropy};
    if (n <= t->opt.size) {
        sort_last(list, n);
        t->counts[c] = n;
        t->n_seen += n == 1;
        t->n_ready += n == MIN_ITEMS;
        t->free = t->n_used++;
        assert(t->free < t->n_slots); /* there is one slot more than items */
    } else {
        const uint32_t gone = find_worst(t, list, n);
        t->free = list[gone].slot;
        if (gone < n - 1) {
            remove_item(list, n, gone);
            sort_last(list, n - 1);
        }
    }
    update_anchors(t, c);
}

void ry_tca_rebuild(renyi_tca *t)
{
    t->n_seen = t->n_ready = 0;
    t->has_anchors = 0;
    for (uint32_t c = 0; c < t->shape.n_classes; c++) {
        t->n_seen += t->counts[c] > 0;
        t->n_ready += t->counts[c] >= MIN_ITEMS;
        for (uint32_t i = 0; i < t->counts[c]; i++) ry_tca_fill_slot(t, ry_tca_items(t, c)[i].slot);
    }
    update_anchors(t, 0);
}

/* ---- correcting logits --------------------------------------------------------------------- */

/* What the items of class c add to its logit. */
static double class_support(const renyi_tca *t, uint32_t c)
{
    const size_t row = (size_t)ry_tca_layers(t) * t->shape.dim;
    const ry_tca_item *list = ry_tca_items(t, c);
    double sum = 0.0;
    for (uint32_t i = 0; i < t->counts[c]; i++) {
        const uint32_t slot = list[i].slot;
        const double similarity =
            (double)t->step[slot] * (double)ry_row_dot_i16(t->rows + slot * row, t->now, row);
        sum += exp(-t->opt.beta * (1.0 - similarity));
    }
    return t->opt.lambda * sum;
}

void ry_tca_correct(const renyi_tca *t, float *logits, unsigned n_threads)
{
    const double work = (double)t->n_used * ry_tca_layers(t) * t->shape.dim;
    const uint32_t G = t->shape.n_classes;
    const int threads = work > MIN_PRODUCTS ? (int)n_threads : 1;
    /* Each class is summed by one thread: the bits do not depend on the number of threads. */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (uint32_t c = 0; c < G; c++)
        if (t->counts[c]) logits[c] = (float)((double)logits[c] + class_support(t, c));
}
