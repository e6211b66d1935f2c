/* output_file.c - the only way to create a file: it appears under its name when it is complete.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* flock, gethostname */
#include "base/output_file.h"

#include "base/folder.h"
#include "base/hash.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMP_TRIES = 100, TAIL_BYTES = 64 };

static renyi_status fail_io(const ry_output_file *f, const char *doing, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s: cannot %s: %s", f->path, doing, strerror(errno));
}

/* `folder` has at least strlen(path) + 2 bytes. */
static void put_folder_of(char *folder, const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 1;
    memcpy(folder, slash ? path : ".", n);
    folder[n] = 0;
}

/* ---- temporary names ----------------------------------------------------------------------- */

/* Folders may be shared by hosts whose locks do not reach each other. */
static uint32_t host_hash(void)
{
    char name[256] = "";
    (void)gethostname(name, sizeof name - 1);
    return (uint32_t)ry_hash(name, strlen(name));
}

/* Is `name` BASE.HOST-PID-N.tmp of this host? */
static int is_temp_of(const char *name, const char *base, uint32_t host)
{
    char head[16];
    const size_t n = strlen(base);
    snprintf(head, sizeof head, ".%08x-", (unsigned)host);
    if (strncmp(name, base, n) != 0 || strncmp(name + n, head, strlen(head)) != 0) return 0;
    const char *rest = name + n + strlen(head);
    const size_t pid = strspn(rest, "0123456789");
    if (!pid || rest[pid] != '-') return 0;
    rest += pid + 1;
    const size_t number = strspn(rest, "0123456789");
    return number && strcmp(rest + number, ".tmp") == 0;
}

/* Its lock is free only if its writer has ended. Holding it while removing makes a writer that has
 * created the file but not yet locked it choose another name. */
static void remove_if_left(const char *path)
{
    const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (!flock(fd, LOCK_EX | LOCK_NB)) (void)unlink(path);
    close(fd);
}

/* Uses f->temp. Only short memory is an error. */
static renyi_status remove_leftovers(ry_output_file *f, const renyi_allocator *al, renyi_error *err)
{
    const char *slash = strrchr(f->path, '/');
    const uint32_t host = host_hash();
    ry_folder list;
    put_folder_of(f->temp, f->path);
    renyi_status st = ry_folder_read(&list, f->temp, al, err);
    if (st) return st == RENYI_ERR_NOMEM ? st : RENYI_OK;
    for (size_t i = 0; !st && i < list.count; i++) {
        const ry_entry *e = &list.items[i];
        if (e->kind != RY_ENTRY_FILE || !is_temp_of(e->name, slash ? slash + 1 : f->path, host))
            continue;
        char *left = ry_path_in(al, f->temp, e->name);
        if (left)
            remove_if_left(left);
        else
            st = ry_fail_nomem(err, strlen(e->name));
        ry_free(al, left);
    }
    ry_folder_free(&list);
    return st;
}

/* 1 = locked, or the file system has no locks; 0 = another process is removing it. */
static int lock_temp(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return 0;
    return !fstat(fd, &st) && st.st_nlink > 0;
}

