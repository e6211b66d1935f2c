/* dataset_names.c - names of classes for sentences: the user's own list, and the classnames.txt
 * that CoOp's instructions put beside ImageNet.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/data/dataset.h"

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
