/* vqa_answers.c - reads and writes LLaVA's answer files: lines of JSON, one answer each.
 *
 * {"question_id": 1, "prompt": "...", "text": "Yes", "answer_id": "...", "model_id": "...",
 *  "metadata": {}}
 *
 * id and prompt identify the question. If no question has both, an id that occurs once is enough.
 * Lines that are written here have policy, run, tokens and time in the metadata.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- matching ------------------------------------------------------------------------------- */

typedef struct match {
    const char *id, *prompt, *text;
    ry_vqa_answer *free; /* of a matching question without an answer; NULL = none */
    int n, is_repeated;  /* matching questions; 1 = one of them has the same answer */
} match;

static void match_question(renyi_vqa_answers *a, match *m, uint32_t place)
{
    ry_vqa_answer *item = &a->items[place];
    m->n++;
    if (item->text)
        m->is_repeated |= strcmp(item->text, m->text) == 0;
    else if (!m->free)
        m->free = item;
}

static void find_questions(renyi_vqa_answers *a, match *m)
{
    const renyi_vqa *v = a->v;
    const ry_vqa_slot *s = ry_vqa_index_find(&v->index, ry_vqa_hash(m->id, m->prompt));
    for (; s; s = ry_vqa_index_next(&v->index, s)) {
        const ry_vqa_question *q = &v->questions[s->place];
        if (strcmp(q->id, m->id) == 0 && strcmp(q->prompt, m->prompt) == 0)
            match_question(a, m, s->place);
    }
    if (m->n) return;
    s = ry_vqa_index_find(&v->by_id, ry_vqa_hash(m->id, ""));
    if (s && !ry_vqa_index_next(&v->by_id, s) && strcmp(v->questions[s->place].id, m->id) == 0)
        match_question(a, m, s->place);
}

static renyi_status add_answer(renyi_vqa_answers *a, ry_vqa_answer *item, const char *text,
                               ry_text line, renyi_error *err)
{
    double worth;
    RY_TRY(ry_vqa_judge(a->v, &a->v->questions[item - a->items], text, &worth, err));
    const char *copy = ry_pool_copy(&a->pool, ry_text_of(text));
    const char *whole = ry_pool_copy(&a->pool, line);
    if (!copy || !whole) return ry_fail_nomem(err, line.n);
    *item = (ry_vqa_answer){.line = whole, .text = copy, .worth = worth};
    a->info.n_answered++;
    return RENYI_OK;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* All lines must have the value of the first. */
static renyi_status check_same_run(renyi_vqa_answers *a, const char **known, const char *said,
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
                   "%s: %s '%.80s', but '%.80s' in earlier lines; the answers are of two runs",
                   where, what, said ? said : "none", *known ? *known : "none");
}

static renyi_status read_run(renyi_vqa_answers *a, const json_t *o, const char *where,
                             renyi_error *err)
{
    const json_t *meta = ry_json_object(o, "metadata");
    const char *model = json_string_value(json_object_get(o, "model_id"));
    const char *run = json_string_value(json_object_get(meta, "run"));
    RY_TRY(check_same_run(a, &a->info.policy, json_string_value(json_object_get(meta, "policy")),
                          "policy", where, err));
    if (!a->info.model && run && strlen(run) < sizeof a->run) memcpy(a->run, run, strlen(run) + 1);
    if (strcmp(a->run, run && strlen(run) < sizeof a->run ? run : "") != 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: this answer is of another run than earlier ones", where);
    return check_same_run(a, &a->info.model, model ? model : "", "model_id", where,
                          err); /* last, because it ends is_first */
}

/* Keys of the metadata, in the order of renyi_vqa_cost. */
static const char *const cost_keys[RY_VQA_COSTS] = {
    "layer_tokens", "tower_tflops",   "projector_tflops", "lm_tflops",
    "cache_bytes",  "first_token_ms", "choice_ms"};

static void add_costs(renyi_vqa_answers *a, const json_t *meta)
{
    double mean[RY_VQA_COSTS];
    memcpy(mean, &a->info.cost, sizeof mean);
    for (int i = 0; i < RY_VQA_COSTS; i++) {
        const json_t *value = json_object_get(meta, cost_keys[i]);
        if (!json_is_number(value)) continue;
        const double n = (double)++a->n_cost[i];
        if (n == 1) mean[i] = 0;
        mean[i] += (json_number_value(value) - mean[i]) / n;
    }
    memcpy(&a->info.cost, mean, sizeof mean);
}

uint64_t ry_vqa_read_hash(const json_t *value)
{
    const char *text = json_string_value(value);
    uint64_t hash = 0;
    if (!text || strlen(text) != 16) return 0;
    for (; *text; text++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, *text);
        if (!at) return 0;
        hash = hash << 4 | (uint64_t)(at - digits);
    }
    return hash;
}

