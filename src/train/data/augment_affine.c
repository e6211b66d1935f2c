/* augment_affine.c - Image.transform with an affine map: every output pixel looks up one place of
 * the input, between pixels by two or four neighbours in each direction. Doubles in Pillow's order,
 * so that a pixel is never one level off.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* M_PI */
#include "train/data/augment_affine_template.h"

#include <math.h>

void ry_op_affine_plain(uint8_t *out, const uint8_t *in, ry_op_size size,
                        const ry_op_affine_spec *spec)
{
    affine(out, in, size, spec);
}

void ry_op_affine(uint8_t *out, const uint8_t *in, ry_op_size size, const ry_op_affine_spec *spec)
{
    if (renyi_cpu_detect() >= RENYI_CPU_AVX2)
        ry_op_affine_avx2(out, in, size, spec);
    else
        ry_op_affine_plain(out, in, size, spec);
}

/* Pillow rounds cosine and sine to 15 decimals. */
static double round15(double x) { return nearbyint(x * 1e15) / 1e15; }

void ry_op_rotation(double m[6], ry_op_size size, double degrees)
{
    double turn = fmod(degrees, 360.0);
    if (turn < 0.0) turn += 360.0;
    const double angle = -(turn * (M_PI / 180.0)), cx = size.width / 2.0, cy = size.height / 2.0;
    m[0] = m[4] = round15(cos(angle));
    m[1] = round15(sin(angle));
    m[3] = round15(-sin(angle));
    m[2] = m[0] * -cx + m[1] * -cy + cx;
    m[5] = m[3] * -cx + m[4] * -cy + cy;
}
