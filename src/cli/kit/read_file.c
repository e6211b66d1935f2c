/* read_file.c - see read_file.h. Reads pipes as well as files, so it cannot trust a size.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/read_file.h"

#include "cli/kit/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, size_t capacity, size_t max_bytes, file_bytes *out, char **why)
{
    out->data = cli_alloc(capacity + 1, 1);
    for (;;) {
        if (out->size == capacity) {
            capacity *= 2;
            out->data = cli_grow(out->data, capacity + 1, 1);
        }
        const ssize_t n = read(fd, out->data + out->size, capacity - out->size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            *why = cli_copy(strerror(errno));
            return -1;
        }
        if (n == 0) break;
        out->size += (size_t)n;
        if (out->size > max_bytes) {
            *why = cli_format("more than the %zu bytes accepted", max_bytes);
            return -1;
        }
    }
    out->data[out->size] = 0;
    return 0;
}

int read_file(const char *path, size_t max_bytes, file_bytes *out, char **why)
{
    const int is_stdin = strcmp(path, "-") == 0;
    const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    size_t capacity = 1 << 16;
    struct stat st;

    *out = (file_bytes){0};
    *why = NULL;
    if (fd < 0) {
        *why = cli_copy(strerror(errno));
        return -1;
    }
    /* One byte more than the file has: the read that finds the end needs no growing. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uintmax_t)st.st_size <= max_bytes)
        capacity = (size_t)st.st_size + 1;
    const int rc = read_all(fd, capacity, max_bytes, out, why);
    if (!is_stdin) close(fd);
    if (rc) {
        free(out->data);
        *out = (file_bytes){0};
    }
    return rc;
}
