/* dataset_lists.c - reads lists of images with classes, and files of labels for images: ground
 * truth, ImageNet-ReaL, classes that can be predicted.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- lists of images ----------------------------------------------------------------------- */

static renyi_status add_image(renyi_dataset *d, const char *file, uint64_t line, ry_text name,
                              ry_text class, renyi_error *err)
{
    uint32_t label = RENYI_NO_CLASS;
    if (!name.n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s:%llu: no file name", file,
                       (unsigned long long)line);
    const renyi_class_rule rule =
        d->unlabelled ? RENYI_CLASS_UNKNOWN : ry_classes_find(&d->classes, class, &label);
    if (!rule && !d->unlabelled) return ry_fail_class(d, file, line, class, err);
    if (!d->count) d->info.rule = rule;
    return ry_dataset_add(d, ry_text_folder(ry_text_of(file)), name, label, err);
}

static int is_one_of(ry_text text, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == text.n && strncasecmp(*names, text.at, text.n) == 0) return 1;
    return 0;
}

typedef struct columns {
    size_t file, label;
} columns;

/* Does the first record name columns? Without a header the first two are file and label. */
static int read_header(const ry_text *fields, size_t n, columns *out)
{
    static const char *const file_names[] = {"file", "filename", "file_name",
                                             "path", "image",    NULL};
    static const char *const label_names[] = {"label", "class",       "target",
                                              "index", "class_index", NULL};
    int has_file = 0, has_label = 0;
    for (size_t i = n; i-- > 0;) {
        const ry_text name = ry_text_trim(fields[i]);
        if (is_one_of(name, file_names)) out->file = i, has_file = 1;
        if (is_one_of(name, label_names)) out->label = i, has_label = 1;
    }
    if (has_file && has_label) return 1;
    *out = (columns){0, 1};
    return 0;
}

static renyi_status read_csv(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                             renyi_error *err)
{
    ry_csv csv = ry_csv_of(file, bytes, size, &d->pool);
    ry_text fields[RY_CSV_FIELDS];
    columns at = {0, 1};
    size_t n;
    for (int first = 1;; first = 0) {
        RY_TRY(ry_csv_next(&csv, fields, &n, err));
        if (!n) return RENYI_OK;
        if (first && read_header(fields, n, &at)) continue;
        if (n <= at.file || n <= at.label)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s:%llu: %zu columns; wanted a file and its class", file,
                           (unsigned long long)csv.line, n);
        RY_TRY(add_image(d, file, csv.line, ry_text_trim(fields[at.file]), fields[at.label], err));
    }
}

static renyi_status add_object(renyi_dataset *d, const char *file, uint64_t line, const json_t *o,
                               renyi_error *err)
{
    const char *name = json_string_value(json_object_get(o, "file"));
    const json_t *label = json_object_get(o, "label");
    char digits[24];
    if (!name || (!json_is_integer(label) && !json_is_string(label)))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s:%llu: wanted {\"file\": \"name\", \"label\": class}", file,
                       (unsigned long long)line);
    if (json_is_string(label))
        return add_image(d, file, line, ry_text_of(name), ry_text_of(json_string_value(label)),
                         err);
    snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(label));
    return add_image(d, file, line, ry_text_of(name), ry_text_of(digits), err);
}

static renyi_status read_jsonl(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                               renyi_error *err)
{
    const ry_json_limits limits = {1 << 20, 10000, 8};
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        char where[512];
        json_t *object;
        if (!ry_text_trim(line).n) continue;
        snprintf(where, sizeof where, "%.480s:%llu", file, (unsigned long long)l.number);
        RY_TRY(ry_json_parse(&object, line.at, line.n, where, &limits, err));
        const renyi_status st = add_object(d, file, l.number, object, err);
        json_decref(object);
        RY_TRY(st);
    }
    return RENYI_OK;
}

