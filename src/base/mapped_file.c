/* mapped_file.c -
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/mapped_file.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hang us */
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
