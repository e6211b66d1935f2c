/* vqa_lines.c - LLaVA's question files of a line of JSON each, and POPE's own three, which have the
 * label beside each question.
 *
 * {"question_id": 1, "image": "a.jpg", "text": "Is there a car in the image?", "category":
 * "random"}
 *
 * The right answer may stand in the line: "label", "answer" or "answers".
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

/* Text with what the benchmark's prompts end with, unless its last sentence is there already. */
static renyi_status keep_text(renyi_vqa *v, const char **out, const char *text, renyi_error *err)
{
    renyi_vqa_task_info task;
    renyi_vqa_get_task(v->info.task, &task);
    const char *last = task.suffix ? strrchr(task.suffix, '\n') + 1 : NULL;
    return ry_vqa_join(v, out, text, last && !strstr(text, last) ? task.suffix : "", err);
}

static renyi_status broken(const char *where, const char *what, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s", where, what);
}

static renyi_status take_right(renyi_vqa *v, ry_vqa_question *q, const json_t *o, const char *where,
                               renyi_error *err)
{
    static const char *const keys[] = {"label", "answer", "answers"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(o, keys[i]);
        int is_fine = 0;
        if (!value || v->info.task == RENYI_VQA_MMVET) continue;
        RY_TRY(ry_vqa_take_right(v, q, value, &is_fine, err));
        if (!is_fine)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: '%s' is neither a text nor a list of texts", where, keys[i]);
        return RENYI_OK;
    }
    return RENYI_OK;
}

static renyi_status take_object(renyi_vqa *v, const json_t *o, const char *where, const char *kind,
                                renyi_error *err)
{
    const json_t *text = json_object_get(o, "text"), *image = json_object_get(o, "image");
    const char *category = json_string_value(json_object_get(o, "category"));
    ry_vqa_question q = {0};
    char id[256], prefixed[512];
    if (!json_is_object(o)) return broken(where, "not an object", err);
    if (!ry_vqa_id(json_object_get(o, "question_id"), id, &q.id_is_number))
        return broken(where, "no question_id, a number or a text of at most 255 bytes", err);
    if (!json_string_length(text)) return broken(where, "no text", err);
    if (!json_string_length(image)) return broken(where, "no image", err);
    snprintf(prefixed, sizeof prefixed, "%s/%s", kind ? kind : "", id);
    if (kind && v->is_several) q.id_is_number = 0;
    RY_TRY(ry_vqa_keep(v, &q.id, ry_text_of(kind && v->is_several ? prefixed : id), err));
    RY_TRY(ry_vqa_keep(v, &q.image, ry_text_of(json_string_value(image)), err));
    RY_TRY(keep_text(v, &q.text, json_string_value(text), err));
    q.prompt = q.text;
    RY_TRY(ry_vqa_category(v, &q.category, kind ? kind : category, err));
    RY_TRY(take_right(v, &q, o, where, err));
    return ry_vqa_add(v, &q, err);
}

static renyi_status take_line(renyi_vqa *v, const char *where, const char *kind, ry_text line,
                              renyi_error *err)
{
    const ry_json_limits limits = {1 << 20, 10000, 8};
    json_t *o;
    RY_TRY(ry_json_parse(&o, line.at, line.n, where, &limits, err));
    const renyi_status st = take_object(v, o, where, kind, err);
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
        RY_TRY(ry_vqa_fault(v, take_line(v, where, kind, line, &why), &why, err));
    }
    return RENYI_OK;
}
