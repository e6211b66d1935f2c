/* centres.c - see centres.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/rules/centres.h"

#include "kernels/rows/rows.h"

#include <assert.h>
#include <math.h>

static const float *row_of(const ry_centre_rows *r, uint32_t place)
{
    return r->x + r->list[place] * r->dim;
}

/* Every row that is nearer to centre k than to those before it becomes its own. */
static void claim(const ry_centre_rows *r, uint32_t k, uint32_t place, uint8_t *nearest,
                  float *distance)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const float far = ry_row_distance(row_of(r, i), row_of(r, place), r->dim);
        if (!(far < distance[i])) continue;
        distance[i] = far;
        nearest[i] = (uint8_t)k;
    }
}

static uint32_t farthest(const float *distance, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (distance[i] > distance[best]) best = i;
    return best;
}

void ry_centres_find(const ry_centre_rows *rows, uint32_t first, uint32_t count, uint32_t *centre,
                     uint8_t *nearest, float *distance)
{
    assert(first < rows->n);
    for (uint32_t i = 0; i < rows->n; i++) {
        distance[i] = INFINITY;
        nearest[i] = 0;
    }
    for (uint32_t k = 0; k < count; k++) {
        centre[k] = k ? farthest(distance, rows->n) : first;
        claim(rows, k, centre[k], nearest, distance);
    }
}

void ry_centres_weigh(float *weight, const float *distance, const uint8_t *nearest, uint32_t n,
                      uint32_t count)
{
    enum { MOST = 8 };
    double sum[MOST] = {0};
    assert(count <= MOST);
    (void)count;
    for (uint32_t i = 0; i < n; i++) {
        weight[i] = distance[i] > 0.0f ? 1.0f / distance[i] : 1.0f;
        sum[nearest[i]] += (double)weight[i];
    }
    for (uint32_t i = 0; i < n; i++) weight[i] = (float)((double)weight[i] / sum[nearest[i]]);
}
