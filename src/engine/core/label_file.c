/* label_file.c - see label_file.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/label_file.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* Name of class i in the config, or NULL. */
static const char *name_of(const json_t *config, uint32_t i)
{
    char key[16], placeholder[24];
    const json_t *list = json_object_get(config, "label_names");
    snprintf(key, sizeof key, "%u", i);
    snprintf(placeholder, sizeof placeholder, "LABEL_%u", i);
    const char *name = json_string_value(json_object_get(json_object_get(config, "id2label"), key));
    if (!name) name = json_string_value(json_array_get(list, i));
    return name && *name && strcmp(name, placeholder) != 0 ? name : NULL;
}

/* Where names come from: a list, or a config. */
typedef struct source {
    const char *const *list; /* [n] or NULL */
    const json_t *config;
} source;

static const char *name_at(const source *s, uint32_t i)
{
    return s->list ? s->list[i] : name_of(s->config, i);
}

static renyi_status copy(ry_labels *out, const source *s, uint32_t n, const renyi_allocator *al,
                         renyi_error *err)
{
    size_t bytes = 0;
    *out = (ry_labels){0};
    for (uint32_t i = 0; i < n; i++) {
        const char *name = name_at(s, i);
        if (name) bytes += strlen(name) + 1;
    }
    if (!bytes) return RENYI_OK;
    out->names = ry_calloc(al, n, sizeof *out->names);
    out->text = ry_alloc(al, bytes, 1);
    if (!out->names || !out->text) {
        ry_labels_free(out, al);
        return ry_fail_nomem(err, bytes + n * sizeof *out->names);
    }
    char *at = out->text;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = name_at(s, i);
        if (!name) continue;
        const size_t length = strlen(name) + 1;
        out->names[i] = memcpy(at, name, length);
        at += length;
    }
    return RENYI_OK;
}

renyi_status ry_labels_read(ry_labels *out, const json_t *config, uint32_t n,
                            const renyi_allocator *al, renyi_error *err)
{
    return copy(out, &(source){NULL, config}, n, al, err);
}

renyi_status ry_labels_copy(ry_labels *out, const char *const *names, uint32_t n,
                            const renyi_allocator *al, renyi_error *err)
{
    return copy(out, &(source){names, NULL}, n, al, err);
}

void ry_labels_free(ry_labels *l, const renyi_allocator *al)
{
    ry_free(al, l->names);
    ry_free(al, l->text);
    *l = (ry_labels){0};
}
