/* vqa_run.c - renyi_vqa_run: gives image and question to the caller's function and writes its
 * answers to a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/vqa/vqa_run.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/status.h"
#include "engine/core/engine_options.h"

#include <stdio.h>
#include <string.h>

/* ---- the image of a question ---------------------------------------------------------------- */

static renyi_status fail_nomem(ry_vqa_run *r, renyi_error *err)
{
    r->photo_of = NULL;
    return ry_fail_nomem(err, 4096);
}

/* MME has some images one folder deeper: a/b.jpg -> a/images/b.jpg. */
static char *other_place(ry_vqa_run *r, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const ry_text folder = {path, slash ? (size_t)(slash - path) : 0};
    char *below = ry_pool_join(&r->a->pool, folder, ry_text_of("images"));
    return below ? ry_pool_join(&r->a->pool, ry_text_of(below), ry_text_of(name)) : NULL;
}

static renyi_status read_photo_file(ry_vqa_run *r, const char *image, renyi_error *err)
{
    const uint64_t max = ry_limits(&r->o.limits).max_image_bytes;
    const ry_text folder = ry_text_of(r->o.images && image[0] != '/' ? r->o.images : "");
    int is_missing = 0;
    r->photo_name = ry_pool_join(&r->a->pool, folder, ry_text_of(image));
    if (!r->photo_name) return fail_nomem(r, err);
    renyi_status st =
        ry_file_read(&r->photo, &r->photo_size, r->photo_name, max, NULL, &is_missing, err);
    if (is_missing) {
        const char *other = other_place(r, r->photo_name);
        renyi_error second;
        if (!other) return fail_nomem(r, err);
        const renyi_status again =
            ry_file_read(&r->photo, &r->photo_size, other, max, NULL, NULL, &second);
        if (!again) r->photo_name = other, st = again;
    }
    return st ? ry_fail_in(err, st, r->photo_name) : RENYI_OK;
}

