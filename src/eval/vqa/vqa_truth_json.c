/* vqa_truth_json.c - annotation files of gqa, vqav2, vizwiz, textvqa and sqa, and POPE's lines.
 *
 *   gqa      {"201307251": {"answer": "right", ...}, ...}
 *   vqav2    {"annotations": [{"question_id": 1, "answer_type": "other", "answers": [{"answer":
 *            "net"}, ...]}, ...]}
 *   vizwiz   [{"image": "VizWiz_val_00000000.jpg", "answer_type": "other", "answers": [...]}, ...]
 *   textvqa  {"data": [{"image_id": "003a8ae2", "question": "...", "answers": ["a", ...]}, ...]}
 *   sqa      {"1": {"answer": 0, "choices": ["...", "..."], ...}, ...}
 *   pope     {"question_id": 1, "image": "a.jpg", "text": "Is ...?", "label": "yes"} a line
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

static renyi_status broken(const char *where, const char *what, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s", where, what);
}

/* Right answers, and a category where the questions have none. */
static renyi_status give(ry_vqa_join_table *j, const ry_vqa_join_key *key, const json_t *right,
                         const char *category, const char *where, renyi_error *err)
{
    ry_vqa_question *found[RY_VQA_MAX_SAME];
    size_t n;
    RY_TRY(ry_vqa_join_find(j, key, found, &n, err));
    for (size_t i = 0; i < n; i++) {
        int is_fine;
        RY_TRY(ry_vqa_take_right(j->v, found[i], right, &is_fine, err));
        if (!is_fine) return broken(where, "no answers that are texts", err);
        if (found[i]->category == RY_VQA_NONE)
            RY_TRY(ry_vqa_category(j->v, &found[i]->category, category, err));
    }
    return RENYI_OK;
}

/* ---- objects by id ------------------------------------------------------------------------- */

static renyi_status give_letter(ry_vqa_join_table *j, const char *id, const json_t *o,
                                const char *where, renyi_error *err)
{
    const json_t *answer = json_object_get(o, "answer");
    const size_t n = json_array_size(json_object_get(o, "choices"));
    const json_int_t place = json_is_integer(answer) ? json_integer_value(answer) : -1;
    const ry_vqa_join_key key = {id, "", ""};
    ry_vqa_question *found[RY_VQA_MAX_SAME];
    size_t n_found;
    if (n < 1 || n > 26 || place < 0 || place >= (json_int_t)n)
        return broken(where, "no choices, or an answer that is none of them", err);
    const char letter[2] = {(char)('A' + place), 0}, *right = letter;
    RY_TRY(ry_vqa_join_find(j, &key, found, &n_found, err));
    for (size_t i = 0; i < n_found; i++) {
        RY_TRY(ry_vqa_set_right(j->v, found[i], &right, 1, err));
        found[i]->n_choices = (uint32_t)n;
    }
    return RENYI_OK;
}

static renyi_status take_by_id(ry_vqa_join_table *j, const char *name, json_t *document,
                               renyi_error *err)
{
    const char *id;
    json_t *o;
    if (!json_is_object(document)) return broken(name, "not an object of questions by id", err);
    json_object_foreach(document, id, o)
    {
        char where[512];
        const ry_vqa_join_key key = {id, "", ""};
        snprintf(where, sizeof where, "%.400s: '%.80s'", name, id);
        if (j->v->info.task == RENYI_VQA_SQA)
            RY_TRY(give_letter(j, id, o, where, err));
        else
            RY_TRY(give(j, &key, json_object_get(o, "answer"), NULL, where, err));
    }
    return RENYI_OK;
}

/* ---- lists --------------------------------------------------------------------------------- */

static renyi_status take_entry(ry_vqa_join_table *j, const json_t *o, const char *where,
                               renyi_error *err)
{
    const json_t *answers = json_object_get(o, "answers");
    const char *kind = json_string_value(json_object_get(o, "answer_type"));
    const char *image = json_string_value(json_object_get(o, "image"));
    const char *question = json_string_value(json_object_get(o, "question"));
    const int is_text = j->v->info.task == RENYI_VQA_TEXTVQA;
    ry_vqa_join_key key = {image, "", ""};
    uint8_t is_number;
    char id[256];
    if (j->v->info.task != RENYI_VQA_VIZWIZ) {
        if (!ry_vqa_id(json_object_get(o, is_text ? "image_id" : "question_id"), id, &is_number))
            return broken(where, is_text ? "no image_id" : "no question_id", err);
        key.a = id;
    }
    if (is_text) key.question = question;
    if (!key.a || !key.question) return broken(where, key.a ? "no question" : "no image", err);
    return give(j, &key, answers, kind, where, err);
}

static renyi_status take_list(ry_vqa_join_table *j, const char *name, json_t *document,
                              renyi_error *err)
{
    const renyi_vqa_task task = j->v->info.task;
    const char *member = task == RENYI_VQA_VQAV2 ? "annotations" : "data";
    const json_t *list = task == RENYI_VQA_VIZWIZ ? document : json_object_get(document, member);
    if (!json_is_array(list))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no list%s%s", name,
                       list == document ? "" : " called ", list == document ? "" : member);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char where[512];
        snprintf(where, sizeof where, "%.480s: entry %zu", name, i + 1);
        RY_TRY(take_entry(j, json_array_get(list, i), where, err));
    }
    return RENYI_OK;
}

renyi_status ry_vqa_truth_json(ry_vqa_join_table *j, const char *name, const char *bytes,
                               size_t size, renyi_error *err)
{
    const ry_json_limits limits = {j->v->max_file_bytes, 64 << 20, 32};
    const renyi_vqa_task task = j->v->info.task;
    json_t *document;
    RY_TRY(ry_json_parse(&document, bytes, size, name, &limits, err));
    const renyi_status st = task == RENYI_VQA_GQA || task == RENYI_VQA_SQA
                                ? take_by_id(j, name, document, err)
                                : take_list(j, name, document, err);
    json_decref(document);
    return st;
}

/* ---- POPE ---------------------------------------------------------------------------------- */

static renyi_status take_line(ry_vqa_join_table *j, const char *where, const char *kind,
                              ry_text line, renyi_error *err)
{
    const ry_json_limits limits = {1 << 20, 10000, 8};
    json_t *o;
    renyi_status st;
    RY_TRY(ry_json_parse(&o, line.at, line.n, where, &limits, err));
    const ry_vqa_join_key key = {kind, json_string_value(json_object_get(o, "image")),
                                 json_string_value(json_object_get(o, "text"))};
    if (!key.b || !key.question)
        st = broken(where, "no image, or no text", err);
    else
        st = give(j, &key, json_object_get(o, "label"), NULL, where, err);
    json_decref(o);
    return st;
}

renyi_status ry_vqa_truth_pope(ry_vqa_join_table *j, const char *name, const char *kind,
                               const char *bytes, size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        char where[512];
        if (!ry_text_trim(line).n) continue;
        snprintf(where, sizeof where, "%.480s:%llu", name, (unsigned long long)l.number);
        RY_TRY(take_line(j, where, kind, line, err));
    }
    return RENYI_OK;
}
