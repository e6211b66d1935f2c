/* vqa_answers.c - LLaVA's answer files: lines of JSON, matched with the questions and judged.
 *
 * {"question_id": 1, "prompt": "...", "text": "Yes", "answer_id": "...", "model_id": "...",
 *  "metadata": {}}
 *
 * id and prompt tell the question; where no question has both, an id that only one has does. What
 * is written here says more in the metadata: see vqa_answer_line.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- which question ------------------------------------------------------------------------ */

typedef struct match {
    const char *id, *prompt, *text;
    ry_vqa_answer *free; /* of a question that has no answer yet; NULL = none */
    int n, is_repeated;  /* questions that are meant; one of them has this very answer */
} match;

static void consider(renyi_vqa_answers *a, match *m, uint32_t place)
{
    ry_vqa_answer *item = &a->items[place];
    m->n++;
    if (item->text)
        m->is_repeated |= strcmp(item->text, m->text) == 0;
    else if (!m->free)
        m->free = item;
}

static void find(renyi_vqa_answers *a, match *m)
{
    const renyi_vqa *v = a->v;
    const ry_vqa_slot *s = ry_vqa_index_find(&v->index, ry_vqa_key(m->id, m->prompt));
    for (; s; s = ry_vqa_index_next(&v->index, s)) {
        const ry_vqa_question *q = &v->questions[s->place];
        if (strcmp(q->id, m->id) == 0 && strcmp(q->prompt, m->prompt) == 0)
            consider(a, m, s->place);
    }
    if (m->n) return;
    s = ry_vqa_index_find(&v->by_id, ry_vqa_key(m->id, ""));
    if (s && !ry_vqa_index_next(&v->by_id, s) && strcmp(v->questions[s->place].id, m->id) == 0)
        consider(a, m, s->place);
}

static renyi_status keep(renyi_vqa_answers *a, ry_vqa_answer *item, const char *text, ry_text line,
                         renyi_error *err)
{
    double worth;
    RY_TRY(ry_vqa_judge(a->v, &a->v->questions[item - a->items], text, &worth, err));
    const char *copy = ry_pool_copy(&a->pool, ry_text_of(text));
    const char *whole = ry_pool_copy(&a->pool, line);
    if (!copy || !whole) return ry_fail_nomem(err, line.n);
    *item = (ry_vqa_answer){whole, copy, worth};
    a->info.n_answered++;
    return RENYI_OK;
}

/* ---- whose answers ------------------------------------------------------------------------- */

/* The first line says; the others must not contradict. */
static renyi_status agree(renyi_vqa_answers *a, const char **known, const char *said,
                          const char *what, const char *where, renyi_error *err)
{
    const int is_first = !a->info.model;
    if (is_first && said) {
        *known = ry_pool_copy(&a->pool, ry_text_of(said));
        return *known ? RENYI_OK : ry_fail_nomem(err, strlen(said));
    }
    if (is_first || (!said && !*known) || (said && *known && strcmp(said, *known) == 0))
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: %s '%.80s', but '%.80s' in the lines before: answers of two runs", where,
                   what, said ? said : "none", *known ? *known : "none");
}

static renyi_status take_run(renyi_vqa_answers *a, const json_t *o, const char *where,
                             renyi_error *err)
{
    const json_t *meta = ry_json_object(o, "metadata");
    const char *model = json_string_value(json_object_get(o, "model_id"));
    const char *run = json_string_value(json_object_get(meta, "run"));
    RY_TRY(agree(a, &a->info.policy, json_string_value(json_object_get(meta, "policy")), "policy",
                 where, err));
    if (!a->info.model && run && strlen(run) < sizeof a->run) memcpy(a->run, run, strlen(run) + 1);
    if (strcmp(a->run, run && strlen(run) < sizeof a->run ? run : "") != 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: an answer of another run than those before",
                       where);
    return agree(a, &a->info.model, model ? model : "", "model_id", where,
                 err); /* last: is_first */
}

/* Means over the lines that say so. */
static void take_measures(renyi_vqa_answers *a, const json_t *o)
{
    const json_t *meta = ry_json_object(o, "metadata"), *ms = json_object_get(meta, "ms"),
                 *visual = json_object_get(meta, "visual_tokens"),
                 *tokens = json_object_get(meta, "tokens");
    if (!json_is_number(ms) || !json_is_number(visual) || !json_is_number(tokens)) return;
    const double n = (double)++a->n_measured;
    renyi_vqa_answers_info *i = &a->info;
    if (n == 1) i->visual_tokens = i->tokens = i->ms = 0;
    i->visual_tokens += (json_number_value(visual) - i->visual_tokens) / n;
    i->tokens += (json_number_value(tokens) - i->tokens) / n;
    i->ms += (json_number_value(ms) - i->ms) / n;
}

/* ---- lines --------------------------------------------------------------------------------- */

