/* dataset_split.c - CoOp's split files (Zhou et al. 2022): {"train": [[photo, class, name], ...],
 * "val": [...], "test": [...]}. The photos are those of "test", the names those of all three.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "eval/data/dataset.h"

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
