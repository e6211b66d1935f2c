/* dataset_own_lists.c - reads lists that define classes: class names, CoOp's split files and
 * FGVC-Aircraft's lists.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/data/dataset.h"

#include <stdio.h>

enum { MAX_CLASSES = 1 << 20, MAX_NAME = 1024 };

/* ---- class names --------------------------------------------------------------------------- */

/* Counts the names. *with_wnids = 1: a WordNet id is before each. */
static renyi_status count_names(const char *file, const void *bytes, size_t size, uint32_t *count,
                                int *with_wnids, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    *count = 0;
    *with_wnids = 1;
    for (ry_text line, first, rest; ry_lines_next(&l, &line);) {
        rest = line = ry_text_trim(line);
        if (!ry_text_next_word(&rest, &first)) continue;
        *with_wnids &= ry_imagenet_index(first) != RENYI_NO_CLASS && rest.n;
        if (line.n > MAX_NAME || ++*count > MAX_CLASSES)
            return ry_fail(err, RENYI_ERR_LIMIT, -1,
                           "%s:%llu: a class name of more than %d bytes, or more than %d of them",
                           file, (unsigned long long)l.number, MAX_NAME, MAX_CLASSES);
    }
    if (*count) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no class name in this file", file);
}

renyi_status ry_own_read_names(renyi_dataset *d, const char *images, const char *file,
                               const void *bytes, size_t size, renyi_error *err)
{
    uint32_t n, label = 0;
    int with_wnids;
    (void)images;
    RY_TRY(count_names(file, bytes, size, &n, &with_wnids, err));
    RY_TRY(ry_own_start(d, n, err));
    RY_TRY(ry_classes_open(&d->classes, n, NULL, &d->al, err));
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line, name, wnid; ry_lines_next(&l, &line);) {
        name = ry_text_trim(line);
        if (!name.n) continue;
        if (with_wnids) {
            ry_text_next_word(&name, &wnid);
            RY_TRY(ry_class_names_add(&d->classes, &d->classes.map, wnid, label, err));
        }
        RY_TRY(ry_class_names_add(&d->classes, &d->classes.map, name, label, err));
        RY_TRY(ry_own_name(d, label++, name, err));
    }
    ry_class_names_sort(&d->classes.map);
    d->info.names_from = RENYI_NAMES_LIST;
    return RENYI_OK;
}

renyi_status ry_own_read_classnames(renyi_dataset *d, const uint32_t *imagenet, const char *file,
                                    const void *bytes, size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line, name, wnid; ry_lines_next(&l, &line);) {
        name = line = ry_text_trim(line);
        if (!ry_text_next_word(&name, &wnid)) continue;
        const uint32_t class = ry_imagenet_index(wnid);
        if (class == RENYI_NO_CLASS || !name.n || name.n > MAX_NAME)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s:%llu: \"%.*s\": wanted a WordNet id of ImageNet and a name", file,
                           (unsigned long long)l.number, RY_SHOWN(line));
        const uint32_t label = ry_class_search(imagenet, d->info.n_classes, class);
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

/* ---- CoOp's split (Zhou et al. 2022) ------------------------------------------------------- */

/* {"train": [[image, class, name], ...], "val": [...], "test": [...]}: images are those of "test",
 * class names those of all three. */
static const char *const parts[] = {"test", "train", "val"};
enum { PARTS = 3 };

typedef struct item {
    const char *image, *name; /* borrowed from the JSON */
    uint32_t label;
} item;

/* Where an entry is, for messages. */
typedef struct place {
    const char *file, *part;
    size_t index;
} place;

static renyi_status fail_item(const place *at, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.200s: %s[%zu]: wanted [\"image\", class from 0, \"name\"]", at->file,
                   at->part, at->index);
}

static renyi_status read_item(const place *at, const json_t *entry, size_t max_classes, item *out,
                              renyi_error *err)
{
    const json_t *label = json_array_get(entry, 1);
    out->image = json_string_value(json_array_get(entry, 0));
    out->name = json_string_value(json_array_get(entry, 2));
    if (json_array_size(entry) != 3 || !out->image || !*out->image || !out->name || !*out->name ||
        !json_is_integer(label) || json_integer_value(label) < 0)
        return fail_item(at, err);
    if ((size_t)json_integer_value(label) >= max_classes)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s: %s[%zu]: class %lld, but there are only %zu images", at->file,
                       at->part, at->index, (long long)json_integer_value(label), max_classes);
    out->label = (uint32_t)json_integer_value(label);
    return RENYI_OK;
}

/* Counts the entries of all parts. Every part must be a list, and "test" must have entries. */
static renyi_status count_items(const json_t *split, const char *file, size_t *n, renyi_error *err)
{
    *n = 0;
    for (int p = 0; p < PARTS; p++) {
        const json_t *list = json_object_get(split, parts[p]);
        if (p && !list) continue;
        if (!json_is_array(list))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%.200s: no list \"%s\": wanted CoOp's split, {\"train\", \"val\", "
                           "\"test\": [[image, class, name], ...]}",
                           file, parts[p]);
        *n += json_array_size(list);
    }
    if (json_array_size(json_object_get(split, "test"))) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%.200s: \"test\" has no images", file);
}

