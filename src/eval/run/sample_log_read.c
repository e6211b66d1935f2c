/* sample_log_read.c - see sample_log.h: lines of an earlier run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "eval/data/text_lines.h"
#include "eval/run/sample_log.h"

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

/* 0 = there, but no such number. */
static int read_count(const json_t *o, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(o, key);
    if (!value) return 1;
    if (!json_is_integer(value) || json_integer_value(value) < 0) return 0;
    *out = (uint64_t)json_integer_value(value);
    return 1;
}

/* "2/3" -> the second of three, counted from 0. */
static int read_shard(const json_t *o, ry_log_run *run)
{
    const json_t *value = json_object_get(o, "shard");
    const char *text = json_string_value(value), *slash = text ? strchr(text, '/') : NULL;
    uint32_t shard;
    if (!value) return 1;
    if (!slash || !ry_text_number((ry_text){text, (size_t)(slash - text)}, &shard) ||
        !ry_text_number(ry_text_of(slash + 1), &run->n_shards) || shard < 1 ||
        shard > run->n_shards)
        return 0;
    run->shard = shard - 1;
    return 1;
}

/* Digits of a hash; lines of old have none. */
static int read_hash(const json_t *o, const char *key, char out[17])
{
    const json_t *value = json_object_get(o, key);
    const char *text = json_string_value(value);
    if (!value) return 1;
    if (!text || strlen(text) > 16 || strspn(text, "0123456789abcdef") != strlen(text)) return 0;
    memcpy(out, text, strlen(text) + 1);
    return 1;
}

static int read_run(const json_t *o, ry_log_run *run)
{
    uint64_t size = 0, classes = 0;
    run->model = json_string_value(json_object_get(o, "model"));
    if (!run->model || !json_object_get(o, "run") || !read_hash(o, "run", run->id) ||
        !read_hash(o, "data", run->data))
        return 0;
    if (!read_count(o, "photos", &run->photos) || !read_count(o, "img_size", &size) ||
        !read_count(o, "classes", &classes) || size > UINT32_MAX || classes > UINT32_MAX)
        return 0;
    run->image_size = (uint32_t)size;
    run->n_classes = (uint32_t)classes;
    return read_shard(o, run);
}

static int read_answer(const json_t *o, ry_logged *out)
{
    const json_t *label = json_object_get(o, "label");
    ry_answer *a = &out->answer;
    double margin, ms, rest = NAN;
    uint64_t right = 0;
    *a = (ry_answer){.state = RY_ANSWER_GIVEN};
    out->gmacs = out->gmacs_executed = NAN;
    if (!json_is_null(label) && !read_class(label, &out->label)) return 0;
    if (!read_top(json_object_get(o, "top5"), a) || !read_real(o, "margin", &margin) ||
        !read_real(o, "loss", &a->loss) || !read_real(o, "ms", &ms) ||
        !read_count(o, "right", &right) || right > a->n_top)
        return 0;
    read_real(o, "ms_rest", &rest);
    read_real(o, "gmacs", &out->gmacs);
    read_real(o, "gmacs_executed", &out->gmacs_executed);
    a->right = (uint8_t)right;
    a->margin = (float)margin;
    a->ms = (float)ms;
    a->ms_rest = (float)rest;
    return 1;
}

static int read_line(const json_t *o, ry_logged *out)
{
    const json_t *policy = json_object_get(o, "policy"), *error = json_object_get(o, "error");
    out->file = json_string_value(json_object_get(o, "file"));
    out->policy = json_string_value(policy);
    out->error = json_string_value(error);
    out->label = RENYI_NO_CLASS;
    out->place = RY_NO_PLACE;
    if (!read_run(o, &out->run) || !out->file || (policy && !out->policy) ||
        (error && !out->error) || !json_object_get(o, "index") ||
        !read_count(o, "index", &out->index) || !read_count(o, "place", &out->place))
        return 0;
    return out->error || (out->policy && read_answer(o, out));
}

static renyi_status take_line(ry_logged *logged, ry_text line, ry_logged_take *take, void *user,
                              int *is_ours, renyi_error *err)
{
    const ry_json_limits limits = {1 << 20, 1000, 4};
    char where[512];
    json_t *o;
    snprintf(where, sizeof where, "%.480s:%llu", logged->path, (unsigned long long)logged->line);
    RY_TRY(ry_json_parse(&o, line.at, line.n, where, &limits, err));
    const renyi_status st =
        read_line(o, logged)
            ? take(user, logged, is_ours, err)
            : ry_fail(err, RENYI_ERR_FORMAT, -1,
                      "%s: no line of a sample log; is this the right file?", where);
    json_decref(o);
    return st;
}

renyi_status ry_sample_log_read(const char *path, const char *bytes, size_t size, size_t *whole,
                                uint64_t *n_foreign, ry_logged_take *take, void *user,
                                renyi_error *err)
{
    while (size && bytes[size - 1] != '\n') size--; /* a line that was being written */
    *whole = size;
    *n_foreign = 0;
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        ry_logged logged = {.path = path, .line = l.number};
        int is_ours = 1;
        if (!ry_text_trim(line).n) continue;
        RY_TRY(take_line(&logged, line, take, user, &is_ours, err));
        *n_foreign += !is_ours;
    }
    return RENYI_OK;
}
