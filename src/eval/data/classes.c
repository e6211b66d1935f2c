/* classes.c - finds classes by index, WordNet id or name, and reads class map files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/data/classes.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/core/model_handle.h"

#include <stdlib.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------------------- */

static char fold(char c)
{
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    return c == '_' ? ' ' : c;
}

/* Byte order of a folded name and a text that is not folded yet. */
static int compare_folded(ry_text folded, ry_text text)
{
    for (size_t i = 0; i < folded.n && i < text.n; i++) {
        const unsigned char a = (unsigned char)folded.at[i], b = (unsigned char)fold(text.at[i]);
        if (a != b) return a < b ? -1 : 1;
    }
    return (folded.n > text.n) - (folded.n < text.n);
}

static int compare_names(const void *a, const void *b)
{
    return compare_folded(((const ry_class_name *)a)->name, ((const ry_class_name *)b)->name);
}

renyi_status ry_class_names_add(ry_classes *c, ry_class_names *names, ry_text name, uint32_t index,
                                renyi_error *err)
{
    char *copy = ry_pool_copy(&c->pool, name);
    if (!copy || !ry_grow(c->al, (void **)&names->items, &names->capacity, names->count,
                          sizeof *names->items))
        return ry_fail_nomem(err, name.n);
    for (size_t i = 0; i < name.n; i++) copy[i] = fold(copy[i]);
    names->items[names->count++] = (ry_class_name){{copy, name.n}, index};
    return RENYI_OK;
}

/* Equal names become one entry, which has no class if theirs differ. */
void ry_class_names_sort(ry_class_names *names)
{
    size_t kept = 0;
    if (names->count) qsort(names->items, names->count, sizeof *names->items, compare_names);
    for (size_t i = 0; i < names->count; i++) {
        ry_class_name *last = kept ? &names->items[kept - 1] : NULL;
        if (!last || compare_names(last, &names->items[i]) != 0)
            names->items[kept++] = names->items[i];
        else if (last->index != names->items[i].index)
            last->index = RENYI_NO_CLASS;
    }
    names->count = kept;
}

static int compare_key(const void *key, const void *item)
{
    return -compare_folded(((const ry_class_name *)item)->name, *(const ry_text *)key);
}

static uint32_t find_name(const ry_class_names *names, ry_text text)
{
    const ry_class_name *found =
        names->count ? bsearch(&text, names->items, names->count, sizeof *names->items, compare_key)
                     : NULL;
    return found ? found->index : RENYI_NO_CLASS;
}

/* "tench, Tinca tinca" can be found by the whole label and by each part. */
static renyi_status add_synonyms(ry_classes *c, const char *label, uint32_t index, renyi_error *err)
{
    RY_TRY(ry_class_names_add(c, &c->own, ry_text_of(label), index, err));
    if (!strchr(label, ',')) return RENYI_OK;
    for (const char *at = label; *at;) {
        const size_t n = strcspn(at, ",");
        RY_TRY(ry_class_names_add(c, &c->own, ry_text_trim((ry_text){at, n}), index, err));
        at += n + (at[n] == ',');
    }
    return RENYI_OK;
}

renyi_status ry_classes_open(ry_classes *c, uint32_t n_classes, const renyi_model *m,
                             const renyi_allocator *al, renyi_error *err)
{
    *c = (ry_classes){.al = al, .pool = {al, NULL}, .n = n_classes};
    renyi_model_info info = {0};
    if (m) renyi_model_get_info(m, &info);
    for (uint32_t i = 0; i < n_classes && i < info.n_classes; i++) {
        const char *own = ry_model_own_label(m, i), *shown = renyi_model_label(m, i);
        if (own) RY_TRY(add_synonyms(c, own, i, err));
        if (shown && shown != own) RY_TRY(add_synonyms(c, shown, i, err));
    }
    ry_class_names_sort(&c->own);
    return RENYI_OK;
}

