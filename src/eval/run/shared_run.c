/* shared_run.c - shares the items of a run among ranks, keeps the file of its results, and resumes
 * from it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/run/shared_run.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/status.h"
#include "eval/data/text_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char part_mark[] = ".rank";

static renyi_status fail_errno(const char *path, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
}

/* ---- parts --------------------------------------------------------------------------------- */

/* FILE.rank<r>; owned (ry_free). NULL = no memory. */
static char *part_path(const char *file, uint32_t rank, const renyi_allocator *al)
{
    const size_t size = strlen(file) + sizeof part_mark + 10;
    char *path = ry_alloc(al, size, 1);
    if (path) snprintf(path, size, "%s%s%u", file, part_mark, rank);
    return path;
}

/* The number at the end of "name.rank<r>"; 0 if the entry is not a part of the file `name`. */
static uint32_t part_number(const char *entry, const char *name)
{
    const size_t n = strlen(name);
    uint32_t number = 0;
    if (strncmp(entry, name, n) != 0 || strncmp(entry + n, part_mark, sizeof part_mark - 1) != 0)
        return 0;
    const char *digits = entry + n + sizeof part_mark - 1;
    return digits[0] != '0' && ry_text_number(ry_text_of(digits), &number) ? number : 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Numbers of the parts beside FILE, ascending; owned (ry_free). A folder that cannot be listed has
 * none. */
static renyi_status list_parts(const char *file, uint32_t **numbers, size_t *count,
                               const renyi_allocator *al, renyi_error *err)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    char *folder = ry_strdup(al, slash ? file : ".");
    size_t capacity = 0;
    *numbers = NULL;
    *count = 0;
    renyi_status st = folder ? RENYI_OK : ry_fail_nomem(err, strlen(file));
    if (folder && slash) folder[slash == file ? 1 : slash - file] = 0;
    ry_folder list;
    const renyi_status read = st ? st : ry_folder_read(&list, folder, al, err);
    const int is_read = read == RENYI_OK;
    if (read == RENYI_ERR_NOMEM) st = read;
    for (size_t i = 0; is_read && !st && i < list.count; i++) {
        const uint32_t number = part_number(list.items[i].name, name);
        if (!number) continue;
        if (ry_grow(al, (void **)numbers, &capacity, *count, sizeof **numbers))
            (*numbers)[(*count)++] = number;
        else
            st = ry_fail_nomem(err, capacity * sizeof **numbers);
    }
    if (is_read) ry_folder_free(&list);
    ry_free(al, folder);
    if (*count) qsort(*numbers, *count, sizeof **numbers, compare_numbers);
    return st;
}

/* ---- reading ------------------------------------------------------------------------------- */

renyi_status ry_run_file_open(ry_run_file *f, const char *file, uint32_t rank,
                              const renyi_allocator *al, renyi_error *err)
{
    *f = (ry_run_file){.al = al, .fd = -1, .torn_at = UINT64_MAX, .is_part = rank > 0};
    if (!file) return RENYI_OK;
    f->base = ry_strdup(al, file);
    if (f->base) f->path = rank ? part_path(file, rank, al) : ry_strdup(al, file);
    return f->path ? RENYI_OK : ry_fail_nomem(err, strlen(file));
}

/* flock, because a lock of fcntl would end when the file is read and closed. A file system without
 * locks is no error; devices are shared by many. */