static renyi_status take_object(renyi_vqa_answers *a, const json_t *o, const char *where,
                                ry_text line, uint32_t place, renyi_error *err)
{
    const char *prompt = json_string_value(json_object_get(o, "prompt"));
    match m = {.prompt = prompt ? prompt : "",
               .text = json_string_value(json_object_get(o, "text"))};
    uint8_t is_number;
    char id[256];
    if (!ry_vqa_id(json_object_get(o, "question_id"), id, &is_number) || !m.text)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: no line of answers: question_id and text are wanted", where);
    m.id = id;
    if (place == RY_VQA_NONE)
        find(a, &m);
    else
        consider(a, &m, place);
    if (!m.n) {
        a->info.n_foreign++;
        return RENYI_OK;
    }
    if (!m.free && !m.is_repeated)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: a second, different answer to question %.80s", where, id);
    RY_TRY(take_run(a, o, where, err));
    if (!m.free) {
        a->info.n_repeated++;
        return RENYI_OK;
    }
    take_measures(a, o);
    return keep(a, m.free, m.text, line, err);
}

renyi_status ry_vqa_answers_take_line(renyi_vqa_answers *a, const char *where, ry_text line,
                                      uint32_t place, renyi_error *err)
{
    const ry_json_limits limits = {1 << 22, 10000, 8};
    json_t *o;
    RY_TRY(ry_json_parse(&o, line.at, line.n, where, &limits, err));
    const renyi_status st = take_object(a, o, where, line, place, err);
    json_decref(o);
    return st;
}

renyi_status ry_vqa_answers_take(renyi_vqa_answers *a, const char *name, const char *bytes,
                                 size_t size, size_t *whole, renyi_error *err)
{
    while (size && bytes[size - 1] != '\n') size--; /* a line that was being written */
    *whole = size;
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        char where[512];
        if (!ry_text_trim(line).n) continue;
        snprintf(where, sizeof where, "%.480s:%llu", name, (unsigned long long)l.number);
        RY_TRY(ry_vqa_answers_take_line(a, where, line, RY_VQA_NONE, err));
    }
    return RENYI_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

/* The last line of a finished file may lack its newline. */
static renyi_status read_file(renyi_vqa_answers *a, const char *path, renyi_error *err)
{
    unsigned char *bytes;
    char where[512];
    size_t size, whole = 0;
    snprintf(where, sizeof where, "%.480s: last line", path);
    RY_TRY(ry_vqa_load(&bytes, &size, path, a->v->max_file_bytes, err));
    renyi_status st = ry_vqa_answers_take(a, path, (const char *)bytes, size, &whole, err);
    const ry_text rest = ry_text_trim((ry_text){(const char *)bytes + whole, size - whole});
    if (!st && rest.n) st = ry_vqa_answers_take_line(a, where, rest, RY_VQA_NONE, err);
    ry_free(NULL, bytes);
    return st;
}

static int is_jsonl(const char *name)
{
    const size_t n = strlen(name);
    return n > 6 && strcmp(name + n - 6, ".jsonl") == 0;
}

static renyi_status read_path(renyi_vqa_answers *a, const char *path, renyi_error *err)
{
    const char **paths;
    size_t n;
    if (!ry_vqa_is_folder(path)) return read_file(a, path, err);
    RY_TRY(ry_vqa_list(&a->pool, path, is_jsonl, &paths, &n, err));
    if (!n) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no .jsonl in this folder", path);
    for (size_t i = 0; i < n; i++) RY_TRY(read_file(a, paths[i], err));
    return RENYI_OK;
}

renyi_status ry_vqa_answers_new(renyi_vqa_answers **out, const renyi_vqa *v, renyi_error *err)
{
    renyi_vqa_answers *a = ry_calloc(&v->al, 1, sizeof *a);
    *out = a;
    if (!a) return ry_fail_nomem(err, sizeof *a);
    a->v = v;
    a->al = v->al;
    a->pool.al = &a->al;
    a->info.visual_tokens = a->info.tokens = a->info.ms = NAN;
    a->items = ry_calloc(&a->al, v->count, sizeof *a->items);
    if (!a->items) return ry_fail_nomem(err, v->count * sizeof *a->items);
    for (size_t i = 0; i < v->count; i++) a->items[i].worth = NAN;
    return RENYI_OK;
}

renyi_status renyi_vqa_read_answers(renyi_vqa_answers **out, const renyi_vqa *v,
                                    const char *const *paths, size_t n_paths, renyi_error *err)
{
    renyi_vqa_answers *a;
    if (!out || !v || (n_paths && !paths))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_read_answers: NULL argument");
    *out = NULL;
    renyi_status st = ry_vqa_answers_new(&a, v, err);
    for (size_t i = 0; i < n_paths && !st; i++) st = read_path(a, paths[i], err);
    if (st) {
        renyi_vqa_answers_free(a);
        return st;
    }
    *out = a;
    return RENYI_OK;
}

void renyi_vqa_answers_free(renyi_vqa_answers *a)
{
    if (!a) return;
    const renyi_allocator al = a->al;
    ry_free(&al, a->items);
    ry_pool_free(&a->pool);
    ry_free(&al, a);
}

void renyi_vqa_answers_get_info(const renyi_vqa_answers *a, renyi_vqa_answers_info *out)
{
    *out = a->info;
}

const char *renyi_vqa_get_answer(const renyi_vqa_answers *a, size_t i) { return a->items[i].text; }
