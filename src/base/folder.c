/* folder.c - folders: the names in one, and a walk over all files at and below one.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* d_type */
#include "base/folder.h"

#include "base/rng.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_NAMES = 1 << 24 };

char *ry_path_in(const renyi_allocator *al, const char *folder, const char *name)
{
    const size_t n = strlen(folder), size = n + strlen(name) + 2;
    char *out = ry_alloc(al, size, 1);
    const char *slash = n && folder[n - 1] != '/' ? "/" : "";
    if (out) snprintf(out, size, "%s%s%s", folder, slash, name);
    return out;
}

int ry_is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* ---- one folder ---------------------------------------------------------------------------- */

static int is_dots(const char *name) { return !strcmp(name, ".") || !strcmp(name, ".."); }

static ry_entry_kind kind_of(DIR *dir, const struct dirent *e)
{
    struct stat st;
    if (e->d_type == DT_REG) return RY_ENTRY_FILE;
    if (e->d_type == DT_DIR) return RY_ENTRY_FOLDER;
    if (fstatat(dirfd(dir), e->d_name, &st, 0)) return RY_ENTRY_OTHER;
    if (S_ISDIR(st.st_mode)) return RY_ENTRY_FOLDER;
    return S_ISREG(st.st_mode) ? RY_ENTRY_FILE : RY_ENTRY_OTHER;
}

static renyi_status read_entries(ry_folder *f, DIR *dir, const char *path, renyi_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (!e && errno) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
        if (!e) return RENYI_OK;
        if (is_dots(e->d_name)) continue;
        if (f->count >= MAX_NAMES)
            return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: more than %d entries", path, MAX_NAMES);
        const char *name = ry_pool_text(&f->pool, e->d_name);
        if (!name ||
            !ry_grow(f->pool.al, (void **)&f->items, &f->capacity, f->count, sizeof *f->items))
            return ry_fail_nomem(err, strlen(e->d_name));
        f->items[f->count++] = (ry_entry){name, kind_of(dir, e)};
    }
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const ry_entry *)a)->name, ((const ry_entry *)b)->name);
}

renyi_status ry_folder_read(ry_folder *f, const char *path, const renyi_allocator *al,
                            renyi_error *err)
{
    struct stat at;
    *f = (ry_folder){.pool.al = al};
    DIR *dir = opendir(path);
    if (!dir || fstat(dirfd(dir), &at)) {
        const int why = errno;
        if (dir) closedir(dir);
        return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(why));
    }
    f->device = (uint64_t)at.st_dev;
    f->inode = (uint64_t)at.st_ino;
    const renyi_status st = read_entries(f, dir, path, err);
    closedir(dir);
    if (st)
        ry_folder_free(f);
    else if (f->count)
        qsort(f->items, f->count, sizeof *f->items, compare_entries);
    return st;
}

void ry_folder_free(ry_folder *f)
{
    ry_free(f->pool.al, f->items);
    ry_pool_free(&f->pool);
    f->items = NULL;
    f->count = f->capacity = 0;
}

renyi_status renyi_visit_files(const char *folder, renyi_file_visitor each, void *user,
                               renyi_error *err)
{
    ry_folder list;
    renyi_status st = RENYI_OK;
    if (!folder || !each)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_visit_files: NULL argument");
    RY_TRY(ry_folder_read(&list, folder, NULL, err));
    for (size_t i = 0; !st && i < list.count; i++)
        if (list.items[i].kind == RY_ENTRY_FILE && each(user, list.items[i].name))
            st = ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped at %s", list.items[i].name);
    ry_folder_free(&list);
    return st;
}

/* ---- which folders were seen --------------------------------------------------------------- */

typedef struct seen {
    uint64_t device, inode;
    int is_used;
} seen;

typedef struct walker {
    const ry_walk *w;
    seen *slots; /* [n_slots], a power of two; open addressing, at most half full */
    size_t n_slots, n_seen;
} walker;

static seen *find_slot(seen *slots, size_t n_slots, uint64_t device, uint64_t inode)
{
    ry_rng hash = ry_rng_new(inode ^ (device << 32));
    size_t i = (size_t)ry_rng_next(&hash) & (n_slots - 1);
    while (slots[i].is_used && (slots[i].device != device || slots[i].inode != inode))
        i = (i + 1) & (n_slots - 1);
    return &slots[i];
}

