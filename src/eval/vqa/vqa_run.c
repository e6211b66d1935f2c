/* vqa_run.c - renyi_vqa_run: passes image and question to the caller's function and writes its
 * answers to a file, which can be resumed; ranks exchange their answers as the lines of that file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/base64.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/output_file.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "eval/run/shared_run.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

/* The state of a run. */
typedef struct vqa_run {
    const renyi_vqa *v;
    renyi_vqa_run_options o;
    renyi_vqa_answers *a;
    ry_vqa_run_label label;
    ry_shared_run shared;
    ry_run_file file;
    uint64_t n_lines; /* in the answer file when it was read */
    uint32_t *own;    /* [n_own] questions that this rank answered in this run */
    size_t n_own;
    unsigned char *image; /* the encoded image of the last question; C heap */
    size_t image_size;
    const char *image_name; /* in the pool of a; NULL = none */
    const void *image_of;   /* its name in v; NULL = from a table */
} vqa_run;

/* ---- the file ------------------------------------------------------------------------------- */

static renyi_status read_own_answers(void *user, const char *path, const char *bytes, size_t size,
                                     size_t *whole, uint64_t *n_foreign, renyi_error *err)
{
    vqa_run *r = user;
    *n_foreign = 0; /* lines of other runs are an error */
    RY_TRY(ry_vqa_answers_read(r->a, path, bytes, size, whole, err));
    if (strcmp(path, r->file.base) == 0) r->n_lines = r->a->info.n_answered + r->a->info.n_repeated;
    return RENYI_OK;
}

/* The file must belong to this run: it is rewritten at the end and must not lose answers. */
static renyi_status check_answers(const vqa_run *r, renyi_error *err)
{
    const renyi_vqa_answers_info *i = &r->a->info;
    if (i->n_foreign)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s: %llu of its answers are to other questions; use the questions of that "
                       "file, or another file",
                       r->o.answers, (unsigned long long)i->n_foreign);
    if (!i->n_answered || strcmp(r->a->run, r->label.id) == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%s: answers of '%.80s' with policy '%.120s', not of this run (or with other "
                   "settings, such as the length of answers); use another file",
                   r->o.answers, i->model, i->policy ? i->policy : "none");
}

static renyi_status open_answer_file(vqa_run *r, renyi_error *err)
{
    RY_TRY(ry_run_file_open(&r->file, r->o.answers, r->shared.ranks.r.rank, &r->v->al, err));
    if (!r->o.answers) return RENYI_OK;
    RY_TRY(ry_run_file_read(&r->file, r->o.resume != 0, r->v->max_file_bytes, read_own_answers, r,
                            err));
    return check_answers(r, err);
}

static renyi_status write_answer_line(vqa_run *r, const char *line, renyi_error *err)
{
    const size_t n = strlen(line);
    if (!r->file.base) return RENYI_OK;
    char *ended = ry_alloc(&r->v->al, n + 1, 1); /* in one write, so that lines are complete */
    if (!ended) return ry_fail_nomem(err, n + 1);
    memcpy(ended, line, n);
    ended[n] = '\n';
    const renyi_status st = ry_run_file_write(&r->file, ended, n + 1, err);
    ry_free(&r->v->al, ended);
    return st;
}

static renyi_status write_all_lines(const vqa_run *r, ry_output_file *out, renyi_error *err)
{
    for (size_t i = 0; i < r->v->count; i++) {
        const char *line = r->a->items[i].line;
        if (!line) continue;
        RY_TRY(ry_output_file_write(out, line, strlen(line), err));
        RY_TRY(ry_output_file_write(out, "\n", 1, err));
    }
    return RENYI_OK;
}

