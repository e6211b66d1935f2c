/* vqa_run_file.c - the file of answers while it is written: resumed, added to, put in order.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "eval/run/part_files.h"
#include "eval/vqa/vqa_run.h"
#include "formats/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct ry_vqa_run_file {
    char *path;       /* what this rank writes */
    int fd;           /* -1 = not open */
    size_t whole;     /* its bytes up to the last newline */
    int is_torn;      /* there are more: a line that was being written */
    uint64_t n_lines; /* in FILE, when it was read */
    uint32_t *parts;  /* [n_parts] FILE.rank<r> that were read */
    size_t n_parts;
};

static renyi_status fail_errno(const char *path, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
}

/* ---- what is there ------------------------------------------------------------------------- */

/* A missing file is an empty one. */
static renyi_status read_file(ry_vqa_run *r, const char *path, renyi_error *err)
{
    uint8_t *bytes;
    size_t size, whole = 0;
    int is_missing;
    renyi_status st = ry_file_read(&bytes, &size, path, r->v->max_file_bytes, &is_missing, err);
    if (st) return is_missing ? RENYI_OK : ry_fail_in(err, st, path);
    if (size && !r->o.resume)
        st = ry_fail(err, RENYI_ERR_ARG, -1,
                     "%s: there are answers in this file already; resume continues them, another "
                     "name or removing it starts afresh",
                     path);
    if (!st) st = ry_vqa_answers_take(r->a, path, (const char *)bytes, size, &whole, err);
    if (strcmp(path, r->file->path) == 0) {
        r->file->whole = whole;
        r->file->is_torn = whole < size;
    }
    ry_free(NULL, bytes);
    return st;
}

static renyi_status read_parts(ry_vqa_run *r, renyi_error *err)
{
    ry_vqa_run_file *f = r->file;
    RY_TRY(ry_part_list(r->o.answers, &f->parts, &f->n_parts, &r->v->al, err));
    for (size_t i = 0; i < f->n_parts; i++) {
        char *path = ry_part_path(r->o.answers, f->parts[i], &r->v->al);
        const renyi_status st = path ? read_file(r, path, err) : ry_fail_nomem(err, 64);
        ry_free(&r->v->al, path);
        RY_TRY(st);
    }
    return RENYI_OK;
}

/* A file is about one run, and nothing in it may be lost when it is put in order. */
static renyi_status check(const ry_vqa_run *r, renyi_error *err)
{
    const renyi_vqa_answers_info *i = &r->a->info;
    if (i->n_foreign)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s: %llu answers in it are to other questions; give the questions that it "
                       "was made for, or another file",
                       r->o.answers, (unsigned long long)i->n_foreign);
    if (!i->n_answered || strcmp(r->a->run, r->words.id) == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s: answers of '%.80s' with policy '%.120s', not of this run (or with other "
                   "settings, such as the length of answers); give another file",
                   r->o.answers, i->model, i->policy ? i->policy : "none");
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Only when all ranks have read what there is. */
static renyi_status open_to_write(ry_vqa_run_file *f, renyi_error *err)
{
    f->fd = open(f->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (f->fd < 0 || (f->is_torn && ftruncate(f->fd, (off_t)f->whole)))
        return fail_errno(f->path, err);
    return RENYI_OK;
}

renyi_status ry_vqa_file_open(ry_vqa_run *r, renyi_error *err)
{
    const renyi_allocator *al = &r->v->al;
    const uint32_t rank = r->ranks.r.rank;
    if (!r->o.answers) return RENYI_OK;
    ry_vqa_run_file *f = r->file = ry_calloc(al, 1, sizeof *f);
    if (!f) return ry_fail_nomem(err, sizeof *f);
    f->fd = -1;
    f->path = rank ? ry_part_path(r->o.answers, rank, al) : ry_strdup(al, r->o.answers);
    if (!f->path) return ry_fail_nomem(err, strlen(r->o.answers));
    RY_TRY(read_file(r, r->o.answers, err));
    f->n_lines = r->a->info.n_answered + r->a->info.n_repeated;
    RY_TRY(read_parts(r, err));
    return check(r, err);
}

renyi_status ry_vqa_file_begin(ry_vqa_run *r, renyi_error *err)
{
    return r->file ? open_to_write(r->file, err) : RENYI_OK;
}

static renyi_status write_whole(const ry_vqa_run_file *f, const char *bytes, size_t n,
                                renyi_error *err)
{
    while (n) {
        const ssize_t got = write(f->fd, bytes, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return fail_errno(f->path, err);
        bytes += got;
        n -= (size_t)got;
    }
    return RENYI_OK;
}

renyi_status ry_vqa_file_put(ry_vqa_run *r, const char *line, renyi_error *err)
{
    const size_t n = strlen(line);
    if (!r->file) return RENYI_OK;
    char *ended = ry_alloc(&r->v->al, n + 1, 1); /* one write, so that lines are hardly ever torn */
    if (!ended) return ry_fail_nomem(err, n + 1);
    memcpy(ended, line, n);
    ended[n] = '\n';
    const renyi_status st = write_whole(r->file, ended, n + 1, err);
    ry_free(&r->v->al, ended);
    return st;
}

static renyi_status write_all(const ry_vqa_run *r, ry_output_file *out, renyi_error *err)
{
    for (size_t i = 0; i < r->v->count; i++) {
        const char *line = r->a->items[i].line;
        if (!line) continue;
        RY_TRY(ry_output_file_write(out, line, strlen(line), err));
        RY_TRY(ry_output_file_write(out, "\n", 1, err));
    }
    return RENYI_OK;
}

renyi_status ry_vqa_file_settle(ry_vqa_run *r, renyi_error *err)
{
    ry_output_file out;
    ry_vqa_run_file *f = r->file;
    if (!f || r->ranks.r.rank) return RENYI_OK;
    if (!f->n_lines && !f->n_parts && r->ranks.r.n_ranks == 1) return RENYI_OK; /* is in order */
    RY_TRY(ry_output_file_open(&out, r->o.answers, &r->v->al, err));
    return ry_output_file_close(&out, write_all(r, &out, err), &r->v->al, err);
}

void ry_vqa_file_drop_parts(ry_vqa_run *r)
{
    ry_vqa_run_file *f = r->file;
    if (!f) return;
    if (r->ranks.r.rank) unlink(f->path);
    for (size_t i = 0; i < f->n_parts; i++) {
        char *path = ry_part_path(r->o.answers, f->parts[i], &r->v->al);
        if (path) unlink(path);
        ry_free(&r->v->al, path);
    }
}

void ry_vqa_file_close(ry_vqa_run *r)
{
    ry_vqa_run_file *f = r->file;
    if (!f) return;
    if (f->fd >= 0) close(f->fd);
    ry_free(&r->v->al, f->path);
    ry_free(&r->v->al, f->parts);
    ry_free(&r->v->al, f);
    r->file = NULL;
}
