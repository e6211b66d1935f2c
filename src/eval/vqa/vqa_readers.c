/* vqa_readers.c - reads the question files of all benchmarks: lines of JSON, ScienceQA, MMBench.
 *
 * Lines of JSON (LLaVA's files; POPE's own three, which add the label to each question):
 *   {"question_id": 1, "image": "a.jpg", "text": "Is there a car?", "category": "random"}
 * The line may contain the right answer: "label", "answer" or "answers".
 *
 * ScienceQA is one JSON list of conversations; a question without an image has no "image":
 *   [{"id": "4", "image": "4/image.png", "conversations": [{"from": "human", "value":
 *     "<image>\nWhich ...\nA. ...\nB. ..."}, {"from": "gpt", "value": "A"}]}, ...]
 *
 * MMBench is a table: tabs between the columns, quotes as in CSV, the image as base64.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/status.h"
#include "eval/data/text_lines.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- lines of JSON -------------------------------------------------------------------------- */

/* The text and the suffix of the benchmark's prompts, unless the text contains the suffix. */
static renyi_status copy_line_text(renyi_vqa *v, const char **out, const char *text,
                                   renyi_error *err)
{
    renyi_vqa_task_info task;
    renyi_vqa_get_task(v->info.task, &task);
    const char *last = task.suffix ? strrchr(task.suffix, '\n') + 1 : NULL;
    return ry_vqa_join_texts(v, out, text, last && !strstr(text, last) ? task.suffix : "", err);
}

static renyi_status fail_format(const char *where, const char *what, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s", where, what);
}

static renyi_status read_line_right(renyi_vqa *v, ry_vqa_question *q, const json_t *o,
                                    const char *where, renyi_error *err)
{
    static const char *const keys[] = {"label", "answer", "answers"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(o, keys[i]);
        int is_fine = 0;
        if (!value || v->info.task == RENYI_VQA_MMVET) continue;
        RY_TRY(ry_vqa_read_right(v, q, value, &is_fine, err));
        if (!is_fine)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: '%s' is neither a text nor a list of texts", where, keys[i]);
        return RENYI_OK;
    }
    return RENYI_OK;
}

static renyi_status read_line_object(renyi_vqa *v, const json_t *o, const char *where,
                                     const char *kind, renyi_error *err)
{
    const json_t *text = json_object_get(o, "text"), *image = json_object_get(o, "image");
    const char *category = json_string_value(json_object_get(o, "category"));
    ry_vqa_question q = {0};
    char id[256], prefixed[512];
    if (!json_is_object(o)) return fail_format(where, "not an object", err);
    if (!ry_vqa_read_id(json_object_get(o, "question_id"), id, &q.id_is_number))
        return fail_format(where, "question_id must be a number or a text of at most 255 bytes",
                           err);
    if (!json_string_length(text)) return fail_format(where, "no text", err);
    if (!json_string_length(image)) return fail_format(where, "no image", err);
    snprintf(prefixed, sizeof prefixed, "%s/%s", kind ? kind : "", id);
    if (kind && v->is_several) q.id_is_number = 0;
    RY_TRY(ry_vqa_copy_text(v, &q.id, ry_text_of(kind && v->is_several ? prefixed : id), err));
    RY_TRY(ry_vqa_copy_text(v, &q.image, ry_text_of(json_string_value(image)), err));
    RY_TRY(copy_line_text(v, &q.text, json_string_value(text), err));
    q.prompt = q.text;
    RY_TRY(ry_vqa_find_category(v, &q.category, kind ? kind : category, err));
    if (v->info.task == RENYI_VQA_MME && q.category == RY_VQA_NONE)
        RY_TRY(ry_vqa_find_category(v, &q.category, ry_vqa_mme_subtask(id), err));
    if (v->info.task == RENYI_VQA_SEED && strstr(q.image, "SEED-Bench-video"))
        RY_TRY(ry_vqa_find_category(v, &q.category, "video", err));
    RY_TRY(read_line_right(v, &q, o, where, err));
    return ry_vqa_add_question(v, &q, err);
}

