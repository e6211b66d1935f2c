/* vqa_truth.c - reads the right answers from the annotation files of a benchmark.
 *
 * A question is matched with its annotation by a text that both have: the id; for vizwiz the image;
 * for textvqa image and question; for pope category, image and question; for mme the file name.
 *
 *   gqa      {"201307251": {"answer": "right", ...}, ...}
 *   vqav2    {"annotations": [{"question_id": 1, "answer_type": "other", "answers": [{"answer":
 *            "net"}, ...]}, ...]}
 *   vizwiz   [{"image": "VizWiz_val_00000000.jpg", "answer_type": "other", "answers": [...]}, ...]
 *   textvqa  {"data": [{"image_id": "003a8ae2", "question": "...", "answers": ["a", ...]}, ...]}
 *   sqa      {"1": {"answer": 0, "choices": ["...", "..."], ...}, ...}
 *   seed     {"question_type": {"Scene Understanding": 1, ...}, "questions": [{"question_id":
 *            "101669", "question_type_id": 1, "data_type": "image", "answer": "A"}, ...]}
 *   pope     {"question_id": 1, "image": "a.jpg", "text": "Is ...?", "label": "yes"}, one per line
 *   mme      one text file per image: one line per question, a tab, then "Yes" or "No"
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

/* The parts of a key; unused ones are "". Case of the question does not matter. */
typedef struct join_parts {
    const char *a, *b, *question;
} join_parts;

enum { MAX_SAME = 64 }; /* questions with one key; further ones are ignored */

