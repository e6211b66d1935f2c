/* rope.c - see rope.h. Plain C: a row costs as much as one row of a product.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rope.h"

#include <math.h>

void ry_rope_angles(float *angles, size_t position, size_t head, double theta)
{
    const size_t half = head / 2;
    for (size_t i = 0; i < half; i++) {
        const float frequency = (float)(1.0 / pow(theta, 2.0 * (double)i / (double)head));
        const float angle = (float)position * frequency;
        angles[i] = (float)cos((double)angle);
        angles[half + i] = (float)sin((double)angle);
    }
}

void ry_rope(float *x, size_t n_heads, size_t head, const float *angles)
{
    const size_t half = head / 2;
    const float *cosine = angles, *sine = angles + half;
    for (size_t h = 0; h < n_heads; h++, x += head)
        for (size_t i = 0; i < half; i++) {
            const float a = x[i], b = x[half + i];
            x[i] = a * cosine[i] - b * sine[i];
            x[half + i] = b * cosine[i] + a * sine[i];
        }
}
