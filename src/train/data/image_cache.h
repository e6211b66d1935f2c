/* image_cache.h - decoded photos that stay in memory, up to a number of bytes. What is in it is
 * never thrown out, so a photo that was found may be read without a lock.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_IMAGE_CACHE_H
#define RY_IMAGE_CACHE_H

#include "renyi/renyi.h"

typedef struct ry_cache ry_cache;

/* For photos 0 .. n-1. */
renyi_status ry_cache_new(ry_cache **out, uint64_t n, uint64_t max_bytes, const renyi_allocator *al,
                          renyi_error *err) RENYI_CHECK;
void ry_cache_free(ry_cache *c); /* NULL is fine, here and below: nothing is ever kept */

/* 1 = *out is photo i, borrowed until the cache is freed. */
int ry_cache_find(ry_cache *c, uint64_t i, renyi_image *out);

/* 1 = the cache owns the pixels from now on (of the C heap, renyi_image_decode's); 0 = it has no
 * room, or another thread came first. */
int ry_cache_keep(ry_cache *c, uint64_t i, const renyi_image *image);

uint64_t ry_cache_bytes(ry_cache *c);

#endif