static renyi_status lock_file(const ry_run_file *f, renyi_error *err)
{
    struct stat st;
    if (fstat(f->fd, &st)) return fail_errno(f->path, err);
    if (!S_ISREG(st.st_mode) || !flock(f->fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_IO, -1,
                   "%s: another process is writing this file; wait until it has ended and resume, "
                   "or give another name",
                   f->path);
}

/* Opens path for appending; makes it if it does not exist. */
static renyi_status create_file(ry_run_file *f, renyi_error *err)
{
    if (f->fd >= 0) return RENYI_OK;
    f->fd = open(f->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    return f->fd < 0 ? fail_errno(f->path, err) : lock_file(f, err);
}

/* What ry_run_file_read was called with. */
typedef struct reading {
    int resume;
    uint64_t max_bytes;
    ry_run_reader *read;
    void *user;
} reading;

static renyi_status read_one(ry_run_file *f, const char *path, const reading *r,
                             uint64_t *n_foreign, renyi_error *err)
{
    struct stat at;
    ry_mapped_file map;
    size_t whole = 0;
    if (stat(path, &at)) return errno == ENOENT ? RENYI_OK : fail_errno(path, err);
    if (!S_ISREG(at.st_mode) || at.st_size == 0) return RENYI_OK;
    if (!r->resume)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s: this file already has results; resume to continue them, or give "
                       "another name, or remove the file",
                       path);
    RY_TRY(ry_mapped_file_open(&map, path, r->max_bytes, err));
    const renyi_status st =
        r->read(r->user, path, (const char *)map.data, map.size, &whole, n_foreign, err);
    if (strcmp(path, f->path) == 0 && whole < map.size) f->torn_at = whole;
    ry_mapped_file_close(&map);
    return st;
}

/* Remembers a part that is removed at the end. Takes ownership of `path` in any case. */
static renyi_status add_part(ry_run_file *f, char *path, renyi_error *err)
{
    if (ry_grow(f->al, (void **)&f->parts, &f->parts_capacity, f->n_parts, sizeof *f->parts)) {
        f->parts[f->n_parts++] = path;
        return RENYI_OK;
    }
    ry_free(f->al, path);
    return ry_fail_nomem(err, f->parts_capacity * sizeof *f->parts);
}

renyi_status ry_run_file_read(ry_run_file *f, int resume, uint64_t max_bytes, ry_run_reader *read,
                              void *user, renyi_error *err)
{
    const reading r = {resume, max_bytes, read, user};
    uint32_t *numbers = NULL;
    size_t count = 0;
    uint64_t n_foreign = 0;
    if (!f->base) return RENYI_OK;
    if (!f->is_part) RY_TRY(create_file(f, err)); /* fail before the run */
    RY_TRY(read_one(f, f->base, &r, &n_foreign, err));
    renyi_status st = list_parts(f->base, &numbers, &count, f->al, err);
    for (size_t i = 0; i < count && !st; i++) {
        char *path = part_path(f->base, numbers[i], f->al);
        n_foreign = 0;
        st = path ? read_one(f, path, &r, &n_foreign, err) : ry_fail_nomem(err, strlen(f->base));
        if (!st && n_foreign && strcmp(path, f->path) == 0) f->is_kept = 1;
        if (!st && !n_foreign)
            st = add_part(f, path, err);
        else
            ry_free(f->al, path);
    }
    ry_free(f->al, numbers);
    return st;
}

/* ---- writing ------------------------------------------------------------------------------- */

renyi_status ry_run_file_begin(ry_run_file *f, renyi_error *err)
{
    if (!f->base) return RENYI_OK;
    RY_TRY(create_file(f, err));
    if (f->torn_at != UINT64_MAX && ftruncate(f->fd, (off_t)f->torn_at))
        return fail_errno(f->path, err);
    f->torn_at = UINT64_MAX;
    return RENYI_OK;
}

renyi_status ry_run_file_write(const ry_run_file *f, const char *bytes, size_t n, renyi_error *err)
{
    while (n) {
        const ssize_t written = write(f->fd, bytes, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return fail_errno(f->path, err);
        bytes += written;
        n -= (size_t)written;
    }
    return RENYI_OK;
}

/* Another rank in the same folder may have removed a part already; that is no error. */
void ry_run_file_drop_parts(ry_run_file *f)
{
    for (size_t i = 0; i < f->n_parts; i++) {
        unlink(f->parts[i]);
        ry_free(f->al, f->parts[i]);
    }
    f->n_parts = 0;
    if (!f->base || !f->is_part) return;
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
    if (!f->is_kept) unlink(f->path);
}

void ry_run_file_close(ry_run_file *f)
{
    if (f->fd >= 0) close(f->fd);
    for (size_t i = 0; i < f->n_parts; i++) ry_free(f->al, f->parts[i]);
    ry_free(f->al, f->parts);
    ry_free(f->al, f->base);
    ry_free(f->al, f->path);
    *f = (ry_run_file){.fd = -1};
}

/* ---- the work ------------------------------------------------------------------------------ */

renyi_status ry_shared_run_list(ry_shared_run *r, size_t n_items,
                                int (*is_done)(const void *user, size_t item), const void *user,
                                const renyi_allocator *al, size_t **todo, size_t *n_todo,
                                renyi_error *err)
{
    size_t n = 0;
    *n_todo = 0;
    *todo = ry_alloc(al, n_items, sizeof **todo);
    if (!*todo) return ry_fail_nomem(err, n_items * sizeof **todo);
    for (size_t i = 0; i < n_items; i++)
        if (!is_done(user, i) && n++ % r->ranks.r.n_ranks == r->ranks.r.rank)
            (*todo)[(*n_todo)++] = i;
    r->n_items = n_items;
    r->n_before = n_items - n;
    return RENYI_OK;
}

/* Counts the other ranks as of their last exchange. */
static renyi_status report_progress(const ry_shared_run *r, renyi_error *err)
{
    const uint64_t done = r->n_before + r->ranks.others_done + r->own_progress.done;
    if (r->progress && r->progress(r->user, done, r->n_items))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

renyi_status ry_shared_run_advance(ry_shared_run *r, uint64_t n, renyi_error *err)
{
    r->own_progress.done += n;
    RY_TRY(ry_ranks_progress(&r->ranks, &r->own_progress, 0, err));
    return report_progress(r, err);
}

/* Waits until all ranks have finished their work. `st` is how this rank's went; if it is stopped
 * while it waits, the others learn of it. */
static renyi_status await_others(ry_shared_run *r, renyi_status st, renyi_error *err)
{
    ry_ranks *k = &r->ranks;
    r->own_progress.is_over = 1;
    while (k->n_over < k->r.n_ranks) {
        renyi_error lost = {0};
        r->own_progress.is_stopped = st != RENYI_OK;
        const renyi_status exchanged = ry_ranks_progress(k, &r->own_progress, 1, &lost);
        if (exchanged) return st ? st : ry_fail(err, exchanged, -1, "%s", lost.message);
        if (!st && k->n_over < k->r.n_ranks) st = report_progress(r, err);
    }
    return st;
}

static renyi_status combine(ry_shared_run *r, ry_run_file *file, const ry_run_steps *steps,
                            void *user, renyi_error *err)
{
    RY_TRY(steps->share(user, err));
    RY_TRY(ry_ranks_agree(&r->ranks, steps->settle(user, err), err));
    ry_run_file_drop_parts(file);
    return RENYI_OK;
}

renyi_status ry_shared_run_execute(ry_shared_run *r, ry_run_file *file, const ry_run_steps *steps,
                                   void *user, renyi_error *err)
{
    renyi_error late = {0};
    r->own_progress = (ry_rank_progress){0};
    r->ranks.others_done = 0;
    r->ranks.n_over = r->ranks.n_stopped = 0;
    RY_TRY(ry_ranks_agree(&r->ranks, ry_run_file_begin(file, err), err));
    renyi_status st = await_others(r, steps->work(user, err), err);
    const renyi_status after = combine(r, file, steps, user, &late);
    if (!st && after) st = ry_fail(err, after, -1, "%s", late.message);
    return ry_ranks_agree(&r->ranks, st, err);
}

/* ---- exchanging results -------------------------------------------------------------------- */

renyi_status ry_exchange_all(ry_ranks *k, const ry_exchange *x, renyi_error *err)
{
    renyi_status st = RENYI_OK;
    uint64_t used; /* in front of the bytes of a chunk; 0 = the rank has sent all */
    for (int is_over = 0; !is_over;) {
        unsigned char *to = k->mine + sizeof used;
        const size_t space = k->chunk - sizeof used;
        used = 0;
        for (size_t n; (n = x->send(x->user, to + used, space - used));) used += n;
        memcpy(k->mine, &used, sizeof used);
        RY_TRY(ry_ranks_gather(k, k->chunk, err));
        is_over = 1;
        for (uint32_t i = 0; i < k->r.n_ranks; i++) {
            const unsigned char *chunk = k->all + i * k->chunk;
            memcpy(&used, chunk, sizeof used);
            is_over &= used == 0;
            if (i == k->r.rank || st || !used) continue;
            st = used <= space
                     ? x->receive(x->user, i, chunk + sizeof used, (size_t)used, err)
                     : ry_fail(err, RENYI_ERR_FORMAT, -1, "rank %u sent a damaged chunk", i);
        }
    }
    return ry_ranks_agree(k, st, err);
}
