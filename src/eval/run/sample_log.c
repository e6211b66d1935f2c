/* sample_log.c - writes and reads the JSON lines of an evaluation.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/run/sample_log.h"

#include "base/json.h"
#include "base/status.h"
#include "base/utf8.h"
#include "eval/data/text_lines.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- text ---------------------------------------------------------------------------------- */

/* Text of less than 128 bytes. */
__attribute__((format(printf, 2, 3))) static void put_text(ry_buffer *b, const char *fmt, ...)
{
    enum { PIECE = 128 };
    va_list args;
    if (!ry_buffer_reserve(b, PIECE)) return;
    va_start(args, fmt);
    const int n = vsnprintf(b->bytes + b->size, PIECE, fmt, args);
    va_end(args);
    if (n >= 0 && n < PIECE)
        b->size += (size_t)n;
    else
        b->failed = 1;
}

/* JSON has no NaN, and a decimal point in every locale. */
static void put_real(ry_buffer *b, const char *key, int digits, double value)
{
    if (!isfinite(value)) {
        put_text(b, ",\"%s\":null", key);
        return;
    }
    put_text(b, ",\"%s\":", key);
    const size_t number = b->size;
    put_text(b, "%.*g", digits, value);
    for (size_t i = number; i < b->size; i++)
        if (b->bytes[i] == ',') b->bytes[i] = '.';
}

/* With quotes; every byte that is not UTF-8 becomes U+FFFD. */
static void put_string(ry_buffer *b, const char *text)
{
    const size_t size = strlen(text);
    if (!ry_buffer_reserve(b, 6 * size + 3)) return;
    b->bytes[b->size++] = '"';
    for (size_t i = 0, n; i < size; i += n) {
        char *to = b->bytes + b->size;
        uint32_t c;
        n = ry_utf8_get(text + i, size - i, &c);
        if (c == RY_UTF8_BAD)
            b->size += (size_t)snprintf(to, 7, "\\ufffd"), n = 1;
        else if (c < 0x20 || c == '"' || c == '\\')
            b->size += (size_t)snprintf(to, 7, "\\u%04x", c);
        else
            memcpy(to, text + i, n), b->size += n;
    }
    b->bytes[b->size++] = '"';
}

/* ---- writing lines ------------------------------------------------------------------------- */

static renyi_status make_suffix(ry_sample_log *log, const ry_log_run *run, renyi_error *err)
{
    ry_buffer *b = &log->suffix;
    put_text(b, ",\"img_size\":%u,\"classes\":%u,\"photos\":%llu,\"data\":\"%s\"", run->image_size,
             run->n_classes, (unsigned long long)run->images, run->data);
    if (run->n_shards) put_text(b, ",\"shard\":\"%u/%u\"", run->shard + 1, run->n_shards);
    put_text(b, ",\"model\":");
    put_string(b, run->model);
    put_text(b, ",\"run\":\"");
    return b->failed ? ry_fail_nomem(err, 6 * strlen(run->model)) : RENYI_OK;
}

static void put_answer(ry_buffer *b, const ry_logged *line)
{
    const ry_answer *a = &line->answer;
    if (line->label == RENYI_NO_CLASS)
        put_text(b, ",\"label\":null");
    else
        put_text(b, ",\"label\":%u", line->label);
    put_text(b, ",\"prediction\":%u,\"top5\":[", a->top[0]);
    for (uint32_t i = 0; i < a->n_top; i++) put_text(b, "%s%u", i ? "," : "", a->top[i]);
    put_text(b, "],\"right\":%u", a->right);
    put_real(b, "margin", 9, (double)a->margin); /* enough digits to read back the same number */
    put_real(b, "loss", 17, a->loss);
    put_real(b, "ms", 6, (double)a->ms);
    put_real(b, "ms_rest", 6, (double)a->ms_rest);
    put_real(b, "gmacs", 12, line->gmacs);
    put_real(b, "gmacs_executed", 12, line->gmacs_executed);
    if (!a->passes) return;
    put_real(b, "gmacs_second", 12, line->gmacs_second);
    put_text(b, ",\"passes\":%u", a->passes);
}

renyi_status ry_sample_log_put(ry_sample_log *log, const ry_logged *line, renyi_error *err)
{
    ry_buffer *b = &log->lines;
    const size_t start = b->size;
    if (log->file.fd < 0) return RENYI_OK;
    put_text(b, "{\"file\":");
    put_string(b, line->file);
    put_text(b, ",\"index\":%llu,\"place\":%llu", (unsigned long long)line->index,
             (unsigned long long)line->place);
    if (line->policy) {
        put_text(b, ",\"policy\":");
        put_string(b, line->policy);
    }
    if (line->error) {
        put_text(b, ",\"error\":");
        put_string(b, line->error);
    } else {
        put_answer(b, line);
    }
    ry_buffer_put(b, log->suffix.bytes, log->suffix.size);
    put_text(b, "%s\"", line->run.id);
    if (line->run.dtype != RENYI_DTYPE_DEFAULT)
        put_text(b, ",\"dtype\":\"%s\"", renyi_dtype_name(line->run.dtype));
    put_text(b, "}\n");
    if (!b->failed) return RENYI_OK;
    b->size = start; /* never half a line */
    b->failed = 0;
    return ry_fail_nomem(err, b->capacity);
}

