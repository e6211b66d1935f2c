/* dataset_split.c - CoOp's split files (Zhou et al. 2022): {"train": [[photo, class, name], ...],
 * "val": [...], "test": [...]}. The photos are those of "test", the names those of all three.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/data/dataset.h"

#include <stdio.h>

static const char *const parts[] = {"test", "train", "val"};
enum { PARTS = 3 };

/* An entry of a part, checked. */
typedef struct item {
    const char *photo, *name; /* borrowed from the JSON */
    uint32_t label;
} item;

/* Where it is, for messages. */
typedef struct place {
    const char *file, *part;
    size_t index;
} place;

static renyi_status fail_item(const place *at, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.200s: %s[%zu]: wanted [\"photo\", class from 0, \"name\"]", at->file,
                   at->part, at->index);
}

static renyi_status read_item(const place *at, const json_t *entry, size_t max_classes, item *out,
                              renyi_error *err)
{
    const json_t *label = json_array_get(entry, 1);
    out->photo = json_string_value(json_array_get(entry, 0));
    out->name = json_string_value(json_array_get(entry, 2));
    if (json_array_size(entry) != 3 || !out->photo || !*out->photo || !out->name || !*out->name ||
        !json_is_integer(label) || json_integer_value(label) < 0)
        return fail_item(at, err);
    if ((size_t)json_integer_value(label) >= max_classes)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s: %s[%zu]: class %lld, but there are only %zu photos", at->file,
                       at->part, at->index, (long long)json_integer_value(label), max_classes);
    out->label = (uint32_t)json_integer_value(label);
    return RENYI_OK;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Every part is a list; entries in sum. "test" has at least one. */
static renyi_status count_items(const json_t *split, const char *file, size_t *n, renyi_error *err)
{
    *n = 0;
    for (int p = 0; p < PARTS; p++) {
        const json_t *list = json_object_get(split, parts[p]);
        if (p && !list) continue;
        if (!json_is_array(list))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%.200s: no list \"%s\": wanted CoOp's split, {\"train\", \"val\", "
                           "\"test\": [[photo, class, name], ...]}",
                           file, parts[p]);
        *n += json_array_size(list);
    }
    if (json_array_size(json_object_get(split, "test"))) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%.200s: \"test\" has no photos", file);
}

/* A class has one name, wherever it stands. */
static renyi_status take_name(renyi_dataset *d, const place *at, const item *i, renyi_error *err)
{
    const char *known = d->own.names[i->label];
    const ry_text name = ry_text_of(i->name);
    if (!known) return ry_own_name(d, i->label, name, err);
    if (ry_text_compare(ry_text_of(known), name) == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.200s: %s[%zu]: class %u is \"%.60s\", but was \"%.60s\" before", at->file,
                   at->part, at->index, i->label, i->name, known);
}

/* Visit all entries: first for the number of classes, then (names != 0) for their names. */
static renyi_status walk(renyi_dataset *d, const json_t *split, const char *file, size_t n_items,
                         int names, uint32_t *n_classes, renyi_error *err)
{
    for (int p = 0; p < PARTS; p++) {
        const json_t *list = json_object_get(split, parts[p]), *entry;
        place at = {file, parts[p], 0};
        json_array_foreach(list, at.index, entry)
        {
            item i;
            RY_TRY(read_item(&at, entry, n_items, &i, err));
            if (names) RY_TRY(take_name(d, &at, &i, err));
            if (i.label >= *n_classes) *n_classes = i.label + 1;
        }
    }
    return RENYI_OK;
}

