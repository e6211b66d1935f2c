/* vqa_submission.c - writes the answers as a server or a grader expects them.
 *
 *   gqa         [{"questionId": "1", "prediction": "yes"}, ...]
 *   vqav2       [{"question_id": 1, "answer": "2"}, ...], unanswered questions with ""
 *   vizwiz      [{"image": "a.jpg", "answer": "unanswerable"}, ...]
 *   mmvet       {"v1_0": "text", ...}
 *   mmbench     a spreadsheet: the columns of the question table without the large ones, and
 *               `prediction` as the seventh
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/output_file.h"
#include "base/status.h"
#include "eval/data/text_lines.h"
#include "eval/vqa/vqa_questions.h"
#include "eval/vqa/xlsx.h"

#include <stdio.h>
#include <string.h>

/* ---- JSON ----------------------------------------------------------------------------------- */

static renyi_status check_complete(const renyi_vqa_answers *a, renyi_error *err)
{
    const uint64_t missing = a->v->count - a->info.n_answered;
    if (!missing || a->v->info.task == RENYI_VQA_VQAV2) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%llu of %zu questions have no answer; a submission needs all",
                   (unsigned long long)missing, a->v->count);
}

/* The text as LLaVA's conversion scripts write it. Owned (ry_free). */
static renyi_status convert_text(const renyi_vqa_answers *a, size_t i, char **out, renyi_error *err)
{
    const char *text = a->items[i].text ? a->items[i].text : "";
    size_t n = strlen(text);
    if (ry_vqa_is_soft(a->v->info.task)) return renyi_vqa_normalise(out, text, &a->al, err);
    if (a->v->info.task == RENYI_VQA_MMVET) {
        *out = ry_strdup(&a->al, text);
    } else {
        while (n && text[n - 1] == '.') n--;
        *out = ry_vqa_lower_text(text, n, &a->al);
    }
    return *out ? RENYI_OK : ry_fail_nomem(err, n);
}

static json_t *make_entry(const renyi_vqa_answers *a, size_t i, const char *text)
{
    const ry_vqa_question *q = &a->v->questions[i];
    json_t *said = ry_json_clean(text);
    switch (a->v->info.task) {
    case RENYI_VQA_GQA:
        return json_pack("{s:o, s:o}", "questionId", ry_vqa_id_json(q), "prediction", said);
    case RENYI_VQA_VQAV2:
        return json_pack("{s:o, s:o}", "question_id", ry_vqa_id_json(q), "answer", said);
    case RENYI_VQA_VIZWIZ:
        return json_pack("{s:o, s:o}", "image", ry_json_clean(q->image), "answer", said);
    default: return said;
    }
}

static renyi_status add_answer(json_t *document, const renyi_vqa_answers *a, size_t i,
                               renyi_error *err)
{
    char *text, key[300];
    RY_TRY(convert_text(a, i, &text, err));
    json_t *item = make_entry(a, i, text);
    ry_free(&a->al, text);
    snprintf(key, sizeof key, "v1_%s", a->v->questions[i].id);
    const int is_bad = json_is_object(document) ? json_object_set_new(document, key, item)
                                                : json_array_append_new(document, item);
    return is_bad ? ry_fail_nomem(err, 64) : RENYI_OK;
}

static renyi_status write_json(const renyi_vqa_answers *a, const char *path, renyi_error *err)
{
    json_t *document = a->v->info.task == RENYI_VQA_MMVET ? json_object() : json_array();
    renyi_status st = document ? RENYI_OK : ry_fail_nomem(err, 64);
    ry_output_file f;
    char *text = NULL;
    for (size_t i = 0; !st && i < a->v->count; i++) st = add_answer(document, a, i, err);
    if (st)
        json_decref(document);
    else
        st = ry_json_text(&text, document, &a->al, err);
    if (!st) st = ry_output_file_open(&f, path, &a->al, err);
    if (!st) {
        st = ry_output_file_write(&f, text, strlen(text), err);
        st = ry_output_file_close(&f, st, &a->al, err);
    }
    ry_free(&a->al, text);
    return st;
}

