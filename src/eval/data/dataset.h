/* dataset.h - what the readers of folders and lists fill: names of photos and their classes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DATASET_H
#define RY_DATASET_H

#include "eval/data/classes.h"
#include "renyi/eval.h"

typedef struct ry_photo {
    const char *path; /* in the pool */
    uint32_t file_at; /* where the part below the dataset's folder begins */
    uint32_t label;   /* RENYI_NO_CLASS = unknown */
    uint64_t index;   /* place in the listing */
    const uint32_t *right;
    uint32_t n_right; /* 0 with right == NULL: only label is right */
} ry_photo;

/* A folder of photos and its class. */
typedef struct ry_class_folder {
    const char *name; /* in the pool */
    uint32_t label;
} ry_class_folder;

/* Classes that are the data set's own (own_classes), not the model's. */
typedef struct ry_own {
    int is_on;
    renyi_collection set; /* set.name "" = none that is known */
    const char *root;     /* its folder */
    const char **names;   /* [info.n_classes] in the pool; NULL = not known yet */
} ry_own;

struct renyi_dataset {
    renyi_allocator al;
    ry_pool pool;
    ry_photo *photos;
    size_t count, capacity;
    uint64_t max_images, max_list_bytes;
    int unlabelled;           /* photos need no class */
    uint32_t *valid;          /* ascending */
    uint32_t *valid_order;    /* as in the file: class i of ImageFolder's order */
    ry_class_folder *folders; /* [info.n_folders] by label, then name; in the pool */
    renyi_dataset_info info;
    ry_own own;
    ry_classes classes; /* only while opening */
};

/* A copy of the path goes to the pool. */
renyi_status ry_dataset_add(renyi_dataset *d, ry_text folder, ry_text name, uint32_t label,
                            renyi_error *err) RENYI_CHECK;

/* An order that `seed` decides, the same on every machine. */
void ry_photos_shuffle(ry_photo *photos, size_t n, uint64_t seed);

/* Does the file name end like a photo's? */
int ry_is_photo_name(ry_text name);

/* Number of an ImageNet validation photo by its name (ILSVRC2012_val_00000293.JPEG), from 1; 0 if
 * it is none. */
uint32_t ry_imagenet_number(const char *path);

/* dataset_folder.c: DIR/class/... (or, with flat = 1, the photos of DIR itself, without labels) */
renyi_status ry_dataset_folder(renyi_dataset *d, const char *path, int flat,
                               renyi_error *err) RENYI_CHECK;

/* dataset_list.c: a list with classes; `file` tells form and folder, `bytes` are its contents. */
renyi_status ry_dataset_list(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                             renyi_error *err) RENYI_CHECK;

/* dataset_labels.c: classes for photos that are listed already. */
renyi_status ry_dataset_truth(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                              renyi_error *err) RENYI_CHECK;
renyi_status ry_dataset_real(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                             renyi_error *err) RENYI_CHECK;
/* Before the photos are listed: ImageFolder's order may need it. */
renyi_status ry_dataset_valid(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                              renyi_error *err) RENYI_CHECK;

/* ---- classes of its own -------------------------------------------------------------------- */

/* dataset_own.c: instead of the model's classes and the listing by them. */
renyi_status ry_dataset_own(renyi_dataset *d, const char *path, const renyi_model *m,
                            const renyi_dataset_options *o, renyi_error *err) RENYI_CHECK;
/* Room for the names of n classes, all NULL; and one of them, copied. */
renyi_status ry_own_start(renyi_dataset *d, uint32_t n, renyi_error *err) RENYI_CHECK;
renyi_status ry_own_name(renyi_dataset *d, uint32_t label, ry_text name,
                         renyi_error *err) RENYI_CHECK;
/* Are all these photos (there is at least one) absent? Then they lie elsewhere. */
renyi_status ry_own_check_photos(const renyi_dataset *d, const char *list,
                                 renyi_error *err) RENYI_CHECK;

/* dataset_own_folders.c: labels [n] of class folders, in byte order, and names for them. */
renyi_status ry_own_folders(renyi_dataset *d, const char *path, const char *const *folders,
                            size_t n, uint32_t *labels, renyi_error *err) RENYI_CHECK;

/* dataset_names.c: a list of class names (one a line, or "n01440764 tench"), which says how many
 * classes there are; the names in CoOp's classnames.txt of those ImageNet classes [n] that the
 * labels 0, 1, ... stand for. */
renyi_status ry_own_read_names(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                               renyi_error *err) RENYI_CHECK;
renyi_status ry_own_read_classnames(renyi_dataset *d, const uint32_t *imagenet, const char *file,
                                    const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;

/* dataset_split.c: CoOp's split, whose photos are below `photos`. */
renyi_status ry_dataset_split(renyi_dataset *d, const char *photos, const char *file,
                              const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;
/* dataset_variants.c: FGVC-Aircraft's names of classes, then its list of "0034309 707-320". */
renyi_status ry_dataset_variants(renyi_dataset *d, const char *file, const void *bytes, size_t size,
                                 renyi_error *err) RENYI_CHECK;
renyi_status ry_dataset_variant_list(renyi_dataset *d, const char *photos, const char *file,
                                     const void *bytes, size_t size, renyi_error *err) RENYI_CHECK;

/* A word that is no class: says what would be one. `line` 0 = not in a file of lines. */
renyi_status ry_fail_class(const renyi_dataset *d, const char *file, uint64_t line, ry_text word,
                           renyi_error *err);

#endif
