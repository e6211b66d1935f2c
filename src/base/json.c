/* json.c - JSON from untrusted files, read with limits and typed accessors, and JSON text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/utf8.h"

#include <string.h>

/* ---- parsing ------------------------------------------------------------------------------- */

/* What a text contains, counted without building anything. */
typedef struct census {
    uint64_t values;
    uint32_t depth, max_depth;
    size_t deepest; /* offset of the bracket that exceeded the limit */
} census;

/* Offset just behind the string that opens at text[i]; `size` if it never ends. */
static size_t skip_string(const char *text, size_t size, size_t i)
{
    for (i++; i < size; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '"')
            return i + 1;
    }
    return size;
}

/* Every value but the first of a container follows a comma, so commas + brackets bound the values
 * from above in any text, well-formed or not. Stops at the first bracket that is too deep. */
static census take_census(const char *text, size_t size, uint32_t max_depth)
{
    census c = {1, 0, 0, 0};
    for (size_t i = 0; i < size;) {
        const char ch = text[i];
        if (ch == '"') {
            i = skip_string(text, size, i);
            continue;
        }
        if (ch == '[' || ch == '{') {
            c.values++;
            if (++c.depth > c.max_depth) c.max_depth = c.depth;
            if (c.depth > max_depth) {
                c.deepest = i;
                return c;
            }
        } else if (ch == ']' || ch == '}') {
            if (c.depth) c.depth--;
        } else if (ch == ',') {
            c.values++;
        }
        i++;
    }
    return c;
}

static renyi_status fail_parse(const json_error_t *e, const char *what, renyi_error *err)
{
    /* jansson sets no text when it runs out of memory */
    if (!e->text[0] || json_error_code(e) == json_error_out_of_memory)
        return ry_fail(err, RENYI_ERR_NOMEM, -1, "%s: out of memory while reading JSON", what);
    return ry_fail(err, RENYI_ERR_FORMAT, e->position, "%s: line %d, column %d: %s", what, e->line,
                   e->column, e->text);
}

/* flags: of jansson's decoder */
static renyi_status parse(json_t **out, const char *text, size_t size, const char *what,
                          const ry_json_limits *limits, size_t flags, renyi_error *err)
{
    const uint64_t max_bytes = limits && limits->max_bytes ? limits->max_bytes : 100000000;
    const uint64_t max_values = limits && limits->max_values ? limits->max_values : 1000000;
    const uint32_t max_depth = limits && limits->max_depth ? limits->max_depth : 32;
    json_error_t e;

    *out = NULL;
    if (size > max_bytes)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: JSON of %zu bytes; at most %llu accepted",
                       what, size, (unsigned long long)max_bytes);
    const census c = take_census(text, size, max_depth);
    if (c.max_depth > max_depth)
        return ry_fail(err, RENYI_ERR_LIMIT, (int64_t)c.deepest,
                       "%s: byte %zu: JSON nested deeper than %u levels", what, c.deepest,
                       max_depth);
    if (c.values > max_values)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: JSON with %llu values; at most %llu accepted",
                       what, (unsigned long long)c.values, (unsigned long long)max_values);
    memset(&e, 0, sizeof e);
    *out = json_loadb(text, size, flags | JSON_REJECT_DUPLICATES, &e);
    return *out ? RENYI_OK : fail_parse(&e, what, err);
}

renyi_status ry_json_parse(json_t **out, const char *text, size_t size, const char *what,
                           const ry_json_limits *limits, renyi_error *err)
{
    return parse(out, text, size, what, limits, 0, err);
}

renyi_status ry_json_parse_reals(json_t **out, const char *text, size_t size, const char *what,
                                 const ry_json_limits *limits, renyi_error *err)
{
    return parse(out, text, size, what, limits, JSON_DECODE_INT_AS_REAL, err);
}

renyi_status ry_json_load_file(json_t **out, const char *path, const renyi_limits *limits,
                               renyi_error *err)
{
    const renyi_limits lim = ry_limits(limits);
    const ry_json_limits json_limits = {lim.max_header_bytes, 0, 0};
    ry_mapped_file file;

    *out = NULL;
    RY_TRY(ry_mapped_file_open(&file, path, lim.max_header_bytes, err));
    const renyi_status st =
        file.size ? ry_json_parse(out, (const char *)file.data, file.size, path, &json_limits, err)
                  : ry_fail(err, RENYI_ERR_FORMAT, 0, "%s: the file is empty; JSON expected", path);
    ry_mapped_file_close(&file);
    return st;
}

/* ---- typed members ------------------------------------------------------------------------- */

static const json_t *member(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key); /* NULL for anything but an object */
    return json_is_null(v) ? NULL : v;
}

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a real number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    }
    return "a value of unknown type";
}

