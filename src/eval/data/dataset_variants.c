/* dataset_variants.c - FGVC-Aircraft's own lists (Maji et al. 2013): variants.txt names a class a
 * line, images_variant_test.txt has "0034309 707-320", photo images/0034309.jpg.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "eval/data/dataset.h"

#include <stdio.h>

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