renyi_status ry_sample_log_flush(ry_sample_log *log, renyi_error *err)
{
    RY_TRY(ry_run_file_write(&log->file, log->lines.bytes, log->lines.size, err));
    log->lines.size = 0;
    return RENYI_OK;
}

renyi_status ry_sample_log_sync(ry_sample_log *log, renyi_error *err)
{
    RY_TRY(ry_sample_log_flush(log, err));
    /* fsync of a pipe or a device fails: that is no error. */
    if (log->file.fd >= 0 && fsync(log->file.fd) && errno != EINVAL && errno != EROFS &&
        errno != ENOTSUP)
        return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", log->file.path, strerror(errno));
    return RENYI_OK;
}

/* ---- reading lines ------------------------------------------------------------------------- */

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

/* null is NaN. */
static int read_real(const json_t *o, const char *key, double *out)
{
    const json_t *value = json_object_get(o, key);
    *out = json_is_number(value) ? json_number_value(value) : NAN;
    return json_is_number(value) || json_is_null(value);
}

/* A key may be absent. 0 = it is there, but its value is not a count. */
static int read_count(const json_t *o, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(o, key);
    if (!value) return 1;
    if (!json_is_integer(value) || json_integer_value(value) < 0) return 0;
    *out = (uint64_t)json_integer_value(value);
    return 1;
}

/* "2/3" is the second of three; counted from 0 in *run. */
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

/* Old logs have no hash of the data. */
static int read_hash(const json_t *o, const char *key, char out[17])
{
    const json_t *value = json_object_get(o, key);
    const char *text = json_string_value(value);
    if (!value) return 1;
    if (!text || strlen(text) > 16 || strspn(text, "0123456789abcdef") != strlen(text)) return 0;
    memcpy(out, text, strlen(text) + 1);
    return 1;
}

/* Old logs do not have it. */
static int read_dtype(const json_t *o, renyi_dtype *out)
{
    const json_t *value = json_object_get(o, "dtype");
    const char *text = json_string_value(value);
    for (int i = RENYI_DTYPE_F32; text && i <= RENYI_DTYPE_INT4; i++)
        if (strcmp(text, renyi_dtype_name((renyi_dtype)i)) == 0) {
            *out = (renyi_dtype)i;
            return 1;
        }
    return !value;
}

static int read_run(const json_t *o, ry_log_run *run)
{
    uint64_t size = 0, classes = 0;
    run->model = json_string_value(json_object_get(o, "model"));
    if (!run->model || !json_object_get(o, "run") || !read_hash(o, "run", run->id) ||
        !read_hash(o, "data", run->data) || !read_dtype(o, &run->dtype))
        return 0;
    if (!read_count(o, "photos", &run->images) || !read_count(o, "img_size", &size) ||
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
    uint64_t right = 0, passes = 0;
    *a = (ry_answer){.state = RY_ANSWER_GIVEN};
    out->gmacs = out->gmacs_executed = NAN;
    out->gmacs_second = 0;
    if (!json_is_null(label) && !read_class(label, &out->label)) return 0;
    if (!read_top(json_object_get(o, "top5"), a) || !read_real(o, "margin", &margin) ||
        !read_real(o, "loss", &a->loss) || !read_real(o, "ms", &ms) ||
        !read_count(o, "right", &right) || right > a->n_top || !read_count(o, "passes", &passes) ||
        passes > 2)
        return 0;
    read_real(o, "ms_rest", &rest);
    read_real(o, "gmacs", &out->gmacs);
    read_real(o, "gmacs_executed", &out->gmacs_executed);
    if (passes) read_real(o, "gmacs_second", &out->gmacs_second);
    a->passes = (uint8_t)passes;
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
                      "%s: not a line of a sample log; is this the right file?", where);
    json_decref(o);
    return st;
}

renyi_status ry_sample_log_read(const char *path, const char *bytes, size_t size, size_t *whole,
                                uint64_t *n_foreign, ry_logged_take *take, void *user,
                                renyi_error *err)
{
    while (size && bytes[size - 1] != '\n') size--; /* the last line may be incomplete */
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

/* ---- opening ------------------------------------------------------------------------------- */

static renyi_status read_file(void *user, const char *path, const char *bytes, size_t size,
                              size_t *whole, uint64_t *n_foreign, renyi_error *err)
{
    const ry_log_options *o = user;
    return ry_sample_log_read(path, bytes, size, whole, n_foreign, o->take, o->user, err);
}

renyi_status ry_sample_log_open(ry_sample_log *log, const ry_log_options *opt,
                                const renyi_allocator *al, renyi_error *err)
{
    ry_log_options o = *opt;
    *log = (ry_sample_log){.file = {.fd = -1}, .suffix = {.al = al}, .lines = {.al = al}};
    RY_TRY(ry_run_file_open(&log->file, o.path, o.rank, al, err));
    if (!o.path) return RENYI_OK;
    RY_TRY(make_suffix(log, &o.run, err));
    return ry_run_file_read(&log->file, o.resume, 0, read_file, &o, err);
}

void ry_sample_log_close(ry_sample_log *log)
{
    ry_run_file_close(&log->file);
    ry_buffer_free(&log->suffix);
    ry_buffer_free(&log->lines);
    *log = (ry_sample_log){.file = {.fd = -1}};
}
