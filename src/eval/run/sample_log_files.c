/* sample_log_files.c - see sample_log.h: the files of a log, opened, resumed and tidied up.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "eval/data/text_lines.h"
#include "eval/run/part_files.h"
#include "eval/run/sample_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static renyi_status fail_errno(const char *path, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
}

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
