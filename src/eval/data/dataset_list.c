/* dataset_list.c - photos and classes from a list: .csv, .jsonl, or "name class" lines.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/json.h"
#include "base/status.h"
#include "eval/data/csv.h"
#include "eval/data/dataset.h"

#include <string.h>
#include <strings.h>

/* Where names are relative to: the list's folder. */
static ry_text folder_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? (ry_text){file, slash == file ? 1 : (size_t)(slash - file)} : (ry_text){"", 0};
}

static renyi_status add(renyi_dataset *d, const char *file, uint64_t line, ry_text name,
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
    return ry_dataset_add(d, folder_of(file), name, label, err);
}

/* ---- .csv ---------------------------------------------------------------------------------- */

static int is_one_of(ry_text word, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == word.n && strncasecmp(*words, word.at, word.n) == 0) return 1;
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
                           "%s:%llu: %zu columns; a file and its class are needed", file,
                           (unsigned long long)csv.line, n);
        RY_TRY(add(d, file, csv.line, ry_text_trim(fields[at.file]), fields[at.label], err));
    }
}

/* ---- .jsonl -------------------------------------------------------------------------------- */

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
        return add(d, file, line, ry_text_of(name), ry_text_of(json_string_value(label)), err);
    snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(label));
    return add(d, file, line, ry_text_of(name), ry_text_of(digits), err);
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

/* ---- lines of "name class" ----------------------------------------------------------------- */

static renyi_status read_pairs(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                               renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        line = ry_text_trim(line);
        if (!line.n) continue;
        size_t cut = line.n; /* the class is the last word, so a name may have blanks */
        while (cut && line.at[cut - 1] != ' ' && line.at[cut - 1] != '\t') cut--;
        RY_TRY(add(d, file, l.number, ry_text_trim((ry_text){line.at, cut}),
                   (ry_text){line.at + cut, line.n - cut}, err));
    }
    return RENYI_OK;
}

static int ends_with(const char *name, const char *ending)
{
    const size_t n = strlen(name), e = strlen(ending);
    return n > e && strcasecmp(name + n - e, ending) == 0;
}

renyi_status ry_dataset_list(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                             renyi_error *err)
{
    if (ends_with(file, ".csv")) return read_csv(d, file, bytes, size, err);
    if (ends_with(file, ".jsonl")) return read_jsonl(d, file, bytes, size, err);
    if (ends_with(file, ".txt")) return read_pairs(d, file, bytes, size, err);
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "%s: neither a folder nor a list that ends in .csv, .jsonl or .txt", file);
}
