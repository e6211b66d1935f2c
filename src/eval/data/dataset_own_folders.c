/* dataset_own_folders.c - folders that say themselves which classes there are: by WordNet id, by
 * index of ImageNet's 1000, or by name.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "eval/data/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a folder's name says. */
typedef enum folder_kind { NAME, NUMBER, WNID } folder_kind;

static folder_kind kind_of(const char *folder, uint32_t *class)
{
    const ry_text name = ry_text_of(folder);
    if ((*class = ry_imagenet_index(name)) != RENYI_NO_CLASS) return WNID;
    if (ry_text_number(name, class)) return NUMBER;
    *class = RENYI_NO_CLASS;
    return NAME;
}

/* One kind for all of them, or an error that shows two that differ. classes: [n] */
static renyi_status find_kind(const renyi_dataset *d, const char *path, const char *const *folders,
                              size_t n, uint32_t *classes, folder_kind *kind, renyi_error *err)
{
    static const char *const words[] = {"a name", "a number", "a WordNet id"};
    for (size_t i = 0; i < n; i++) {
        const folder_kind now = kind_of(folders[i], &classes[i]);
        if (i == 0) *kind = now;
        if (now != *kind)
            return ry_fail(
                err, RENYI_ERR_FORMAT, -1,
                "%.160s: folder \"%.60s\" is %s, but \"%.60s\" %s: are several data sets "
                "mixed here?",
                path, folders[0], words[*kind], folders[i], words[now]);
        if (*d->own.set.name && (now == NAME || classes[i] >= RY_IMAGENET_CLASSES))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%.160s: folder \"%.60s\" is no class of %s: wanted WordNet ids "
                           "(n01440764) or indices below 1000",
                           path, folders[i], d->own.set.title);
    }
    return RENYI_OK;
}

/* ---- names of ImageNet's classes ------------------------------------------------------------- */

/* classnames.txt in the folder of the photos or in one of the two above it (in the text of the
 * path: a link may lead elsewhere), or in the data set's; NULL = none. */
static renyi_status find_classnames(renyi_dataset *d, const char *path, const char **found,
                                    renyi_error *err)
{
    static const char file[] = "classnames.txt";
    ry_text folder = ry_text_of(path);
    *found = NULL;
    for (int up = 0; up < 4; up++) {
        if (up == 3 && !d->own.root) break;
        if (up == 3) folder = ry_text_of(d->own.root);
        const char *name = ry_pool_join(&d->pool, folder, ry_text_of(file));
        if (!name) return ry_fail_nomem(err, folder.n);
        if (access(name, F_OK) == 0) {
            *found = name;
            return RENYI_OK;
        }
        while (folder.n && folder.at[folder.n - 1] == '/') folder.n--;
        while (folder.n && folder.at[folder.n - 1] != '/') folder.n--;
        if (folder.n > 1) folder.n--;
        if (!folder.n) folder = ry_text_of(".");
    }
    return RENYI_OK;
}

/* The first synonym of each: "tench, Tinca tinca" -> "tench". */
static renyi_status use_imagenet_names(renyi_dataset *d, const uint32_t *imagenet, renyi_error *err)
{
    for (uint32_t i = 0; i < d->info.n_classes; i++) {
        const char *all = renyi_imagenet_name(imagenet[i]);
        RY_TRY(ry_own_name(d, i, (ry_text){all, strcspn(all, ",")}, err));
    }
    d->info.names_from = RENYI_NAMES_IMAGENET;
    return RENYI_OK;
}

/* imagenet: [info.n_classes] ascending, what label 0, 1, ... is */
static renyi_status name_imagenet(renyi_dataset *d, const char *path, const uint32_t *imagenet,
                                  renyi_error *err)
{
    ry_mapped_file f;
    const char *file;
    RY_TRY(find_classnames(d, path, &file, err));
    if (!file) return use_imagenet_names(d, imagenet, err);
    RY_TRY(ry_mapped_file_open(&f, file, d->max_list_bytes, err));
    const renyi_status st = ry_own_read_classnames(d, imagenet, file, f.data, f.size, err);
    ry_mapped_file_close(&f);
    return st;
}

static int compare_classes(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Ascending, each once ("6" and "006" are one class); returns how many. */
static uint32_t sort_once(uint32_t *classes, uint32_t n)
{
    uint32_t kept = 0;
    qsort(classes, n, sizeof *classes, compare_classes);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || classes[kept - 1] != classes[i]) classes[kept++] = classes[i];
    return kept;
}

/* All 1000, or just those that have a folder: label i is the i-th of them. */
static renyi_status label_imagenet(renyi_dataset *d, const char *path, size_t n,
                                   const uint32_t *classes, uint32_t *labels, renyi_error *err)
{
    const int is_whole = *d->own.set.name && !d->own.set.is_subset;
    uint32_t n_classes = is_whole ? RY_IMAGENET_CLASSES : (uint32_t)n;
    uint32_t *imagenet = ry_alloc(&d->al, n_classes, sizeof *imagenet);
    if (!imagenet) return ry_fail_nomem(err, n_classes * sizeof *imagenet);
    for (uint32_t i = 0; i < n_classes; i++) imagenet[i] = is_whole ? i : classes[i];
    n_classes = sort_once(imagenet, n_classes);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *at =
            bsearch(&classes[i], imagenet, n_classes, sizeof *imagenet, compare_classes);
        labels[i] = (uint32_t)(at - imagenet);
    }
    renyi_status st = ry_own_start(d, n_classes, err);
    if (!st) st = name_imagenet(d, path, imagenet, err);
    ry_free(&d->al, imagenet);
    return st;
}

/* ---- all folders ----------------------------------------------------------------------------- */

static renyi_status label_names(renyi_dataset *d, const char *const *folders, size_t n,
                                uint32_t *labels, renyi_error *err)
{
    RY_TRY(ry_own_start(d, (uint32_t)n, err));
    for (uint32_t i = 0; i < n; i++) {
        labels[i] = i;
        RY_TRY(ry_own_name(d, i, ry_text_of(folders[i]), err));
    }
    d->info.rule = RENYI_CLASS_BY_ORDER;
    d->info.names_from = RENYI_NAMES_FOLDERS;
    return RENYI_OK;
}

renyi_status ry_own_folders(renyi_dataset *d, const char *path, const char *const *folders,
                            size_t n, uint32_t *labels, renyi_error *err)
{
    folder_kind kind = NAME;
    uint32_t *classes = ry_alloc(&d->al, n, sizeof *classes);
    if (!classes) return ry_fail_nomem(err, n * sizeof *classes);
    renyi_status st = find_kind(d, path, folders, n, classes, &kind, err);
    if (!st && n == 1 && !*d->own.set.name)
        st = ry_fail(err, RENYI_ERR_FORMAT, -1,
                     "%.160s: only one folder, \"%.80s\", so only one class: is this the folder "
                     "above the data set?",
                     path, folders[0]);
    else if (!st && kind == NUMBER && !*d->own.set.name)
        st = ry_fail(err, RENYI_ERR_FORMAT, -1,
                     "%.160s: folders \"%.20s\", ... are numbers, which say nothing in a sentence: "
                     "give class names, or the data set (imagenet) if they are its indices",
                     path, folders[0]);
    else if (!st && kind == NAME)
        st = label_names(d, folders, n, labels, err);
    else if (!st) {
        st = label_imagenet(d, path, n, classes, labels, err);
        d->info.rule = kind == WNID ? RENYI_CLASS_BY_WNID : RENYI_CLASS_BY_INDEX;
    }
    ry_free(&d->al, classes);
    return st;
}
