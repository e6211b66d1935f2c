/* vqa_sqa.c - ScienceQA as LLaVA has it: a JSON list of conversations.
 *
 * [{"id": "4", "image": "4/image.png", "conversations": [{"from": "human", "value": "<image>\nWhich
 * ...\nA. ...\nB. ..."}, {"from": "gpt", "value": "A"}]}, ...]; without a photo there is no
 * "image".
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

static const char mark[] = "<image>";
enum { MARK = sizeof mark - 1, LETTERS = 5 }; /* LLaVA's script knows A to E */

/* Without every <image>, and blanks at the ends; owned (ry_free). NULL = no memory. */
static char *without_marks(const renyi_vqa *v, const char *value)
{
    char *text = ry_alloc(&v->al, strlen(value) + 1, 1), *to = text;
    if (!text) return NULL;
    for (const char *at = value; *at;) {
        if (strncmp(at, mark, MARK) == 0)
            at += MARK;
        else
            *to++ = *at++;
    }
    const ry_text trimmed = ry_text_trim((ry_text){text, (size_t)(to - text)});
    memmove(text, trimmed.at, trimmed.n);
    text[trimmed.n] = 0;
    return text;
}

static renyi_status keep_texts(renyi_vqa *v, ry_vqa_question *q, const char *value,
                               renyi_error *err)
{
    renyi_vqa_task_info task;
    renyi_vqa_get_task(v->info.task, &task);
    char *bare = without_marks(v, value);
    if (!bare) return ry_fail_nomem(err, strlen(value));
    renyi_status st =
        ry_vqa_join(v, &q->text, bare, strstr(bare, task.suffix + 1) ? "" : task.suffix, err);
    if (!st) st = ry_vqa_join(v, &q->prompt, q->image ? "<image>\n" : "", q->text, err);
    ry_free(&v->al, bare);
    return st;
}

static const char *said(const json_t *o, size_t turn)
{
    const json_t *turns = json_object_get(o, "conversations");
    return json_string_value(json_object_get(json_array_get(turns, turn), "value"));
}

static renyi_status take(renyi_vqa *v, const json_t *o, const char *where, renyi_error *err)
{
    const char *value = said(o, 0), *answer = said(o, 1);
    const json_t *image = json_object_get(o, "image");
    const char letter[2] = {answer ? ry_vqa_letter(answer, LETTERS) : 0, 0}, *right = letter;
    ry_vqa_question q = {.n_choices = LETTERS};
    char id[256];
    if (!ry_vqa_id(json_object_get(o, "id"), id, &q.id_is_number))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: no id, a number or a text of at most 255 bytes", where);
    if (!value || (image && !json_string_length(image)))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s", where,
                       value ? "image is not a name" : "no conversations[0].value");
    RY_TRY(ry_vqa_keep(v, &q.id, ry_text_of(id), err));
    if (image) RY_TRY(ry_vqa_keep(v, &q.image, ry_text_of(json_string_value(image)), err));
    RY_TRY(ry_vqa_category(v, &q.category, image ? "with photo" : "text only", err));
    RY_TRY(keep_texts(v, &q, value, err));
    if (*letter) RY_TRY(ry_vqa_set_right(v, &q, &right, 1, err));
    return ry_vqa_add(v, &q, err);
}

renyi_status ry_vqa_read_sqa(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                             renyi_error *err)
{
    const ry_json_limits limits = {v->max_file_bytes, 16 << 20, 16};
    json_t *list;
    renyi_status st = RENYI_OK;
    RY_TRY(ry_json_parse(&list, bytes, size, name, &limits, err));
    if (!json_is_array(list))
        st = ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: not a list; llava_test_CQM-A.json is meant",
                     name);
    for (size_t i = 0; !st && i < json_array_size(list); i++) {
        char where[512];
        renyi_error why = {0};
        snprintf(where, sizeof where, "%.480s: entry %zu", name, i + 1);
        st = ry_vqa_fault(v, take(v, json_array_get(list, i), where, &why), &why, err);
    }
    json_decref(list);
    return st;
}
