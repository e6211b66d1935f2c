/* file.c - whole files: mapped, or read into the heap.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"

#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK: opening a pipe must not block; it is refused as no regular file. */
static int open_to_read(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

/* ---- mapped -------------------------------------------------------------------------------- */

static const unsigned char empty_file[1];

static renyi_status map_fd(ry_mapped_file *out, int fd, const char *path, uint64_t max_bytes,
                           renyi_error *err)
{
    struct stat st;
    if (fstat(fd, &st)) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return ry_fail(err, RENYI_ERR_IO, -1, "%s: not a regular file", path);
    const uint64_t size = (uint64_t)st.st_size;
    if (max_bytes && size > max_bytes)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: file of %llu bytes; at most %llu accepted",
                       path, (unsigned long long)size, (unsigned long long)max_bytes);
    out->data = empty_file;
    if (size) {
        void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            return ry_fail(err, RENYI_ERR_IO, -1, "%s: cannot map: %s", path, strerror(errno));
        out->data = p;
    }
    out->size = (size_t)size;
    out->device = (uint64_t)st.st_dev;
    out->inode = (uint64_t)st.st_ino;
    return RENYI_OK;
}

renyi_status ry_mapped_file_open(ry_mapped_file *out, const char *path, uint64_t max_bytes,
                                 renyi_error *err)
{
    memset(out, 0, sizeof *out);
    const int fd = open_to_read(path);
    if (fd < 0) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    const renyi_status st = map_fd(out, fd, path, max_bytes, err);
    close(fd);
    return st;
}

int ry_mapped_file_is(const ry_mapped_file *f, const char *path)
{
    struct stat st;
    return !stat(path, &st) && (uint64_t)st.st_dev == f->device && (uint64_t)st.st_ino == f->inode;
}

void ry_mapped_file_close(ry_mapped_file *f)
{
    if (f->size) munmap((void *)(uintptr_t)f->data, f->size);
    memset(f, 0, sizeof *f);
}

/* ---- read into the heap -------------------------------------------------------------------- */

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
        if (n == 0) break; /* truncated meanwhile; the decoder reports it */
        *size += (size_t)n;
    }
    return RENYI_OK;
}

renyi_status ry_file_read(uint8_t **bytes, size_t *size, const char *path, uint64_t max_bytes,
                          const renyi_allocator *al, int *is_missing, renyi_error *err)
{
    *bytes = NULL;
    const int fd = open_to_read(path);
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
#ifdef POSIX_FADV_WILLNEED /* macOS has none */
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return; /* opening a pipe would disturb its writer */
    const int fd = open_to_read(path);
    if (fd < 0) return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
#else
    (void)path;
#endif
}