/* O_EXCL: never writes to a leftover of another run or through a link. */
static int create_temp(ry_output_file *f, size_t size)
{
    const uint32_t host = host_hash();
    for (unsigned i = 0; i < TEMP_TRIES; i++) {
        snprintf(f->temp, size, "%s.%08x-%ld-%u.tmp", f->path, (unsigned)host, (long)getpid(), i);
        const int fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd >= 0 && lock_temp(fd)) return fd;
        if (fd >= 0) close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* ---- open, write, close -------------------------------------------------------------------- */

/* Pipes and devices cannot be replaced; renaming over /dev/null or /dev/stdout would do that. */
static int is_straight(const char *path, const struct stat *at)
{
    return S_ISFIFO(at->st_mode) || S_ISCHR(at->st_mode) || !strcmp(path, "/dev/stdout") ||
           !strcmp(path, "/dev/stderr") || !strncmp(path, "/dev/fd/", 8) ||
           !strncmp(path, "/proc/self/fd/", 14);
}

static renyi_status open_straight(ry_output_file *f, renyi_error *err)
{
    f->fd = open(f->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return f->fd < 0 ? fail_io(f, "open it", err) : RENYI_OK;
}

renyi_status ry_output_file_open(ry_output_file *f, const char *path, const renyi_allocator *al,
                                 renyi_error *err)
{
    const size_t size = strlen(path) + TAIL_BYTES;
    struct stat at;

    *f = (ry_output_file){path, NULL, -1, 0};
    const int exists = !stat(path, &at);
    if (exists && is_straight(path, &at)) return open_straight(f, err);
    if (exists && !S_ISREG(at.st_mode))
        return ry_fail(err, RENYI_ERR_IO, -1, "%s: exists and is not a regular file", path);
    f->temp = ry_alloc(al, size, 1);
    if (!f->temp) return ry_fail_nomem(err, size);
    renyi_status st = remove_leftovers(f, al, err);
    if (!st) f->fd = create_temp(f, size);
    if (!st && f->fd < 0) st = fail_io(f, "create a file in its folder", err);
    if (st) {
        ry_free(al, f->temp);
        f->temp = NULL;
    } else if (exists && at.st_uid == geteuid()) {
        (void)fchmod(f->fd, at.st_mode & 0777); /* as private as the old file */
    }
    return st;
}

renyi_status ry_output_file_write(ry_output_file *f, const void *bytes, size_t n, renyi_error *err)
{
    const unsigned char *at = bytes;
    while (n) {
        const ssize_t got = write(f->fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            if (!got) errno = ENOSPC;
            return ry_fail(err, RENYI_ERR_IO, (int64_t)f->written,
                           "%s: cannot write after %llu bytes: %s%s", f->path,
                           (unsigned long long)f->written, strerror(errno),
                           f->temp ? "; nothing was left behind" : "");
        }
        at += got;
        n -= (size_t)got;
        f->written += (uint64_t)got;
    }
    return RENYI_OK;
}

/* After a power cut the folder has the new name, too. A folder that cannot be opened, or flushed on
 * its file system (EINVAL), is no failure: the file is there. Uses f->temp. */
static renyi_status flush_folder(ry_output_file *f, renyi_error *err)
{
    renyi_status st = RENYI_OK;
    put_folder_of(f->temp, f->path);
    const int fd = open(f->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return RENYI_OK;
    if (fsync(fd) && errno == EIO) st = fail_io(f, "flush its folder to disk", err);
    close(fd);
    return st;
}

renyi_status ry_output_file_close(ry_output_file *f, renyi_status st, const renyi_allocator *al,
                                  renyi_error *err)
{
    int is_there = 0;
    if (!st && f->temp && fsync(f->fd)) st = fail_io(f, "flush to disk", err);
    /* renamed while the lock is held: nobody takes the finished file for a leftover */
    if (!st && f->temp) {
        is_there = !rename(f->temp, f->path);
        if (!is_there) st = fail_io(f, "rename the finished file", err);
    }
    if (f->temp && !is_there) unlink(f->temp);
    if (close(f->fd) && !st) st = fail_io(f, "close", err);
    if (is_there && !st) st = flush_folder(f, err);
    ry_free(al, f->temp);
    *f = (ry_output_file){NULL, NULL, -1, 0};
    return st;
}

/* ---- for programs -------------------------------------------------------------------------- */

struct renyi_output_file {
    ry_output_file file;
    char path[];
};

renyi_status renyi_output_file_open(renyi_output_file **out, const char *path, renyi_error *err)
{
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_output_file_open: NULL argument");
    *out = NULL;
    renyi_output_file *o = ry_alloc(NULL, sizeof *o + strlen(path) + 1, 1);
    if (!o) return ry_fail_nomem(err, sizeof *o + strlen(path) + 1);
    memcpy(o->path, path, strlen(path) + 1);
    const renyi_status st = ry_output_file_open(&o->file, o->path, NULL, err);
    if (st)
        ry_free(NULL, o);
    else
        *out = o;
    return st;
}

renyi_status renyi_output_file_write(renyi_output_file *o, const void *bytes, size_t size,
                                     renyi_error *err)
{
    if (!o || (size && !bytes))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_output_file_write: NULL argument");
    return ry_output_file_write(&o->file, bytes, size, err);
}

renyi_status renyi_output_file_close(renyi_output_file *o, int is_complete, renyi_error *err)
{
    if (!o) return RENYI_OK;
    const renyi_status dropped = is_complete ? RENYI_OK : RENYI_ERR_ABORTED;
    const renyi_status st = ry_output_file_close(&o->file, dropped, NULL, err);
    ry_free(NULL, o);
    return is_complete ? st : RENYI_OK;
}
