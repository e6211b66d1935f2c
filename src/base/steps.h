/* steps.h - one step of work that several threads share.
 *
 * A step has a number of tiles. Threads draw tile numbers from a shared ticket. The step ends when
 * its tiles are done; there is no barrier. So a thread that the system has suspended delays the
 * others only if it holds a tile, and when it wakes it passes through the finished steps. With
 * barriers, every step on a busy machine would wait for the slowest thread (docs/speed-log.md).
 * model/common/runner.h makes a pass of many steps from these.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_STEPS_H
#define RY_STEPS_H

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

/* The shared part of a step: the next tile and the number of finished tiles, each on a cache line
 * of its own. */
typedef struct ry_ticket {
    _Alignas(64) atomic_size_t next;
    _Alignas(64) atomic_size_t done;
} ry_ticket;

/* One thread's part of a step. */
typedef struct ry_step {
    ry_ticket *ticket;
    size_t count, mine; /* tiles of the step; tiles that this thread has done */
} ry_step;

static inline void ry_ticket_reset(ry_ticket *t)
{
    atomic_init(&t->next, 0);
    atomic_init(&t->done, 0);
}

/* for (size_t t; ry_step_next(&step, &t);) { do tile t } */
static inline int ry_step_next(ry_step *s, size_t *tile)
{
    *tile = atomic_fetch_add_explicit(&s->ticket->next, 1, memory_order_relaxed);
    return *tile < s->count ? (int)++s->mine > 0 : 0;
}

/* A short wait that leaves the core to its other thread. */
static inline void ry_step_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns when all tiles of the step are done by any thread; their writes are then visible. */
static inline void ry_step_end(ry_step *s)
{
    enum { SPINS = 4000 }; /* about 0.1 ms: longer than most tiles, shorter than a time slice */
    atomic_fetch_add_explicit(&s->ticket->done, s->mine, memory_order_release);
    for (unsigned spins = 0;
         atomic_load_explicit(&s->ticket->done, memory_order_acquire) < s->count; spins++) {
        if (spins > SPINS)
            sched_yield();
        else
            ry_step_pause();
    }
}

#endif
