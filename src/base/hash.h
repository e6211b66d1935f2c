/* hash.h - 64-bit hashes of bytes, the same on every machine. They do not resist input made to
 * collide.
 *
 * Values of both functions are stored in files: ry_hash for a whole buffer, eight bytes per step,
 * and FNV-1a (ry_hash_add) for a hash that is built in parts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_HASH_H
#define RY_HASH_H

#include "base/rng.h"

#include <stddef.h>
#include <string.h>

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

#define RY_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t ry_hash_add(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The terminating NUL is hashed too, so that "a", "bc" and "ab", "c" differ. */
static inline uint64_t ry_hash_add_text(uint64_t hash, const char *text)
{
    return ry_hash_add(hash, text, strlen(text) + 1);
}

#endif
