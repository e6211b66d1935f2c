/* mpi_module.c - renyi_ranks over MPI, a library that the program loads when a launcher started it.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "ranks_module.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct line {
    MPI_Comm world; /* a copy: messages of the library are its own */
    MPI_Request request;
} line;

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

static void leave(void *user)
{
    line *l = user;

    MPI_Comm_free(&l->world);
    MPI_Finalize();
    free(l);
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
    out->ranks = (renyi_ranks){.struct_size = sizeof out->ranks,
                               .rank = (uint32_t)rank,
                               .n_ranks = (uint32_t)count,
                               .n_sharing = count_sharing(l->world),
                               .user = l,
                               .start = start,
                               .finish = finish};
    out->close = leave;
    out->abort = end_all;
    return 0;
}
