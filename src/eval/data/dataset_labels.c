/* dataset_labels.c - classes that stand in files of their own: ground truth of a flat folder,
 * ImageNet-ReaL, the classes that may be predicted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/data/dataset.h"

#include <stdlib.h>
#include <string.h>

uint32_t ry_imagenet_number(const char *path)
{
    static const char prefix[] = "ILSVRC2012_val_";
    enum { PREFIX = sizeof prefix - 1, DIGITS = 8 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    uint32_t number;
    if (strncmp(name, prefix, PREFIX) != 0 || strlen(name + PREFIX) < DIGITS) return 0;
    return ry_text_number((ry_text){name + PREFIX, DIGITS}, &number) ? number : 0;
}

/* Which of `n` entries, in the order of ImageNet's validation photos or else of the file names,
 * belongs to photo i; RENYI_NO_CLASS = none. */
static uint32_t entry_of(const renyi_dataset *d, size_t i, size_t n)
{
    const uint32_t number = ry_imagenet_number(d->photos[i].path);
    if (number && number <= n) return number - 1;
    return n == d->count ? (uint32_t)i : RENYI_NO_CLASS;
}

static renyi_status fail_count(const renyi_dataset *d, const char *file, size_t n, size_t i,
                               renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: %zu entries for %zu photos, and \"%.80s\" is not numbered like an ImageNet "
                   "validation photo: which entry is its?",
                   file, n, d->count, d->photos[i].path + d->photos[i].file_at);
}

/* ---- ground truth, one class a line -------------------------------------------------------- */

/* The devkit of ILSVRC counts classes from 1 in an order that no model uses. */
static renyi_status check_devkit(const renyi_dataset *d, const char *file, const ry_lines *lines,
                                 renyi_error *err)
{
    int has_zero = 0, has_last = 0;
    ry_lines l = *lines;
    uint32_t number;
    if (d->classes.n != RY_IMAGENET_CLASSES || d->classes.map.count) return RENYI_OK;
    for (ry_text line; ry_lines_next(&l, &line);) {
        if (!ry_text_number(ry_text_trim(line), &number)) continue;
        has_zero |= number == 0;
        has_last |= number == RY_IMAGENET_CLASSES;
    }
    if (has_zero || !has_last) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: classes 1 to 1000 are numbered as in ILSVRC's devkit, an order that no "
                   "model uses; give the devkit's map_clsloc.txt as class map",
                   file);
}

static renyi_status read_column(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                                renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    RY_TRY(check_devkit(d, file, &l, err));
    uint32_t *labels = NULL;
    size_t n = 0, capacity = 0;
    renyi_status st = RENYI_OK;
    for (ry_text line; !st && ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (!line.n && l.at == l.end) break;
        if (!ry_grow(&d->al, (void **)&labels, &capacity, n, sizeof *labels)) {
            st = ry_fail_nomem(err, n * sizeof *labels);
        } else {
            const renyi_class_rule rule = ry_classes_find(&d->classes, line, &labels[n++]);
            if (!rule) st = ry_fail_class(d, file, l.number, line, err);
            d->info.rule = rule;
        }
    }
    for (size_t i = 0; !st && i < d->count; i++) {
        const uint32_t at = entry_of(d, i, n);
        if (at == RENYI_NO_CLASS)
            st = fail_count(d, file, n, i, err);
        else
            d->photos[i].label = labels[at];
    }
    ry_free(&d->al, labels);
    return st;
}

/* ---- ground truth, "name class" lines ------------------------------------------------------ */

static int compare_files(const void *a, const void *b)
{
    const ry_photo *x = *(ry_photo *const *)a, *y = *(ry_photo *const *)b;
    return strcmp(x->path + x->file_at, y->path + y->file_at);
}

static ry_photo *find_photo(ry_photo *const *sorted, size_t count, ry_text name)
{
    for (size_t low = 0, high = count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        ry_photo *p = sorted[middle];
        const int order = ry_text_compare(ry_text_of(p->path + p->file_at), name);
        if (order == 0) return p;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static renyi_status label_photo(renyi_dataset *d, const char *file, uint64_t number, ry_text line,
                                ry_photo *const *sorted, renyi_error *err)
{
    uint32_t label;
    size_t cut = line.n;
    while (cut && !strchr(" \t,", line.at[cut - 1])) cut--;
    size_t end = cut;
    while (end && strchr(" \t,", line.at[end - 1])) end--;
    const ry_text name = {line.at, end}, class = {line.at + cut, line.n - cut};
    if (!end)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s:%llu: \"%.*s\" is neither a class nor a name and its class", file,
                       (unsigned long long)number, RY_SHOWN(line));
    const renyi_class_rule rule = ry_classes_find(&d->classes, class, &label);
    if (!rule) return ry_fail_class(d, file, number, class, err);
    ry_photo *p = find_photo(sorted, d->count, name); /* photos that are not here do no harm */
    if (p && p->label != RENYI_NO_CLASS && p->label != label)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s:%llu: a second class for \"%.*s\"", file,
                       (unsigned long long)number, RY_SHOWN(name));
    if (p) p->label = label;
    d->info.rule = rule;
    return RENYI_OK;
}

