/* shared_run.h - a run whose work is shared by ranks and whose results go to a file as it runs:
 * what evaluations and VQA runs have in common.
 *
 * Rank 0 writes FILE, rank r writes FILE.rank<r> (a part). A run is resumed from FILE and all parts
 * that exist, with any number of ranks. At the end rank 0 writes the results of all ranks to FILE,
 * and only then the parts are removed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SHARED_RUN_H
#define RY_SHARED_RUN_H

#include "base/ranks.h"

/* ---- the file ------------------------------------------------------------------------------ */

typedef struct ry_run_file {
    const renyi_allocator *al;
    char *base;       /* FILE; NULL = no file is written */
    char *path;       /* what this rank writes: FILE or FILE.rank<r> */
    int fd;           /* of path; -1 = not open */
    int is_part;      /* path is not FILE */
    int is_kept;      /* path has lines of other runs, so it is not removed */
    uint64_t torn_at; /* offset of an incomplete last line in path; UINT64_MAX = there is none */
    char **parts;     /* [n_parts] parts that were read and hold only lines of this run */
    size_t n_parts, parts_capacity;
} ry_run_file;

/* Takes the lines of one file. *whole: bytes up to and with the last newline. *n_foreign: lines of
 * other runs. */
typedef renyi_status ry_run_reader(void *user, const char *path, const char *bytes, size_t size,
                                   size_t *whole, uint64_t *n_foreign, renyi_error *err);

/* Sets the paths; `file` may be NULL. Keeps `al`. */
renyi_status ry_run_file_open(ry_run_file *f, const char *file, uint32_t rank,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* Reads FILE and its parts; rank 0 opens FILE for writing first. It is an error if another process
 * has FILE open, because both would do the same work, and, without `resume`, if it has content.
 * max_bytes: of a file; 0 = no limit. */
renyi_status ry_run_file_read(ry_run_file *f, int resume, uint64_t max_bytes, ry_run_reader *read,
                              void *user, renyi_error *err) RENYI_CHECK;
/* Opens path for appending and cuts off an incomplete last line: no rank may still be reading. */
renyi_status ry_run_file_begin(ry_run_file *f, renyi_error *err) RENYI_CHECK;
renyi_status ry_run_file_write(const ry_run_file *f, const char *bytes, size_t n,
                               renyi_error *err) RENYI_CHECK;
/* FILE is complete: removes the parts that were read and this rank's own. */
void ry_run_file_drop_parts(ry_run_file *f);
void ry_run_file_close(ry_run_file *f); /* {.fd = -1} may be closed too */

/* ---- the work ------------------------------------------------------------------------------ */

typedef struct ry_shared_run {
    ry_ranks ranks;
    ry_rank_progress own_progress; /* progress of this rank */
    uint64_t n_items;              /* images or questions */
    uint64_t n_before;             /* of them were done before this run */
    renyi_progress progress;       /* may be NULL; called with items done of all items */
    void *user;                    /* its first argument */
} ry_shared_run;

/* Items that are not done, in order: with n ranks every n-th of them is for this rank. *todo
 * [*n_todo] is owned by the caller (ry_free). Sets n_items and n_before. */
renyi_status ry_shared_run_list(ry_shared_run *r, size_t n_items,
                                int (*is_done)(const void *user, size_t item), const void *user,
                                const renyi_allocator *al, size_t **todo, size_t *n_todo,
                                renyi_error *err) RENYI_CHECK;

/* This rank did n more items: exchanges progress with the other ranks without waiting, and reports
 * it. RENYI_ERR_ABORTED if the callback asks to stop. When ranks.n_stopped is not 0 another rank
 * stopped, and this one should stop too. */
renyi_status ry_shared_run_advance(ry_shared_run *r, uint64_t n, renyi_error *err) RENYI_CHECK;

typedef struct ry_run_steps {
    renyi_status (*work)(void *user, renyi_error *err);   /* this rank's items */
    renyi_status (*share)(void *user, renyi_error *err);  /* collective: all results to all ranks */
    renyi_status (*settle)(void *user, renyi_error *err); /* rank 0 completes FILE */
} ry_run_steps;

/* Collective: opens the file for writing, then the steps in order. A rank that has finished its
 * work waits for the others. Results are shared and written also when a rank failed or was stopped;
 * all ranks return an error then. */
renyi_status ry_shared_run_execute(ry_shared_run *r, ry_run_file *file, const ry_run_steps *steps,
                                   void *user, renyi_error *err) RENYI_CHECK;

/* ---- exchanging results -------------------------------------------------------------------- */

typedef struct ry_exchange {
    void *user;
    /* Writes the next bytes to send, at most `space`. 0 = nothing is left, or the next record needs
     * more space; every record must fit in RY_CHUNK_MIN - 8 bytes. */
    size_t (*send)(void *user, unsigned char *to, size_t space);
    /* Bytes of another rank, in the order in which it sent them. */
    renyi_status (*receive)(void *user, uint32_t rank, const unsigned char *bytes, size_t n,
                            renyi_error *err);
} ry_exchange;

/* Collective: every rank sends all it has to all others. After an error a rank goes on taking part,
 * because the others would wait for it; then all ranks return an error. */
renyi_status ry_exchange_all(ry_ranks *k, const ry_exchange *x, renyi_error *err) RENYI_CHECK;

#endif
