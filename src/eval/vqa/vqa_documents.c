/* vqa_documents.c - reads question files that are one JSON document: SEED-Bench and OCRBench.
 *
 *   seed      {"question_type": {"Scene Understanding": 1, ...}, "questions": [
 *               {"question_id": "101669", "question_type_id": 1, "data_type": "image",
 *                "data_id": "1454426_2591111986", "question": "...",
 *                "choice_a": "One", ..., "choice_d": "Four", "answer": "A"}, ...]}
 *
 *   ocrbench  [{"dataset_name": "IIIT5K", "type": "Regular Text Recognition",
 *               "image_path": "IIIT5K/a.png", "question": "...",
 *               "answers": "TEXT" or ["TEXT", ...]}, ...]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* A function that reads entry `number` (from 1) of a list into a question. */
typedef renyi_status entry_reader(renyi_vqa *v, const json_t *document, const json_t *entry,
                                  size_t number, const char *where, renyi_error *err);

/* Reads every entry of a list; a bad one is a fault. `list` is part of `document`. */
static renyi_status read_entries(renyi_vqa *v, const char *name, const json_t *document,
                                 const json_t *list, entry_reader *read, renyi_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char where[512];
        renyi_error why = {0};
        snprintf(where, sizeof where, "%.480s: entry %zu", name, i + 1);
        const renyi_status st = read(v, document, json_array_get(list, i), i + 1, where, &why);
        RY_TRY(ry_vqa_add_fault(v, st, &why, err));
    }
    return RENYI_OK;
}

static renyi_status parse(json_t **out, const renyi_vqa *v, const char *name, const char *bytes,
                          size_t size, renyi_error *err)
{
    const ry_json_limits limits = {v->max_file_bytes, 16 << 20, 16};
    return ry_json_parse(out, bytes, size, name, &limits, err);
}

/* ---- SEED-Bench ----------------------------------------------------------------------------- */

static int is_video(const json_t *entry)
{
    const char *kind = text_of(entry, "data_type");
    return kind && strcmp(kind, "video") == 0;
}

/* Before ry_vqa_seed_category, which searches the types once per entry. */
renyi_status ry_vqa_check_seed(const json_t *document, const char *name, renyi_error *err)
{
    const size_t n = json_object_size(json_object_get(document, "question_type"));
    if (n <= RY_VQA_MAX_CATEGORIES) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_LIMIT, -1,
                   "%s: question_type has %zu members; at most %d accepted", name, n,
                   RY_VQA_MAX_CATEGORIES);
}

const char *ry_vqa_seed_category(const json_t *document, const json_t *entry)
{
    json_t *types = json_object_get(document, "question_type"), *number;
    const json_t *wanted = json_object_get(entry, "question_type_id");
    const char *name;
    if (is_video(entry)) return "video";
    json_object_foreach(types, name, number)
    {
        if (json_is_integer(number) && json_equal(number, wanted)) return name;
    }
    return NULL;
}

/* "question\nA. ...\nB. ..." and LLaVA's last sentence. */
static renyi_status copy_choices(renyi_vqa *v, ry_vqa_question *q, const json_t *entry,
                                 renyi_error *err)
{
    renyi_vqa_task_info task;
    const char *text = text_of(entry, "question");
    renyi_vqa_get_task(v->info.task, &task);
    for (char letter = 'a'; letter <= 'd'; letter++) {
        const char key[] = {'c', 'h', 'o', 'i', 'c', 'e', '_', letter, 0};
        const char head[] = {'\n', (char)(letter - 'a' + 'A'), '.', ' ', 0};
        const char *choice = text_of(entry, key);
        if (!choice) break;
        RY_TRY(ry_vqa_join_texts(v, &text, text, head, err));
        RY_TRY(ry_vqa_join_texts(v, &text, text, choice, err));
        q->n_choices++;
    }
    return ry_vqa_join_texts(v, &q->text, text, task.suffix, err);
}

