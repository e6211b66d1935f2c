/* sample_log.c - see sample_log.h: opening and writing. SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/sample_log.h"

#include "base/alloc.h"
#include "base/mapped_file.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int put_start(ry_sample_log *log, const char *file, uint64_t index)
{
    return put(log, "{\"file\":") && put_string(log, file) &&
           put(log, ",\"index\":%llu", (unsigned long long)index);
}

static int put_end(ry_sample_log *log)
{
    const size_t n = strlen(log->model);
    if (!put(log, ",\"model\":") || !reserve(log, n)) return 0;
    memcpy(log->buffer + log->used, log->model, n);
    log->used += n;
    return put(log, ",\"run\":\"%s\"}\n", log->run);
}

/* ---- lines --------------------------------------------------------------------------------- */

static int put_sample(ry_sample_log *log, const renyi_eval_sample *s, const char *policy)
{
    int ok =
        put_start(log, s->file, s->index) && put(log, ",\"policy\":") && put_string(log, policy);
    ok = ok && (s->label == RENYI_NO_CLASS ? put(log, ",\"label\":null")
                                           : put(log, ",\"label\":%u", s->label));
    ok = ok && put(log, ",\"prediction\":%u,\"top5\":[", s->prediction);
    for (uint32_t i = 0; ok && i < s->n_top; i++) ok = put(log, "%s%u", i ? "," : "", s->top[i]);
    /* As many digits as bring back the same number. */
    return ok && put(log, "]") && put_real(log, "margin", 9, s->margin) &&
           put_real(log, "loss", 17, s->loss) && put_real(log, "ms", 6, s->ms) && put_end(log);
}

renyi_status ry_sample_log_put(ry_sample_log *log, const renyi_eval_sample *sample,
                               const char *policy, renyi_error *err)
{
    if (log->fd < 0 || put_sample(log, sample, policy)) return RENYI_OK;
    return ry_fail_nomem(err, log->capacity);
}

renyi_status ry_sample_log_fault(ry_sample_log *log, const renyi_dataset_image *photo,
                                 const char *message, renyi_error *err)
{
    if (log->fd < 0) return RENYI_OK;
    if (put_start(log, photo->file, photo->index) && put(log, ",\"error\":") &&
        put_string(log, message) && put_end(log))
        return RENYI_OK;
    return ry_fail_nomem(err, log->capacity);
}

static renyi_status fail_errno(const ry_sample_log *log, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", log->path, strerror(errno));
}

renyi_status ry_sample_log_flush(ry_sample_log *log, renyi_error *err)
{
    for (size_t done = 0; done < log->used;) {
        const ssize_t n = write(log->fd, log->buffer + done, log->used - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_errno(log, err);
        done += (size_t)n;
    }
    log->used = 0;
    return RENYI_OK;
}

/* ---- opening ------------------------------------------------------------------------------- */

static renyi_status resume_from(ry_sample_log *log, ry_logged_take *take, void *user,
                                renyi_error *err)
{
    ry_mapped_file f;
    size_t whole = 0;
    RY_TRY(ry_mapped_file_open(&f, log->path, 0, err));
    const renyi_status st =
        ry_sample_log_read(log, (const char *)f.data, f.size, &whole, take, user, err);
    const int is_torn = whole < f.size;
    ry_mapped_file_close(&f);
    if (st) return st;
    return is_torn && ftruncate(log->fd, (off_t)whole) ? fail_errno(log, err) : RENYI_OK;
}

static renyi_status prepare(ry_sample_log *log, const char *path, const char *model,
                            renyi_error *err)
{
    log->path = ry_strdup(log->al, path);
    if (!log->path || !put_string(log, model) || !reserve(log, 1))
        return ry_fail_nomem(err, strlen(path) + 6 * strlen(model));
    log->buffer[log->used] = 0;
    log->model = ry_strdup(log->al, log->buffer);
    log->used = 0;
    return log->model ? RENYI_OK : ry_fail_nomem(err, strlen(model));
}

renyi_status ry_sample_log_open(ry_sample_log *log, const char *path, uint64_t run,
                                const char *model, int resume, ry_logged_take *take, void *user,
                                const renyi_allocator *al, renyi_error *err)
{
    struct stat st;
    *log = (ry_sample_log){.al = al, .fd = -1};
    if (!path) return RENYI_OK;
    RY_TRY(prepare(log, path, model, err));
    snprintf(log->run, sizeof log->run, "%016llx", (unsigned long long)run);
    log->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (log->fd < 0 || fstat(log->fd, &st)) return fail_errno(log, err);
    if (!S_ISREG(st.st_mode) || st.st_size == 0) return RENYI_OK;
    if (resume) return resume_from(log, take, user, err);
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s: there are results in this file already; resume continues them, another "
                   "name or removing it starts afresh",
                   path);
}

void ry_sample_log_close(ry_sample_log *log)
{
    if (log->fd >= 0) close(log->fd);
    ry_free(log->al, log->path);
    ry_free(log->al, log->model);
    ry_free(log->al, log->buffer);
    *log = (ry_sample_log){.fd = -1};
}
