/* half.h - converts floats to and from IEEE 754 binary16 (1 sign bit, 5 exponent bits with bias 15,
 * 10 fraction bits).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_HALF_H
#define RY_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Rounded to nearest, ties to even. |x| >= 65520 becomes infinity. */
static inline uint16_t ry_half_of(float x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const float size = fabsf(x);
    if (isnan(x)) return 0x7e00;
    if (size >= 65520.0f) return sign | 0x7c00;
    if (size < 0x1p-14f) /* subnormal: a multiple of 2^-24; nearbyint rounds ties to even */
        return (uint16_t)(sign | (uint16_t)nearbyintf(size * 0x1p24f));
    int exponent;
    const float mantissa = frexpf(size, &exponent); /* [0.5, 1) */
    /* 1024 to 2048; a carry correctly goes into the exponent */
    const unsigned steps = (unsigned)nearbyintf(mantissa * 2048.0f);
    return (uint16_t)(sign | (((unsigned)(exponent + 13) << 10) + steps));
}

static inline float ry_half_to_float(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fu, fraction = h & 0x3ffu;
    const uint32_t bits = exponent == 31 ? sign | 0x7f800000u | fraction << 13 /* inf, nan */
                                         : sign | (exponent + 112) << 23 | fraction << 13;
    const float small = (float)fraction * 0x1p-24f; /* zero and denormals, exact */
    float x;
    memcpy(&x, &bits, sizeof x);
    return exponent ? x : sign ? -small : small;
}

#endif
