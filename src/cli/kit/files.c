/* files.c - whole files in and out, folders, and the folder for files that can be made again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ------------------------------------------------------------------------------- */

/* Reads pipes, too, so the size of the file is only a first guess. */
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
    /* One byte more than the file, so that the read that finds the end needs no larger buffer. */
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

int read_lines(const char *path, size_t max_bytes, cli_strings *lines, char **why)
{
    file_bytes bytes;

    if (read_file(path, max_bytes, &bytes, why)) return -1;
    for (char *line = (char *)bytes.data; line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = 0;
        line[strcspn(line, "\r")] = 0;
        if (next || *line) cli_strings_add(lines, cli_copy(line));
        line = next;
    }
    free(bytes.data);
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

int write_whole_file(const char *path, const char *bytes, size_t size)
{
    renyi_output_file *out = NULL;
    renyi_error err = {0};
    renyi_status st = renyi_output_file_open(&out, path, &err);

    if (st == RENYI_OK) {
        st = renyi_output_file_write(out, bytes, size, &err);
        const renyi_status closed = renyi_output_file_close(out, st == RENYI_OK, &err);
        if (st == RENYI_OK) st = closed;
    }
    if (st != RENYI_OK) cli_fail(&err);
    return st == RENYI_OK ? 0 : -1;
}

int write_stream_file(const char *path, void (*put)(FILE *f, const void *user), const void *user)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    int is_bad = !f;

    if (f) {
        put(f, user);
        is_bad = ferror(f);
        is_bad |= fclose(f);
    }
    if (is_bad) cli_error("%s: out of memory", path);
    const int code = is_bad ? -1 : write_whole_file(path, text, size);
    free(text);
    return code;
}

int check_writable(const char *path)
{
    renyi_output_file *out = NULL;
    renyi_error err = {0};
    struct stat st;

    if (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))) return 0;
    if (renyi_output_file_open(&out, path, &err) == RENYI_OK &&
        renyi_output_file_close(out, 0, &err) == RENYI_OK)
        return 0;
    cli_fail(&err);
    return -1;
}

int check_absent(const char *path, int force)
{
    struct stat st;

    if (force || stat(path, &st) || !S_ISREG(st.st_mode)) return 0;
    cli_error("%s exists already; give --force to replace it, or another name", path);
    return -1;
}

/* ---- folders ------------------------------------------------------------------------------- */

int make_directories(const char *path)
{
    char *partial = cli_copy(path);
    int rc = 0;

    for (char *at = partial + 1; !rc && *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        if (mkdir(partial, 0777) && errno != EEXIST) rc = -1;
        *at = '/';
    }
    if (!rc && mkdir(partial, 0777) && errno != EEXIST) rc = -1;
    free(partial);
    return rc;
}

char *user_cache_folder(const char *name)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;

    if (xdg && *xdg == '/') /* its specification says to ignore a relative path */
        path = cli_format("%s/renyi/%s", xdg, name);
    else if (home && *home)
        path = cli_format("%s/.cache/renyi/%s", home, name);
    if (path && make_directories(path) == 0) return path;
    cli_detail("no cache: %s%s%s", path ? path : "neither XDG_CACHE_HOME nor HOME is set",
               path ? ": " : "", path ? strerror(errno) : "");
    free(path);
    return NULL;
}
