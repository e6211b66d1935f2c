/* vqa_run.c - renyi_vqa_run: photo and question to the caller's function, its answer to the file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/vqa/vqa_run.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

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
    /* Through the reader, so that a resumed run has nothing that this one has not. */
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
    renyi_status st = ry_vqa_load_photo(r, &r->v->questions[place], &request.is_same_photo, &why);
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

static renyi_status list_todo(ry_vqa_run *r, renyi_error *err)
{
    const size_t count = r->v->count;
    uint64_t n = 0;
    r->todo = ry_calloc(&r->v->al, count, sizeof *r->todo);
    r->own = ry_calloc(&r->v->al, count, sizeof *r->own);
    if (!r->todo || !r->own) return ry_fail_nomem(err, count * sizeof *r->todo);
    for (size_t i = 0; i < count; i++)
        if (!r->a->items[i].text && n++ % r->ranks.r.n_ranks == r->ranks.r.rank)
            r->todo[r->n_todo++] = (uint32_t)i;
    r->n_before = count - n;
    return RENYI_OK;
}

static renyi_status show_progress(const ry_vqa_run *r, const ry_beat *beat, renyi_error *err)
{
    const uint64_t done = r->n_before + r->ranks.others_done + beat->done;
    if (r->o.progress && r->o.progress(r->o.user, done, r->v->count))
        return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    return RENYI_OK;
}

static renyi_status ask_share(ry_vqa_run *r, ry_beat *beat, renyi_error *err)
{
    for (size_t i = 0; i < r->n_todo && !r->ranks.n_stopped; i++) {
        const uint32_t place = r->todo[i];
        renyi_vqa_question shown;
        renyi_vqa_get_question(r->v, place, &shown);
        RY_TRY(ask(r, place, &shown, err));
        if (r->o.on_answer && r->a->items[place].text)
            r->o.on_answer(r->o.user, &shown, r->a->items[place].text);
        beat->done++;
        RY_TRY(ry_ranks_beat(&r->ranks, beat, 0, err));
        RY_TRY(show_progress(r, beat, err));
    }
    return RENYI_OK;
}

/* Until everyone is through; a stop of ours reaches the others. */
static renyi_status await_others(ry_vqa_run *r, ry_beat *beat, renyi_status st, renyi_error *err)
{
    ry_ranks *k = &r->ranks;
    beat->is_over = 1;
    while (k->n_over < k->r.n_ranks) {
        renyi_error talk = {0};
        beat->is_stopped = st != RENYI_OK;
        const renyi_status talked = ry_ranks_beat(k, beat, 1, &talk);
        if (talked) return st ? st : ry_fail(err, talked, -1, "%s", talk.message);
        if (!st && k->n_over < k->r.n_ranks) st = show_progress(r, beat, err);
    }
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
    RY_TRY(ry_vqa_file_open(r, err));
    return list_todo(r, err);
}

/* FILE gets what all ranks have, and only then the parts go. */
static renyi_status bring_together(ry_vqa_run *r, renyi_error *err)
{
    RY_TRY(ry_vqa_share(r, err));
    RY_TRY(ry_ranks_agree(&r->ranks, ry_vqa_file_settle(r, err), err));
    ry_vqa_file_drop_parts(r);
    return RENYI_OK;
}

static renyi_status run(ry_vqa_run *r, renyi_error *err)
{
    ry_beat beat = {0};
    renyi_error late = {0};
    RY_TRY(ry_ranks_agree(&r->ranks, prepare(r, err), err));
    RY_TRY(ry_vqa_meet(r, err));
    RY_TRY(ry_ranks_agree(&r->ranks, ry_vqa_file_begin(r, err), err));
    renyi_status st = await_others(r, &beat, ask_share(r, &beat, err), err);
    const renyi_status after = bring_together(r, &late);
    if (!st && after) st = ry_fail(err, after, -1, "%s", late.message);
    return ry_ranks_agree(&r->ranks, st, err);
}

renyi_status renyi_vqa_run(renyi_vqa_answers **out, const renyi_vqa *v,
                           const renyi_vqa_run_options *opt, renyi_error *err)
{
    ry_vqa_run r = {.v = v};
    if (!out || !v || !opt) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_run: NULL argument");
    *out = NULL;
    if (opt->struct_size < sizeof r.o.struct_size || opt->struct_size > sizeof r.o)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_vqa_run_options: struct_size %u, this library knows %zu",
                       opt->struct_size, sizeof r.o);
    memcpy(&r.o, opt, opt->struct_size);
    if (!r.o.ask) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_run_options: ask is NULL");
    renyi_status st = ry_ranks_open(&r.ranks, r.o.ranks, &v->al, err);
    if (!st) st = run(&r, err);
    ry_vqa_file_close(&r);
    ry_ranks_close(&r.ranks, &v->al);
    ry_free(&v->al, r.todo);
    ry_free(&v->al, r.own);
    ry_free(NULL, r.photo);
    if (st && st != RENYI_ERR_ABORTED) {
        renyi_vqa_answers_free(r.a);
        return st;
    }
    *out = r.a;
    return st;
}