/* ---- a spreadsheet -------------------------------------------------------------------------- */

enum { PREDICTION = 6 }; /* its column, from 0 */

static int is_large(ry_text column)
{
    static const char *const names[] = {"hint",  "category", "source",
                                        "image", "comment",  "l2-category"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ry_text_compare(ry_text_trim(column), ry_text_of(names[i])) == 0) return 1;
    return 0;
}

static void put_cell(ry_xlsx *x, ry_text text)
{
    uint32_t number;
    if (ry_text_number(text, &number) && (text.n == 1 || text.at[0] != '0'))
        ry_xlsx_number(x, text);
    else
        ry_xlsx_text(x, text);
}

/* A row of the table without its large columns. */
static void put_row(ry_xlsx *x, const ry_text *fields, const unsigned char *large, size_t n,
                    ry_text prediction)
{
    uint32_t column = 0;
    ry_xlsx_row(x);
    for (size_t i = 0; i < n; i++) {
        if (large[i]) continue;
        if (column++ == PREDICTION) ry_xlsx_text(x, prediction);
        put_cell(x, fields[i]);
    }
    if (column <= PREDICTION) ry_xlsx_text(x, prediction);
}

/* The answer to the question with this index. */
static ry_text answer_to(const renyi_vqa_answers *a, ry_text index)
{
    char id[64];
    if (index.n >= sizeof id) return (ry_text){"", 0};
    memcpy(id, index.at, index.n);
    id[index.n] = 0;
    const ry_vqa_slot *s = ry_vqa_index_find(&a->v->by_id, ry_vqa_hash(id, ""));
    if (!s || strcmp(a->v->questions[s->place].id, id) != 0 || !a->items[s->place].text)
        return (ry_text){"", 0};
    return ry_text_of(a->items[s->place].text);
}

/* Reads the table again, because rows without a question stay in it, without a prediction. */
static renyi_status fill_sheet(ry_xlsx *x, const renyi_vqa_answers *a, ry_pool *pool,
                               renyi_error *err)
{
    ry_text fields[RY_CSV_FIELDS];
    unsigned char large[RY_CSV_FIELDS] = {0};
    ry_csv csv = ry_csv_of("questions", a->v->table, a->v->table_size, pool);
    size_t n, n_columns, index = 0;
    csv.separator = '\t';
    RY_TRY(ry_csv_next(&csv, fields, &n_columns, err));
    for (size_t i = 0; i < n_columns; i++) {
        large[i] = (unsigned char)is_large(fields[i]);
        if (ry_text_compare(ry_text_trim(fields[i]), ry_text_of("index")) == 0) index = i;
    }
    put_row(x, fields, large, n_columns, ry_text_of("prediction"));
    for (;;) {
        RY_TRY(ry_csv_next(&csv, fields, &n, err));
        if (!n) return RENYI_OK;
        if (n == n_columns) put_row(x, fields, large, n, answer_to(a, ry_text_trim(fields[index])));
    }
}

static renyi_status write_table(const renyi_vqa_answers *a, const char *path, renyi_error *err)
{
    ry_pool pool = {.al = &a->al};
    ry_xlsx x = {.sheet.al = &a->al};
    renyi_status st = fill_sheet(&x, a, &pool, err);
    if (!st) st = ry_xlsx_write(&x, path, err);
    ry_xlsx_free(&x);
    ry_pool_free(&pool);
    return st;
}

renyi_status renyi_vqa_write_submission(const renyi_vqa_answers *a, const char *path,
                                        renyi_error *err)
{
    renyi_vqa_task_info task;
    if (!a || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_write_submission: NULL argument");
    renyi_vqa_get_task(a->v->info.task, &task);
    if (!task.submission)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%s has no submission file: it is scored from the answers", task.name);
    RY_TRY(check_complete(a, err));
    return ry_vqa_is_mmbench(a->v->info.task) ? write_table(a, path, err)
                                              : write_json(a, path, err);
}