static renyi_status settle_answer_file(void *user, renyi_error *err)
{
    vqa_run *r = user;
    ry_output_file out;
    const renyi_ranks *ranks = &r->shared.ranks.r;
    if (!r->file.base || ranks->rank) return RENYI_OK;
    if (!r->n_lines && !r->file.n_parts && ranks->n_ranks == 1) return RENYI_OK; /* in order */
    RY_TRY(ry_output_file_open(&out, r->o.answers, &r->v->al, err));
    return ry_output_file_close(&out, write_all_lines(r, &out, err), &r->v->al, err);
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static renyi_status compare_ranks(vqa_run *r, renyi_error *err)
{
    ry_ranks *k = &r->shared.ranks;
    uint64_t mine = ry_hash_add_text(RY_HASH_START, r->label.id), other;
    mine = ry_hash_add(mine, &r->v->info.fingerprint, sizeof mine);
    for (size_t i = 0; i < r->v->count; i++)
        mine = ry_hash_add_text(mine, r->a->items[i].text ? r->a->items[i].text : "");
    memcpy(k->mine, &mine, sizeof mine);
    RY_TRY(ry_ranks_gather(k, sizeof mine, err));
    for (uint32_t i = 0; i < k->r.n_ranks; i++) {
        memcpy(&other, k->all + i * sizeof other, sizeof other);
        if (memcmp(&other, k->all, sizeof other) != 0)
            return ry_fail(
                err, RENYI_ERR_ARG, -1,
                "rank %u has other questions, settings or answers than rank 0; all ranks "
                "must read the same files",
                i);
    }
    return RENYI_OK;
}

/* Lines are sent as one stream of bytes, because a line may be longer than a chunk. */
typedef struct line_exchange {
    vqa_run *r;
    size_t line, at;  /* the next byte to send: place in r->own, and in that line */
    ry_buffer *tails; /* [n_ranks] bytes of a line that is not complete yet */
} line_exchange;

static size_t send_lines(void *user, unsigned char *to, size_t space)
{
    line_exchange *x = user;
    const vqa_run *r = x->r;
    if (x->line == r->n_own) return 0;
    const char *line = r->a->items[r->own[x->line]].line;
    const size_t left = strlen(line) + 1 - x->at, n = left < space ? left : space;
    memcpy(to, line + x->at, n);
    x->at += n;
    if (n == left) {
        to[n - 1] = '\n'; /* instead of the NUL */
        x->line++;
        x->at = 0;
    }
    return n;
}

static renyi_status receive_lines(void *user, uint32_t rank, const unsigned char *bytes, size_t n,
                                  renyi_error *err)
{
    line_exchange *x = user;
    ry_buffer *t = &x->tails[rank];
    char name[32];
    size_t whole;
    snprintf(name, sizeof name, "answers of rank %u", rank);
    ry_buffer_put(t, bytes, n);
    if (t->failed) return ry_fail_nomem(err, t->size + n);
    RY_TRY(ry_vqa_answers_read(x->r->a, name, t->bytes, t->size, &whole, err));
    t->size -= whole;
    memmove(t->bytes, t->bytes + whole, t->size);
    return RENYI_OK;
}

static renyi_status share_answers(void *user, renyi_error *err)
{
    vqa_run *r = user;
    ry_ranks *k = &r->shared.ranks;
    const renyi_allocator *al = &r->v->al;
    line_exchange x = {.r = r};
    const ry_exchange exchange = {&x, send_lines, receive_lines};
    if (k->r.n_ranks == 1) return RENYI_OK;
    x.tails = ry_calloc(al, k->r.n_ranks, sizeof *x.tails);
    renyi_status st = x.tails ? RENYI_OK : ry_fail_nomem(err, k->r.n_ranks * sizeof *x.tails);
    for (uint32_t i = 0; !st && i < k->r.n_ranks; i++) x.tails[i].al = al;
    st = ry_ranks_agree(k, st, err);
    if (!st) st = ry_exchange_all(k, &exchange, err);
    for (uint32_t i = 0; x.tails && i < k->r.n_ranks; i++) ry_buffer_free(&x.tails[i]);
    ry_free(al, x.tails);
    return st;
}

/* ---- the image of a question ---------------------------------------------------------------- */

static renyi_status fail_nomem(vqa_run *r, renyi_error *err)
{
    r->image_of = NULL;
    return ry_fail_nomem(err, 4096);
}

/* MME has some images one folder deeper: a/b.jpg -> a/images/b.jpg. */
static char *path_below_images(vqa_run *r, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const ry_text folder = {path, slash ? (size_t)(slash - path) : 0};
    char *below = ry_pool_join(&r->a->pool, folder, ry_text_of("images"));
    return below ? ry_pool_join(&r->a->pool, ry_text_of(below), ry_text_of(name)) : NULL;
}

/* Does the name lead out of the folder that it is relative to? Links in the folder are its owner's
 * choice. */
static int is_outside(const char *name)
{
    int depth = 0;
    if (name[0] == '/') return 1;
    while (depth >= 0 && *name) {
        const size_t n = strcspn(name, "/");
        if (n == 2 && memcmp(name, "..", 2) == 0)
            depth--;
        else if (n && !(n == 1 && name[0] == '.'))
            depth++;
        name += n + (name[n] == '/');
    }
    return depth < 0;
}

static renyi_status read_image_file(vqa_run *r, const char *name, renyi_error *err)
{
    if (r->o.images && !r->o.allow_outside && is_outside(name))
        return ry_fail(err, RENYI_ERR_IO, -1,
                       "image \"%.200s\" is outside %.120s; --allow-outside reads it", name,
                       r->o.images);
    const uint64_t max = ry_limits(&r->o.limits).max_image_bytes;
    const ry_text folder = ry_text_of(r->o.images && name[0] != '/' ? r->o.images : "");
    int is_missing = 0;
    r->image_name = ry_pool_join(&r->a->pool, folder, ry_text_of(name));
    if (!r->image_name) return fail_nomem(r, err);
    renyi_status st =
        ry_file_read(&r->image, &r->image_size, r->image_name, max, NULL, &is_missing, err);
    if (is_missing) {
        const char *other = path_below_images(r, r->image_name);
        renyi_error second;
        if (!other) return fail_nomem(r, err);
        const renyi_status again =
            ry_file_read(&r->image, &r->image_size, other, max, NULL, NULL, &second);
        if (!again) r->image_name = other, st = again;
    }
    return st ? ry_fail_in(err, st, r->image_name) : RENYI_OK;
}

static renyi_status decode_table_image(vqa_run *r, const ry_vqa_question *q, renyi_error *err)
{
    char name[320];
    snprintf(name, sizeof name, "image of question %s", q->id);
    r->image_name = ry_pool_copy(&r->a->pool, ry_text_of(name));
    r->image = ry_alloc(NULL, q->image_base64.n / 4 * 3 + 3, 1);
    if (!r->image_name || !r->image) return fail_nomem(r, err);
    if (ry_base64_decode(q->image_base64.at, q->image_base64.n, r->image, &r->image_size))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: not base64", name);
}

static renyi_status load_image(vqa_run *r, const ry_vqa_question *q, int *is_same, renyi_error *err)
{
    const char *of = q->image ? q->image : q->image_base64.at;
    *is_same = of && r->image_of && r->image && q->image && strcmp(r->image_of, of) == 0;
    if (*is_same) return RENYI_OK;
    ry_free(NULL, r->image);
    r->image = NULL;
    r->image_name = NULL;
    r->image_size = 0;
    r->image_of = q->image; /* an image from a table is never reused */
    if (q->image) return read_image_file(r, q->image, err);
    return of ? decode_table_image(r, q, err) : RENYI_OK;
}

/* ---- one question --------------------------------------------------------------------------- */

/* Errors of this image or question are reported; others stop the run. */
static int is_question_error(renyi_status st)
{
    return st == RENYI_ERR_IO || st == RENYI_ERR_FORMAT || st == RENYI_ERR_LIMIT ||
           st == RENYI_ERR_UNSUPPORTED;
}

static renyi_status keep_answer(vqa_run *r, uint32_t place, const renyi_vqa_reply *reply,
                                renyi_error *err)
{
    const ry_text text = ry_text_trim(ry_text_of(reply->text ? reply->text : ""));
    renyi_vqa_reply trimmed = *reply;
    char *line;
    trimmed.text = ry_pool_copy(&r->a->pool, text);
    if (!trimmed.text) return ry_fail_nomem(err, text.n);
    RY_TRY(ry_vqa_answer_line(&line, r->v, place, &r->label, &trimmed, err));
    /* Uses the reader, so that a run and a resumed run have the same answers. */
    renyi_status st = ry_vqa_answers_read_line(r->a, "answer", ry_text_of(line), place, err);
    if (!st) {
        r->own[r->n_own++] = place;
        st = write_answer_line(r, line, err);
    }
    ry_free(&r->v->al, line);
    return st;
}

static renyi_status ask_question(vqa_run *r, uint32_t place, const renyi_vqa_question *shown,
                                 renyi_error *err)
{
    renyi_vqa_request request = {.question = shown};
    renyi_vqa_reply reply = {0};
    renyi_error why = {0};
    renyi_status st = load_image(r, &r->v->questions[place], &request.is_same_photo, &why);
    request.name = r->image_name;
    request.bytes = r->image;
    request.size = r->image_size;
    if (!st) st = r->o.ask(r->o.ask_user, &request, &reply, &why);
    r->label.image = request.bytes ? ry_hash(request.bytes, request.size) : 0;
    if (!st) return keep_answer(r, place, &reply, err);
    if (!is_question_error(st)) return ry_fail(err, st, -1, "%s", why.message);
    if (r->o.on_failure) {
        const char *what = why.message[0] ? why.message : renyi_status_name(st);
        r->o.on_failure(r->o.user, shown->id, what);
    }
    return RENYI_OK;
}

/* ---- this rank's share ---------------------------------------------------------------------- */

static int is_done(const void *user, size_t question)
{
    const vqa_run *r = user;
    return (r->o.wanted && !r->o.wanted[question]) || r->a->items[question].text;
}

static renyi_status ask_questions(vqa_run *r, const size_t *todo, size_t n_todo, renyi_error *err)
{
    for (size_t i = 0; i < n_todo && !r->shared.ranks.n_stopped; i++) {
        const uint32_t place = (uint32_t)todo[i];
        renyi_vqa_question shown;
        renyi_vqa_get_question(r->v, place, &shown);
        RY_TRY(ask_question(r, place, &shown, err));
        if (r->o.on_answer && r->a->items[place].text)
            r->o.on_answer(r->o.user, &shown, r->a->items[place].text);
        RY_TRY(ry_shared_run_advance(&r->shared, 1, err));
    }
    return RENYI_OK;
}

static renyi_status ask_share(void *user, renyi_error *err)
{
    vqa_run *r = user;
    const renyi_allocator *al = &r->v->al;
    size_t *todo, n_todo;
    RY_TRY(ry_shared_run_list(&r->shared, r->v->count, is_done, r, al, &todo, &n_todo, err));
    r->own = ry_calloc(al, n_todo, sizeof *r->own);
    const renyi_status st =
        r->own ? ask_questions(r, todo, n_todo, err) : ry_fail_nomem(err, n_todo * sizeof *r->own);
    ry_free(al, todo);
    return st;
}

/* ---- a run ---------------------------------------------------------------------------------- */

static void name_run(vqa_run *r)
{
    const renyi_vqa_run_options *o = &r->o;
    renyi_vqa_task_info task;
    renyi_vqa_get_task(r->v->info.task, &task);
    r->label.model = o->model ? o->model : "";
    r->label.policy = o->policy;
    uint64_t hash = ry_hash_add_text(RY_HASH_START, task.name);
    hash = ry_hash_add_text(hash, r->label.model);
    hash = ry_hash_add_text(hash, o->policy ? o->policy : "");
    hash = ry_hash_add_text(hash, o->condition ? o->condition : "");
    snprintf(r->label.id, sizeof r->label.id, "%016llx", (unsigned long long)hash);
}

static renyi_status prepare_run(vqa_run *r, renyi_error *err)
{
    name_run(r);
    RY_TRY(ry_vqa_answers_new(&r->a, r->v, err));
    return open_answer_file(r, err);
}

static renyi_status run_questions(vqa_run *r, renyi_error *err)
{
    const ry_run_steps steps = {ask_share, share_answers, settle_answer_file};
    RY_TRY(ry_ranks_agree(&r->shared.ranks, prepare_run(r, err), err));
    RY_TRY(compare_ranks(r, err));
    return ry_shared_run_execute(&r->shared, &r->file, &steps, r, err);
}

renyi_status renyi_vqa_run(renyi_vqa_answers **out, const renyi_vqa *v,
                           const renyi_vqa_run_options *opt, renyi_error *err)
{
    vqa_run r = {.v = v, .file = {.fd = -1}};
    if (!out || !v || !opt) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_run: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&r.o, sizeof r.o, opt, "renyi_vqa_run_options", err));
    if (!r.o.ask) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_run_options: ask is NULL");
    r.shared.progress = r.o.progress;
    r.shared.user = r.o.user;
    renyi_status st = ry_ranks_open(&r.shared.ranks, r.o.ranks, &v->al, err);
    if (!st) st = run_questions(&r, err);
    ry_run_file_close(&r.file);
    ry_ranks_close(&r.shared.ranks, &v->al);
    ry_free(&v->al, r.own);
    ry_free(NULL, r.image);
    if (st && st != RENYI_ERR_ABORTED) {
        renyi_vqa_answers_free(r.a);
        return st;
    }
    *out = r.a;
    return st;
}