void ry_classes_free(ry_classes *c)
{
    ry_free(c->al, c->map.items);
    ry_free(c->al, c->own.items);
    ry_pool_free(&c->pool);
    *c = (ry_classes){0};
}

renyi_class_rule ry_classes_find(const ry_classes *c, ry_text text, uint32_t *out)
{
    uint32_t index;
    text = ry_text_trim(text);
    if ((index = find_name(&c->map, text)) < c->n) {
        *out = index;
        return RENYI_CLASS_BY_MAP;
    }
    if (ry_text_number(text, &index)) {
        if (index >= c->n) return RENYI_CLASS_UNKNOWN;
        *out = index;
        return RENYI_CLASS_BY_INDEX;
    }
    if (c->n == RY_IMAGENET_CLASSES && (index = ry_imagenet_index(text)) < c->n) {
        *out = index;
        return RENYI_CLASS_BY_WNID;
    }
    if ((index = find_name(&c->own, text)) < c->n) {
        *out = index;
        return RENYI_CLASS_BY_NAME;
    }
    return RENYI_CLASS_UNKNOWN;
}

static int compare_classes(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t ry_class_search(const uint32_t *sorted, uint32_t n, uint32_t class)
{
    const uint32_t *found = n ? bsearch(&class, sorted, n, sizeof *sorted, compare_classes) : NULL;
    return found ? (uint32_t)(found - sorted) : RENYI_NO_CLASS;
}

void ry_class_sort(uint32_t *classes, size_t n)
{
    if (n) qsort(classes, n, sizeof *classes, compare_classes);
}

uint32_t renyi_imagenet_class(const char *wnid)
{
    return wnid ? ry_imagenet_index(ry_text_of(wnid)) : RENYI_NO_CLASS;
}

renyi_status renyi_classes_find(const renyi_model *m, const char *const *words, uint32_t n,
                                uint32_t *out, renyi_error *err)
{
    const renyi_allocator heap = {0};
    renyi_model_info info;
    ry_classes classes;
    if (!m || (n && (!words || !out)))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_classes_find: NULL argument");
    renyi_model_get_info(m, &info);
    const renyi_status st = ry_classes_open(&classes, info.n_classes, m, &heap, err);
    for (uint32_t i = 0; !st && i < n; i++)
        if (!words[i] || !ry_classes_find(&classes, ry_text_of(words[i]), &out[i]))
            out[i] = RENYI_NO_CLASS;
    ry_classes_free(&classes);
    return st;
}

renyi_status ry_no_classifier(const renyi_model_info *info, renyi_error *err)
{
    const int clip = strcmp(info->family, "clip") == 0 || strcmp(info->family, "siglip") == 0;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "%.120s has no classifier; %s",
                   info->architecture,
                   clip ? "'renyi zeroshot' (renyi_model_zeroshot) makes one from class names"
                        : "'renyi embed' gives its embeddings (RENYI_OUTPUT_EMBEDDING)");
}

/* ---- class map files ----------------------------------------------------------------------- */

/* The file that is being read, for messages. */
typedef struct source {
    ry_classes *classes;
    const char *file;
    uint64_t line; /* 0 = JSON, which has none */
} source;

static renyi_status add_name(const source *s, ry_text name, uint64_t index, renyi_error *err)
{
    ry_classes *c = s->classes;
    if (index >= c->n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s:%llu: class %llu of \"%.*s\" is not below the model's %u", s->file,
                       (unsigned long long)s->line, (unsigned long long)index, RY_SHOWN(name),
                       c->n);
    return ry_class_names_add(c, &c->map, name, (uint32_t)index, err);
}

typedef enum map_form {
    ONE_NAME,   /* one name a line: the number of the line is the class */
    NAME_INDEX, /* "name 12" */
    WNID_NAMES, /* "n01440764 tench, Tinca tinca": the number of the line is the class */
    DEVKIT      /* "n02119789 1 kit_fox": the devkit's number is another name of the WordNet id */
} map_form;