static renyi_status read_seed_entry(renyi_vqa *v, const json_t *document, const json_t *entry,
                                    size_t number, const char *where, renyi_error *err)
{
    const char *image = text_of(entry, "data_id"), *answer = text_of(entry, "answer");
    ry_vqa_question q = {0};
    char id[256];
    (void)number;
    if (is_video(entry)) return RENYI_OK;
    if (!ry_vqa_read_id(json_object_get(entry, "question_id"), id, &q.id_is_number))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: question_id must be a number or a text of at most 255 bytes", where);
    if (!image || !*image || !text_of(entry, "question"))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no %s", where,
                       image && *image ? "question" : "data_id");
    RY_TRY(copy_choices(v, &q, entry, err));
    if (q.n_choices < 2)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: fewer than two choices", where);
    q.prompt = q.text;
    RY_TRY(ry_vqa_copy_text(v, &q.id, ry_text_of(id), err));
    RY_TRY(ry_vqa_join_texts(v, &q.image, "SEED-Bench-image/", image, err));
    RY_TRY(ry_vqa_find_category(v, &q.category, ry_vqa_seed_category(document, entry), err));
    if (answer) RY_TRY(ry_vqa_set_right(v, &q, &answer, 1, err));
    return ry_vqa_add_question(v, &q, err);
}

renyi_status ry_vqa_read_seed(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                              renyi_error *err)
{
    json_t *document;
    RY_TRY(parse(&document, v, name, bytes, size, err));
    const json_t *list = json_object_get(document, "questions");
    renyi_status st = ry_vqa_check_seed(document, name, err);
    if (!st)
        st = json_is_array(list)
                 ? read_entries(v, name, document, list, read_seed_entry, err)
                 : ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: no list named questions; expected SEED-Bench.json (LLaVA's lines "
                           "of questions have a name that ends in .jsonl)",
                           name);
    json_decref(document);
    return st;
}

/* ---- OCRBench ------------------------------------------------------------------------------- */

static renyi_status read_ocrbench_entry(renyi_vqa *v, const json_t *document, const json_t *entry,
                                        size_t number, const char *where, renyi_error *err)
{
    const char *image = text_of(entry, "image_path"), *text = text_of(entry, "question"),
               *source = text_of(entry, "dataset_name");
    const json_t *answers = json_object_get(entry, "answers");
    ry_vqa_question q = {.id_is_number = 1, .is_formula = source && strcmp(source, "HME100k") == 0};
    char id[32];
    int is_fine = 1;
    (void)document;
    if (!image || !*image || !text || !*text)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no %s", where,
                       image && *image ? "question" : "image_path");
    snprintf(id, sizeof id, "%zu", number);
    RY_TRY(ry_vqa_copy_text(v, &q.id, ry_text_of(id), err));
    RY_TRY(ry_vqa_copy_text(v, &q.image, ry_text_of(image), err));
    RY_TRY(ry_vqa_copy_text(v, &q.text, ry_text_of(text), err));
    q.prompt = q.text;
    RY_TRY(ry_vqa_find_category(v, &q.category, text_of(entry, "type"), err));
    if (answers) RY_TRY(ry_vqa_read_right(v, &q, answers, &is_fine, err));
    if (!is_fine)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: 'answers' is neither a text nor a list of texts", where);
    return ry_vqa_add_question(v, &q, err);
}

renyi_status ry_vqa_read_ocrbench(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                                  renyi_error *err)
{
    json_t *list;
    RY_TRY(parse(&list, v, name, bytes, size, err));
    const renyi_status st = json_is_array(list)
                                ? read_entries(v, name, list, list, read_ocrbench_entry, err)
                                : ry_fail(err, RENYI_ERR_FORMAT, -1,
                                          "%s: not a JSON list; expected OCRBench.json", name);
    json_decref(list);
    return st;
}
