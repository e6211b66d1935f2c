/* output_file.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "formats/output_file.h"

#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMP_TRIES = 100 };

static renyi_status fail_io(const ry_output_file *f, const char *doing, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s: cannot %s: %s", f->path, doing, strerror(errno));
}

/* O_EXCL: a leftover of another run, or somebody's link, is never written through. */
static int create_temp(ry_output_file *f, size_t size)
{
    for (unsigned i = 0; i < TEMP_TRIES; i++) {
        snprintf(f->temp, size, "%s.%ld-%u.tmp", f->path, (long)getpid(), i);
        const int fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

renyi_status ry_output_file_open(ry_output_file *f, const char *path, const renyi_allocator *al,
                                 renyi_error *err)
{
    const size_t size = strlen(path) + 48;
    struct stat st;

    *f = (ry_output_file){path, NULL, -1, 0};
    /* renaming over a device, /dev/null for one, would replace it */
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return ry_fail(err, RENYI_ERR_IO, -1, "%s: exists and is not a regular file", path);
    f->temp = ry_alloc(al, size, 1);
    if (!f->temp) return ry_fail_nomem(err, size);
    f->fd = create_temp(f, size);
    if (f->fd >= 0) return RENYI_OK;
    const renyi_status failed = fail_io(f, "create a file in its folder", err);
    ry_free(al, f->temp);
    f->temp = NULL;
    return failed;
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
                           "%s: cannot write after %llu bytes: %s; nothing was left behind",
                           f->path, (unsigned long long)f->written, strerror(errno));
        }
        at += got;
        n -= (size_t)got;
        f->written += (uint64_t)got;
    }
    return RENYI_OK;
}

renyi_status ry_output_file_close(ry_output_file *f, renyi_status st, const renyi_allocator *al,
                                  renyi_error *err)
{
    if (!st && fsync(f->fd)) st = fail_io(f, "flush to disk", err);
    if (close(f->fd) && !st) st = fail_io(f, "close", err);
    if (!st && rename(f->temp, f->path)) st = fail_io(f, "rename the finished file", err);
    if (st) unlink(f->temp);
    ry_free(al, f->temp);
    *f = (ry_output_file){NULL, NULL, -1, 0};
    return st;
}
