/* dataset.h - a list of images and their classes (renyi_dataset), and the readers that fill it from
 * folders and lists.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DATASET_H
#define RY_DATASET_H

#include "eval/data/classes.h"
#include "renyi/eval.h"

typedef struct ry_dataset_entry {
    const char *path; /* in the pool */
    uint32_t file_at; /* where the part below the dataset's folder begins in path */
    uint32_t label;   /* RENYI_NO_CLASS = unknown */
    uint64_t index;   /* place in the listing */
    const uint32_t *right;
    uint32_t n_right; /* right NULL: only label is right */
} ry_dataset_entry;

/* A folder of images and its class. */
typedef struct ry_class_folder {
    const char *name; /* in the pool */
    uint32_t label;
} ry_class_folder;

/* Classes that the dataset defines itself (own_classes), not the model. */
typedef struct ry_own {
    int is_on;
    renyi_collection set;      /* set.name "" = not a known dataset */
    const char *root;          /* its folder */
    const char **names;        /* [info.n_classes] in the pool; NULL = not known yet */
    renyi_names_from imagenet; /* names of ImageNet's classes that class_names asks for;
                                  RENYI_NAMES_NONE = classnames.txt, else CLIP's */
} ry_own;

struct renyi_dataset {
    renyi_allocator al;
    ry_pool pool;
    ry_dataset_entry *images;
    size_t count, capacity;
    uint64_t max_images, max_list_bytes;
    int unlabelled;        /* images need no class */
    int is_flat;           /* only images of the folder itself */
    uint64_t n_foreign[5]; /* files in folders of formats that are not read (dataset_folder.c) */
    void *user;            /* of on_failure */
    void (*on_failure)(void *user, const char *path, const char *reason); /* may be NULL */
    uint32_t *valid;          /* [info.n_valid] ascending */
    uint32_t *valid_order;    /* in the order of the file: class i of ImageFolder's order */
    ry_class_folder *folders; /* [info.n_folders] by label, then name; in the pool */
    renyi_dataset_info info;
    ry_own own;
    ry_classes classes; /* only while opening */
};

/* ---- dataset.c ----------------------------------------------------------------------------- */

/* Adds an image; copies its path to the pool. */
renyi_status ry_dataset_add(renyi_dataset *d, ry_text folder, ry_text name, uint32_t label,
                            renyi_error *err) RENYI_CHECK;

/* An order that depends on `seed` only, the same on every machine. */
void ry_dataset_shuffle(ry_dataset_entry *images, size_t n, uint64_t seed);

/* The error for a text that is not a class; says what would be one. `line` 0 = not in a file of
 * lines. */
renyi_status ry_fail_class(const renyi_dataset *d, const char *file, uint64_t line, ry_text text,
                           renyi_error *err);

/* Maps a file and calls `read` with its bytes. `images` is passed on. */
typedef renyi_status ry_list_reader(renyi_dataset *d, const char *images, const char *file,
                                    const void *bytes, size_t size, renyi_error *err);
renyi_status ry_dataset_read_file(renyi_dataset *d, ry_list_reader *read, const char *images,
                                  const char *file, renyi_error *err) RENYI_CHECK;

/* ---- dataset_folder.c ---------------------------------------------------------------------- */

/* Images of DIR/class/..., or with flat = 1 those at and below DIR, without labels. */
renyi_status ry_dataset_folder(renyi_dataset *d, const char *path, int flat,
                               renyi_error *err) RENYI_CHECK;
/* "3 GIF, 1 HEIC": files in the folders that are not read; "" = none. */
void ry_dataset_foreign(const renyi_dataset *d, char *text, size_t size);

/* ---- dataset_lists.c ----------------------------------------------------------------------- */

/* These are ry_list_readers; `images` is not used. */

/* Images and classes: .csv, .jsonl or .txt, by the name of the file. */
renyi_status ry_dataset_list(renyi_dataset *d, const char *images, const char *file,
                             const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;
/* Ground truth and ImageNet-ReaL: classes for images that are listed already. */
renyi_status ry_dataset_truth(renyi_dataset *d, const char *images, const char *file,
                              const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;
renyi_status ry_dataset_real(renyi_dataset *d, const char *images, const char *file,
                             const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;
/* Classes that can be predicted; before images are listed, because ImageFolder's order needs it. */
renyi_status ry_dataset_valid(renyi_dataset *d, const char *images, const char *file,
                              const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;

/* ---- dataset_own.c: classes of the dataset ------------------------------------------------- */

/* Lists images by the dataset's own classes instead of the model's. */
renyi_status ry_dataset_own(renyi_dataset *d, const char *path, const renyi_model *m,
                            const renyi_dataset_options *o, renyi_error *err) RENYI_CHECK;
/* Makes n classes without names; then names one of them, with a copy. */
renyi_status ry_own_start(renyi_dataset *d, uint32_t n, renyi_error *err) RENYI_CHECK;
renyi_status ry_own_name(renyi_dataset *d, uint32_t label, ry_text name,
                         renyi_error *err) RENYI_CHECK;

/* Classes from the names of folders, which are in byte order: fills labels [n] and the class
 * names. */
renyi_status ry_own_folders(renyi_dataset *d, const char *path, const char *const *folders,
                            size_t n, uint32_t *labels, renyi_error *err) RENYI_CHECK;

/* ---- dataset_own_lists.c ------------------------------------------------------------------- */

/* A ry_list_reader for the class names that the user gives, one a line or "n01440764 tench" lines;
 * their number is the number of classes. */
renyi_status ry_own_read_names(renyi_dataset *d, const char *images, const char *file,
                               const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;
/* Names from CoOp's classnames.txt. imagenet: [info.n_classes] ascending, the ImageNet class of
 * each label. */
renyi_status ry_own_read_classnames(renyi_dataset *d, const uint32_t *imagenet, const char *file,
                                    const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;

/* ry_list_readers for CoOp's split, FGVC-Aircraft's class names, and its list of "0034309 707-320";
 * images are below `images`. */
renyi_status ry_dataset_split(renyi_dataset *d, const char *images, const char *file,
                              const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;
renyi_status ry_dataset_variants(renyi_dataset *d, const char *images, const char *file,
                                 const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;
renyi_status ry_dataset_variant_list(renyi_dataset *d, const char *images, const char *file,
                                     const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;

#endif
