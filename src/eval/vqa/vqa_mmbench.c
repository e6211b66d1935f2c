/* vqa_mmbench.c - MMBench's table: tabs between the columns, quotes as in CSV, the photo inside as
 * base64. The prompt is LLaVA's: hint, question, options; the answers' prompt lacks the last
 * sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/status.h"
#include "eval/data/text_lines.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { OPTIONS = 4, NO_COLUMN = -1 };

typedef struct columns {
    int index, question, hint, option[OPTIONS], answer, category, image;
    size_t count;
} columns;

static int find(const ry_text *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (ry_text_compare(ry_text_trim(fields[i]), ry_text_of(name)) == 0) return (int)i;
    return NO_COLUMN;
}

static renyi_status read_header(const char *name, const ry_text *fields, size_t n, columns *c,
                                renyi_error *err)
{
    *c = (columns){.index = find(fields, n, "index"),
                   .question = find(fields, n, "question"),
                   .hint = find(fields, n, "hint"),
                   .answer = find(fields, n, "answer"),
                   .category = find(fields, n, "category"),
                   .image = find(fields, n, "image"),
                   .count = n};
    for (int i = 0; i < OPTIONS; i++) {
        const char letter[2] = {(char)('A' + i), 0};
        c->option[i] = find(fields, n, letter);
    }
    if (c->index < 0 || c->question < 0 || c->image < 0 || c->option[0] < 0 || c->option[1] < 0)
        return ry_fail(
            err, RENYI_ERR_FORMAT, -1,
            "%s: not MMBench's table: columns index, question, A, B and image are wanted", name);
    return RENYI_OK;
}

/* pandas' words for nothing, as LLaVA's script asks for them. */
static ry_text cell(const ry_text *fields, int column)
{
    static const char *const nothing[] = {"nan", "none", "null", "n/a", "na", "<na>"};
    const ry_text none = {NULL, 0};
    if (column < 0) return none;
    const ry_text t = fields[column];
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        if (strlen(nothing[i]) == t.n && strncasecmp(nothing[i], t.at, t.n) == 0) return none;
    return t.n ? t : none;
}

/* ---- a row --------------------------------------------------------------------------------- */

static char *put(char *to, ry_text t)
{
    memcpy(to, t.at, t.n);
    return to + t.n;
}

/* hint\nquestion\nA. ...\nB. ... into q->prompt, and with the last sentence into q->text. */
static renyi_status keep_texts(renyi_vqa *v, ry_vqa_question *q, ry_text hint, ry_text question,
                               renyi_error *err)
{
    renyi_vqa_task_info task;
    size_t size = hint.n + question.n + 2;
    renyi_vqa_get_task(v->info.task, &task);
    for (uint32_t i = 0; i < q->n_options; i++) size += strlen(q->options[i]) + 4;
    char *prompt = ry_pool_take(&v->pool, size, 1), *to = prompt;
    if (!prompt) return ry_fail_nomem(err, size);
    if (hint.n) to = put(to, hint), *to++ = '\n';
    to = put(to, question);
    for (uint32_t i = 0; i < q->n_options; i++) {
        const char head[4] = {'\n', (char)('A' + i), '.', ' '};
        to = put(put(to, (ry_text){head, 4}), ry_text_of(q->options[i]));
    }
    *to = 0;
    q->prompt = prompt;
    return ry_vqa_join(v, &q->text, prompt, task.suffix, err);
}

static renyi_status keep_options(renyi_vqa *v, ry_vqa_question *q, const ry_text *fields,
                                 const columns *c, renyi_error *err)
{
    const char **options = ry_pool_take(&v->pool, OPTIONS, sizeof *options);
    if (!options) return ry_fail_nomem(err, OPTIONS * sizeof *options);
    for (int i = 0; i < OPTIONS; i++) {
        const ry_text t = cell(fields, c->option[i]);
        if (!t.at) break;
        RY_TRY(ry_vqa_keep(v, &options[q->n_options++], t, err));
    }
    q->options = options;
    q->n_choices = q->n_options;
    return RENYI_OK;
}

static renyi_status take(renyi_vqa *v, const ry_text *fields, const columns *c, const char *where,
                         renyi_error *err)
{
    const ry_text index = ry_text_trim(fields[c->index]), question = cell(fields, c->question),
                  answer = ry_text_trim(cell(fields, c->answer)),
                  category = cell(fields, c->category);
    char name[128] = "";
    uint32_t number;
    ry_vqa_question q = {.photo = ry_text_trim(fields[c->image])};
    q.id_is_number = (uint8_t)ry_text_number(index, &number);
    if (!q.id_is_number || !question.at || !q.photo.n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s", where,
                       !q.id_is_number ? "index is not a number"
                       : question.at   ? "no image"
                                       : "no question");
    RY_TRY(ry_vqa_keep(v, &q.id, index, err));
    if (category.n < sizeof name && category.at) memcpy(name, category.at, category.n);
    RY_TRY(ry_vqa_category(v, &q.category, name, err));
    RY_TRY(keep_options(v, &q, fields, c, err));
    if (q.n_options < 2)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: fewer than two options", where);
    RY_TRY(keep_texts(v, &q, cell(fields, c->hint), question, err));
    if (answer.n == 1) {
        const char letter[2] = {answer.at[0], 0}, *right = letter;
        RY_TRY(ry_vqa_set_right(v, &q, &right, 1, err));
    }
    return ry_vqa_add(v, &q, err);
}

renyi_status ry_vqa_read_mmbench(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                                 renyi_error *err)
{
    ry_text fields[RY_CSV_FIELDS];
    ry_csv csv = ry_csv_of(name, bytes, size, &v->pool);
    columns c;
    size_t n;
    csv.separator = '\t';
    RY_TRY(ry_csv_next(&csv, fields, &n, err));
    RY_TRY(read_header(name, fields, n, &c, err));
    for (;;) {
        char where[512];
        renyi_error why = {0};
        RY_TRY(ry_csv_next(&csv, fields, &n, err));
        if (!n) return RENYI_OK;
        snprintf(where, sizeof where, "%.480s:%llu", name, (unsigned long long)csv.line);
        const renyi_status st =
            n == c.count ? take(v, fields, &c, where, &why)
                         : ry_fail(&why, RENYI_ERR_FORMAT, -1,
                                   "%s: %zu columns, the first line has %zu", where, n, c.count);
        RY_TRY(ry_vqa_fault(v, st, &why, err));
    }
}
