/* test_heap.h - an allocator for tests that counts, and fails when told to.
 * Needs posix_memalign: define _GNU_SOURCE or _POSIX_C_SOURCE before the first include.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_HEAP_H
#define TEST_HEAP_H

#include "renyi/renyi.h"

#include <stdlib.h>

typedef struct test_heap {
    size_t calls, live; /* calls so far; bytes that were not given back */
    size_t fail_at;     /* this call fails, counted from 1; 0 = none */
    int fail_on;        /* and every call after it */
} test_heap;

static inline void *test_heap_alloc(void *user, size_t size, size_t align)
{
    test_heap *h = user;
    void *p = NULL;
    h->calls++;
    const int fails = h->fail_at && (h->fail_on ? h->calls >= h->fail_at : h->calls == h->fail_at);
    if (fails || posix_memalign(&p, align, size)) return NULL;
    h->live += size;
    return p;
}

static inline void test_heap_release(void *user, void *p, size_t size)
{
    ((test_heap *)user)->live -= size;
    free(p);
}

static inline renyi_allocator test_heap_of(test_heap *h)
{
    return (renyi_allocator){test_heap_alloc, test_heap_release, h};
}

#endif
