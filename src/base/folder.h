/* folder.h - folders: the names in one, and a walk over all files at and below one.
 *
 * Only this file lists folders, so that every verb finds the same files in the same order.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_FOLDER_H
#define RY_FOLDER_H

#include "base/buffer.h"

/* folder + "/" + name as a new string (ry_free), or NULL. */
char *ry_path_in(const renyi_allocator *al, const char *folder, const char *name);
int ry_is_folder(const char *path);

/* ---- one folder ---------------------------------------------------------------------------- */

typedef enum ry_entry_kind {
    RY_ENTRY_FILE,   /* a regular file, or a link to one */
    RY_ENTRY_FOLDER, /* the same of folders */
    RY_ENTRY_OTHER   /* a pipe, a socket, a device, a link to nothing */
} ry_entry_kind;

typedef struct ry_entry {
    const char *name;
    ry_entry_kind kind;
} ry_entry;

typedef struct ry_folder {
    ry_entry
        *items; /* [count] in byte order of the names; with hidden ones, without "." and ".." */
    size_t count, capacity;
    uint64_t device, inode; /* identify the folder, whatever its name */
    ry_pool pool;           /* the names */
} ry_folder;

/* The message names the folder. After a failure ry_folder_free has nothing to do. `al` must outlive
 * the list. */
renyi_status ry_folder_read(ry_folder *f, const char *path, const renyi_allocator *al,
                            renyi_error *err) RENYI_CHECK;
void ry_folder_free(ry_folder *f);

/* ---- all files at and below a folder -------------------------------------------------------- */

enum { RY_WALK_DEPTH = 32 }; /* more folders inside each other are a failure */

typedef struct ry_walk {
    const renyi_allocator *al;
    const char *root;
    int is_flat; /* 1 = only the files of the folder, not those of its subfolders */
    void *user;  /* first argument of the functions */
    /* Called for everything that is neither a folder nor hidden. `below` is the path below root. */
    renyi_status (*on_entry)(void *user, const char *below, ry_entry_kind kind, renyi_error *err);
    /* Called for every subfolder that cannot be read; the walk goes on. NULL = that is an error. */
    void (*on_failure)(void *user, const char *path, const char *reason);
} ry_walk;

/* Walks root/below ("" = root itself) in byte order of the names, folder by folder. Links are
 * followed, but each folder is read once, under the first name in this order, and the root is not
 * entered again: links that form a circle end, and no file comes twice through a folder. */
renyi_status ry_walk_files(const ry_walk *w, const char *below, renyi_error *err) RENYI_CHECK;

#endif
