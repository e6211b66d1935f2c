/* thread_pool.h - threads that help with short lists of tasks, for example with packing the weights
 * of a model, matrix by matrix.
 *
 * A list ends when its tasks are done; there is no barrier. So a helper that the system has
 * suspended delays the others only if it holds a task. An OpenMP region for every list would wait
 * for all of its threads at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_THREAD_POOL_H
#define RY_THREAD_POOL_H

#include "renyi/renyi.h"

#include <stddef.h>

typedef struct ry_thread_pool ry_thread_pool;

/* For n_threads threads, of which the caller is one; fewer if the system has no more. */
renyi_status ry_thread_pool_new(ry_thread_pool **out, unsigned n_threads, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;
void ry_thread_pool_free(ry_thread_pool *c, const renyi_allocator *al); /* NULL is allowed */

/* NULL is the caller alone. */
unsigned ry_thread_pool_threads(const ry_thread_pool *c);

/* One task; `thread` < ry_thread_pool_threads differs between tasks that run at the same time. */
typedef renyi_status (*ry_thread_pool_task)(void *user, size_t task, unsigned thread,
                                            renyi_error *err);

/* Runs tasks 0 .. count - 1, begun in this order. After a failure no later task begins; the error
 * is that of the first task that fails, as with one thread. One list at a time. */
renyi_status ry_thread_pool_run(ry_thread_pool *c, size_t count, ry_thread_pool_task task,
                                void *user, renyi_error *err) RENYI_CHECK;

#endif
