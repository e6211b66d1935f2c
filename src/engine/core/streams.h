/* streams.h - runs parts of a job at the same time, each on a thread of its own.
 *
 * The caller's thread does part 0. The other threads live for one call: starting one takes some
 * 20 microseconds, nothing stays behind that a fork would lose, and an idle session costs nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_STREAMS_H
#define RY_STREAMS_H

#include "renyi/renyi.h"

enum { RY_MAX_STREAMS = 64 };

typedef renyi_status ry_stream_part(void *user, uint32_t stream, renyi_error *err);

/* Calls part(user, i, ..) for i < n <= RY_MAX_STREAMS and returns when all have returned. The
 * result and *err are those of the first part, by number, that failed. A part whose thread cannot
 * be started runs on the caller's thread, after part 0. */
renyi_status ry_streams_run(uint32_t n, ry_stream_part *part, void *user,
                            renyi_error *err) RENYI_CHECK;

#endif