static renyi_status fail_type(const json_t *v, const char *key, const char *wanted,
                              const char *where, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"%s\" is %s; %s expected", where, key,
                   type_name(v), wanted);
}

renyi_status ry_json_uint(const json_t *obj, const char *key, uint32_t *value, const char *where,
                          renyi_error *err)
{
    const json_t *v = member(obj, key);
    if (!v) return RENYI_OK;
    if (!json_is_integer(v)) return fail_type(v, key, "a whole number", where, err);
    const json_int_t n = json_integer_value(v);
    if (n < 0 || n > (json_int_t)UINT32_MAX)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"%s\" is %lld; 0 to %lu expected", where,
                       key, (long long)n, (unsigned long)UINT32_MAX);
    *value = (uint32_t)n;
    return RENYI_OK;
}

renyi_status ry_json_double(const json_t *obj, const char *key, double *value, const char *where,
                            renyi_error *err)
{
    const json_t *v = member(obj, key);
    if (!v) return RENYI_OK;
    if (!json_is_number(v)) return fail_type(v, key, "a number", where, err);
    *value = json_number_value(v); /* finite: jansson refuses what overflows */
    return RENYI_OK;
}

renyi_status ry_json_string(const json_t *obj, const char *key, const char **value,
                            const char *where, renyi_error *err)
{
    const json_t *v = member(obj, key);
    if (!v) return RENYI_OK;
    if (!json_is_string(v)) return fail_type(v, key, "a string", where, err);
    *value = json_string_value(v);
    return RENYI_OK;
}

renyi_status ry_json_bool(const json_t *obj, const char *key, int *value, const char *where,
                          renyi_error *err)
{
    const json_t *v = member(obj, key);
    if (!v) return RENYI_OK;
    if (!json_is_boolean(v)) return fail_type(v, key, "true or false", where, err);
    *value = json_is_true(v);
    return RENYI_OK;
}

renyi_status ry_json_double3(const json_t *obj, const char *key, double value[3], const char *where,
                             renyi_error *err)
{
    const json_t *v = member(obj, key);
    if (!v) return RENYI_OK;
    if (!json_is_array(v)) return fail_type(v, key, "an array of 3 numbers", where, err);
    if (json_array_size(v) != 3)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: \"%s\" has %zu elements; 3 numbers expected",
                       where, key, json_array_size(v));
    for (size_t i = 0; i < 3; i++)
        if (!json_is_number(json_array_get(v, i)))
            return fail_type(json_array_get(v, i), key, "an array of 3 numbers", where, err);
    for (size_t i = 0; i < 3; i++) value[i] = json_number_value(json_array_get(v, i));
    return RENYI_OK;
}

const json_t *ry_json_object(const json_t *obj, const char *key)
{
    const json_t *v = member(obj, key);
    return json_is_object(v) ? v : NULL;
}

/* ---- writing ------------------------------------------------------------------------------- */

renyi_status ry_json_text(char **out, json_t *json, const renyi_allocator *al, renyi_error *err)
{
    const size_t size = json ? json_dumpb(json, NULL, 0, JSON_COMPACT) : 0;
    *out = size ? ry_alloc(al, size + 1, 1) : NULL;
    if (*out) {
        (void)json_dumpb(json, *out, size, JSON_COMPACT);
        (*out)[size] = '\0';
    }
    const int failed = json && !*out;
    json_decref(json);
    return failed ? ry_fail_nomem(err, size + 1) : RENYI_OK;
}

json_t *ry_json_clean(const char *text)
{
    json_t *direct = json_string(text);
    const size_t size = strlen(text);
    if (direct) return direct;
    char *clean = ry_alloc(NULL, size, 3); /* a bad byte becomes three */
    size_t used = 0;
    if (!clean) return NULL;
    for (size_t at = 0; at < size;) {
        uint32_t c;
        at += ry_utf8_get(text + at, size - at, &c);
        used += ry_utf8_put(clean + used, c == RY_UTF8_BAD ? RY_REPLACEMENT : c);
    }
    json_t *repaired = json_stringn(clean, used);
    ry_free(NULL, clean);
    return repaired;
}

renyi_status ry_json_list_text(char **out, const char *const *texts, size_t n,
                               const renyi_allocator *al, renyi_error *err)
{
    json_t *list = json_array();
    *out = NULL;
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, ry_json_clean(texts[i]))) {
            json_decref(list);
            list = NULL;
        }
    return list ? ry_json_text(out, list, al, err) : ry_fail_nomem(err, n);
}

renyi_status ry_json_clean_text(char **out, const char *text, const renyi_allocator *al,
                                renyi_error *err)
{
    json_t *clean = text ? ry_json_clean(text) : NULL;
    *out = clean ? ry_strdup(al, json_string_value(clean)) : NULL;
    json_decref(clean);
    return *out || !text ? RENYI_OK : ry_fail_nomem(err, strlen(text));
}