/* With a list of the user's, its names are used and only their number must agree. */
static renyi_status read_names(renyi_dataset *d, const json_t *split, const char *file,
                               renyi_error *err)
{
    size_t n_items;
    uint32_t n = 0;
    RY_TRY(count_items(split, file, &n_items, err));
    RY_TRY(walk(d, split, file, n_items, 0, &n, err));
    if (d->own.names && d->info.n_classes != n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%u class names for the %u classes of %.200s",
                       d->info.n_classes, n, file);
    if (d->own.names) return RENYI_OK;
    RY_TRY(ry_own_start(d, n, err));
    RY_TRY(walk(d, split, file, n_items, 1, &n, err));
    for (uint32_t i = 0; i < n; i++)
        if (!d->own.names[i])
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%.200s: classes go up to %u, but %u has no photo in any part, so no "
                           "name",
                           file, n - 1, i);
    d->info.names_from = RENYI_NAMES_DATA;
    return RENYI_OK;
}

/* ---- photos --------------------------------------------------------------------------------- */

static renyi_status read_photos(renyi_dataset *d, const char *photos, const json_t *split,
                                const char *file, renyi_error *err)
{
    const json_t *list = json_object_get(split, "test"), *entry;
    place at = {file, "test", 0};
    json_array_foreach(list, at.index, entry)
    {
        item i;
        RY_TRY(read_item(&at, entry, SIZE_MAX, &i, err));
        RY_TRY(ry_dataset_add(d, ry_text_of(photos), ry_text_of(i.photo), i.label, err));
    }
    d->info.rule = RENYI_CLASS_BY_DATA;
    return RENYI_OK;
}

renyi_status ry_dataset_split(renyi_dataset *d, const char *photos, const char *file,
                              const void *bytes, size_t size, renyi_error *err)
{
    const ry_json_limits limits = {0, 8000000, 8}; /* Food101's has 400,000 values */
    json_t *split;
    RY_TRY(ry_json_parse(&split, bytes, size, file, &limits, err));
    renyi_status st = read_names(d, split, file, err);
    if (!st) st = read_photos(d, photos, split, file, err);
    json_decref(split);
    return st;
}

/* ---- dataset_names ---- */

enum { MAX_CLASSES = 1 << 20, MAX_NAME = 1024 };

static ry_text first_word(ry_text line, ry_text *rest)
{
    size_t n = 0;
    while (n < line.n && line.at[n] != ' ' && line.at[n] != '\t') n++;
    *rest = ry_text_trim((ry_text){line.at + n, line.n - n});
    return (ry_text){line.at, n};
}

/* ---- the user's list ------------------------------------------------------------------------ */

/* How many names; *with_wnids = 1: each behind its WordNet id. */
static renyi_status look(const char *file, const void *bytes, size_t size, uint32_t *count,
                         int *with_wnids, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    *count = 0;
    *with_wnids = 1;
    for (ry_text line, rest; ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (!line.n) continue;
        *with_wnids &= ry_imagenet_index(first_word(line, &rest)) != RENYI_NO_CLASS && rest.n;
        if (line.n > MAX_NAME || ++*count > MAX_CLASSES)
            return ry_fail(err, RENYI_ERR_LIMIT, -1,
                           "%s:%llu: a class name of more than %d bytes, or more than %d of them",
                           file, (unsigned long long)l.number, MAX_NAME, MAX_CLASSES);
    }
    if (*count) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no class name in this file", file);
}

renyi_status ry_own_read_names(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                               renyi_error *err)
{
    uint32_t n, label = 0;
    int with_wnids;
    RY_TRY(look(file, bytes, size, &n, &with_wnids, err));
    RY_TRY(ry_own_start(d, n, err));
    RY_TRY(ry_classes_open(&d->classes, n, NULL, &d->al, err));
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line, name; ry_lines_next(&l, &line);) {
        name = line = ry_text_trim(line);
        if (!line.n) continue;
        if (with_wnids) {
            const ry_text wnid = first_word(line, &name);
            RY_TRY(ry_class_names_add(&d->classes, &d->classes.map, wnid, label, err));
        }
        RY_TRY(ry_class_names_add(&d->classes, &d->classes.map, name, label, err));
        RY_TRY(ry_own_name(d, label++, name, err));
    }
    ry_class_names_sort(&d->classes.map);
    d->info.names_from = RENYI_NAMES_LIST;
    return RENYI_OK;
}