/* "name class" lines; the class is the last word, so a name may have blanks. */
static renyi_status read_pairs(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                               renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line, name, class; ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (!line.n) continue;
        ry_text_split_last(line, " \t", &name, &class);
        RY_TRY(add_image(d, file, l.number, name, class, err));
    }
    return RENYI_OK;
}

renyi_status ry_dataset_list(renyi_dataset *d, const char *images, const char *file,
                             const void *bytes, size_t size, renyi_error *err)
{
    const ry_text name = ry_text_of(file);
    (void)images;
    if (ry_text_ends_with(name, ".csv")) return read_csv(d, file, bytes, size, err);
    if (ry_text_ends_with(name, ".jsonl")) return read_jsonl(d, file, bytes, size, err);
    if (ry_text_ends_with(name, ".txt")) return read_pairs(d, file, bytes, size, err);
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "%s: neither a folder nor a list that ends in .csv, .jsonl or .txt", file);
}

/* ---- which label belongs to which image ---------------------------------------------------- */

/* Number of an ImageNet validation image, from 1: 293 for ILSVRC2012_val_00000293.JPEG. 0 = the
 * name is of another kind. */
static uint32_t imagenet_number(const char *path)
{
    static const char prefix[] = "ILSVRC2012_val_";
    enum { PREFIX = sizeof prefix - 1, DIGITS = 8 };
    const char *name = ry_text_file_name(ry_text_of(path)).at;
    uint32_t number;
    if (strncmp(name, prefix, PREFIX) != 0 || strlen(name + PREFIX) < DIGITS) return 0;
    return ry_text_number((ry_text){name + PREFIX, DIGITS}, &number) ? number : 0;
}

/* Which of `n` labels belongs to image i? They are in the order of ImageNet's validation images, or
 * else of the file names. RENYI_NO_CLASS = none. */
static uint32_t label_place(const renyi_dataset *d, size_t i, size_t n)
{
    const uint32_t number = imagenet_number(d->images[i].path);
    if (number && number <= n) return number - 1;
    return n == d->count ? (uint32_t)i : RENYI_NO_CLASS;
}

static renyi_status fail_count(const renyi_dataset *d, const char *file, size_t n, size_t i,
                               renyi_error *err)
{
    return ry_fail(
        err, RENYI_ERR_FORMAT, -1,
        "%s: %zu entries for %zu images, and none of them belongs to \"%.80s\" (by order, "
        "or by its number if it is an ImageNet validation image)",
        file, n, d->count, d->images[i].path + d->images[i].file_at);
}

/* ---- ground truth, one class a line -------------------------------------------------------- */

/* ILSVRC's devkit counts classes from 1, in an order that no model uses. */
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
        const uint32_t at = label_place(d, i, n);
        if (at == RENYI_NO_CLASS)
            st = fail_count(d, file, n, i, err);
        else
            d->images[i].label = labels[at];
    }
    ry_free(&d->al, labels);
    return st;
}

/* ---- ground truth, "name class" lines ------------------------------------------------------ */

static int compare_files(const void *a, const void *b)
{
    const ry_dataset_entry *x = *(ry_dataset_entry *const *)a, *y = *(ry_dataset_entry *const *)b;
    return strcmp(x->path + x->file_at, y->path + y->file_at);
}

static int compare_name(const void *name, const void *item)
{
    const ry_dataset_entry *e = *(ry_dataset_entry *const *)item;
    return ry_text_compare(*(const ry_text *)name, ry_text_of(e->path + e->file_at));
}

