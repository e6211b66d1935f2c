/* tca_centres.h - k-centres: chooses rows that are far from each other and assigns every row to the
 * nearest of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TCA_CENTRES_H
#define RY_TCA_CENTRES_H

#include <stddef.h>
#include <stdint.h>

/* Rows to choose from: row list[i] of x [.., dim], i < n. */
typedef struct ry_centre_rows {
    const float *x;
    size_t dim;
    const uint32_t *list; /* [n] */
    uint32_t n;
} ry_centre_rows;

/* The first centre is list index `first`; each next one is the index farthest from its nearest
 * centre so far (Euclidean; equal ones: the lower index). centre: [count] list indices; nearest:
 * [n] the nearest centre (equal ones: the lower); distance: [n] to it. */
void ry_centres_find(const ry_centre_rows *rows, uint32_t first, uint32_t count, uint32_t *centre,
                     uint8_t *nearest, float *distance);

/* weight[i] = 1 / distance, or 1 if the distance is 0, divided by the sum over the rows of the
 * same centre, so that the weights of a centre sum to 1. weight may be distance. count <= 8. */
void ry_centres_weigh(float *weight, const float *distance, const uint8_t *nearest, uint32_t n,
                      uint32_t count);

#endif
