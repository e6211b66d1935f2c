/* json.h - JSON from untrusted files, read with limits and typed accessors, and JSON text.
 *
 * Limits are checked before jansson builds anything. Messages name the file and the key.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_JSON_H
#define RY_JSON_H

#include "renyi/renyi.h"

#include <jansson.h>

/* Zero means the default. */
typedef struct ry_json_limits {
    uint64_t max_bytes;  /* of text; 0 = 100 MB */
    uint64_t max_values; /* objects, arrays, members, elements; 0 = 1,000,000 (about 100 MB) */
    uint32_t max_depth;  /* of nesting; 0 = 32 */
} ry_json_limits;

/* One JSON text of `size` bytes; duplicate keys, bad UTF-8 and anything after the value are errors.
 * `what` names the text in messages, which give line and column. On success *out is owned by the
 * caller (json_decref); on failure it is NULL. */
renyi_status ry_json_parse(json_t **out, const char *text, size_t size, const char *what,
                           const ry_json_limits *limits, renyi_error *err) RENYI_CHECK;

/* The same, but all numbers are reals: for files that may have integers beyond 64 bits. */
renyi_status ry_json_parse_reals(json_t **out, const char *text, size_t size, const char *what,
                                 const ry_json_limits *limits, renyi_error *err) RENYI_CHECK;

/* The same for a whole file; limits->max_header_bytes holds (limits may be NULL). */
renyi_status ry_json_load_file(json_t **out, const char *path, const renyi_limits *limits,
                               renyi_error *err) RENYI_CHECK;

/* Read member `key` of `obj` into *value. If it is absent or null, or obj is NULL, *value keeps the
 * caller's default. A wrong type or range is an error that names `where` (the file) and the key. */
renyi_status ry_json_uint(const json_t *obj, const char *key, uint32_t *value, const char *where,
                          renyi_error *err) RENYI_CHECK;
renyi_status ry_json_double(const json_t *obj, const char *key, double *value, const char *where,
                            renyi_error *err) RENYI_CHECK; /* integers too; always finite */
renyi_status ry_json_string(const json_t *obj, const char *key, const char **value,
                            const char *where,
                            renyi_error *err) RENYI_CHECK; /* borrowed from obj */
renyi_status ry_json_bool(const json_t *obj, const char *key, int *value, const char *where,
                          renyi_error *err) RENYI_CHECK;
renyi_status ry_json_double3(const json_t *obj, const char *key, double value[3], const char *where,
                             renyi_error *err) RENYI_CHECK; /* an array of exactly 3 numbers */

/* Compact text of `json`, with a NUL; owned by the caller (ry_free). Takes over `json`; NULL gives
 * NULL. */
renyi_status ry_json_text(char **out, json_t *json, const renyi_allocator *al,
                          renyi_error *err) RENYI_CHECK;

/* A JSON string of any bytes: those that are not UTF-8 become U+FFFD. NULL = no memory. Owned. */
json_t *ry_json_clean(const char *text);
/* The same as text, for metadata; owned (ry_free). NULL gives NULL. */
renyi_status ry_json_clean_text(char **out, const char *text, const renyi_allocator *al,
                                renyi_error *err) RENYI_CHECK;
/* ["...", ...] of texts [n] cleaned like that; owned (ry_free). */
renyi_status ry_json_list_text(char **out, const char *const *texts, size_t n,
                               const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* Member `key` if it is an object, else NULL; obj may be NULL. Borrowed. */
const json_t *ry_json_object(const json_t *obj, const char *key);

#endif
