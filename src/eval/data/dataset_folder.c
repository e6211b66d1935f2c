/* dataset_folder.c - lists images in folders: DIR/class/... as for torchvision's ImageFolder, or
 * all in one. Names are in byte order, so the list is the same on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/status.h"
#include "eval/data/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 32, MAX_NAMES = 1 << 24 };

/* A folder on the path from the top; links back to one of these are not followed. */
typedef struct level {
    const struct level *above;
    dev_t device;
    ino_t inode;
    unsigned depth;
} level;

/* The entries of a folder, sorted, without hidden ones. */
typedef struct entry {
    const char *name;
    int is_folder;
} entry;

typedef struct entries {
    entry *items;
    size_t count, capacity;
} entries;

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static renyi_status add_entry(renyi_dataset *d, entries *list, const char *path, const char *name,
                              ry_pool *scratch, renyi_error *err)
{
    const ry_text text = ry_text_of(name);
    struct stat st;
    char *full = ry_pool_join(scratch, ry_text_of(path), text);
    if (!full ||
        !ry_grow(&d->al, (void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return ry_fail_nomem(err, text.n);
    if (list->count >= MAX_NAMES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: more than %d entries", path, MAX_NAMES);
    const int is_folder = stat(full, &st) == 0 && S_ISDIR(st.st_mode);
    list->items[list->count++] = (entry){full + strlen(full) - text.n, is_folder};
    return RENYI_OK;
}

static renyi_status read_entries(renyi_dataset *d, entries *list, const char *path,
                                 ry_pool *scratch, renyi_error *err)
{
    renyi_status st = RENYI_OK;
    DIR *dir = opendir(path);
    if (!dir) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    for (const struct dirent *e; !st && (e = readdir(dir));)
        if (e->d_name[0] != '.') st = add_entry(d, list, path, e->d_name, scratch, err);
    closedir(dir);
    if (!st && list->count) qsort(list->items, list->count, sizeof *list->items, compare_entries);
    return st;
}

static int is_image_name(ry_text name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp", ".ppm", ".pgm", ".pnm"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ry_text_ends_with(name, endings[i])) return 1;
    return 0;
}

static int is_loop(const level *l)
{
    for (const level *up = l->above; up; up = up->above)
        if (up->device == l->device && up->inode == l->inode) return 1;
    return 0;
}

/* All images at and below root/below ("" = root itself), as class `label`. */
static renyi_status add_folder(renyi_dataset *d, const char *root, const char *below,
                               uint32_t label, const level *above, renyi_error *err)
{
    ry_pool scratch = {&d->al, NULL};
    entries list = {0};
    struct stat s;
    const char *path = *below ? ry_pool_join(&scratch, ry_text_of(root), ry_text_of(below)) : root;
    renyi_status st = path ? RENYI_OK : ry_fail_nomem(err, strlen(root));
    if (!st && stat(path, &s)) st = ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    const level here = {above, st ? 0 : s.st_dev, st ? 0 : s.st_ino, above ? above->depth + 1 : 0};
    if (!st && here.depth >= MAX_DEPTH)
        st =
            ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: folders nested deeper than %d", path, MAX_DEPTH);
    if (!st && !is_loop(&here)) st = read_entries(d, &list, path, &scratch, err);
    for (size_t i = 0; !st && i < list.count; i++) {
        const ry_text name = ry_text_of(list.items[i].name);
        char *child = ry_pool_join(&scratch, ry_text_of(below), name);
        if (!child)
            st = ry_fail_nomem(err, name.n);
        else if (list.items[i].is_folder)
            st = add_folder(d, root, child, label, &here, err);
        else if (is_image_name(name))
            st = ry_dataset_add(d, ry_text_of(root), ry_text_of(child), label, err);
    }
    ry_free(&d->al, list.items);
    ry_pool_free(&scratch);
    return st;
}

/* ---- the class of each folder -------------------------------------------------------------- */

/* ImageFolder's rule. It is used only if there are as many folders as classes. */
static renyi_status label_by_order(renyi_dataset *d, const char *path, const entries *folders,
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

/* By the data set's own classes. */
static renyi_status label_own(renyi_dataset *d, const char *path, const entries *folders,
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
static renyi_status label_folders(renyi_dataset *d, const char *path, const entries *folders,
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
static renyi_status store_folders(renyi_dataset *d, const entries *folders, const uint32_t *labels,
                                  renyi_error *err)
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

static renyi_status add_classes(renyi_dataset *d, const char *path, const entries *folders,
                                renyi_error *err)
{
    uint32_t *labels = ry_alloc(&d->al, folders->count, sizeof *labels);
    if (!labels) return ry_fail_nomem(err, folders->count * sizeof *labels);
    struct stat s;
    renyi_status st = label_folders(d, path, folders, labels, err);
    if (!st && stat(path, &s)) st = ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    const level top = {NULL, st ? 0 : s.st_dev, st ? 0 : s.st_ino, 0};
    for (size_t i = 0; !st && i < folders->count; i++) {
        const size_t before = d->count;
        st = add_folder(d, path, folders->items[i].name, labels[i], &top, err);
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

/* A data set with own classes needs folders that are not the parts of a data set. */
static renyi_status check_own_folders(const char *path, const entries *folders, renyi_error *err)
{
    if (!folders->count)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%.200s: no folders here; wanted one for each class, with its images", path);
    for (size_t i = 0; i < folders->count; i++)
        if (!is_part(folders->items[i].name)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.200s: folders like \"%s\" are parts of a data set, not classes; give one of "
                   "these folders",
                   path, folders->items[0].name);
}

/* "val" or "validation" if all folders are parts of a data set; else NULL. */
static const char *validation_part(const entries *folders)
{
    const char *found = NULL;
    for (size_t i = 0; i < folders->count; i++) {
        if (!is_part(folders->items[i].name)) return NULL;
        if (strncmp(folders->items[i].name, "val", 3) == 0 && !found)
            found = folders->items[i].name;
    }
    return found;
}

static void keep_folders(entries *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].is_folder) list->items[kept++] = list->items[i];
    list->count = kept;
}

renyi_status ry_dataset_folder(renyi_dataset *d, const char *path, int flat, renyi_error *err)
{
    if (flat) return add_folder(d, path, "", RENYI_NO_CLASS, NULL, err);
    ry_pool scratch = {&d->al, NULL};
    entries folders = {0};
    renyi_status st = read_entries(d, &folders, path, &scratch, err);
    keep_folders(&folders);
    const char *part = st ? NULL : validation_part(&folders);
    if (part) {
        path = ry_pool_join(&scratch, ry_text_of(path), ry_text_of(part));
        folders.count = 0;
        st = path ? read_entries(d, &folders, path, &scratch, err) : ry_fail_nomem(err, 0);
        keep_folders(&folders);
    }
    if (!st && d->own.is_on) st = check_own_folders(path, &folders, err);
    if (!st)
        st = folders.count ? add_classes(d, path, &folders, err)
                           : add_folder(d, path, "", RENYI_NO_CLASS, NULL, err);
    ry_free(&d->al, folders.items);
    ry_pool_free(&scratch);
    return st;
}
