/* half.h - a float as 16 bits, rounded to nearest, ties to even. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef RY_TRAIN_HALF_H
#define RY_TRAIN_HALF_H

#include <math.h>
#include <stdint.h>

/* Finite and |x| < 65520, else the result is infinity or NaN. */
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
    /* 1024 to 2048: a carry goes into the exponent, as it should */
    const unsigned steps = (unsigned)nearbyintf(mantissa * 2048.0f);
    return (uint16_t)(sign | (((unsigned)(exponent + 13) << 10) + steps));
}

#endif