static renyi_status read_line(renyi_vqa *v, const char *where, const char *kind, ry_text line,
                              renyi_error *err)
{
    const ry_json_limits limits = {1 << 20, 10000, 8};
    json_t *o;
    RY_TRY(ry_json_parse(&o, line.at, line.n, where, &limits, err));
    const renyi_status st = read_line_object(v, o, where, kind, err);
    json_decref(o);
    return st;
}

renyi_status ry_vqa_read_lines(renyi_vqa *v, const char *name, const char *kind, const char *bytes,
                               size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        char where[512];
        renyi_error why = {0};
        if (!ry_text_trim(line).n) continue;
        snprintf(where, sizeof where, "%.480s:%llu", name, (unsigned long long)l.number);
        RY_TRY(ry_vqa_add_fault(v, read_line(v, where, kind, line, &why), &why, err));
    }
    return RENYI_OK;
}

/* ---- ScienceQA ------------------------------------------------------------------------------ */

static const char image_mark[] = "<image>";
enum { IMAGE_MARK = sizeof image_mark - 1, LETTERS = 5 }; /* LLaVA's script reads A to E */

/* Removes every <image> and blanks at both ends; owned (ry_free). NULL = no memory. */
static char *without_image_marks(const renyi_vqa *v, const char *value)
{
    char *text = ry_alloc(&v->al, strlen(value) + 1, 1), *to = text;
    if (!text) return NULL;
    for (const char *at = value; *at;) {
        if (strncmp(at, image_mark, IMAGE_MARK) == 0)
            at += IMAGE_MARK;
        else
            *to++ = *at++;
    }
    const ry_text trimmed = ry_text_trim((ry_text){text, (size_t)(to - text)});
    memmove(text, trimmed.at, trimmed.n);
    text[trimmed.n] = 0;
    return text;
}

static renyi_status copy_sqa_texts(renyi_vqa *v, ry_vqa_question *q, const char *value,
                                   renyi_error *err)
{
    renyi_vqa_task_info task;
    renyi_vqa_get_task(v->info.task, &task);
    char *bare = without_image_marks(v, value);
    if (!bare) return ry_fail_nomem(err, strlen(value));
    renyi_status st =
        ry_vqa_join_texts(v, &q->text, bare, strstr(bare, task.suffix + 1) ? "" : task.suffix, err);
    if (!st) st = ry_vqa_join_texts(v, &q->prompt, q->image ? "<image>\n" : "", q->text, err);
    ry_free(&v->al, bare);
    return st;
}

static const char *turn_text(const json_t *o, size_t turn)
{
    const json_t *turns = json_object_get(o, "conversations");
    return json_string_value(json_object_get(json_array_get(turns, turn), "value"));
}

static renyi_status read_sqa_entry(renyi_vqa *v, const json_t *o, const char *where,
                                   renyi_error *err)
{
    const char *value = turn_text(o, 0), *answer = turn_text(o, 1);
    const json_t *image = json_object_get(o, "image");
    const char letter[2] = {answer ? ry_vqa_letter(answer, LETTERS) : 0, 0}, *right = letter;
    ry_vqa_question q = {.n_choices = LETTERS};
    char id[256];
    if (!ry_vqa_read_id(json_object_get(o, "id"), id, &q.id_is_number))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: id must be a number or a text of at most 255 bytes", where);
    if (!value || (image && !json_string_length(image)))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s", where,
                       value ? "image is not a file name" : "no conversations[0].value");
    RY_TRY(ry_vqa_copy_text(v, &q.id, ry_text_of(id), err));
    if (image) RY_TRY(ry_vqa_copy_text(v, &q.image, ry_text_of(json_string_value(image)), err));
    RY_TRY(ry_vqa_find_category(v, &q.category, image ? "with photo" : "text only", err));
    RY_TRY(copy_sqa_texts(v, &q, value, err));
    if (*letter) RY_TRY(ry_vqa_set_right(v, &q, &right, 1, err));
    return ry_vqa_add_question(v, &q, err);
}