/* The form that fits every line; the most specific form first. */
static map_form find_form(const void *bytes, size_t size)
{
    int devkit = 1, wnids = 1, indices = 1;
    ry_lines l = ry_lines_of(bytes, size);
    uint32_t number;
    for (ry_text line, rest, first, second, head, last; ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (!line.n) continue;
        rest = line;
        ry_text_next_word(&rest, &first);
        const int is_wnid = ry_imagenet_index(first) != RENYI_NO_CLASS && rest.n;
        ry_text_next_word(&rest, &second);
        devkit &= is_wnid && ry_text_number(second, &number) && rest.n;
        wnids &= is_wnid;
        indices &= ry_text_split_last(line, " \t,", &head, &last) && ry_text_number(last, &number);
    }
    return devkit ? DEVKIT : indices ? NAME_INDEX : wnids ? WNID_NAMES : ONE_NAME;
}

static renyi_status add_line(const source *s, map_form form, ry_text line, uint64_t place,
                             renyi_error *err)
{
    ry_text head, last, first, rest = line;
    uint32_t number = 0;
    switch (form) {
    case NAME_INDEX:
        if (!ry_text_split_last(line, " \t,", &head, &last) || !ry_text_number(last, &number))
            break;
        return add_name(s, head, number, err);
    case WNID_NAMES:
        ry_text_next_word(&rest, &first);
        RY_TRY(add_name(s, first, place, err));
        return add_name(s, rest, place, err);
    case DEVKIT:
        ry_text_next_word(&rest, &first);
        number = ry_imagenet_index(first);
        RY_TRY(add_name(s, first, number, err));
        ry_text_next_word(&rest, &first);
        return add_name(s, first, number, err);
    case ONE_NAME: break;
    }
    return add_name(s, line, place, err);
}

static renyi_status read_lines(source *s, const void *bytes, size_t size, renyi_error *err)
{
    const map_form form = find_form(bytes, size);
    ry_lines l = ry_lines_of(bytes, size);
    uint64_t place = 0;
    for (ry_text line; ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (!line.n) continue;
        s->line = l.number;
        RY_TRY(add_line(s, form, line, place++, err));
    }
    return RENYI_OK;
}

/* {"name": 3}, {"3": "name"} or {"3": ["n01440764", "name"]} */
static renyi_status add_member(const source *s, const char *key, const json_t *value,
                               renyi_error *err)
{
    uint32_t index;
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        return add_name(s, ry_text_of(key), (uint64_t)json_integer_value(value), err);
    if (!ry_text_number(ry_text_of(key), &index))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: \"%.80s\": wanted {\"name\": index} or {\"index\": \"name\"}", s->file,
                       key);
    if (json_is_string(value)) return add_name(s, ry_text_of(json_string_value(value)), index, err);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));
        if (name) RY_TRY(add_name(s, ry_text_of(name), index, err));
    }
    return RENYI_OK;
}

static renyi_status read_json(source *s, const void *bytes, size_t size, renyi_error *err)
{
    json_t *object;
    renyi_status st = RENYI_OK;
    RY_TRY(ry_json_parse(&object, bytes, size, s->file, NULL, err));
    for (void *it = json_object_iter(object); it && !st; it = json_object_iter_next(object, it))
        st = add_member(s, json_object_iter_key(it), json_object_iter_value(it), err);
    json_decref(object);
    return st;
}

renyi_status ry_classes_map(ry_classes *c, const char *file, const void *bytes, size_t size,
                            renyi_error *err)
{
    source s = {c, file, 0};
    const ry_text all = ry_text_trim((ry_text){bytes, size});
    RY_TRY(all.n && all.at[0] == '{' ? read_json(&s, bytes, size, err)
                                     : read_lines(&s, bytes, size, err));
    ry_class_names_sort(&c->map);
    if (!c->map.count)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no class name in this file", file);
    return RENYI_OK;
}
