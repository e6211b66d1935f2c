/* sparsevlm.c - what SparseVLM makes of dropped rows. The best of them are clustered by the density
 * of their neighbours: a centre lies dense and far from all that lie denser. The other rows join
 * the nearest centre, and each cluster becomes its mean.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/sparsevlm.h"

#include "kernels/rows/rows.h"
#include "prune/rules/select.h"

#include <math.h>
#include <string.h>

void ry_recycler_lay_out(ry_recycler *h, ry_arena *a, const ry_policy *p, uint32_t V, size_t dim)
{
    const size_t m = ry_policy_recycled(p, V), c = ry_policy_recycled_rows(p, V);
    *h = (ry_recycler){.most = (uint32_t)m, .most_rows = (uint32_t)c};
    if (!m) return;
    h->distance = RY_TAKE(a, m * (m - 1) / 2, float); /* m is at most the context: it fits */
    h->density = RY_TAKE(a, m, double);
    h->worth = RY_TAKE(a, m, double);
    h->nearness = RY_TAKE(a, m, float);
    h->order = RY_TAKE(a, m, uint32_t);
    h->rank = RY_TAKE(a, 2 * m, uint64_t);
    h->centre = RY_TAKE(a, c, uint32_t);
    h->cluster = RY_TAKE(a, m, uint32_t);
    h->merged = RY_TAKE(a, c * dim, float);
}

static float between(const ry_recycler *h, uint32_t i, uint32_t j)
{
    const size_t high = i > j ? i : j, low = i > j ? j : i;
    return i == j ? 0.0f : h->distance[high * (high - 1) / 2 + low];
}

/* Euclidean distances, divided by the root of the width. Returns the largest. */
static float measure(const ry_recycler *h, const ry_llama_view *v, const uint32_t *row, uint32_t m)
{
    const float *x = v->x + v->first * v->dim;
    const float root = sqrtf((float)v->dim);
    float most = 0.0f, *to = h->distance;
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < i; j++, to++) {
            *to = ry_row_distance(x + row[i] * v->dim, x + row[j] * v->dim, v->dim) / root;
            if (*to > most) most = *to;
        }
    return most;
}

/* From the mean square of the distances to the `near` nearest rows, a row itself among them. */
static void find_densities(const ry_recycler *h, uint32_t m, uint32_t near)
{
    for (uint32_t i = 0; i < m; i++) {
        double sum = 0.0;
        for (uint32_t j = 0; j < m; j++) h->nearness[j] = -between(h, i, j);
        ry_rank(h->order, h->nearness, m, h->rank);
        for (uint32_t k = 0; k < near; k++) {
            const double d = (double)h->nearness[h->order[k]];
            sum += d * d;
        }
        h->density[i] = exp(-sum / near);
    }
}

/* Of equal rows the earlier one, which has the better score, counts as denser. */
static int is_denser(const ry_recycler *h, uint32_t j, uint32_t i)
{
    return h->density[j] > h->density[i] || (h->density[j] == h->density[i] && j < i);
}

/* worth = density times the distance to the nearest denser row; the densest row has `most`. */
static void find_worth(const ry_recycler *h, uint32_t m, float most)
{
    for (uint32_t i = 0; i < m; i++) {
        float least = most;
        for (uint32_t j = 0; j < m; j++)
            if (between(h, i, j) < least && is_denser(h, j, i)) least = between(h, i, j);
        h->worth[i] = (double)least * h->density[i];
    }
}

/* The c rows of the largest worth, that of the largest first; sets their clusters. */
static void find_centres(const ry_recycler *h, uint32_t m, uint32_t c)
{
    for (uint32_t i = 0; i < m; i++) h->cluster[i] = c;
    for (uint32_t k = 0; k < c; k++) {
        uint32_t best = m;
        for (uint32_t i = 0; i < m; i++)
            if (h->cluster[i] == c && (best == m || h->worth[i] > h->worth[best])) best = i;
        h->centre[k] = best;
        h->cluster[best] = k;
    }
}

/* Rows that are no centre join the nearest one, of equal ones the first. */
static void join(const ry_recycler *h, uint32_t m, uint32_t c)
{
    for (uint32_t i = 0; i < m; i++) {
        if (h->cluster[i] < c) continue;
        uint32_t nearest = 0;
        for (uint32_t k = 1; k < c; k++)
            if (between(h, i, h->centre[k]) < between(h, i, h->centre[nearest])) nearest = k;
        h->cluster[i] = nearest;
    }
}

static void average(const ry_recycler *h, const ry_llama_view *v, const uint32_t *row, uint32_t m,
                    uint32_t c)
{
    const size_t C = v->dim;
    memset(h->merged, 0, c * C * sizeof *h->merged);
    memset(h->order, 0, c * sizeof *h->order); /* members of each cluster */
    for (uint32_t i = 0; i < m; i++) {
        const float *x = v->x + (v->first + row[i]) * C;
        float *to = h->merged + h->cluster[i] * C;
        for (size_t k = 0; k < C; k++) to[k] += x[k];
        h->order[h->cluster[i]]++;
    }
    for (uint32_t k = 0; k < c; k++)
        for (size_t i = 0; i < C; i++) h->merged[k * C + i] /= (float)h->order[k];
}

void ry_recycle(const ry_recycler *h, const ry_policy *p, const ry_llama_view *v,
                const uint32_t *dropped, uint32_t n_dropped, ry_llama_choice *choice)
{
    const uint32_t m = ry_policy_recycled(p, n_dropped), c = ry_policy_recycled_rows(p, n_dropped);
    if (!c) return;
    const float most = measure(h, v, dropped, m);
    find_densities(h, m, c);
    find_worth(h, m, most);
    find_centres(h, m, c);
    join(h, m, c);
    average(h, v, dropped, m, c);
    choice->merged = h->merged;
    choice->n_merged = c;
    choice->macs += (double)m * (m - 1) / 2 * (double)v->dim;
}
