/* json_texts.c - texts of unknown origin as JSON: see json.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "base/utf8.h"

#include <string.h>

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
