/* ranks.c - what the processes of a run exchange: gathered bytes, statuses, sums and progress.
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

static renyi_status check_ranks(const renyi_ranks *r, renyi_error *err)
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
        RY_TRY(check_ranks(given, err));
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

/* ---- gathering ----------------------------------------------------------------------------- */

static renyi_status fail_broken(renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "the other ranks cannot be reached any more");
}

static renyi_status start_gather(ry_ranks *k, size_t size, renyi_error *err)
{
    if (k->is_broken) return fail_broken(err);
    const renyi_status st = k->r.start(k->r.user, k->mine, size, k->all, err);
    k->is_broken = st != RENYI_OK;
    return st;
}

static renyi_status finish_gather(ry_ranks *k, int wait, int *is_done, renyi_error *err)
{
    const renyi_status st = k->r.finish(k->r.user, wait, is_done, err);
    k->is_broken = st != RENYI_OK;
    return st;
}

renyi_status ry_ranks_gather(ry_ranks *k, size_t size, renyi_error *err)
{
    int is_done = 0;
    RY_TRY(start_gather(k, size, err));
    return finish_gather(k, 1, &is_done, err);
}

renyi_status ry_ranks_agree(ry_ranks *k, renyi_status mine, renyi_error *err)
{
    renyi_error sent = {.code = mine};
    if (mine && err) memcpy(sent.message, err->message, sizeof sent.message);
    memcpy(k->mine, &sent, sizeof sent);
    if (mine) err = NULL; /* keep its message */
    const renyi_status st = ry_ranks_gather(k, sizeof sent, err);
    if (mine || st) return mine ? mine : st;
    for (uint32_t i = 0; i < k->r.n_ranks; i++) {
        memcpy(&sent, k->all + i * sizeof sent, sizeof sent);
        if (sent.code)
            return ry_fail(err, sent.code, -1, "rank %u: %.470s", i,
                           sent.message[0] ? sent.message : renyi_status_name(sent.code));
    }
    return RENYI_OK;
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* Sum of element i over the gathered values, all [n_ranks, n]. */
static float sum_floats(const ry_ranks *k, size_t n, size_t i)
{
    double sum = 0;
    for (uint32_t r = 0; r < k->r.n_ranks; r++) {
        float v;
        memcpy(&v, k->all + (r * n + i) * sizeof v, sizeof v);
        sum += (double)v;
    }
    return (float)sum;
}

static double sum_doubles(const ry_ranks *k, size_t n, size_t i)
{
    double sum = 0;
    for (uint32_t r = 0; r < k->r.n_ranks; r++) {
        double v;
        memcpy(&v, k->all + (r * n + i) * sizeof v, sizeof v);
        sum += v;
    }
    return sum;
}

renyi_status ry_ranks_sum(ry_ranks *k, float *values, size_t n, renyi_error *err)
{
    const size_t most = k->chunk / sizeof *values;
    if (k->r.n_ranks == 1) return RENYI_OK;
    if (k->is_broken) return fail_broken(err);
    if (k->r.sum) {
        const renyi_status st = k->r.sum(k->r.user, values, n, err);
        k->is_broken = st != RENYI_OK;
        return st;
    }
    for (size_t at = 0; at < n; at += most) {
        const size_t m = n - at < most ? n - at : most;
        memcpy(k->mine, values + at, m * sizeof *values);
        RY_TRY(ry_ranks_gather(k, m * sizeof *values, err));
        for (size_t i = 0; i < m; i++) values[at + i] = sum_floats(k, m, i);
    }
    return RENYI_OK;
}

renyi_status ry_ranks_sum_doubles(ry_ranks *k, double *values, size_t n, renyi_error *err)
{
    const size_t most = k->chunk / sizeof *values;
    if (k->r.n_ranks == 1) return RENYI_OK;
    for (size_t at = 0; at < n; at += most) {
        const size_t m = n - at < most ? n - at : most;
        memcpy(k->mine, values + at, m * sizeof *values);
        RY_TRY(ry_ranks_gather(k, m * sizeof *values, err));
        for (size_t i = 0; i < m; i++) values[at + i] = sum_doubles(k, m, i);
    }
    return RENYI_OK;
}

/* ---- progress ------------------------------------------------------------------------------ */

static void read_progress(ry_ranks *k)
{
    k->others_done = 0;
    k->n_over = k->n_stopped = 0;
    for (uint32_t i = 0; i < k->r.n_ranks; i++) {
        ry_rank_progress p;
        memcpy(&p, k->all + i * sizeof p, sizeof p);
        if (i != k->r.rank) k->others_done += p.done;
        k->n_over += p.is_over;
        k->n_stopped += p.is_stopped;
    }
}

renyi_status ry_ranks_progress(ry_ranks *k, const ry_rank_progress *mine, int wait,
                               renyi_error *err)
{
    int is_done = 0;
    if (!k->is_exchanging) {
        memcpy(k->mine, mine, sizeof *mine);
        RY_TRY(start_gather(k, sizeof *mine, err));
        k->is_exchanging = 1;
    }
    RY_TRY(finish_gather(k, wait, &is_done, err));
    if (!is_done) return RENYI_OK;
    k->is_exchanging = 0;
    read_progress(k);
    return RENYI_OK;
}