/* The question in a prompt: its first line, or the second after a line of OCR tokens. */
static ry_text bare_question(const char *prompt)
{
    const ry_text all = ry_text_of(prompt);
    ry_lines l = ry_lines_of(all.at, all.n);
    ry_text first = {prompt, 0};
    static const char ocr[] = "Reference OCR token:";
    if (!ry_lines_next(&l, &first)) return first;
    if (first.n >= sizeof ocr - 1 && memcmp(first.at, ocr, sizeof ocr - 1) == 0)
        (void)ry_lines_next(&l, &first);
    return first;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* "a" \x1f "b" \x1f "lower case of c", in the pool. */
static char *join_key(renyi_vqa *v, const char *a, const char *b, ry_text c)
{
    const size_t n = strlen(a), m = strlen(b);
    char *lower = ry_vqa_lower_text(c.at, c.n, &v->al);
    char *key = lower ? ry_pool_take(&v->pool, n + m + strlen(lower) + 3, 1) : NULL;
    if (key) {
        memcpy(key, a, n);
        key[n] = 0x1f;
        memcpy(key + n + 1, b, m);
        key[n + m + 1] = 0x1f;
        memcpy(key + n + m + 2, lower, strlen(lower) + 1);
    }
    ry_free(&v->al, lower);
    return key;
}

static char *question_key(renyi_vqa *v, const ry_vqa_question *q)
{
    const ry_text none = {"", 0};
    const char *category = q->category == RY_VQA_NONE ? "" : v->categories[q->category];
    switch (v->info.task) {
    case RENYI_VQA_VIZWIZ: return join_key(v, q->image, "", none);
    case RENYI_VQA_TEXTVQA: return join_key(v, q->id, "", bare_question(q->prompt));
    case RENYI_VQA_POPE: return join_key(v, category, q->image, bare_question(q->prompt));
    default: return join_key(v, q->id, "", none);
    }
}

renyi_status ry_vqa_join_open(ry_vqa_join_table *j, renyi_vqa *v, renyi_error *err)
{
    *j = (ry_vqa_join_table){.v = v, .keys = ry_calloc(&v->al, v->count, sizeof *j->keys)};
    if (!j->keys) return ry_fail_nomem(err, v->count * sizeof *j->keys);
    for (size_t i = 0; i < v->count; i++) {
        j->keys[i] = question_key(v, &v->questions[i]);
        if (!j->keys[i]) return ry_fail_nomem(err, 256);
        RY_TRY(ry_vqa_index_add(&j->index, ry_vqa_hash(j->keys[i], ""), (uint32_t)i, &v->al, err));
    }
    ry_vqa_index_sort(&j->index);
    return RENYI_OK;
}

void ry_vqa_join_close(ry_vqa_join_table *j)
{
    if (!j->v) return;
    ry_free(&j->v->al, j->keys);
    ry_vqa_index_free(&j->index, &j->v->al);
    *j = (ry_vqa_join_table){0};
}

static renyi_status find_by_key(ry_vqa_join_table *j, const join_parts *k,
                                ry_vqa_question *found[MAX_SAME], size_t *n, renyi_error *err)
{
    char *key = join_key(j->v, k->a, k->b, ry_text_of(k->question));
    *n = 0;
    if (!key) return ry_fail_nomem(err, 256);
    const ry_vqa_slot *s = ry_vqa_index_find(&j->index, ry_vqa_hash(key, ""));
    for (; s && *n < MAX_SAME; s = ry_vqa_index_next(&j->index, s))
        if (strcmp(j->keys[s->place], key) == 0) found[(*n)++] = &j->v->questions[s->place];
    j->n_found += *n;
    return RENYI_OK;
}

static renyi_status fail_format(const char *where, const char *what, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s", where, what);
}

/* Sets the right answers of the matching questions, and their category if they have none. */
static renyi_status set_right_answers(ry_vqa_join_table *j, const join_parts *key,
                                      const json_t *right, const char *category, const char *where,
                                      renyi_error *err)
{
    ry_vqa_question *found[MAX_SAME];
    size_t n;
    RY_TRY(find_by_key(j, key, found, &n, err));
    for (size_t i = 0; i < n; i++) {
        int is_fine;
        RY_TRY(ry_vqa_read_right(j->v, found[i], right, &is_fine, err));
        if (!is_fine) return fail_format(where, "the answers are not texts", err);
        if (found[i]->category == RY_VQA_NONE)
            RY_TRY(ry_vqa_find_category(j->v, &found[i]->category, category, err));
    }
    return RENYI_OK;
}

/* ---- objects by id -------------------------------------------------------------------------- */

static renyi_status set_right_letter(ry_vqa_join_table *j, const char *id, const json_t *o,
                                     const char *where, renyi_error *err)
{
    const json_t *answer = json_object_get(o, "answer");
    const size_t n = json_array_size(json_object_get(o, "choices"));
    const json_int_t place = json_is_integer(answer) ? json_integer_value(answer) : -1;
    const join_parts key = {id, "", ""};
    ry_vqa_question *found[MAX_SAME];
    size_t n_found;
    if (n < 1 || n > 26 || place < 0 || place >= (json_int_t)n)
        return fail_format(where, "no choices, or the answer is not one of them", err);
    const char letter[2] = {(char)('A' + place), 0}, *right = letter;
    RY_TRY(find_by_key(j, &key, found, &n_found, err));
    for (size_t i = 0; i < n_found; i++) {
        RY_TRY(ry_vqa_set_right(j->v, found[i], &right, 1, err));
        found[i]->n_choices = (uint32_t)n;
    }
    return RENYI_OK;
}

static renyi_status read_by_id(ry_vqa_join_table *j, const char *name, json_t *document,
                               renyi_error *err)
{
    const char *id;
    json_t *o;
    if (!json_is_object(document))
        return fail_format(name, "not an object of questions by id", err);
    json_object_foreach(document, id, o)
    {
        char where[512];
        const join_parts key = {id, "", ""};
        snprintf(where, sizeof where, "%.400s: '%.80s'", name, id);
        if (j->v->info.task == RENYI_VQA_SQA)
            RY_TRY(set_right_letter(j, id, o, where, err));
        else
            RY_TRY(set_right_answers(j, &key, json_object_get(o, "answer"), NULL, where, err));
    }
    return RENYI_OK;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static renyi_status read_list_entry(ry_vqa_join_table *j, const json_t *document, const json_t *o,
                                    const char *where, renyi_error *err)
{
    const int is_seed = j->v->info.task == RENYI_VQA_SEED;
    const json_t *answers = json_object_get(o, is_seed ? "answer" : "answers");
    const char *kind = is_seed ? ry_vqa_seed_category(document, o)
                               : json_string_value(json_object_get(o, "answer_type"));
    const char *image = json_string_value(json_object_get(o, "image"));
    const char *question = json_string_value(json_object_get(o, "question"));
    const int is_text = j->v->info.task == RENYI_VQA_TEXTVQA;
    join_parts key = {image, "", ""};
    uint8_t is_number;
    char id[256];
    if (j->v->info.task != RENYI_VQA_VIZWIZ) {
        if (!ry_vqa_read_id(json_object_get(o, is_text ? "image_id" : "question_id"), id,
                            &is_number))
            return fail_format(where, is_text ? "no image_id" : "no question_id", err);
        key.a = id;
    }
    if (is_text) key.question = question;
    if (!key.a || !key.question) return fail_format(where, key.a ? "no question" : "no image", err);
    return set_right_answers(j, &key, answers, kind, where, err);
}

static renyi_status read_list(ry_vqa_join_table *j, const char *name, json_t *document,
                              renyi_error *err)
{
    const renyi_vqa_task task = j->v->info.task;
    const char *member = task == RENYI_VQA_VQAV2  ? "annotations"
                         : task == RENYI_VQA_SEED ? "questions"
                                                  : "data";
    const json_t *list = task == RENYI_VQA_VIZWIZ ? document : json_object_get(document, member);
    if (!json_is_array(list))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no list%s%s", name,
                       list == document ? "" : " named ", list == document ? "" : member);
    if (task == RENYI_VQA_SEED) RY_TRY(ry_vqa_check_seed(document, name, err));
    for (size_t i = 0; i < json_array_size(list); i++) {
        char where[512];
        snprintf(where, sizeof where, "%.480s: entry %zu", name, i + 1);
        RY_TRY(read_list_entry(j, document, json_array_get(list, i), where, err));
    }
    return RENYI_OK;
}

renyi_status ry_vqa_read_truth_json(ry_vqa_join_table *j, const char *name, const char *bytes,
                                    size_t size, renyi_error *err)
{
    const ry_json_limits limits = {j->v->max_file_bytes, 64 << 20, 32};
    const renyi_vqa_task task = j->v->info.task;
    json_t *document;
    RY_TRY(ry_json_parse(&document, bytes, size, name, &limits, err));
    const renyi_status st = task == RENYI_VQA_GQA || task == RENYI_VQA_SQA
                                ? read_by_id(j, name, document, err)
                                : read_list(j, name, document, err);
    json_decref(document);
    return st;
}

/* ---- POPE ----------------------------------------------------------------------------------- */

static renyi_status read_pope_line(ry_vqa_join_table *j, const char *where, const char *kind,
                                   ry_text line, renyi_error *err)
{
    const ry_json_limits limits = {1 << 20, 10000, 8};
    json_t *o;
    renyi_status st;
    RY_TRY(ry_json_parse(&o, line.at, line.n, where, &limits, err));
    const join_parts key = {kind, json_string_value(json_object_get(o, "image")),
                            json_string_value(json_object_get(o, "text"))};
    if (!key.b || !key.question)
        st = fail_format(where, "no image, or no text", err);
    else
        st = set_right_answers(j, &key, json_object_get(o, "label"), NULL, where, err);
    json_decref(o);
    return st;
}

renyi_status ry_vqa_read_truth_pope(ry_vqa_join_table *j, const char *name, const char *kind,
                                    const char *bytes, size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        char where[512];
        if (!ry_text_trim(line).n) continue;
        snprintf(where, sizeof where, "%.480s:%llu", name, (unsigned long long)l.number);
        RY_TRY(read_pope_line(j, where, kind, line, err));
    }
    return RENYI_OK;
}