static int grow_slots(walker *k)
{
    const size_t n = k->n_slots ? 2 * k->n_slots : 64;
    seen *slots = ry_calloc(k->w->al, n, sizeof *slots);
    if (!slots) return 0;
    for (size_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].is_used)
            *find_slot(slots, n, k->slots[i].device, k->slots[i].inode) = k->slots[i];
    ry_free(k->w->al, k->slots);
    k->slots = slots;
    k->n_slots = n;
    return 1;
}

/* *is_new: this folder was not added before. */
static renyi_status add_seen(walker *k, uint64_t device, uint64_t inode, int *is_new,
                             renyi_error *err)
{
    if (2 * k->n_seen >= k->n_slots && !grow_slots(k))
        return ry_fail_nomem(err, 2 * k->n_slots * sizeof *k->slots);
    seen *slot = find_slot(k->slots, k->n_slots, device, inode);
    *is_new = !slot->is_used;
    if (*is_new) k->n_seen++;
    *slot = (seen){device, inode, 1};
    return RENYI_OK;
}

/* ---- the walk ------------------------------------------------------------------------------ */

static renyi_status walk_one(walker *k, const char *path, const char *below, unsigned depth,
                             renyi_error *err);

static renyi_status walk_entry(walker *k, const char *below, const ry_entry *e, unsigned depth,
                               renyi_error *err)
{
    const ry_walk *w = k->w;
    char *child = ry_path_in(w->al, below, e->name);
    char *path = child && e->kind == RY_ENTRY_FOLDER ? ry_path_in(w->al, w->root, child) : NULL;
    renyi_status st;
    if (!child || (e->kind == RY_ENTRY_FOLDER && !path))
        st = ry_fail_nomem(err, strlen(below) + strlen(e->name));
    else
        st =
            path ? walk_one(k, path, child, depth, err) : w->on_entry(w->user, child, e->kind, err);
    ry_free(w->al, path);
    ry_free(w->al, child);
    return st;
}

/* A folder that cannot be read: reported, unless the caller named it or wants an error. */
static renyi_status fail_folder(const walker *k, const char *path, unsigned depth, renyi_status st,
                                const renyi_error *why, renyi_error *err)
{
    const size_t n = strlen(path);
    const char *reason = why->message;
    if (!k->w->on_failure || !depth || st == RENYI_ERR_NOMEM) {
        if (err) *err = *why;
        return st;
    }
    if (!strncmp(reason, path, n) && !strncmp(reason + n, ": ", 2)) reason += n + 2;
    k->w->on_failure(k->w->user, path, reason);
    return RENYI_OK;
}

static renyi_status walk_one(walker *k, const char *path, const char *below, unsigned depth,
                             renyi_error *err)
{
    ry_folder list;
    renyi_error why = {0};
    int is_new = 1;
    renyi_status st;
    if (depth >= RY_WALK_DEPTH)
        st = ry_fail(&why, RENYI_ERR_LIMIT, -1, "%s: folders nested deeper than %d", path,
                     RY_WALK_DEPTH);
    else
        st = ry_folder_read(&list, path, k->w->al, &why);
    if (st) return fail_folder(k, path, depth, st, &why, err);
    st = add_seen(k, list.device, list.inode, &is_new, err);
    for (size_t i = 0; !st && is_new && i < list.count; i++) {
        const ry_entry *e = &list.items[i];
        if (e->name[0] == '.' || (k->w->is_flat && e->kind == RY_ENTRY_FOLDER)) continue;
        st = walk_entry(k, below, e, depth + 1, err);
    }
    ry_folder_free(&list);
    return st;
}

renyi_status ry_walk_files(const ry_walk *w, const char *below, renyi_error *err)
{
    walker k = {.w = w};
    struct stat at;
    int is_new;
    renyi_status st = RENYI_OK;
    if (!*below) {
        st = walk_one(&k, w->root, "", 0, err);
    } else {
        char *path = ry_path_in(w->al, w->root, below);
        if (!path) return ry_fail_nomem(err, strlen(w->root) + strlen(below));
        if (!stat(w->root, &at))
            st = add_seen(&k, (uint64_t)at.st_dev, (uint64_t)at.st_ino, &is_new, err);
        if (!st) st = walk_one(&k, path, below, 1, err);
        ry_free(w->al, path);
    }
    ry_free(w->al, k.slots);
    return st;
}