/* Running means over the lines that have these values. */
static void add_measurements(renyi_vqa_answers *a, const json_t *o)
{
    const json_t *meta = ry_json_object(o, "metadata"), *ms = json_object_get(meta, "ms"),
                 *visual = json_object_get(meta, "visual_tokens"),
                 *tokens = json_object_get(meta, "tokens");
    add_costs(a, meta);
    if (!json_is_number(ms) || !json_is_number(visual) || !json_is_number(tokens)) return;
    const double n = (double)++a->n_measured;
    renyi_vqa_answers_info *i = &a->info;
    if (n == 1) i->visual_tokens = i->tokens = i->ms = 0;
    i->visual_tokens += (json_number_value(visual) - i->visual_tokens) / n;
    i->tokens += (json_number_value(tokens) - i->tokens) / n;
    i->ms += (json_number_value(ms) - i->ms) / n;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static renyi_status read_answer_object(renyi_vqa_answers *a, const json_t *o, const char *where,
                                       ry_text line, uint32_t place, renyi_error *err)
{
    const char *prompt = json_string_value(json_object_get(o, "prompt"));
    match m = {.prompt = prompt ? prompt : "",
               .text = json_string_value(json_object_get(o, "text"))};
    uint8_t is_number;
    char id[256];
    if (!ry_vqa_read_id(json_object_get(o, "question_id"), id, &is_number) || !m.text)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: not an answer: question_id and text are needed", where);
    m.id = id;
    if (place == RY_VQA_NONE)
        find_questions(a, &m);
    else
        match_question(a, &m, place);
    if (!m.n) {
        a->info.n_foreign++;
        return RENYI_OK;
    }
    if (!m.free && !m.is_repeated)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: a second, different answer to question %.80s", where, id);
    RY_TRY(read_run(a, o, where, err));
    if (!m.free) {
        a->info.n_repeated++;
        return RENYI_OK;
    }
    add_measurements(a, o);
    RY_TRY(add_answer(a, m.free, m.text, line, err));
    m.free->input = ry_vqa_read_hash(json_object_get(ry_json_object(o, "metadata"), "input"));
    return RENYI_OK;
}

renyi_status ry_vqa_answers_read_line(renyi_vqa_answers *a, const char *where, ry_text line,
                                      uint32_t place, renyi_error *err)
{
    const ry_json_limits limits = {1 << 22, 10000, 8};
    json_t *o;
    RY_TRY(ry_json_parse(&o, line.at, line.n, where, &limits, err));
    const renyi_status st = read_answer_object(a, o, where, line, place, err);
    json_decref(o);
    return st;
}

renyi_status ry_vqa_answers_read(renyi_vqa_answers *a, const char *name, const char *bytes,
                                 size_t size, size_t *whole, renyi_error *err)
{
    while (size && bytes[size - 1] != '\n') size--; /* an incomplete last line */
    *whole = size;
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        char where[512];
        if (!ry_text_trim(line).n) continue;
        snprintf(where, sizeof where, "%.480s:%llu", name, (unsigned long long)l.number);
        RY_TRY(ry_vqa_answers_read_line(a, where, line, RY_VQA_NONE, err));
    }
    return RENYI_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* The last line of a finished file may lack its newline. */
static renyi_status read_answer_file(renyi_vqa_answers *a, const char *path, renyi_error *err)
{
    unsigned char *bytes;
    char where[512];
    size_t size, whole = 0;
    snprintf(where, sizeof where, "%.480s: last line", path);
    RY_TRY(ry_vqa_read_file(&bytes, &size, path, a->v->max_file_bytes, err));
    renyi_status st = ry_vqa_answers_read(a, path, (const char *)bytes, size, &whole, err);
    const ry_text rest = ry_text_trim((ry_text){(const char *)bytes + whole, size - whole});
    if (!st && rest.n) st = ry_vqa_answers_read_line(a, where, rest, RY_VQA_NONE, err);
    ry_free(NULL, bytes);
    return st;
}

static int is_jsonl(const char *name)
{
    const size_t n = strlen(name);
    return n > 6 && strcmp(name + n - 6, ".jsonl") == 0;
}

static renyi_status read_answer_path(renyi_vqa_answers *a, const char *path, renyi_error *err)
{
    const char **paths;
    size_t n;
    if (!ry_is_folder(path)) return read_answer_file(a, path, err);
    RY_TRY(ry_vqa_list_folder(&a->pool, path, is_jsonl, &paths, &n, err));
    if (!n) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: this folder has no .jsonl file", path);
    for (size_t i = 0; i < n; i++) RY_TRY(read_answer_file(a, paths[i], err));
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
    a->info.cost = (renyi_vqa_cost){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
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
    for (size_t i = 0; i < n_paths && !st; i++) st = read_answer_path(a, paths[i], err);
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

uint64_t renyi_vqa_get_input_hash(const renyi_vqa_answers *a, size_t i)
{
    return a->items[i].input;
}

const char *renyi_vqa_get_answer(const renyi_vqa_answers *a, size_t i) { return a->items[i].text; }

/* ---- writing a line ------------------------------------------------------------------------- */

static int set_member(json_t *o, const char *key, json_t *value)
{
    return json_object_set_new(o, key, value) == 0; /* fails for a NULL value */
}

/* mmbench: LLaVA's script can rotate the options and writes the number of the rotation. */
static int set_option_texts(json_t *o, const ry_vqa_question *q)
{
    json_t *texts = json_array(), *letters = json_array();
    for (uint32_t i = 0; i < q->n_options; i++) {
        const char letter[2] = {(char)('A' + i), 0};
        (void)json_array_append_new(texts, ry_json_clean(q->options[i]));
        (void)json_array_append_new(letters, json_string(letter));
    }
    const int is_fine =
        json_array_size(texts) == q->n_options && json_array_size(letters) == q->n_options;
    return set_member(o, "options", texts) & set_member(o, "option_char", letters) & is_fine;
}

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_string(text);
}

/* Of what the model was given: the text of the question and the bytes of its image. */
static json_t *input_hash(const ry_vqa_question *q, const ry_vqa_run_label *label)
{
    return hash_json(
        ry_hash_add(ry_hash_add_text(RY_HASH_START, q->text), &label->image, sizeof label->image));
}

static json_t *run_metadata(const ry_vqa_run_label *label, const ry_vqa_question *q,
                            const renyi_vqa_reply *reply)
{
    double cost[RY_VQA_COSTS];
    json_t *o = json_object();
    int is_fine = o && (!label->policy || set_member(o, "policy", ry_json_clean(label->policy)));
    is_fine = is_fine && set_member(o, "run", json_string(label->id)) &&
              set_member(o, "visual_tokens", json_integer(reply->n_visual)) &&
              set_member(o, "tokens", json_integer(reply->n_tokens)) &&
              set_member(o, "ms", json_integer((json_int_t)(reply->ms + 0.5)));
    if (reply->cost) memcpy(cost, reply->cost, sizeof cost);
    for (int i = 0; reply->cost && i < RY_VQA_COSTS; i++)
        if (isfinite(cost[i])) is_fine = is_fine && set_member(o, cost_keys[i], json_real(cost[i]));
    is_fine = is_fine && set_member(o, "input", input_hash(q, label));
    if (is_fine) return o;
    json_decref(o);
    return NULL;
}

/* A hash of run and question: the same when a run is repeated. */
static json_t *answer_id(const ry_vqa_question *q, const ry_vqa_run_label *label)
{
    return hash_json(ry_hash_add_text(ry_vqa_hash(q->id, q->prompt), label->id));
}

renyi_status ry_vqa_answer_line(char **out, const renyi_vqa *v, size_t i,
                                const ry_vqa_run_label *label, const renyi_vqa_reply *reply,
                                renyi_error *err)
{
    const ry_vqa_question *q = &v->questions[i];
    json_t *o = json_object();
    int is_fine = o && set_member(o, "question_id", ry_vqa_id_json(q));
    if (q->n_options) is_fine = is_fine && set_member(o, "round_id", json_integer(0));
    is_fine = is_fine && set_member(o, "prompt", ry_json_clean(q->prompt)) &&
              set_member(o, "text", ry_json_clean(reply->text));
    if (q->n_options) is_fine = is_fine && set_option_texts(o, q);
    is_fine = is_fine && set_member(o, "answer_id", answer_id(q, label)) &&
              set_member(o, "model_id", ry_json_clean(label->model)) &&
              set_member(o, "metadata", run_metadata(label, q, reply));
    if (is_fine) return ry_json_text(out, o, &v->al, err);
    json_decref(o);
    *out = NULL;
    return ry_fail_nomem(err, strlen(q->prompt));
}
