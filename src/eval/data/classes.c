/* classes.c - see classes.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/data/classes.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static char fold(char c)
{
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    return c == '_' ? ' ' : c;
}

/* Order of a folded name and a word as it stands. */
static int compare_folded(ry_text folded, ry_text word)
{
    for (size_t i = 0; i < folded.n && i < word.n; i++) {
        const unsigned char a = (unsigned char)folded.at[i], b = (unsigned char)fold(word.at[i]);
        if (a != b) return a < b ? -1 : 1;
    }
    return (folded.n > word.n) - (folded.n < word.n);
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

/* Equal names become one; it means no class if they meant different ones. */
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

static uint32_t find_name(const ry_class_names *names, ry_text word)
{
    for (size_t low = 0, high = names->count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_folded(names->items[middle].name, word);
        if (order == 0) return names->items[middle].index;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return RENYI_NO_CLASS;
}

/* "tench, Tinca tinca" is known by all of it and by each part. */
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
        const char *label = renyi_model_label(m, i);
        if (label) RY_TRY(add_synonyms(c, label, i, err));
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

renyi_class_rule ry_classes_find(const ry_classes *c, ry_text word, uint32_t *out)
{
    uint32_t index;
    word = ry_text_trim(word);
    if ((index = find_name(&c->map, word)) < c->n) {
        *out = index;
        return RENYI_CLASS_BY_MAP;
    }
    if (ry_text_number(word, &index)) {
        if (index >= c->n) return RENYI_CLASS_UNKNOWN;
        *out = index;
        return RENYI_CLASS_BY_INDEX;
    }
    if (c->n == RY_IMAGENET_CLASSES && (index = ry_imagenet_index(word)) < c->n) {
        *out = index;
        return RENYI_CLASS_BY_WNID;
    }
    if ((index = find_name(&c->own, word)) < c->n) {
        *out = index;
        return RENYI_CLASS_BY_NAME;
    }
    return RENYI_CLASS_UNKNOWN;
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
    const int clip = strcmp(info->family, "clip") == 0;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "%.120s has no classifier; %s",
                   info->architecture,
                   clip ? "'renyi zeroshot' (renyi_model_zeroshot) makes one of class names"
                        : "'renyi embed' gives its embeddings (RENYI_OUTPUT_EMBEDDING)");
}
