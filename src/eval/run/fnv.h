/* fnv.h - FNV-1a: a hash that grows piece by piece, the same on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FNV_H
#define RY_FNV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RY_FNV_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t ry_fnv(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* With its NUL, so that "a", "bc" and "ab", "c" differ. */
static inline uint64_t ry_fnv_text(uint64_t hash, const char *text)
{
    return ry_fnv(hash, text, strlen(text) + 1);
}

#endif