renyi_status ry_vqa_read_sqa(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                             renyi_error *err)
{
    const ry_json_limits limits = {v->max_file_bytes, 16 << 20, 16};
    json_t *list;
    renyi_status st = RENYI_OK;
    RY_TRY(ry_json_parse(&list, bytes, size, name, &limits, err));
    if (!json_is_array(list))
        st = ry_fail(err, RENYI_ERR_FORMAT, -1,
                     "%s: not a JSON list; expected llava_test_CQM-A.json", name);
    for (size_t i = 0; !st && i < json_array_size(list); i++) {
        char where[512];
        renyi_error why = {0};
        snprintf(where, sizeof where, "%.480s: entry %zu", name, i + 1);
        st =
            ry_vqa_add_fault(v, read_sqa_entry(v, json_array_get(list, i), where, &why), &why, err);
    }
    json_decref(list);
    return st;
}

/* ---- MMBench -------------------------------------------------------------------------------- */

enum { OPTIONS = 4, NO_COLUMN = -1 };

typedef struct mmbench_columns {
    int index, question, hint, option[OPTIONS], answer, category, image;
    size_t count;
} mmbench_columns;

static int find_column(const ry_text *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (ry_text_compare(ry_text_trim(fields[i]), ry_text_of(name)) == 0) return (int)i;
    return NO_COLUMN;
}

static renyi_status read_mmbench_header(const char *name, const ry_text *fields, size_t n,
                                        mmbench_columns *c, renyi_error *err)
{
    *c = (mmbench_columns){.index = find_column(fields, n, "index"),
                           .question = find_column(fields, n, "question"),
                           .hint = find_column(fields, n, "hint"),
                           .answer = find_column(fields, n, "answer"),
                           .category = find_column(fields, n, "category"),
                           .image = find_column(fields, n, "image"),
                           .count = n};
    for (int i = 0; i < OPTIONS; i++) {
        const char letter[2] = {(char)('A' + i), 0};
        c->option[i] = find_column(fields, n, letter);
    }
    if (c->index < 0 || c->question < 0 || c->image < 0 || c->option[0] < 0 || c->option[1] < 0)
        return ry_fail(
            err, RENYI_ERR_FORMAT, -1,
            "%s: not an MMBench table: it needs the columns index, question, A, B and image", name);
    return RENYI_OK;
}

/* The texts that pandas reads as a missing value are empty, as in LLaVA's script. */
static ry_text cell_text(const ry_text *fields, int column)
{
    static const char *const nothing[] = {"nan", "none", "null", "n/a", "na", "<na>"};
    const ry_text none = {NULL, 0};
    if (column < 0) return none;
    const ry_text t = fields[column];
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        if (strlen(nothing[i]) == t.n && strncasecmp(nothing[i], t.at, t.n) == 0) return none;
    return t.n ? t : none;
}

/* ---- a row ---------------------------------------------------------------------------------- */

static char *append_text(char *to, ry_text t)
{
    memcpy(to, t.at, t.n);
    return to + t.n;
}

/* LLaVA's prompt: q->prompt = hint\nquestion\nA. ...\nB. ...; q->text = that and the suffix.
 * Answer files contain the prompt without the suffix. */
