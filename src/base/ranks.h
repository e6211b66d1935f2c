/* ranks.h - what the processes ("ranks") of a run exchange: gathered bytes, statuses, sums and
 * progress.
 *
 * Everything here is collective: all ranks call it in the same order, even if one of them has
 * failed. Errors of a rank are sent as data, so no rank waits for one that has left. Only a failure
 * of the caller's own `start` or `finish` is final: every later call fails. Buffers are allocated
 * in advance, so that a lack of memory shows before any rank waits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RANKS_H
#define RY_RANKS_H

#include "renyi/renyi.h"

typedef struct ry_ranks {
    renyi_ranks r;              /* without other processes: one rank that gathers from itself */
    size_t chunk;               /* bytes that a rank can send at once, at least RY_CHUNK_MIN */
    unsigned char *mine, *all;  /* [chunk], [n_ranks, chunk] */
    int is_exchanging;          /* a progress exchange was started and is not complete */
    int is_broken;              /* start or finish failed */
    uint64_t others_done;       /* last progress exchange: images done by the other ranks */
    uint32_t n_over, n_stopped; /* and ranks that have ended, or should stop */
} ry_ranks;

enum { RY_CHUNK_MIN = 4096 };

/* `given` may be NULL: one process. A zeroed ry_ranks may be closed. */
renyi_status ry_ranks_open(ry_ranks *k, const renyi_ranks *given, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;
void ry_ranks_close(ry_ranks *k, const renyi_allocator *al);

/* The first `size` (at most chunk) bytes of `mine` of all ranks, in `all` [n_ranks, size]. */
renyi_status ry_ranks_gather(ry_ranks *k, size_t size, renyi_error *err) RENYI_CHECK;

/* Every rank passes a status: OK only if all are. A rank without a failure gets the message of the
 * first rank with one, with its number in front. */
renyi_status ry_ranks_agree(ry_ranks *k, renyi_status mine, renyi_error *err) RENYI_CHECK;

/* Every rank's values become the sum over all ranks: added in double in the order of the ranks,
 * then rounded once. All ranks get the same bits, in every run with as many ranks. */
renyi_status ry_ranks_sum(ry_ranks *k, float *values, size_t n, renyi_error *err) RENYI_CHECK;
renyi_status ry_ranks_sum_doubles(ry_ranks *k, double *values, size_t n,
                                  renyi_error *err) RENYI_CHECK;

typedef struct ry_rank_progress {
    uint64_t done;       /* images of its share */
    uint32_t is_over;    /* this rank has ended */
    uint32_t is_stopped; /* it was told to stop, or failed: the others should stop too */
} ry_rank_progress;

/* Exchange progress: call it after every batch with wait = 0, then with wait = 1 until n_over is
 * n_ranks. */
renyi_status ry_ranks_progress(ry_ranks *k, const ry_rank_progress *mine, int wait,
                               renyi_error *err) RENYI_CHECK;

#endif
