/* dataset_folder.c - lists images in folders: DIR/class/... as for torchvision's ImageFolder, or
 * all in one. Names are in byte order, so the list is the same on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/folder.h"
#include "base/status.h"
#include "eval/data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which files --------------------------------------------------------------------------- */

static int ends_with_any(ry_text name, const char *const *endings)
{
    for (; *endings; endings++)
        if (ry_text_ends_with(name, *endings)) return 1;
    return 0;
}

static const char *const image_endings[] = {".jpg", ".jpeg", ".png", ".webp",
                                            ".ppm", ".pgm",  ".pnm", NULL};

/* Formats that users take for images and that are not read. */
static const struct {
    const char *name;
    const char *endings[3];
} foreign[] = {{"GIF", {".gif"}},
               {"BMP", {".bmp"}},
               {"TIFF", {".tif", ".tiff"}},
               {"AVIF", {".avif"}},
               {"HEIC", {".heic", ".heif"}}};
enum { N_FOREIGN = sizeof foreign / sizeof *foreign };

void ry_dataset_foreign(const renyi_dataset *d, char *text, size_t size)
{
    size_t at = 0;
    *text = 0;
    for (size_t i = 0; i < N_FOREIGN && at < size; i++)
        if (d->n_foreign[i])
            at += (size_t)snprintf(text + at, size - at, "%s%llu %s", at ? ", " : "",
                                   (unsigned long long)d->n_foreign[i], foreign[i].name);
}

/* The walk over the images of one class. */
typedef struct class_walk {
    renyi_dataset *d;
    const char *root;
    uint32_t label;
} class_walk;

static void count_foreign(renyi_dataset *d, ry_text name)
{
    for (size_t i = 0; i < N_FOREIGN; i++)
        d->n_foreign[i] += (uint64_t)ends_with_any(name, foreign[i].endings);
}

static void report_failure(void *user, const char *path, const char *reason)
{
    const renyi_dataset *d = ((const class_walk *)user)->d;
    d->on_failure(d->user, path, reason);
}

static renyi_status add_entry(void *user, const char *below, ry_entry_kind kind, renyi_error *err)
{
    const class_walk *w = user;
    const ry_text name = ry_text_of(below);
    if (!ends_with_any(name, image_endings)) {
        if (kind == RY_ENTRY_FILE) count_foreign(w->d, name);
        return RENYI_OK;
    }
    if (kind == RY_ENTRY_FILE || !w->d->on_failure)
        return ry_dataset_add(w->d, ry_text_of(w->root), name, w->label, err);
    char *path = ry_path_in(&w->d->al, w->root, below);
    if (!path) return ry_fail_nomem(err, name.n);
    report_failure(user, path, "not a regular file, or a link to nothing");
    ry_free(&w->d->al, path);
    return RENYI_OK;
}

/* All images at and below root/below ("" = root itself), as class `label`. */
static renyi_status add_folder(renyi_dataset *d, const char *root, const char *below,
                               uint32_t label, renyi_error *err)
{
    class_walk user = {d, root, label};
    const ry_walk w = {.al = &d->al,
                       .root = root,
                       .is_flat = d->is_flat,
                       .user = &user,
                       .on_entry = add_entry,
                       .on_failure = d->on_failure ? report_failure : NULL};
    return ry_walk_files(&w, below, err);
}

/* ---- the class of each folder -------------------------------------------------------------- */

/* ImageFolder's rule. It is used only if there are as many folders as classes. */
static renyi_status label_by_order(renyi_dataset *d, const char *path, const ry_folder *folders,
                                   uint32_t *labels, renyi_error *err)
{
    const uint32_t wanted = d->info.n_valid ? d->info.n_valid : d->classes.n;
    if (folders->count != wanted)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: %zu folders (\"%.40s\", ...) for %u classes: name them by class index "
                       "or WordNet id, or give a class map",
                       path, folders->count, folders->items[0].name, wanted);
    for (uint32_t i = 0; i < wanted; i++) labels[i] = d->valid_order ? d->valid_order[i] : i;
    d->info.rule = RENYI_CLASS_BY_ORDER;
    return RENYI_OK;
}

/* By the dataset's own classes. */
static renyi_status label_own(renyi_dataset *d, const char *path, const ry_folder *folders,
                              uint32_t *labels, renyi_error *err)
{
    const char **names = ry_alloc(&d->al, folders->count, sizeof *names);
    if (!names) return ry_fail_nomem(err, folders->count * sizeof *names);
    for (size_t i = 0; i < folders->count; i++) names[i] = folders->items[i].name;
    const renyi_status st = ry_own_folders(d, path, names, folders->count, labels, err);
    ry_free(&d->al, names);
    return st;
}

