/* whole_file.c - see whole_file.h.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/whole_file.h"

#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static renyi_status fail_errno(renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s", strerror(errno));
}

static renyi_status read_fd(int fd, uint8_t **bytes, size_t *size, uint64_t max_bytes,
                            const renyi_allocator *al, renyi_error *err)
{
    struct stat st;
    if (fstat(fd, &st)) return fail_errno(err);
    if (!S_ISREG(st.st_mode)) return ry_fail(err, RENYI_ERR_IO, -1, "not a regular file");
    if ((uint64_t)st.st_size > max_bytes)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "file of %llu bytes; at most %llu accepted",
                       (unsigned long long)st.st_size, (unsigned long long)max_bytes);
    *bytes = ry_alloc(al, (size_t)st.st_size, 1);
    if (!*bytes) return ry_fail_nomem(err, (size_t)st.st_size);
    for (*size = 0; *size < (size_t)st.st_size;) {
        const ssize_t n = read(fd, *bytes + *size, (size_t)st.st_size - *size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(err);
        if (n == 0) break; /* shorter than it was: the decoder will say */
        *size += (size_t)n;
    }
    return RENYI_OK;
}

renyi_status ry_file_read(uint8_t **bytes, size_t *size, const char *path, uint64_t max_bytes,
                          const renyi_allocator *al, int *is_missing, renyi_error *err)
{
    *bytes = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hang us */
    if (is_missing) *is_missing = fd < 0 && errno == ENOENT;
    if (fd < 0) return fail_errno(err);
    const renyi_status st = read_fd(fd, bytes, size, max_bytes, al, err);
    close(fd);
    if (!st) return st;
    ry_free(al, *bytes);
    *bytes = NULL;
    return st;
}

void ry_file_prefetch(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
}
