/* limits.h - the defaults of renyi_limits, whose zero fields mean them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LIMITS_H
#define RY_LIMITS_H

#include "renyi/renyi.h"

/* A copy with every default filled in; `in` may be NULL. */
static inline renyi_limits ry_limits(const renyi_limits *in)
{
    renyi_limits l = in ? *in : (renyi_limits){0, 0, 0, 0, 0};
    if (!l.max_file_bytes) l.max_file_bytes = (uint64_t)64 << 30;
    if (!l.max_header_bytes) l.max_header_bytes = 100000000; /* safetensors' MAX_HEADER_SIZE */
    if (!l.max_image_bytes) l.max_image_bytes = (uint64_t)256 << 20;
    if (!l.max_pixels) l.max_pixels = 178956970; /* Pillow's decompression-bomb error */
    if (!l.max_image_side) l.max_image_side = 32768;
    return l;
}

#endif
