/* mpi_module.c - renyi_ranks over MPI, a library that the program loads when a launcher started it.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "cli/kit/ranks_module.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct line {
    MPI_Comm world; /* a copy: messages of the library are its own */
    MPI_Request request;
    size_t n_ranks, piece;     /* numbers that a rank adds up at a time */
    float *send, *got, *added; /* [n_ranks, piece], [n_ranks, piece], [piece] */
} line;

enum { SUM_AT_ONCE = 1 << 20 }; /* numbers of a rank that are under way */

int renyi_mpi_open(ranks_module *out, char *message, size_t room);

/* ---- gathering ----------------------------------------------------------------------------- */

static renyi_status check(int code, const char *what, renyi_error *err)
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

static renyi_status start(void *user, const void *mine, size_t size, void *all, renyi_error *err)
{
    line *l = user;

    return check(
        MPI_Iallgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, l->world, &l->request),
        "MPI_Iallgather", err);
}

/* MPI_Wait would spin on a core that the other ranks of this machine may need. */
static renyi_status finish(void *user, int wait, int *is_done, renyi_error *err)
{
    line *l = user;
    long nanoseconds = 20000;

    for (*is_done = 0;;) {
        const renyi_status st =
            check(MPI_Test(&l->request, is_done, MPI_STATUS_IGNORE), "MPI_Test", err);
        if (st || *is_done || !wait) return st;
        const struct timespec pause = {0, nanoseconds};
        nanosleep(&pause, NULL);
        if (nanoseconds < 2000000) nanoseconds *= 2;
    }
}

/* ---- adding -------------------------------------------------------------------------------- */

/* Much is under way, and MPI moves it only while it is asked: no naps until it takes long, when
 * some rank must be late. */
static renyi_status complete(line *l, int code, const char *what, renyi_error *err)
{
    enum { PATIENCE = 100000 };
    renyi_status st = check(code, what, err);
    int is_done = 0;

    for (int i = 0; i < PATIENCE && !st && !is_done; i++) {
        st = finish(l, 0, &is_done, err);
        if (!is_done) sched_yield();
    }
    return st || is_done ? st : finish(l, 1, &is_done, err);
}

/* In the order of the ranks, in double: what MPI_Allreduce gives depends on its algorithm. */
static void add_pieces(line *l, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t r = 0; r < l->n_ranks; r++) sum += (double)l->got[r * n + i];
        l->added[i] = (float)sum;
    }
}

/* At most n_ranks x piece numbers: every rank gets a piece of everyone's, adds them up and gives
 * the sum to all. So each number goes out and comes back once, however many ranks there are. */
static renyi_status sum_part(line *l, float *values, size_t n, renyi_error *err)
{
    const size_t piece = (n + l->n_ranks - 1) / l->n_ranks;
    const int count = (int)piece;
    renyi_status st;

    memcpy(l->send, values, n * sizeof *values);
    memset(l->send + n, 0, (l->n_ranks * piece - n) * sizeof *values);
    st = complete(
        l,
        MPI_Ialltoall(l->send, count, MPI_FLOAT, l->got, count, MPI_FLOAT, l->world, &l->request),
        "MPI_Ialltoall", err);
    if (st) return st;
    add_pieces(l, piece);
    st = complete(l,
                  MPI_Iallgather(l->added, count, MPI_FLOAT, l->send, count, MPI_FLOAT, l->world,
                                 &l->request),
                  "MPI_Iallgather", err);
    if (st) return st;
    memcpy(values, l->send, n * sizeof *values);
    return RENYI_OK;
}

static renyi_status sum(void *user, float *values, size_t n, renyi_error *err)
{
    line *l = user;
    const size_t most = l->n_ranks * l->piece;

    for (size_t at = 0; at < n; at += most) {
        const renyi_status st = sum_part(l, values + at, n - at < most ? n - at : most, err);
        if (st) return st;
    }
    return RENYI_OK;
}

/* Before anyone waits for anyone: 12 MB that are touched only if something is added. */
static int make_room(line *l, int count)
{
    l->n_ranks = (size_t)count;
    l->piece = SUM_AT_ONCE / l->n_ranks ? SUM_AT_ONCE / l->n_ranks : 1;
    l->send = calloc(l->n_ranks * l->piece, sizeof *l->send);
    l->got = calloc(l->n_ranks * l->piece, sizeof *l->got);
    l->added = calloc(l->piece, sizeof *l->added);
    return l->send && l->got && l->added ? 0 : -1;
}

/* ---- cores --------------------------------------------------------------------------------- */

/* Ranks of this machine that may run on a core of ours, ourselves included. A launcher that binds
 * ranks to cores of their own gives 1, one that does not gives them all. */
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

static void drop(line *l)
{
    free(l->send);
    free(l->got);
    free(l->added);
    free(l);
}

static void leave(void *user)
{
    line *l = user;

    MPI_Comm_free(&l->world);
    MPI_Finalize();
    drop(l);
}

static void end_all(void *user, int code)
{
    (void)user;
    MPI_Abort(MPI_COMM_WORLD, code);
}

static int refuse(char *message, size_t room, const char *text)
{
    snprintf(message, room, "%s", text);
    return -1;
}

int renyi_mpi_open(ranks_module *out, char *message, size_t room)
{
    int level = 0, rank = 0, count = 1;
    line *l = calloc(1, sizeof *l);

    if (!l) return refuse(message, room, "no memory");
    if (out->version != RANKS_MODULE_VERSION ||
        MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level)) {
        free(l);
        return refuse(message, room,
                      out->version != RANKS_MODULE_VERSION
                          ? "program and module are of different versions; build both again"
                          : "MPI_Init failed");
    }
    if (MPI_Comm_dup(MPI_COMM_WORLD, &l->world)) {
        free(l);
        return refuse(message, room, "MPI_Comm_dup failed");
    }
    MPI_Comm_set_errhandler(l->world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(l->world, &rank);
    MPI_Comm_size(l->world, &count);
    if (make_room(l, count)) {
        drop(l);
        return refuse(message, room, "no memory");
    }
    out->ranks = (renyi_ranks){.struct_size = sizeof out->ranks,
                               .rank = (uint32_t)rank,
                               .n_ranks = (uint32_t)count,
                               .n_sharing = count_sharing(l->world),
                               .user = l,
                               .start = start,
                               .finish = finish,
                               .sum = sum};
    out->close = leave;
    out->abort = end_all;
    return 0;
}