static renyi_status label_image(renyi_dataset *d, const char *file, uint64_t number, ry_text line,
                                ry_dataset_entry *const *sorted, renyi_error *err)
{
    uint32_t label;
    ry_text name, class;
    if (!ry_text_split_last(line, " \t,", &name, &class))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s:%llu: \"%.*s\" is neither a class nor a name with a class", file,
                       (unsigned long long)number, RY_SHOWN(line));
    const renyi_class_rule rule = ry_classes_find(&d->classes, class, &label);
    if (!rule) return ry_fail_class(d, file, number, class, err);
    ry_dataset_entry *const *found =
        d->count ? bsearch(&name, sorted, d->count, sizeof *sorted, compare_name) : NULL;
    ry_dataset_entry *e = found ? *found : NULL; /* NULL: an image that is not here is no error */
    if (e && e->label != RENYI_NO_CLASS && e->label != label)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s:%llu: a second class for \"%.*s\"", file,
                       (unsigned long long)number, RY_SHOWN(name));
    if (e) e->label = label;
    d->info.rule = rule;
    return RENYI_OK;
}

static renyi_status read_named(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                               renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    ry_dataset_entry **sorted = ry_alloc(&d->al, d->count, sizeof *sorted);
    renyi_status st = sorted ? RENYI_OK : ry_fail_nomem(err, d->count * sizeof *sorted);
    for (size_t i = 0; !st && i < d->count; i++) sorted[i] = &d->images[i];
    if (!st && d->count) qsort(sorted, d->count, sizeof *sorted, compare_files);
    for (ry_text line; !st && ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (line.n) st = label_image(d, file, l.number, line, sorted, err);
    }
    ry_free(&d->al, sorted);
    return st;
}

renyi_status ry_dataset_truth(renyi_dataset *d, const char *images, const char *file,
                              const void *bytes, size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    ry_text first = {"", 0};
    uint32_t class;
    (void)images;
    while (!first.n && ry_lines_next(&l, &first)) first = ry_text_trim(first);
    if (!first.n) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no classes in this file", file);
    /* 1000 is not a class of 1000, but may be one of the devkit: read_column reports it. */
    const int is_class =
        ry_classes_find(&d->classes, first, &class) || ry_text_number(first, &class);
    return is_class ? read_column(d, file, bytes, size, err)
                    : read_named(d, file, bytes, size, err);
}

/* ---- ImageNet-ReaL ------------------------------------------------------------------------- */

static renyi_status set_right(renyi_dataset *d, const char *file, ry_dataset_entry *e,
                              const json_t *set, size_t place, renyi_error *err)
{
    const size_t n = json_array_size(set);
    uint32_t *right = ry_pool_take(&d->pool, (n ? n : 1), sizeof *right);
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
    e->right = right;
    e->n_right = (uint32_t)n;
    return RENYI_OK;
}

renyi_status ry_dataset_real(renyi_dataset *d, const char *images, const char *file,
                             const void *bytes, size_t size, renyi_error *err)
{
    json_t *list;
    renyi_status st = RENYI_OK;
    (void)images;
    RY_TRY(ry_json_parse(&list, bytes, size, file, NULL, err));
    const size_t n = json_array_size(list); /* 0 for anything but an array */
    for (size_t i = 0; !st && i < d->count; i++) {
        const uint32_t at = label_place(d, i, n);
        const json_t *set = json_array_get(list, at);
        if (at == RENYI_NO_CLASS)
            st = fail_count(d, file, n, i, err);
        else if (!json_is_array(set))
            st = ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: entry %u is not a list of classes", file,
                         at);
        else
            st = set_right(d, file, &d->images[i], set, at, err);
    }
    json_decref(list);
    d->info.has_real_labels = 1;
    return st;
}

/* ---- classes that can be predicted --------------------------------------------------------- */

renyi_status ry_dataset_valid(renyi_dataset *d, const char *images, const char *file,
                              const void *bytes, size_t size, renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    size_t n = 0, capacity = 0;
    (void)images;
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
    ry_class_sort(d->valid, n);
    for (size_t i = 1; i < n; i++)
        if (d->valid[i] == d->valid[i - 1])
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: class %u is listed twice", file,
                           d->valid[i]);
    d->info.n_valid = (uint32_t)n;
    return RENYI_OK;
}
