/* sample_log.c - see sample_log.h: writing lines.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/run/sample_log.h"

#include "base/alloc.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "eval/data/text_lines.h"
#include "eval/run/part_files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static renyi_status fail_errno(const char *path, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
}

/* ---- text ---------------------------------------------------------------------------------- */

static int reserve(ry_sample_log *log, size_t more)
{
    if (log->capacity - log->used >= more) return 1;
    const size_t size = 2 * log->capacity + more;
    char *grown = ry_alloc(log->al, size, 1);
    if (!grown) return 0;
    if (log->used) memcpy(grown, log->buffer, log->used);
    ry_free(log->al, log->buffer);
    log->buffer = grown;
    log->capacity = size;
    return 1;
}

/* Short pieces only. */
__attribute__((format(printf, 2, 3))) static int put(ry_sample_log *log, const char *fmt, ...)
{
    enum { PIECE = 128 };
    va_list args;
    if (!reserve(log, PIECE)) return 0;
    va_start(args, fmt);
    const int n = vsnprintf(log->buffer + log->used, PIECE, fmt, args);
    va_end(args);
    if (n < 0 || n >= PIECE) return 0;
    log->used += (size_t)n;
    return 1;
}

/* JSON has no NaN, and a point whatever the locale says. */
static int put_real(ry_sample_log *log, const char *key, int digits, double value)
{
    const size_t start = log->used;
    if (!isfinite(value)) return put(log, ",\"%s\":null", key);
    if (!put(log, ",\"%s\":", key)) return 0;
    const size_t number = log->used;
    if (!put(log, "%.*g", digits, value)) return 0;
    for (size_t i = number; i < log->used; i++)
        if (log->buffer[i] == ',') log->buffer[i] = '.';
    return log->used > start;
}

/* Bytes of the UTF-8 character at s, 0 if it is none. */
static size_t utf8_length(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80) return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    uint32_t code = s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0; /* the NUL at the end too */
        code = code << 6 | (s[i] & 0x3fu);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

/* With quotes; bytes that are not UTF-8 become U+FFFD. */
static int put_string(ry_sample_log *log, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (!reserve(log, 6 * strlen(text) + 3)) return 0;
    log->buffer[log->used++] = '"';
    while (*s) {
        const size_t n = utf8_length(s);
        char *to = log->buffer + log->used;
        if (n == 0)
            log->used += (size_t)snprintf(to, 7, "\\ufffd");
        else if (*s < 0x20 || *s == '"' || *s == '\\')
            log->used += (size_t)snprintf(to, 7, "\\u%04x", *s);
        else
            memcpy(to, s, n), log->used += n;
        s += n ? n : 1;
    }
    log->buffer[log->used++] = '"';
    return 1;
}

/* ---- lines --------------------------------------------------------------------------------- */

renyi_status ry_sample_log_suffix(ry_sample_log *log, const ry_log_run *run, renyi_error *err)
{
    int ok = put(log, ",\"img_size\":%u,\"classes\":%u,\"photos\":%llu,\"data\":\"%s\"",
                 run->image_size, run->n_classes, (unsigned long long)run->photos, run->data);
    if (run->n_shards) ok = ok && put(log, ",\"shard\":\"%u/%u\"", run->shard + 1, run->n_shards);
    ok = ok && put(log, ",\"model\":") && put_string(log, run->model) &&
         put(log, ",\"run\":\"%s\"}\n", run->id) && reserve(log, 1);
    if (ok) {
        log->buffer[log->used] = 0;
        log->suffix = ry_strdup(log->al, log->buffer);
    }
    log->used = 0;
    return log->suffix ? RENYI_OK : ry_fail_nomem(err, 6 * strlen(run->model));
}

static int put_answer(ry_sample_log *log, const ry_logged *line)
{
    const ry_answer *a = &line->answer;
    int ok = line->label == RENYI_NO_CLASS ? put(log, ",\"label\":null")
                                           : put(log, ",\"label\":%u", line->label);
    ok = ok && put(log, ",\"prediction\":%u,\"top5\":[", a->top[0]);
    for (uint32_t i = 0; ok && i < a->n_top; i++) ok = put(log, "%s%u", i ? "," : "", a->top[i]);
    /* As many digits as bring back the same number. */
    return ok && put(log, "],\"right\":%u", a->right) &&
           put_real(log, "margin", 9, (double)a->margin) && put_real(log, "loss", 17, a->loss) &&
           put_real(log, "ms", 6, (double)a->ms) &&
           put_real(log, "ms_rest", 6, (double)a->ms_rest) &&
           put_real(log, "gmacs", 12, line->gmacs) &&
           put_real(log, "gmacs_executed", 12, line->gmacs_executed);
}

static int put_line(ry_sample_log *log, const ry_logged *line)
{
    int ok = put(log, "{\"file\":") && put_string(log, line->file) &&
             put(log, ",\"index\":%llu,\"place\":%llu", (unsigned long long)line->index,
                 (unsigned long long)line->place);
    if (line->policy) ok = ok && put(log, ",\"policy\":") && put_string(log, line->policy);
    if (line->error)
        ok = ok && put(log, ",\"error\":") && put_string(log, line->error);
    else
        ok = ok && put_answer(log, line);
    const size_t n = strlen(log->suffix);
    if (!ok || !reserve(log, n)) return 0;
    memcpy(log->buffer + log->used, log->suffix, n);
    log->used += n;
    return 1;
}

renyi_status ry_sample_log_put(ry_sample_log *log, const ry_logged *line, renyi_error *err)
{
    const size_t start = log->used;
    if (log->fd < 0 || put_line(log, line)) return RENYI_OK;
    log->used = start; /* never half a line */
    return ry_fail_nomem(err, log->capacity);
}