static renyi_status decode_photo(ry_vqa_run *r, const ry_vqa_question *q, renyi_error *err)
{
    char name[320];
    snprintf(name, sizeof name, "photo of question %s", q->id);
    r->photo_name = ry_pool_copy(&r->a->pool, ry_text_of(name));
    r->photo = ry_alloc(NULL, q->photo.n / 4 * 3 + 3, 1);
    if (!r->photo_name || !r->photo) return fail_nomem(r, err);
    if (ry_base64_decode(q->photo.at, q->photo.n, r->photo, &r->photo_size)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: not base64", name);
}

static renyi_status load_photo(ry_vqa_run *r, const ry_vqa_question *q, int *is_same,
                               renyi_error *err)
{
    const char *of = q->image ? q->image : q->photo.at;
    *is_same = of && r->photo_of && r->photo && q->image && strcmp(r->photo_of, of) == 0;
    if (*is_same) return RENYI_OK;
    ry_free(NULL, r->photo);
    r->photo = NULL;
    r->photo_name = NULL;
    r->photo_size = 0;
    r->photo_of = q->image; /* an image from a table is never reused */
    if (q->image) return read_photo_file(r, q->image, err);
    return of ? decode_photo(r, q, err) : RENYI_OK;
}

/* ---- one question -------------------------------------------------------------------------- */

/* Faults of this photo or question; others stop the run. */
static int is_own_fault(renyi_status st)
{
    return st == RENYI_ERR_IO || st == RENYI_ERR_FORMAT || st == RENYI_ERR_LIMIT ||
           st == RENYI_ERR_UNSUPPORTED;
}

static renyi_status keep(ry_vqa_run *r, uint32_t place, const renyi_vqa_reply *reply,
                         renyi_error *err)
{
    const ry_text text = ry_text_trim(ry_text_of(reply->text ? reply->text : ""));
    renyi_vqa_reply trimmed = *reply;
    char *line;
    trimmed.text = ry_pool_copy(&r->a->pool, text);
    if (!trimmed.text) return ry_fail_nomem(err, text.n);
    RY_TRY(ry_vqa_answer_line(&line, r->v, place, &r->words, &trimmed, err));
    /* Through the reader, so that this run has the same as one that is resumed from the file. */
    renyi_status st = ry_vqa_answers_take_line(r->a, "answer", ry_text_of(line), place, err);
    if (!st) {
        r->own[r->n_own++] = place;
        st = ry_vqa_file_put(r, line, err);
    }
    ry_free(&r->v->al, line);
    return st;
}

static renyi_status ask(ry_vqa_run *r, uint32_t place, const renyi_vqa_question *shown,
                        renyi_error *err)
{
    renyi_vqa_request request = {.question = shown};
    renyi_vqa_reply reply = {0};
    renyi_error why = {0};
    renyi_status st = load_photo(r, &r->v->questions[place], &request.is_same_photo, &why);
    request.name = r->photo_name;
    request.bytes = r->photo;
    request.size = r->photo_size;
    if (!st) st = r->o.ask(r->o.ask_user, &request, &reply, &why);
    if (!st) return keep(r, place, &reply, err);
    if (!is_own_fault(st)) return ry_fail(err, st, -1, "%s", why.message);
    if (r->o.on_failure) {
        const char *what = why.message[0] ? why.message : renyi_status_name(st);
        r->o.on_failure(r->o.user, shown->id, what);
    }
    return RENYI_OK;
}

/* ---- this rank's share --------------------------------------------------------------------- */

static int is_done(const void *user, size_t question)
{
    return ((const ry_vqa_run *)user)->a->items[question].text != NULL;
}

static renyi_status ask_questions(ry_vqa_run *r, const size_t *todo, size_t n_todo,
                                  renyi_error *err)
{
    for (size_t i = 0; i < n_todo && !r->shared.ranks.n_stopped; i++) {
        const uint32_t place = (uint32_t)todo[i];
        renyi_vqa_question shown;
        renyi_vqa_get_question(r->v, place, &shown);
        RY_TRY(ask(r, place, &shown, err));
        if (r->o.on_answer && r->a->items[place].text)
            r->o.on_answer(r->o.user, &shown, r->a->items[place].text);
        RY_TRY(ry_shared_run_advance(&r->shared, 1, err));
    }
    return RENYI_OK;
}

static renyi_status ask_share(void *user, renyi_error *err)
{
    ry_vqa_run *r = user;
    const renyi_allocator *al = &r->v->al;
    size_t *todo, n_todo;
    RY_TRY(ry_shared_run_list(&r->shared, r->v->count, is_done, r, al, &todo, &n_todo, err));
    r->own = ry_calloc(al, n_todo, sizeof *r->own);
    const renyi_status st =
        r->own ? ask_questions(r, todo, n_todo, err) : ry_fail_nomem(err, n_todo * sizeof *r->own);
    ry_free(al, todo);
    return st;
}

/* ---- a run --------------------------------------------------------------------------------- */

static void name_run(ry_vqa_run *r)
{
    const renyi_vqa_run_options *o = &r->o;
    renyi_vqa_task_info task;
    renyi_vqa_get_task(r->v->info.task, &task);
    r->words.model = o->model ? o->model : "";
    r->words.policy = o->policy;
    uint64_t hash = ry_hash_add_text(RY_HASH_START, task.name);
    hash = ry_hash_add_text(hash, r->words.model);
    hash = ry_hash_add_text(hash, o->policy ? o->policy : "");
    hash = ry_hash_add_text(hash, o->condition ? o->condition : "");
    snprintf(r->words.id, sizeof r->words.id, "%016llx", (unsigned long long)hash);
}

static renyi_status prepare(ry_vqa_run *r, renyi_error *err)
{
    name_run(r);
    RY_TRY(ry_vqa_answers_new(&r->a, r->v, err));
    return ry_vqa_file_open(r, err);
}

static renyi_status share_answers(void *user, renyi_error *err) { return ry_vqa_share(user, err); }

static renyi_status settle_file(void *user, renyi_error *err)
{
    return ry_vqa_file_settle(user, err);
}

static renyi_status run_questions(ry_vqa_run *r, renyi_error *err)
{
    const ry_run_steps steps = {ask_share, share_answers, settle_file};
    RY_TRY(ry_ranks_agree(&r->shared.ranks, prepare(r, err), err));
    RY_TRY(ry_vqa_compare_ranks(r, err));
    return ry_shared_run_execute(&r->shared, &r->file, &steps, r, err);
}

renyi_status renyi_vqa_run(renyi_vqa_answers **out, const renyi_vqa *v,
                           const renyi_vqa_run_options *opt, renyi_error *err)
{
    ry_vqa_run r = {.v = v, .file = {.fd = -1}};
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
    ry_free(NULL, r.photo);
    if (st && st != RENYI_ERR_ABORTED) {
        renyi_vqa_answers_free(r.a);
        return st;
    }
    *out = r.a;
    return st;
}
