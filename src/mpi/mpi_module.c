/* mpi_module.c - renyi_ranks over MPI, in a library that the program loads under a launcher.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "cli/kit/ranks_module.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct connection {
    MPI_Comm world; /* a copy, so that no other messages get in */
    MPI_Request request;
    size_t n_ranks, piece;     /* ranks; numbers that a rank adds at a time */
    float *send, *got, *added; /* [n_ranks, piece], [n_ranks, piece], [piece] */
} connection;

enum { SUM_AT_ONCE = 1 << 20 }; /* numbers of a rank in one exchange */

int renyi_mpi_open(ranks_module *out, char *message, size_t size);

/* ---- gathering ----------------------------------------------------------------------------- */

static renyi_status check_mpi(int code, const char *what, renyi_error *err)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;

    if (code == MPI_SUCCESS) return RENYI_OK;
    if (MPI_Error_string(code, text, &n) != MPI_SUCCESS) n = 0;
    if (err) {
        err->code = RENYI_ERR_IO;
        err->offset = -1;
        snprintf(err->message, sizeof err->message, "MPI, %s: %.*s", what, n, text);
    }
    return RENYI_ERR_IO;
}

static renyi_status start_gather(void *user, const void *mine, size_t size, void *all,
                                 renyi_error *err)
{
    connection *c = user;

    return check_mpi(
        MPI_Iallgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, c->world, &c->request),
        "MPI_Iallgather", err);
}

/* Polls with pauses: MPI_Wait would spin on a core that another rank may need. */
static renyi_status finish_gather(void *user, int wait, int *is_done, renyi_error *err)
{
    connection *c = user;
    long nanoseconds = 20000;

    for (*is_done = 0;;) {
        const renyi_status st =
            check_mpi(MPI_Test(&c->request, is_done, MPI_STATUS_IGNORE), "MPI_Test", err);
        if (st || *is_done || !wait) return st;
        const struct timespec pause = {0, nanoseconds};
        nanosleep(&pause, NULL);
        if (nanoseconds < 2000000) nanoseconds *= 2;
    }
}

/* ---- adding -------------------------------------------------------------------------------- */

/* MPI moves data only inside its calls, so poll without pauses at first. If it takes long, a rank
 * is late: then with pauses. */
static renyi_status complete(connection *c, int code, const char *what, renyi_error *err)
{
    enum { QUICK_TESTS = 100000 };
    renyi_status st = check_mpi(code, what, err);
    int is_done = 0;

    for (int i = 0; i < QUICK_TESTS && !st && !is_done; i++) {
        st = finish_gather(c, 0, &is_done, err);
        if (!is_done) sched_yield();
    }
    return st || is_done ? st : finish_gather(c, 1, &is_done, err);
}

/* In rank order and in double, so that the sum does not depend on an algorithm of MPI_Allreduce. */
static void add_pieces(connection *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t r = 0; r < c->n_ranks; r++) sum += (double)c->got[r * n + i];
        c->added[i] = (float)sum;
    }
}

/* At most n_ranks x piece numbers. Each rank gets one piece from all, adds them and sends the sum
 * to all, so each number is sent and received once, for any number of ranks. */
static renyi_status sum_part(connection *c, float *values, size_t n, renyi_error *err)
{
    const size_t piece = (n + c->n_ranks - 1) / c->n_ranks;
    const int count = (int)piece;
    renyi_status st;

    memcpy(c->send, values, n * sizeof *values);
    memset(c->send + n, 0, (c->n_ranks * piece - n) * sizeof *values);
    st = complete(
        c,
        MPI_Ialltoall(c->send, count, MPI_FLOAT, c->got, count, MPI_FLOAT, c->world, &c->request),
        "MPI_Ialltoall", err);
    if (st) return st;
    add_pieces(c, piece);
    st = complete(c,
                  MPI_Iallgather(c->added, count, MPI_FLOAT, c->send, count, MPI_FLOAT, c->world,
                                 &c->request),
                  "MPI_Iallgather", err);
    if (st) return st;
    memcpy(values, c->send, n * sizeof *values);
    return RENYI_OK;
}

