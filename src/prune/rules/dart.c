/* dart.c - DART's rule: pivots are the rows with the largest keys, some visual and some of the text
 * behind the image. One pivot after the other takes the rows that are least similar to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/dart.h"

#include "prune/rules/select.h"

#include <math.h>
#include <string.h>

/* Product and lengths of two rows after the model's last norm. Its division by a row's size does
 * not change a cosine, except that it makes the smallest rows no smaller than eps. */
static double cosine(const ry_llama_view *v, uint32_t a, uint32_t b)
{
    const float *x = v->x + a * v->dim, *y = v->x + b * v->dim;
    double xy = 0.0, xx = 0.0, yy = 0.0;
    for (size_t c = 0; c < v->dim; c++) {
        const double w = (double)v->norm[c], p = w * (double)x[c], q = w * (double)y[c];
        xy += p * q;
        xx += p * p;
        yy += q * q;
    }
    return xx > 0.0 && yy > 0.0 ? xy / (sqrt(xx) * sqrt(yy)) : 0.0;
}

/* Takes the `most` rows that are not taken yet and least similar to row `pivot`. */
static uint32_t take_unlike(const ry_dart_scratch *h, const ry_llama_view *v, uint32_t pivot,
                            uint32_t most, uint8_t *taken)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < v->n_visual; j++) {
        if (taken[j]) continue;
        h->score[n] = (float)-cosine(v, pivot, v->first + j);
        h->list[n++] = j;
    }
    if (most > n) most = n;
    ry_rank(h->order, h->score, n, h->rank);
    for (uint32_t k = 0; k < most; k++) taken[h->list[h->order[k]]] = 1;
    return most;
}

/* The `count` rows from `first` on with the largest keys go to `pivot`, ascending. */
static uint32_t find_pivots(const ry_dart_scratch *h, const ry_llama_view *v, uint32_t first,
                            uint32_t n, uint32_t count, uint32_t *pivot)
{
    if (count > n) count = n;
    memset(h->chosen, 0, n);
    ry_rank(h->order, v->key_sizes + first, n, h->rank);
    for (uint32_t k = 0; k < count; k++) h->chosen[h->order[k]] = 1;
    ry_select_ascending(pivot, h->chosen, n);
    for (uint32_t k = 0; k < count; k++) pivot[k] += first;
    return count;
}

uint32_t ry_dart_choose(const ry_dart_scratch *h, const ry_policy *p, const ry_llama_view *v,
                        uint32_t share, uint8_t *taken)
{
    const uint32_t end = v->first + v->n_visual;
    const uint32_t visual = find_pivots(h, v, v->first, v->n_visual, p->pivots, h->pivot);
    const uint32_t text = find_pivots(h, v, end, v->n - end, p->text_pivots, h->pivot + visual);
    uint32_t count = visual;
    memset(taken, 0, v->n_visual);
    for (uint32_t k = 0; k < visual; k++) taken[h->pivot[k] - v->first] = 1;
    for (uint32_t k = 0; k < visual + text; k++)
        count += take_unlike(h, v, h->pivot[k], share, taken);
    return count;
}
