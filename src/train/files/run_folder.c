/* run_folder.c - the folder of a training run: its file names, its log, and cleaning up.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "train/files/run_folder.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

renyi_status ry_run_folder_name(ry_run_folder *f, const char *path, const renyi_allocator *al,
                                renyi_error *err)
{
    *f = (ry_run_folder){.log = ry_path_in(al, path, "log.jsonl"),
                         .checkpoint = ry_path_in(al, path, "checkpoint.safetensors"),
                         .model = ry_path_in(al, path, "model.safetensors"),
                         .model_ema = ry_path_in(al, path, "model-ema.safetensors"),
                         .best = ry_path_in(al, path, "best.safetensors")};
    if (f->log && f->checkpoint && f->model && f->model_ema && f->best) return RENYI_OK;
    return ry_fail_nomem(err, 5 * (strlen(path) + 32));
}

void ry_run_folder_free(ry_run_folder *f, const renyi_allocator *al)
{
    ry_free(al, f->log);
    ry_free(al, f->checkpoint);
    ry_free(al, f->model);
    ry_free(al, f->model_ema);
    ry_free(al, f->best);
    *f = (ry_run_folder){0};
}

static int is_leftover(const char *name)
{
    static const char *const ours[] = {"checkpoint.safetensors.", "model.safetensors.",
                                       "model-ema.safetensors.", "best.safetensors."};
    const size_t n = strlen(name);
    if (n < 5 || strcmp(name + n - 4, ".tmp") != 0) return 0;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strncmp(name, ours[i], strlen(ours[i])) == 0) return 1;
    return 0;
}

/* At most the line of the settings, which is written before the first checkpoint. */
static int has_no_updates(const char *log)
{
    FILE *f = fopen(log, "r");
    int lines = 0;
    if (!f) return 0;
    for (int c; lines < 2 && (c = getc(f)) != EOF;) lines += c == '\n';
    fclose(f);
    return lines < 2;
}

int ry_run_folder_is_unbegun(const ry_run_folder *f, const char *path)
{
    static const char *const ours[] = {"log.jsonl", "model.safetensors", "model-ema.safetensors"};
    const int has_log = has_no_updates(f->log); /* it is the first file */
    ry_folder list;
    int is_known = 1;
    if (ry_folder_read(&list, path, NULL, NULL)) return 0;
    for (size_t k = 0; is_known && k < list.count; k++) {
        is_known = has_log && is_leftover(list.items[k].name);
        for (size_t i = 0; has_log && !is_known && i < sizeof ours / sizeof *ours; i++)
            is_known = !strcmp(list.items[k].name, ours[i]);
    }
    ry_folder_free(&list);
    return is_known;
}

renyi_status ry_run_folder_make(const ry_run_folder *f, const char *path, int *made,
                                renyi_error *err)
{
    *made = !mkdir(path, 0777);
    if (*made) return RENYI_OK;
    if (errno != EEXIST) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    if (ry_run_folder_is_unbegun(f, path)) return RENYI_OK;
    if (access(path, R_OK | X_OK))
        return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s is not empty: --resume goes on with the run in it; a new run needs a folder "
                   "of its own",
                   path);
}

void ry_run_folder_undo(const ry_run_folder *f, const char *path, int is_ours, int made)
{
    const char *const files[] = {f->log, f->checkpoint, f->model, f->model_ema, f->best};
    for (size_t i = 0; is_ours && i < sizeof files / sizeof *files; i++) (void)unlink(files[i]);
    if (made) (void)rmdir(path);
}

void ry_run_folder_clear(const ry_run_folder *f, const char *path, const renyi_allocator *al)
{
    ry_run_folder_sweep(path, al);
    (void)unlink(f->model); /* it may be absent */
    (void)unlink(f->model_ema);
}

void ry_run_folder_sweep(const char *path, const renyi_allocator *al)
{
    ry_folder list;
    if (ry_folder_read(&list, path, al, NULL)) return;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.items[i].name;
        char *file = is_leftover(name) ? ry_path_in(al, path, name) : NULL;
        if (file) (void)unlink(file);
        ry_free(al, file);
    }
    ry_folder_free(&list);
}

/* ---- log ------------------------------------------------------------------------------------- */

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

static renyi_status lock_and_truncate(ry_log_file *log, uint64_t keep, renyi_error *err)
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
    const renyi_status st = lock_and_truncate(log, keep, err);
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

renyi_status ry_log_file_write(ry_log_file *log, json_t *line, const renyi_allocator *al,
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
    text[n] = '\n'; /* replaces the NUL, so that one write makes one line */
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