renyi_status ry_sample_log_flush(ry_sample_log *log, renyi_error *err)
{
    for (size_t done = 0; done < log->used;) {
        const ssize_t n = write(log->fd, log->buffer + done, log->used - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_errno(log->path, err);
        done += (size_t)n;
    }
    log->used = 0;
    return RENYI_OK;
}

renyi_status ry_sample_log_sync(ry_sample_log *log, renyi_error *err)
{
    RY_TRY(ry_sample_log_flush(log, err));
    /* A pipe or a device cannot be waited for. */
    if (log->fd >= 0 && fsync(log->fd) && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
        return fail_errno(log->path, err);
    return RENYI_OK;
}

/* ---- sample_log_files ---- */

/* ---- reading ------------------------------------------------------------------------------- */

/* Remember a part that may go; takes `path` in any case. */
static renyi_status add_part(ry_sample_log *log, char *path, renyi_error *err)
{
    if (ry_grow(log->al, (void **)&log->parts, &log->parts_capacity, log->n_parts,
                sizeof *log->parts)) {
        log->parts[log->n_parts++] = path;
        return RENYI_OK;
    }
    ry_free(log->al, path);
    return ry_fail_nomem(err, log->parts_capacity * sizeof *log->parts);
}

static renyi_status read_file(ry_sample_log *log, const char *path, const ry_log_options *opt,
                              uint64_t *n_foreign, renyi_error *err)
{
    struct stat at;
    ry_mapped_file f;
    size_t whole = 0;
    if (stat(path, &at)) return errno == ENOENT ? RENYI_OK : fail_errno(path, err);
    if (!S_ISREG(at.st_mode) || at.st_size == 0) return RENYI_OK;
    if (!opt->resume)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s: there are results in this file already; resume continues them, another "
                       "name or removing it starts afresh",
                       path);
    RY_TRY(ry_mapped_file_open(&f, path, 0, err));
    const renyi_status st = ry_sample_log_read(path, (const char *)f.data, f.size, &whole,
                                               n_foreign, opt->take, opt->user, err);
    if (strcmp(path, log->path) == 0 && whole < f.size) log->torn_at = whole;
    ry_mapped_file_close(&f);
    return st;
}

static renyi_status read_parts(ry_sample_log *log, const ry_log_options *opt, renyi_error *err)
{
    uint32_t *numbers = NULL;
    size_t count = 0;
    renyi_status st = ry_part_list(log->base, &numbers, &count, log->al, err);
    for (size_t i = 0; i < count && !st; i++) {
        uint64_t n_foreign = 0;
        char *path = ry_part_path(log->base, numbers[i], log->al);
        st = path ? read_file(log, path, opt, &n_foreign, err) : ry_fail_nomem(err, 0);
        if (!st && n_foreign && strcmp(path, log->path) == 0) log->is_kept = 1;
        if (!st && !n_foreign)
            st = add_part(log, path, err);
        else
            ry_free(log->al, path);
    }
    ry_free(log->al, numbers);
    return st;
}

/* ---- opening ------------------------------------------------------------------------------- */

static renyi_status open_to_write(ry_sample_log *log, renyi_error *err)
{
    if (log->fd < 0) log->fd = open(log->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    return log->fd < 0 ? fail_errno(log->path, err) : RENYI_OK;
}

renyi_status ry_sample_log_open(ry_sample_log *log, const ry_log_options *opt,
                                const renyi_allocator *al, renyi_error *err)
{
    uint64_t n_foreign = 0;
    *log = (ry_sample_log){.al = al, .fd = -1, .torn_at = UINT64_MAX, .is_part = opt->rank > 0};
    if (!opt->path) return RENYI_OK;
    log->base = ry_strdup(al, opt->path);
    if (log->base)
        log->path = opt->rank ? ry_part_path(log->base, opt->rank, al) : ry_strdup(al, opt->path);
    if (!log->path) return ry_fail_nomem(err, strlen(opt->path));
    RY_TRY(ry_sample_log_suffix(log, &opt->run, err));
    if (!log->is_part) RY_TRY(open_to_write(log, err));
    RY_TRY(read_file(log, log->base, opt, &n_foreign, err));
    return read_parts(log, opt, err);
}

renyi_status ry_sample_log_begin(ry_sample_log *log, renyi_error *err)
{
    if (!log->base) return RENYI_OK;
    RY_TRY(open_to_write(log, err));
    if (log->torn_at != UINT64_MAX && ftruncate(log->fd, (off_t)log->torn_at))
        return fail_errno(log->path, err);
    log->torn_at = UINT64_MAX;
    return RENYI_OK;
}

/* Another rank that sees the same folder may have been faster; a file that stays does no harm. */
void ry_sample_log_drop_parts(ry_sample_log *log)
{
    for (size_t i = 0; i < log->n_parts; i++) {
        unlink(log->parts[i]);
        ry_free(log->al, log->parts[i]);
    }
    log->n_parts = 0;
    if (!log->base || !log->is_part) return;
    if (log->fd >= 0) close(log->fd);
    log->fd = -1;
    if (!log->is_kept) unlink(log->path);
}

void ry_sample_log_close(ry_sample_log *log)
{
    if (log->fd >= 0) close(log->fd);
    for (size_t i = 0; i < log->n_parts; i++) ry_free(log->al, log->parts[i]);
    ry_free(log->al, log->parts);
    ry_free(log->al, log->base);
    ry_free(log->al, log->path);
    ry_free(log->al, log->suffix);
    ry_free(log->al, log->buffer);
    *log = (ry_sample_log){.fd = -1};
}
