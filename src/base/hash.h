/* hash.h - 64 bits that tell byte strings apart, the same on every machine; no defence against
 * somebody who wants two strings to collide.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_HASH_H
#define RY_HASH_H

#include "base/rng.h"

#include <stddef.h>

static inline uint64_t ry_hash(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    ry_rng h = ry_rng_new(size);
    for (size_t left = size; left;) {
        const size_t take = left < 8 ? left : 8;
        uint64_t word = 0;
        for (size_t i = 0; i < take; i++) word |= (uint64_t)at[i] << (8 * i);
        h.state = ry_rng_next(&h) ^ word;
        at += take;
        left -= take;
    }
    return ry_rng_next(&h);
}

#endif