/* ---- MME ------------------------------------------------------------------------------------ */

static int ends_with(ry_text t, const char *tail)
{
    const size_t n = strlen(tail);
    return t.n >= n && memcmp(t.at + t.n - n, tail, n) == 0;
}

/* LLaVA appends a sentence to a question and changes the blanks before another one; both are
 * removed before comparing. */
static ry_text bare_mme_question(ry_text question)
{
    static const char *const tails[] = {"Answer the question using a single word or phrase.",
                                        "Please answer yes or no."};
    for (size_t i = 0; i < 2; i++) {
        question = ry_text_trim(question);
        if (ends_with(question, tails[i])) question.n -= strlen(tails[i]);
    }
    return ry_text_trim(question);
}

const char *ry_vqa_mme_answer(const char *bytes, size_t size, const char *prompt)
{
    const ry_text wanted = bare_mme_question(ry_text_of(prompt));
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        const char *tab = line.n ? memchr(line.at, '\t', line.n) : NULL;
        if (!tab) continue;
        const size_t n = (size_t)(tab - line.at);
        if (ry_text_compare(bare_mme_question((ry_text){line.at, n}), wanted) != 0) continue;
        const ry_text said = ry_text_trim((ry_text){tab + 1, line.n - n - 1});
        if (said.n == 3 && (said.at[0] | 32) == 'y') return "yes";
        if (said.n == 2 && (said.at[0] | 32) == 'n') return "no";
    }
    return NULL;
}

