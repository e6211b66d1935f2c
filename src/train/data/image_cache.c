/* image_cache.c - see image_cache.h.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "train/data/image_cache.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"

#include <pthread.h>

struct ry_cache {
    renyi_image *photos; /* [n], rgb = NULL: not here */
    uint64_t n, max_bytes;
    renyi_allocator al;
    pthread_mutex_t lock; /* of photos and bytes */
    uint64_t bytes;
};

renyi_status ry_cache_new(ry_cache **out, uint64_t n, uint64_t max_bytes, const renyi_allocator *al,
                          renyi_error *err)
{
    *out = NULL;
    if (n > SIZE_MAX / sizeof(renyi_image)) return ry_fail_nomem(err, SIZE_MAX);
    ry_cache *c = ry_calloc(al, 1, sizeof *c);
    renyi_image *photos = ry_calloc(al, (size_t)n, sizeof *photos);
    if (!c || !photos) {
        ry_free(al, photos);
        ry_free(al, c);
        return ry_fail_nomem(err, (size_t)n * sizeof *photos);
    }
    *c = (ry_cache){.photos = photos, .n = n, .max_bytes = max_bytes};
    if (al) c->al = *al;
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return RENYI_OK;
}

void ry_cache_free(ry_cache *c)
{
    if (!c) return;
    const renyi_allocator al = c->al;
    for (uint64_t i = 0; i < c->n; i++) renyi_image_free(&c->photos[i], NULL);
    pthread_mutex_destroy(&c->lock);
    ry_free(&al, c->photos);
    ry_free(&al, c);
}

int ry_cache_find(ry_cache *c, uint64_t i, renyi_image *out)
{
    if (!c) return 0;
    pthread_mutex_lock(&c->lock);
    *out = c->photos[i];
    pthread_mutex_unlock(&c->lock);
    return out->rgb != NULL;
}

int ry_cache_keep(ry_cache *c, uint64_t i, const renyi_image *image)
{
    const uint64_t stride = image->stride ? image->stride : 3 * (uint64_t)image->width;
    const uint64_t bytes = stride * image->height;
    if (!c) return 0;
    pthread_mutex_lock(&c->lock);
    const int is_kept = !c->photos[i].rgb && bytes <= c->max_bytes - c->bytes;
    if (is_kept) {
        c->photos[i] = *image;
        c->bytes += bytes;
    }
    pthread_mutex_unlock(&c->lock);
    return is_kept;
}

uint64_t ry_cache_bytes(ry_cache *c)
{
    if (!c) return 0;
    pthread_mutex_lock(&c->lock);
    const uint64_t bytes = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return bytes;
}
