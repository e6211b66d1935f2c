/* checked.h - sums and products of sizes from files, which may overflow. Each function returns 1
 * and sets *out if the result fits, else 0.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CHECKED_H
#define RY_CHECKED_H

#include <stddef.h>
#include <stdint.h>

static inline int ry_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline int ry_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline int ry_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline int ry_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

#endif