/* FOLDER/subtask/questions_answers_YN/0020.txt, or FOLDER/subtask/0020.txt. */
static renyi_status read_mme_file(ry_vqa_question *q, renyi_vqa *v, const char *folder,
                                  int is_inside, int *is_missing, renyi_error *err)
{
    const char *slash = strrchr(q->id, '/'), *name = slash ? slash + 1 : q->id;
    const char *dot = strrchr(name, '.'), *answer;
    const size_t n = dot ? (size_t)(dot - name) : strlen(name);
    char path[4096];
    uint8_t *bytes;
    size_t size;
    const int length =
        snprintf(path, sizeof path, "%s/%s/%s%.*s.txt", folder, v->categories[q->category],
                 is_inside ? "questions_answers_YN/" : "", (int)n, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%.80s...: path of %d bytes is too long", folder,
                       length);
    const renyi_status st = ry_file_read(&bytes, &size, path, 1 << 20, NULL, is_missing, err);
    if (st) return *is_missing ? RENYI_OK : ry_fail_in(err, st, path);
    answer = ry_vqa_mme_answer((const char *)bytes, size, q->prompt);
    const renyi_status set = answer ? ry_vqa_set_right(v, q, &answer, 1, err) : RENYI_OK;
    ry_free(NULL, bytes);
    return set;
}

static renyi_status read_mme_truth(renyi_vqa *v, const char *folder, renyi_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < v->count; i++) {
        ry_vqa_question *q = &v->questions[i];
        int is_missing = 0;
        if (q->category == RY_VQA_NONE) continue;
        RY_TRY(read_mme_file(q, v, folder, 1, &is_missing, err));
        if (is_missing) RY_TRY(read_mme_file(q, v, folder, 0, &is_missing, err));
        n += q->n_right > 0;
    }
    if (n) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: contains none of the %zu questions; mme needs the folder "
                   "MME_Benchmark_release_version",
                   folder, v->count);
}

/* ---- files ---------------------------------------------------------------------------------- */

static renyi_status read_truth_file(ry_vqa_join_table *j, const char *path, renyi_error *err)
{
    unsigned char *bytes;
    size_t size;
    char kind[64] = "";
    RY_TRY(ry_vqa_read_file(&bytes, &size, path, j->v->max_file_bytes, err));
    if (j->v->info.task == RENYI_VQA_POPE) (void)ry_vqa_pope_kind(path, kind);
    const renyi_status st =
        j->v->info.task == RENYI_VQA_POPE
            ? ry_vqa_read_truth_pope(j, path, kind, (const char *)bytes, size, err)
            : ry_vqa_read_truth_json(j, path, (const char *)bytes, size, err);
    ry_free(NULL, bytes);
    return st;
}

static int is_problems(const char *name) { return strcmp(name, "problems.json") == 0; }

static renyi_status read_truth_files(ry_vqa_join_table *j, const char *path, renyi_error *err)
{
    const renyi_vqa_task task = j->v->info.task;
    const char **paths;
    size_t n;
    if (!ry_is_folder(path)) return read_truth_file(j, path, err);
    if (task != RENYI_VQA_POPE && task != RENYI_VQA_SQA)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s: is a folder; expected an annotation file",
                       path);
    const int of_pope = task == RENYI_VQA_POPE;
    RY_TRY(ry_vqa_list_folder(&j->v->pool, path, of_pope ? ry_vqa_is_pope_file : is_problems,
                              &paths, &n, err));
    if (!n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no %s in this folder", path,
                       of_pope ? "coco_pope_*.json" : "problems.json");
    for (size_t i = 0; i < n; i++) RY_TRY(read_truth_file(j, paths[i], err));
    return RENYI_OK;
}

renyi_status ry_vqa_read_truth(renyi_vqa *v, const char *path, renyi_error *err)
{
    ry_vqa_join_table j = {0};
    renyi_vqa_task_info task;
    renyi_vqa_get_task(v->info.task, &task);
    if (!task.annotations)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s has no annotation files", task.name);
    if (v->info.task == RENYI_VQA_MME) return read_mme_truth(v, path, err);
    renyi_status st = ry_vqa_join_open(&j, v, err);
    if (!st) st = read_truth_files(&j, path, err);
    if (!st && !j.n_found)
        st = ry_fail(err, RENYI_ERR_FORMAT, -1,
                     "%s: contains none of the %zu questions; %s needs %s", path, v->count,
                     task.name, task.annotations);
    ry_vqa_join_close(&j);
    return st;
}
