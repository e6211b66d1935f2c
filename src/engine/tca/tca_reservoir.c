/* tca_reservoir.c - TCA's domain-aware token reservoir: of every class the few pictures that were
 * answered with most certainty and are unlike each other; and the anchors, their means, once every
 * class has two.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/tca/tca_adapt.h"
#include "kernels/rows/rows.h"

#include <assert.h>
#include <string.h>

enum { ENOUGH = 2 }; /* items that every class must have before there are anchors */

/* ---- items --------------------------------------------------------------------------------- */

/* Mean cosine of item i with the n - 1 others. */
static double likeness(const renyi_tca *t, const ry_tca_item *list, uint32_t n, uint32_t i)
{
    const size_t C = t->shape.dim;
    double sum = 0.0;
    for (uint32_t k = 0; k < n; k++)
        if (k != i)
            sum += (double)ry_row_dot(t->mean + list[i].slot * C, t->mean + list[k].slot * C, C);
    return sum / (n - 1);
}

/* Uncertain, and like the others; of equal ones the first. */
static uint32_t worst_of(const renyi_tca *t, const ry_tca_item *list, uint32_t n)
{
    uint32_t worst = 0;
    double most = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const double value = (double)list[i].entropy + likeness(t, list, n, i);
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

/* The last item to its place by entropy, behind its equals. */
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

/* Anchors once every class has enough; then only class c is new. */
static void renew_anchors(renyi_tca *t, uint32_t c)
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

/* ---- remembering --------------------------------------------------------------------------- */

void ry_tca_remember(renyi_tca *t, uint32_t c, float entropy)
{
    ry_tca_item *list = ry_tca_items(t, c);
    uint32_t n = t->counts[c];

    list[n++] = (ry_tca_item){t->free, entropy};
    if (n <= t->opt.size) {
        sort_last(list, n);
        t->counts[c] = n;
        t->n_seen += n == 1;
        t->n_ready += n == ENOUGH;
        t->free = t->n_used++;
        assert(t->free < t->n_slots); /* one more than items may be */
    } else {
        const uint32_t gone = worst_of(t, list, n);
        t->free = list[gone].slot;
        if (gone < n - 1) {
            remove_item(list, n, gone);
            sort_last(list, n - 1);
        }
    }
    renew_anchors(t, c);
}

void ry_tca_rebuild(renyi_tca *t)
{
    t->n_seen = t->n_ready = 0;
    t->has_anchors = 0;
    for (uint32_t c = 0; c < t->shape.n_classes; c++) {
        t->n_seen += t->counts[c] > 0;
        t->n_ready += t->counts[c] >= ENOUGH;
        for (uint32_t i = 0; i < t->counts[c]; i++) ry_tca_fill_slot(t, ry_tca_items(t, c)[i].slot);
    }
    renew_anchors(t, 0);
}
