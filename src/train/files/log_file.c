/* log_file.c - see log_file.h.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "train/files/log_file.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static renyi_status fail_errno(const ry_log_file *log, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", log->path, strerror(errno));
}

/* The end of the last whole line within the first `end` bytes. */
static renyi_status find_line_end(const ry_log_file *log, uint64_t *end, renyi_error *err)
{
    char c;
    while (*end) {
        const ssize_t n = pread(log->fd, &c, 1, (off_t)(*end - 1));
        if (n < 0) return fail_errno(log, err);
        if (n == 1 && c == '\n') return RENYI_OK;
        --*end;
    }
    return RENYI_OK;
}

static renyi_status prepare(ry_log_file *log, uint64_t keep, renyi_error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat st;
    if (fcntl(log->fd, F_SETLK, &lock) && (errno == EACCES || errno == EAGAIN))
        return ry_fail(err, RENYI_ERR_IO, -1, "%s: another process is writing this run", log->path);
    if (fstat(log->fd, &st)) return fail_errno(log, err);
    log->bytes = (uint64_t)st.st_size < keep ? (uint64_t)st.st_size : keep;
    RY_TRY(find_line_end(log, &log->bytes, err));
    if (ftruncate(log->fd, (off_t)log->bytes) || lseek(log->fd, (off_t)log->bytes, SEEK_SET) < 0)
        return fail_errno(log, err);
    return RENYI_OK;
}

renyi_status ry_log_file_open(ry_log_file *log, const char *path, uint64_t keep, renyi_error *err)
{
    *log = (ry_log_file){path, open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), 0};
    if (log->fd < 0) return fail_errno(log, err);
    const renyi_status st = prepare(log, keep, err);
    if (st) ry_log_file_close(log);
    return st;
}

void ry_log_file_close(ry_log_file *log)
{
    if (log->fd >= 0) close(log->fd);
    log->fd = -1;
}

static renyi_status write_all(ry_log_file *log, const char *text, size_t n, renyi_error *err)
{
    while (n) {
        const ssize_t got = write(log->fd, text, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            if (!got) errno = ENOSPC;
            return fail_errno(log, err);
        }
        text += got;
        n -= (size_t)got;
        log->bytes += (uint64_t)got;
    }
    return RENYI_OK;
}

renyi_status ry_log_file_put(ry_log_file *log, json_t *line, const renyi_allocator *al,
                             renyi_error *err)
{
    char *text = NULL;
    if (!line) return ry_fail(err, RENYI_ERR_NOMEM, -1, "out of memory for a line of the log");
    if (log->fd < 0) {
        json_decref(line);
        return RENYI_OK;
    }
    RY_TRY(ry_json_text(&text, line, al, err));
    const size_t n = strlen(text);
    text[n] = '\n'; /* in the place of the NUL: one write, one line */
    const renyi_status st = write_all(log, text, n + 1, err);
    ry_free(al, text);
    return st;
}

renyi_status ry_log_file_sync(ry_log_file *log, renyi_error *err)
{
    if (log->fd >= 0 && fsync(log->fd) && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
        return fail_errno(log, err);
    return RENYI_OK;
}

json_t *ry_log_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }
