/* bandwidth.c - bytes a second that this machine reads from memory: threads add up a buffer far
 * larger than the caches. Built and called by engines_lm.py. Large pages are requested: the figure
 * is an upper bound, and page walks would lower it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LANES = 32, MAX_THREADS = 256 }; /* four cache lines at a time, in registers */

typedef struct part {
    const uint64_t *words;
    size_t n; /* multiple of LANES */
    unsigned passes;
    uint64_t sum;
} part;

/* A buffer of `size` bytes whose pages all exist, or NULL. */
void *bandwidth_buffer(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) return NULL;
    (void)madvise(p, size, MADV_HUGEPAGE);
    memset(p, 1, size);
    return p;
}

static void *read_part(void *argument)
{
    part *p = argument;
    uint64_t lanes[LANES] = {0};

    for (unsigned k = 0; k < p->passes; k++) {
        for (size_t i = 0; i < p->n; i += LANES)
            for (int j = 0; j < LANES; j++) lanes[j] += p->words[i + (size_t)j];
        __asm__ volatile("" ::: "memory"); /* every pass reads again */
    }
    for (int j = 0; j < LANES; j++) p->sum += lanes[j];
    return NULL;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each thread reads its own piece of the buffer `passes` times. Bytes a second of all together; 0 =
 * it did not work. */
double bandwidth_read(const void *buffer, size_t size, unsigned threads, unsigned passes)
{
    pthread_t ids[MAX_THREADS];
    part parts[MAX_THREADS];
    unsigned started = 0;

    if (threads < 1 || threads > MAX_THREADS) return 0;
    const size_t each = size / sizeof(uint64_t) / threads / LANES * LANES;
    const double start = now();
    for (; started < threads; started++) {
        parts[started] = (part){(const uint64_t *)buffer + started * each, each, passes, 0};
        if (pthread_create(&ids[started], NULL, read_part, &parts[started]) != 0) break;
    }
    for (unsigned i = 0; i < started; i++) pthread_join(ids[i], NULL);
    const double seconds = now() - start;
    return started < threads ? 0 : (double)(each * sizeof(uint64_t)) * threads * passes / seconds;
}
