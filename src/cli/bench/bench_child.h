/* bench_child.h - work in a process of its own, so that memory figures are honest and no thread
 * pool is carried across fork.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_BENCH_CHILD_H
#define RENYI_BENCH_CHILD_H

#include <stddef.h>

/* Fills `result` and returns an exit code (enum cli_exit); reports its own errors. */
typedef int bench_work(const void *argument, void *result);

/* Runs work(argument, result) in a child and carries `size` bytes of result over. Returns the
 * child's exit code; CLI_FAILED, reported, when there was no child or it died. */
int bench_in_child(bench_work *work, const void *argument, void *result, size_t size);

#endif
