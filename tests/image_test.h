/* image_test.h - what the tests of pictures share: a hash, a picture drawn by a formula, and an
 * allocator that fails when told to and counts what is still out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_IMAGE_TEST_H
#define RENYI_TESTS_IMAGE_TEST_H

#include "renyi/renyi.h"

#include <stdlib.h>

static inline uint64_t fnv1a(const uint8_t *bytes, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

/* Edges, ramps and noise; the same formula is in tools/make-pillow-hashes.py. */
static inline uint8_t drawn(uint32_t x, uint32_t y, uint32_t c)
{
    const uint32_t noise =
        ((x * 73856093u) ^ (y * 19349663u) ^ (c * 83492791u)) * 2654435761u >> 24;
    switch ((x / 32 + y / 32) % 3) {
    case 0: return (uint8_t)noise;
    case 1: return (uint8_t)(x * 3 + y * 5 + c * 40);
    default: return (x / 7 + y / 11) & 1 ? 255 : 0;
    }
}

/* Of exactly the bytes it needs, so that a sanitizer sees every step outside. free() it. */
static inline uint8_t *draw(uint32_t width, uint32_t height)
{
    uint8_t *rgb = malloc((size_t)width * height * 3);
    if (!rgb) abort();
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < 3; c++) rgb[((size_t)y * width + x) * 3 + c] = drawn(x, y, c);
    return rgb;
}

typedef struct counted_heap {
    int left; /* allocations until one fails; negative = never */
    int out;  /* blocks not given back */
    int seen;
} counted_heap;

static inline void *counted_alloc(void *user, size_t size, size_t align)
{
    counted_heap *heap = user;
    void *p = NULL;
    heap->seen++;
    if (heap->left == 0 || posix_memalign(&p, align, size)) return NULL;
    if (heap->left > 0) heap->left--;
    heap->out++;
    return p;
}

static inline void counted_release(void *user, void *ptr, size_t size)
{
    (void)size;
    ((counted_heap *)user)->out--;
    free(ptr);
}

static inline renyi_allocator counted(counted_heap *heap)
{
    return (renyi_allocator){counted_alloc, counted_release, heap};
}

#endif