/* A class has the same name in all entries. */
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

/* Reads all entries: for the number of classes and, with names = 1, for their names. */
static renyi_status read_entries(renyi_dataset *d, const json_t *split, const char *file,
                                 size_t n_items, int names, uint32_t *n_classes, renyi_error *err)
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

/* If the user gave names, those are used, and their number must be that of the classes. */
static renyi_status read_split_names(renyi_dataset *d, const json_t *split, const char *file,
                                     renyi_error *err)
{
    size_t n_items;
    uint32_t n = 0;
    RY_TRY(count_items(split, file, &n_items, err));
    RY_TRY(read_entries(d, split, file, n_items, 0, &n, err));
    if (d->own.names && d->info.n_classes != n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%u class names for the %u classes of %.200s",
                       d->info.n_classes, n, file);
    if (d->own.names) return RENYI_OK;
    RY_TRY(ry_own_start(d, n, err));
    RY_TRY(read_entries(d, split, file, n_items, 1, &n, err));
    for (uint32_t i = 0; i < n; i++)
        if (!d->own.names[i])
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%.200s: classes go up to %u, but %u has no image in any part, so no "
                           "name",
                           file, n - 1, i);
    d->info.names_from = RENYI_NAMES_DATA;
    return RENYI_OK;
}

static renyi_status read_split_images(renyi_dataset *d, const char *images, const json_t *split,
                                      const char *file, renyi_error *err)
{
    const json_t *list = json_object_get(split, "test"), *entry;
    place at = {file, "test", 0};
    json_array_foreach(list, at.index, entry)
    {
        item i;
        RY_TRY(read_item(&at, entry, SIZE_MAX, &i, err));
        RY_TRY(ry_dataset_add(d, ry_text_of(images), ry_text_of(i.image), i.label, err));
    }
    d->info.rule = RENYI_CLASS_BY_DATA;
    return RENYI_OK;
}

renyi_status ry_dataset_split(renyi_dataset *d, const char *images, const char *file,
                              const void *bytes, size_t size, renyi_error *err)
{
    const ry_json_limits limits = {0, 8000000, 8}; /* Food101's has 400,000 values */
    json_t *split;
    RY_TRY(ry_json_parse(&split, bytes, size, file, &limits, err));
    renyi_status st = read_split_names(d, split, file, err);
    if (!st) st = read_split_images(d, images, split, file, err);
    json_decref(split);
    return st;
}

/* ---- FGVC-Aircraft (Maji et al. 2013) ------------------------------------------------------ */

/* variants.txt: one class name a line. */
renyi_status ry_dataset_variants(renyi_dataset *d, const char *images, const char *file,
                                 const void *bytes, size_t size, renyi_error *err)
{
    const uint32_t wanted = d->own.names ? d->info.n_classes : 0;
    const char **given = d->own.names; /* for sentences; the list below uses those of the file */
    ry_classes_free(&d->classes);
    RY_TRY(ry_own_read_names(d, images, file, bytes, size, err));
    d->info.names_from = given ? RENYI_NAMES_LIST : RENYI_NAMES_DATA;
    if (!given) return RENYI_OK;
    if (wanted != d->info.n_classes)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%u class names for the %u classes of %.200s",
                       wanted, d->info.n_classes, file);
    d->own.names = given;
    return RENYI_OK;
}

static renyi_status add_variant(renyi_dataset *d, const char *images, const char *file,
                                uint64_t line, ry_text image, ry_text variant, renyi_error *err)
{
    char name[80];
    uint32_t label;
    if (!variant.n || image.n + sizeof ".jpg" > sizeof name)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s:%llu: wanted an image and its variant, as in \"0034309 707-320\"",
                       file, (unsigned long long)line);
    if (ry_classes_find(&d->classes, variant, &label) != RENYI_CLASS_BY_MAP)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s:%llu: variant \"%.*s\" is not in variants.txt", file,
                       (unsigned long long)line, RY_SHOWN(variant));
    snprintf(name, sizeof name, "%.*s.jpg", (int)image.n, image.at);
    return ry_dataset_add(d, ry_text_of(images), ry_text_of(name), label, err);
}

/* images_variant_test.txt: "0034309 707-320" is image 0034309.jpg of class 707-320. */
renyi_status ry_dataset_variant_list(renyi_dataset *d, const char *images, const char *file,
                                     const void *bytes, size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text rest, image; ry_lines_next(&l, &rest);)
        if (ry_text_next_word(&rest, &image))
            RY_TRY(add_variant(d, images, file, l.number, image, rest, err));
    d->info.rule = RENYI_CLASS_BY_DATA;
    if (d->count) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%.200s: no images in this list", file);
}
