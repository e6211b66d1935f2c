/* sample_log_read.c - see sample_log.h: lines of an earlier run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "eval/sample_log.h"
#include "eval/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int read_class(const json_t *value, uint32_t *out)
{
    const json_int_t class = json_is_integer(value) ? json_integer_value(value) : -1;
    if (class < 0 || class >= RENYI_NO_CLASS) return 0;
    *out = (uint32_t) class;
    return 1;
}

static int read_top(const json_t *list, ry_answer *a)
{
    const size_t n = json_array_size(list);
    if (n < 1 || n > RY_TOP) return 0;
    for (size_t i = 0; i < n; i++)
        if (!read_class(json_array_get(list, i), &a->top[i])) return 0;
    a->n_top = (uint8_t)n;
    return 1;
}

/* null stands for NaN. */
static int read_real(const json_t *o, const char *key, double *out)
{
    const json_t *value = json_object_get(o, key);
    *out = json_is_number(value) ? json_number_value(value) : NAN;
    return json_is_number(value) || json_is_null(value);
}

/* 1 = an answer, 0 = something else that is fine, -1 = neither. */
static int read_line(const ry_sample_log *log, const json_t *o, ry_logged *out)
{
    const char *run = json_string_value(json_object_get(o, "run"));
    const json_t *index = json_object_get(o, "index"), *label = json_object_get(o, "label");
    double margin, ms;
    if (!run) return -1;
    if (strcmp(run, log->run) != 0 || json_object_get(o, "error")) return 0;
    *out = (ry_logged){.file = json_string_value(json_object_get(o, "file")),
                       .policy = json_string_value(json_object_get(o, "policy")),
                       .label = RENYI_NO_CLASS,
                       .answer = {.state = RY_ANSWER_GIVEN}};
    if (!out->file || !out->policy || !json_is_integer(index) || json_integer_value(index) < 0)
        return -1;
    out->index = (uint64_t)json_integer_value(index);
    if (!json_is_null(label) && !read_class(label, &out->label)) return -1;
    if (!read_top(json_object_get(o, "top5"), &out->answer) || !read_real(o, "margin", &margin) ||
        !read_real(o, "loss", &out->answer.loss) || !read_real(o, "ms", &ms))
        return -1;
    out->answer.margin = (float)margin;
    out->answer.ms = (float)ms;
    return 1;
}

static renyi_status take_line(const ry_sample_log *log, ry_text line, uint64_t number,
                              ry_logged_take *take, void *user, renyi_error *err)
{
    const ry_json_limits limits = {1 << 20, 1000, 4};
    char where[512];
    ry_logged logged;
    json_t *o;
    snprintf(where, sizeof where, "%.480s:%llu", log->path, (unsigned long long)number);
    RY_TRY(ry_json_parse(&o, line.at, line.n, where, &limits, err));
    const int kind = read_line(log, o, &logged);
    if (kind > 0) take(user, &logged);
    json_decref(o);
    if (kind >= 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: no line of a sample log; is this the right file?", where);
}

renyi_status ry_sample_log_read(const ry_sample_log *log, const char *bytes, size_t size,
                                size_t *whole, ry_logged_take *take, void *user, renyi_error *err)
{
    while (size && bytes[size - 1] != '\n') size--; /* a line that was being written */
    *whole = size;
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);)
        if (ry_text_trim(line).n) RY_TRY(take_line(log, line, l.number, take, user, err));
    return RENYI_OK;
}