/* ---- classnames.txt -------------------------------------------------------------------------- */

/* The label of an ImageNet class, of which labels stand for imagenet[label], ascending. */
static uint32_t label_of(const renyi_dataset *d, const uint32_t *imagenet, uint32_t class)
{
    for (uint32_t low = 0, high = d->info.n_classes; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        if (imagenet[middle] == class) return middle;
        if (imagenet[middle] < class)
            low = middle + 1;
        else
            high = middle;
    }
    return RENYI_NO_CLASS;
}

renyi_status ry_own_read_classnames(renyi_dataset *d, const uint32_t *imagenet, const char *file,
                                    const void *bytes, size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line, name; ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (!line.n) continue;
        const uint32_t class = ry_imagenet_index(first_word(line, &name));
        if (class == RENYI_NO_CLASS || !name.n || name.n > MAX_NAME)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s:%llu: \"%.*s\": wanted a WordNet id of ImageNet's and a name", file,
                           (unsigned long long)l.number, RY_SHOWN(line));
        const uint32_t label = label_of(d, imagenet, class);
        if (label != RENYI_NO_CLASS) RY_TRY(ry_own_name(d, label, name, err));
    }
    for (uint32_t i = 0; i < d->info.n_classes; i++)
        if (!d->own.names[i])
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: no name for class %u of ImageNet (\"%.60s\")", file, imagenet[i],
                           renyi_imagenet_name(imagenet[i]));
    d->info.names_from = RENYI_NAMES_CLASSNAMES;
    return RENYI_OK;
}

/* ---- dataset_variants ---- */

renyi_status ry_dataset_variants(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                                 renyi_error *err)
{
    const uint32_t wanted = d->own.names ? d->info.n_classes : 0;
    const char **given =
        d->own.names; /* the user's names are for sentences, the file's for finding */
    ry_classes_free(&d->classes);
    RY_TRY(ry_own_read_names(d, file, bytes, size, err));
    d->info.names_from = given ? RENYI_NAMES_LIST : RENYI_NAMES_DATA;
    if (!given) return RENYI_OK;
    if (wanted != d->info.n_classes)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%u class names for the %u classes of %.200s",
                       wanted, d->info.n_classes, file);
    d->own.names = given;
    return RENYI_OK;
}

static renyi_status add(renyi_dataset *d, const char *photos, const char *file, uint64_t line,
                        ry_text photo, ry_text variant, renyi_error *err)
{
    char name[80];
    uint32_t label;
    if (!variant.n || photo.n + sizeof ".jpg" > sizeof name)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s:%llu: wanted a photo and its variant, as in \"0034309 707-320\"",
                       file, (unsigned long long)line);
    if (ry_classes_find(&d->classes, variant, &label) != RENYI_CLASS_BY_MAP)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s:%llu: variant \"%.*s\" is not in variants.txt", file,
                       (unsigned long long)line, RY_SHOWN(variant));
    snprintf(name, sizeof name, "%.*s.jpg", (int)photo.n, photo.at);
    return ry_dataset_add(d, ry_text_of(photos), ry_text_of(name), label, err);
}

renyi_status ry_dataset_variant_list(renyi_dataset *d, const char *photos, const char *file,
                                     const void *bytes, size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        size_t n = 0;
        line = ry_text_trim(line);
        while (n < line.n && line.at[n] != ' ') n++;
        if (!line.n) continue;
        RY_TRY(add(d, photos, file, l.number, (ry_text){line.at, n},
                   ry_text_trim((ry_text){line.at + n, line.n - n}), err));
    }
    d->info.rule = RENYI_CLASS_BY_DATA;
    if (d->count) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%.200s: no photos in this list", file);
}
