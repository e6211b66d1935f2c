/* ranks.h - what ranks say to each other: gathering, agreeing on an outcome, the beat of a run.
 *
 * Everything here is collective: all ranks call it in the same order, whatever went wrong in one of
 * them. Errors of one rank travel as data, so nobody waits for a rank that has left. Only a failure
 * of the caller's own `start` or `finish` ends the talk: from then on everything here fails.
 * Buffers are made beforehand: a lack of memory shows before anyone waits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RANKS_H
#define RY_RANKS_H

#include "renyi/renyi.h"

typedef struct ry_ranks {
    renyi_ranks r;              /* alone: one rank that gathers from itself */
    size_t chunk;               /* bytes that a rank can say at once, at least RY_CHUNK_MIN */
    unsigned char *mine, *all;  /* [chunk], [n_ranks, chunk] */
    int is_beating;             /* a beat was started and is not complete */
    int is_broken;              /* start or finish failed: no more talk */
    uint64_t others_done;       /* of the last complete beat: photos done by the other ranks */
    uint32_t n_over, n_stopped; /* and ranks that run no more, or were told to stop */
} ry_ranks;

enum { RY_CHUNK_MIN = 4096 };

/* `given` may be NULL: alone. A zeroed one may be closed. */
renyi_status ry_ranks_open(ry_ranks *k, const renyi_ranks *given, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;
void ry_ranks_close(ry_ranks *k, const renyi_allocator *al);

/* The first `size` (at most chunk) bytes of `mine` of all ranks, in `all` [n_ranks, size]. */
renyi_status ry_ranks_gather(ry_ranks *k, size_t size, renyi_error *err) RENYI_CHECK;

/* Every rank brings a status: OK only if all are. A rank that is fine gets the message of the first
 * that is not, with its number in front. */
renyi_status ry_ranks_agree(ry_ranks *k, renyi_status mine, renyi_error *err) RENYI_CHECK;

/* ranks_sum.c: every rank's values become the sum over all ranks. Added in double in the order of
 * the ranks, then rounded once: the same bits on every rank and in every run with as many ranks. */
renyi_status ry_ranks_sum(ry_ranks *k, float *values, size_t n, renyi_error *err) RENYI_CHECK;
renyi_status ry_ranks_sum_doubles(ry_ranks *k, double *values, size_t n,
                                  renyi_error *err) RENYI_CHECK;

/* How far a rank is. */
typedef struct ry_beat {
    uint64_t done;       /* photos of its share */
    uint32_t is_over;    /* will run no more */
    uint32_t is_stopped; /* was told to stop, or failed: the others should stop too */
} ry_beat;

/* Once after every batch, without waiting; then with wait = 1 until n_over is n_ranks. */
renyi_status ry_ranks_beat(ry_ranks *k, const ry_beat *mine, int wait,
                           renyi_error *err) RENYI_CHECK;

#endif