static renyi_status copy_mmbench_texts(renyi_vqa *v, ry_vqa_question *q, ry_text hint,
                                       ry_text question, renyi_error *err)
{
    renyi_vqa_task_info task;
    size_t size = hint.n + question.n + 2;
    renyi_vqa_get_task(v->info.task, &task);
    for (uint32_t i = 0; i < q->n_options; i++) size += strlen(q->options[i]) + 4;
    char *prompt = ry_pool_take(&v->pool, size, 1), *to = prompt;
    if (!prompt) return ry_fail_nomem(err, size);
    if (hint.n) to = append_text(to, hint), *to++ = '\n';
    to = append_text(to, question);
    for (uint32_t i = 0; i < q->n_options; i++) {
        const char head[4] = {'\n', (char)('A' + i), '.', ' '};
        to = append_text(append_text(to, (ry_text){head, 4}), ry_text_of(q->options[i]));
    }
    *to = 0;
    q->prompt = prompt;
    return ry_vqa_join_texts(v, &q->text, prompt, task.suffix, err);
}

static renyi_status copy_options(renyi_vqa *v, ry_vqa_question *q, const ry_text *fields,
                                 const mmbench_columns *c, renyi_error *err)
{
    const char **options = ry_pool_take(&v->pool, OPTIONS, sizeof *options);
    if (!options) return ry_fail_nomem(err, OPTIONS * sizeof *options);
    for (int i = 0; i < OPTIONS; i++) {
        const ry_text t = cell_text(fields, c->option[i]);
        if (!t.at) break;
        RY_TRY(ry_vqa_copy_text(v, &options[q->n_options++], t, err));
    }
    q->options = options;
    q->n_choices = q->n_options;
    return RENYI_OK;
}

static renyi_status read_mmbench_row(renyi_vqa *v, const ry_text *fields, const mmbench_columns *c,
                                     const char *where, renyi_error *err)
{
    const ry_text index = ry_text_trim(fields[c->index]), question = cell_text(fields, c->question),
                  answer = ry_text_trim(cell_text(fields, c->answer)),
                  category = cell_text(fields, c->category);
    char name[128] = "";
    uint32_t number;
    ry_vqa_question q = {.image_base64 = ry_text_trim(fields[c->image])};
    q.id_is_number = (uint8_t)ry_text_number(index, &number);
    if (!q.id_is_number || !question.at || !q.image_base64.n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s", where,
                       !q.id_is_number ? "index is not a number"
                       : question.at   ? "no image"
                                       : "no question");
    RY_TRY(ry_vqa_copy_text(v, &q.id, index, err));
    if (category.n < sizeof name && category.at) memcpy(name, category.at, category.n);
    RY_TRY(ry_vqa_find_category(v, &q.category, name, err));
    RY_TRY(copy_options(v, &q, fields, c, err));
    if (q.n_options < 2)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: fewer than two options", where);
    RY_TRY(copy_mmbench_texts(v, &q, cell_text(fields, c->hint), question, err));
    if (answer.n == 1) {
        const char letter[2] = {answer.at[0], 0}, *right = letter;
        RY_TRY(ry_vqa_set_right(v, &q, &right, 1, err));
    }
    return ry_vqa_add_question(v, &q, err);
}

renyi_status ry_vqa_read_mmbench(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                                 renyi_error *err)
{
    ry_text fields[RY_CSV_FIELDS];
    ry_csv csv = ry_csv_of(name, bytes, size, &v->pool);
    mmbench_columns c;
    size_t n;
    csv.separator = '\t';
    RY_TRY(ry_csv_next(&csv, fields, &n, err));
    RY_TRY(read_mmbench_header(name, fields, n, &c, err));
    for (;;) {
        char where[512];
        renyi_error why = {0};
        RY_TRY(ry_csv_next(&csv, fields, &n, err));
        if (!n) return RENYI_OK;
        snprintf(where, sizeof where, "%.480s:%llu", name, (unsigned long long)csv.line);
        const renyi_status st =
            n == c.count ? read_mmbench_row(v, fields, &c, where, &why)
                         : ry_fail(&why, RENYI_ERR_FORMAT, -1,
                                   "%s: %zu columns, the first line has %zu", where, n, c.count);
        RY_TRY(ry_vqa_add_fault(v, st, &why, err));
    }
}