static renyi_status sum_ranks(void *user, float *values, size_t n, renyi_error *err)
{
    connection *c = user;
    const size_t most = c->n_ranks * c->piece;

    for (size_t at = 0; at < n; at += most) {
        const renyi_status st = sum_part(c, values + at, n - at < most ? n - at : most, err);
        if (st) return st;
    }
    return RENYI_OK;
}

/* Allocated before any rank waits for another: 12 MB, touched only if something is added. */
static int alloc_buffers(connection *c, int count)
{
    c->n_ranks = (size_t)count;
    c->piece = SUM_AT_ONCE / c->n_ranks ? SUM_AT_ONCE / c->n_ranks : 1;
    c->send = calloc(c->n_ranks * c->piece, sizeof *c->send);
    c->got = calloc(c->n_ranks * c->piece, sizeof *c->got);
    c->added = calloc(c->piece, sizeof *c->added);
    return c->send && c->got && c->added ? 0 : -1;
}

/* ---- cores --------------------------------------------------------------------------------- */

/* Ranks of this machine that may run on one of this rank's cores, this rank included. 1 if the
 * launcher binds each rank to its own cores, all of them if it binds none. */
static uint32_t count_sharing(MPI_Comm world)
{
    MPI_Comm machine;
    cpu_set_t mine, common;
    int n = 1;
    uint32_t sharing = 0;

    if (MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine)) return 1;
    MPI_Comm_size(machine, &n);
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    cpu_set_t *all = calloc((size_t)n, sizeof *all);
    if (all && MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, machine) ==
                   MPI_SUCCESS)
        for (int i = 0; i < n; i++) {
            CPU_AND(&common, &mine, &all[i]);
            sharing += CPU_COUNT(&common) > 0;
        }
    free(all);
    MPI_Comm_free(&machine);
    return sharing ? sharing : 1;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static void free_connection(connection *c)
{
    free(c->send);
    free(c->got);
    free(c->added);
    free(c);
}

static void close_ranks(void *user)
{
    connection *c = user;

    MPI_Comm_free(&c->world);
    MPI_Finalize();
    free_connection(c);
}

static void abort_ranks(void *user, int code)
{
    (void)user;
    MPI_Abort(MPI_COMM_WORLD, code);
}

static int report_failure(char *message, size_t size, const char *text)
{
    snprintf(message, size, "%s", text);
    return -1;
}

int renyi_mpi_open(ranks_module *out, char *message, size_t size)
{
    int level = 0, rank = 0, count = 1;
    connection *c = calloc(1, sizeof *c);

    if (!c) return report_failure(message, size, "no memory");
    if (out->version != RANKS_MODULE_VERSION ||
        MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level)) {
        free(c);
        return report_failure(message, size,
                              out->version != RANKS_MODULE_VERSION
                                  ? "program and module are of different versions; build both again"
                                  : "MPI_Init failed");
    }
    if (MPI_Comm_dup(MPI_COMM_WORLD, &c->world)) {
        free(c);
        return report_failure(message, size, "MPI_Comm_dup failed");
    }
    MPI_Comm_set_errhandler(c->world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(c->world, &rank);
    MPI_Comm_size(c->world, &count);
    if (alloc_buffers(c, count)) {
        free_connection(c);
        return report_failure(message, size, "no memory");
    }
    out->ranks = (renyi_ranks){.struct_size = sizeof out->ranks,
                               .rank = (uint32_t)rank,
                               .n_ranks = (uint32_t)count,
                               .n_sharing = count_sharing(c->world),
                               .user = c,
                               .start = start_gather,
                               .finish = finish_gather,
                               .sum = sum_ranks};
    out->close = close_ranks;
    out->abort = abort_ranks;
    return 0;
}
