/* ranks.c - see ranks.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/ranks.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { MAX_RANKS = 16384, CHUNK_MAX = 1 << 16, ALL_MAX = 1 << 26 };

/* ---- alone --------------------------------------------------------------------------------- */

static renyi_status start_alone(void *user, const void *mine, size_t size, void *all,
                                renyi_error *err)
{
    (void)user, (void)err;
    memcpy(all, mine, size);
    return RENYI_OK;
}

static renyi_status finish_alone(void *user, int wait, int *is_done, renyi_error *err)
{
    (void)user, (void)wait, (void)err;
    *is_done = 1;
    return RENYI_OK;
}

/* ---- opening ------------------------------------------------------------------------------- */

static renyi_status check(const renyi_ranks *r, renyi_error *err)
{
    if (r->struct_size != sizeof *r)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_ranks: struct_size %u, this library knows %zu", r->struct_size,
                       sizeof *r);
    if (r->n_ranks < 1 || r->n_ranks > MAX_RANKS || r->rank >= r->n_ranks)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_ranks: rank %u of %u; allowed: 1 to %d ranks",
                       r->rank, r->n_ranks, MAX_RANKS);
    if (!r->start || !r->finish)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_ranks: start or finish is NULL");
    return RENYI_OK;
}

renyi_status ry_ranks_open(ry_ranks *k, const renyi_ranks *given, const renyi_allocator *al,
                           renyi_error *err)
{
    const renyi_ranks alone = {
        .struct_size = sizeof alone, .n_ranks = 1, .start = start_alone, .finish = finish_alone};
    *k = (ry_ranks){.r = alone};
    if (given) {
        RY_TRY(check(given, err));
        k->r = *given;
    }
    if (!k->r.n_sharing) k->r.n_sharing = 1;
    k->chunk = ALL_MAX / k->r.n_ranks;
    if (k->chunk > CHUNK_MAX) k->chunk = CHUNK_MAX;
    k->chunk &= ~(size_t)7; /* 4096 at least, for MAX_RANKS */
    k->mine = ry_calloc(al, k->chunk, 1);
    k->all = ry_calloc(al, k->r.n_ranks, k->chunk);
    return k->mine && k->all ? RENYI_OK : ry_fail_nomem(err, k->r.n_ranks * k->chunk);
}

void ry_ranks_close(ry_ranks *k, const renyi_allocator *al)
{
    ry_free(al, k->mine);
    ry_free(al, k->all);
    *k = (ry_ranks){0};
}

/* ---- talking ------------------------------------------------------------------------------- */

static renyi_status start(ry_ranks *k, size_t size, renyi_error *err)
{
    if (k->is_broken)
        return ry_fail(err, RENYI_ERR_IO, -1, "the other ranks cannot be reached any more");
    const renyi_status st = k->r.start(k->r.user, k->mine, size, k->all, err);
    k->is_broken = st != RENYI_OK;
    return st;
}

static renyi_status finish(ry_ranks *k, int wait, int *is_done, renyi_error *err)
{
    const renyi_status st = k->r.finish(k->r.user, wait, is_done, err);
    k->is_broken = st != RENYI_OK;
    return st;
}

renyi_status ry_ranks_gather(ry_ranks *k, size_t size, renyi_error *err)
{
    int is_done = 0;
    RY_TRY(start(k, size, err));
    return finish(k, 1, &is_done, err);
}

renyi_status ry_ranks_agree(ry_ranks *k, renyi_status mine, renyi_error *err)
{
    renyi_error said = {.code = mine};
    if (mine && err) memcpy(said.message, err->message, sizeof said.message);
    memcpy(k->mine, &said, sizeof said);
    if (mine) err = NULL; /* its message stays */
    const renyi_status st = ry_ranks_gather(k, sizeof said, err);
    if (mine || st) return mine ? mine : st;
    for (uint32_t i = 0; i < k->r.n_ranks; i++) {
        memcpy(&said, k->all + i * sizeof said, sizeof said);
        if (said.code)
            return ry_fail(err, said.code, -1, "rank %u: %.470s", i,
                           said.message[0] ? said.message : renyi_status_name(said.code));
    }
    return RENYI_OK;
}

static void add_up(ry_ranks *k)
{
    k->others_done = 0;
    k->n_over = k->n_stopped = 0;
    for (uint32_t i = 0; i < k->r.n_ranks; i++) {
        ry_beat b;
        memcpy(&b, k->all + i * sizeof b, sizeof b);
        if (i != k->r.rank) k->others_done += b.done;
        k->n_over += b.is_over;
        k->n_stopped += b.is_stopped;
    }
}

renyi_status ry_ranks_beat(ry_ranks *k, const ry_beat *mine, int wait, renyi_error *err)
{
    int is_done = 0;
    if (!k->is_beating) {
        memcpy(k->mine, mine, sizeof *mine);
        RY_TRY(start(k, sizeof *mine, err));
        k->is_beating = 1;
    }
    RY_TRY(finish(k, wait, &is_done, err));
    if (!is_done) return RENYI_OK;
    k->is_beating = 0;
    add_up(k);
    return RENYI_OK;
}