static renyi_status read_named(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                               renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    ry_photo **sorted = ry_alloc(&d->al, d->count, sizeof *sorted);
    renyi_status st = sorted ? RENYI_OK : ry_fail_nomem(err, d->count * sizeof *sorted);
    for (size_t i = 0; !st && i < d->count; i++) sorted[i] = &d->photos[i];
    if (!st && d->count) qsort(sorted, d->count, sizeof *sorted, compare_files);
    for (ry_text line; !st && ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (line.n) st = label_photo(d, file, l.number, line, sorted, err);
    }
    ry_free(&d->al, sorted);
    return st;
}

renyi_status ry_dataset_truth(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                              renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    ry_text first = {"", 0};
    uint32_t class;
    while (!first.n && ry_lines_next(&l, &first)) first = ry_text_trim(first);
    if (!first.n) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no classes in this file", file);
    /* 1000 is no class of 1000, but the devkit's: let read_column say so. */
    const int is_class =
        ry_classes_find(&d->classes, first, &class) || ry_text_number(first, &class);
    return is_class ? read_column(d, file, bytes, size, err)
                    : read_named(d, file, bytes, size, err);
}

/* ---- ImageNet-ReaL ------------------------------------------------------------------------- */

static renyi_status set_right(renyi_dataset *d, const char *file, ry_photo *p, const json_t *set,
                              size_t place, renyi_error *err)
{
    const size_t n = json_array_size(set);
    uint32_t *right = ry_pool_take(&d->pool, (n ? n : 1) * sizeof *right);
    if (!right) return ry_fail_nomem(err, n * sizeof *right);
    for (size_t i = 0; i < n; i++) {
        const json_t *class = json_array_get(set, i);
        const json_int_t value = json_is_integer(class) ? json_integer_value(class) : -1;
        if (value < 0 || value >= d->info.n_classes)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: entry %zu: wanted class indices below %u", file, place,
                           d->info.n_classes);
        right[i] = (uint32_t)value;
    }
    p->right = right;
    p->n_right = (uint32_t)n;
    return RENYI_OK;
}

renyi_status ry_dataset_real(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                             renyi_error *err)
{
    json_t *list;
    renyi_status st = RENYI_OK;
    RY_TRY(ry_json_parse(&list, bytes, size, file, NULL, err));
    const size_t n = json_array_size(list); /* 0 for anything but an array */
    for (size_t i = 0; !st && i < d->count; i++) {
        const uint32_t at = entry_of(d, i, n);
        const json_t *set = json_array_get(list, at);
        if (at == RENYI_NO_CLASS)
            st = fail_count(d, file, n, i, err);
        else if (!json_is_array(set))
            st = ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: entry %u is no list of classes", file, at);
        else
            st = set_right(d, file, &d->photos[i], set, at, err);
    }
    json_decref(list);
    d->info.has_real_labels = 1;
    return st;
}

/* ---- classes that may be predicted --------------------------------------------------------- */

static int compare_classes(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

renyi_status ry_dataset_valid(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                              renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    size_t n = 0, capacity = 0;
    for (ry_text line; ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (!line.n) continue;
        if (n >= d->classes.n)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s:%llu: more classes than the model's %u",
                           file, (unsigned long long)l.number, d->classes.n);
        if (!ry_grow(&d->al, (void **)&d->valid_order, &capacity, n, sizeof *d->valid_order))
            return ry_fail_nomem(err, n * sizeof *d->valid_order);
        if (!ry_classes_find(&d->classes, line, &d->valid_order[n++]))
            return ry_fail_class(d, file, l.number, line, err);
    }
    if (!n) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no classes in this file", file);
    d->valid = ry_alloc(&d->al, n, sizeof *d->valid);
    if (!d->valid) return ry_fail_nomem(err, n * sizeof *d->valid);
    memcpy(d->valid, d->valid_order, n * sizeof *d->valid);
    qsort(d->valid, n, sizeof *d->valid, compare_classes);
    for (size_t i = 1; i < n; i++)
        if (d->valid[i] == d->valid[i - 1])
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: class %u twice", file, d->valid[i]);
    d->info.n_valid = (uint32_t)n;
    return RENYI_OK;
}