/* One rule must fit all folders; with a class map all must be in it. */
static renyi_status label_folders(renyi_dataset *d, const char *path, const ry_folder *folders,
                                  uint32_t *labels, renyi_error *err)
{
    renyi_class_rule rule = RENYI_CLASS_UNKNOWN;
    if (d->own.is_on && !d->own.names) return label_own(d, path, folders, labels, err);
    for (size_t i = 0; i < folders->count; i++) {
        const ry_text name = ry_text_of(folders->items[i].name);
        const renyi_class_rule now = ry_classes_find(&d->classes, name, &labels[i]);
        if (!now && d->classes.map.count) return ry_fail_class(d, path, 0, name, err);
        if (!now || (i && now != rule && !d->classes.map.count))
            return label_by_order(d, path, folders, labels, err);
        if (i == 0 || now == RENYI_CLASS_BY_MAP) rule = now;
    }
    d->info.rule = rule;
    return RENYI_OK;
}

static int compare_folders(const void *a, const void *b)
{
    const ry_class_folder *x = a, *y = b;
    return x->label != y->label ? (x->label > y->label) - (x->label < y->label)
                                : strcmp(x->name, y->name);
}

/* For renyi_dataset_class_name. */
static renyi_status store_folders(renyi_dataset *d, const ry_folder *folders,
                                  const uint32_t *labels, renyi_error *err)
{
    const size_t n = folders->count;
    d->folders = ry_pool_take(&d->pool, n, sizeof *d->folders);
    if (!d->folders) return ry_fail_nomem(err, n * sizeof *d->folders);
    for (size_t i = 0; i < n; i++) {
        const char *name = ry_pool_copy(&d->pool, ry_text_of(folders->items[i].name));
        if (!name) return ry_fail_nomem(err, strlen(folders->items[i].name));
        d->folders[i] = (ry_class_folder){name, labels[i]};
    }
    qsort(d->folders, n, sizeof *d->folders, compare_folders);
    d->info.n_folders = (uint32_t)n;
    return RENYI_OK;
}

static renyi_status add_classes(renyi_dataset *d, const char *path, const ry_folder *folders,
                                renyi_error *err)
{
    uint32_t *labels = ry_alloc(&d->al, folders->count, sizeof *labels);
    if (!labels) return ry_fail_nomem(err, folders->count * sizeof *labels);
    renyi_status st = label_folders(d, path, folders, labels, err);
    for (size_t i = 0; !st && i < folders->count; i++) {
        const size_t before = d->count;
        st = add_folder(d, path, folders->items[i].name, labels[i], err);
        /* A class without images could only take answers away from the others. */
        if (!st && d->own.is_on && d->count == before)
            st = ry_fail(
                err, RENYI_ERR_FORMAT, -1,
                "%.200s/%.80s: no images of this class; remove the folder if it is not a class",
                path, folders->items[i].name);
    }
    if (!st) st = store_folders(d, folders, labels, err);
    ry_free(&d->al, labels);
    return st;
}

static int is_part(const char *folder)
{
    static const char *const parts[] = {"train", "val", "validation", "test"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(folder, parts[i]) == 0) return 1;
    return 0;
}

/* A dataset with own classes needs folders that are not the parts of a dataset. */
static renyi_status check_own_folders(const char *path, const ry_folder *folders, renyi_error *err)
{
    if (!folders->count)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s: no folders here; wanted one for each class, with its images", path);
    for (size_t i = 0; i < folders->count; i++)
        if (!is_part(folders->items[i].name)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.200s: folders like \"%s\" are parts of a dataset, not classes; give one of "
                   "these folders",
                   path, folders->items[0].name);
}

/* "val" or "validation" if all folders are parts of a dataset; else NULL. */
static const char *validation_part(const ry_folder *folders)
{
    const char *found = NULL;
    for (size_t i = 0; i < folders->count; i++) {
        if (!is_part(folders->items[i].name)) return NULL;
        if (strncmp(folders->items[i].name, "val", 3) == 0 && !found)
            found = folders->items[i].name;
    }
    return found;
}

/* Folders that are not hidden. On failure there is nothing to free. */
static renyi_status read_folders(ry_folder *list, const renyi_dataset *d, const char *path,
                                 renyi_error *err)
{
    size_t kept = 0;
    RY_TRY(ry_folder_read(list, path, &d->al, err));
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].kind == RY_ENTRY_FOLDER && list->items[i].name[0] != '.')
            list->items[kept++] = list->items[i];
    list->count = kept;
    return RENYI_OK;
}

renyi_status ry_dataset_folder(renyi_dataset *d, const char *path, int flat, renyi_error *err)
{
    if (flat) return add_folder(d, path, "", RENYI_NO_CLASS, err);
    ry_folder folders;
    RY_TRY(read_folders(&folders, d, path, err));
    const char *part = validation_part(&folders);
    char *below = part ? ry_path_in(&d->al, path, part) : NULL;
    renyi_status st = part && !below ? ry_fail_nomem(err, strlen(path)) : RENYI_OK;
    if (below) {
        ry_folder_free(&folders);
        path = below;
        st = read_folders(&folders, d, path, err);
    }
    if (!st && d->own.is_on) st = check_own_folders(path, &folders, err);
    if (!st)
        st = folders.count ? add_classes(d, path, &folders, err)
                           : add_folder(d, path, "", RENYI_NO_CLASS, err);
    ry_folder_free(&folders);
    ry_free(&d->al, below);
    return st;
}
