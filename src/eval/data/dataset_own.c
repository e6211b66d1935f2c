/* dataset_own.c - datasets that define their own classes: known ones in their usual layouts, and
 * any folder of class folders.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/data/collections.h"
#include "eval/data/dataset.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

renyi_status ry_own_start(renyi_dataset *d, uint32_t n, renyi_error *err)
{
    d->own.names = ry_pool_take(&d->pool, n, sizeof *d->own.names);
    if (!d->own.names) return ry_fail_nomem(err, n * sizeof *d->own.names);
    for (uint32_t i = 0; i < n; i++) d->own.names[i] = NULL;
    d->info.n_classes = n;
    return RENYI_OK;
}

renyi_status ry_own_name(renyi_dataset *d, uint32_t label, ry_text name, renyi_error *err)
{
    d->own.names[label] = ry_pool_copy(&d->pool, name);
    return d->own.names[label] ? RENYI_OK : ry_fail_nomem(err, name.n);
}

/* ---- class folders ------------------------------------------------------------------------- */

typedef enum folder_kind { NAME, NUMBER, WNID } folder_kind;

static folder_kind kind_of(const char *folder, uint32_t *class)
{
    const ry_text name = ry_text_of(folder);
    if ((*class = ry_imagenet_index(name)) != RENYI_NO_CLASS) return WNID;
    if (ry_text_number(name, class)) return NUMBER;
    *class = RENYI_NO_CLASS;
    return NAME;
}

/* All folders must be of one kind. Fills classes [n]. */
static renyi_status find_kind(const renyi_dataset *d, const char *path, const char *const *folders,
                              size_t n, uint32_t *classes, folder_kind *kind, renyi_error *err)
{
    static const char *const kinds[] = {"a name", "a number", "a WordNet id"};
    for (size_t i = 0; i < n; i++) {
        const folder_kind now = kind_of(folders[i], &classes[i]);
        if (i == 0) *kind = now;
        if (now != *kind)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%.160s: folder \"%.60s\" is %s, but \"%.60s\" %s: are several datasets "
                           "mixed here?",
                           path, folders[0], kinds[*kind], folders[i], kinds[now]);
        if (*d->own.set.name && (now == NAME || classes[i] >= RY_IMAGENET_CLASSES))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%.160s: folder \"%.60s\" is not a class of %s: wanted WordNet ids "
                           "(n01440764) or indices below 1000",
                           path, folders[i], d->own.set.title);
    }
    return RENYI_OK;
}

/* classnames.txt in the folder of the images, in one of the two above it (by the text of the path,
 * links are not resolved), or in the folder of the dataset; NULL = none. */
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

/* CLIP's names, or the first of WordNet's: "tench, Tinca tinca" -> "tench". */
static renyi_status use_imagenet_names(renyi_dataset *d, const uint32_t *imagenet, renyi_error *err)
{
    d->info.names_from = d->own.imagenet ? d->own.imagenet : RENYI_NAMES_CLIP;
    for (uint32_t i = 0; i < d->info.n_classes; i++) {
        const char *all = d->info.names_from == RENYI_NAMES_CLIP
                              ? renyi_imagenet_clip_name(imagenet[i])
                              : renyi_imagenet_name(imagenet[i]);
        RY_TRY(ry_own_name(d, i, (ry_text){all, strcspn(all, ",")}, err));
    }
    return RENYI_OK;
}

/* imagenet: [info.n_classes] ascending, the ImageNet class of each label */
static renyi_status name_imagenet(renyi_dataset *d, const char *path, const uint32_t *imagenet,
                                  renyi_error *err)
{
    ry_mapped_file f;
    const char *file = NULL;
    if (!d->own.imagenet) RY_TRY(find_classnames(d, path, &file, err));
    if (!file) return use_imagenet_names(d, imagenet, err);
    RY_TRY(ry_mapped_file_open(&f, file, d->max_list_bytes, err));
    const renyi_status st = ry_own_read_classnames(d, imagenet, file, f.data, f.size, err);
    ry_mapped_file_close(&f);
    return st;
}

/* Sorts and removes repetitions ("6" and "006" are one class). Returns how many are left. */
static uint32_t sort_once(uint32_t *classes, uint32_t n)
{
    uint32_t kept = 0;
    ry_class_sort(classes, n);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || classes[kept - 1] != classes[i]) classes[kept++] = classes[i];
    return kept;
}

/* Classes are all 1000, or those that have a folder; label i is the i-th of them. */
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
        labels[i] = ry_class_search(imagenet, n_classes, classes[i]);
    }
    renyi_status st = ry_own_start(d, n_classes, err);
    if (!st) st = name_imagenet(d, path, imagenet, err);
    ry_free(&d->al, imagenet);
    return st;
}

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

/* Names of the parts of a dataset, which are not classes. */
static int is_part_name(const char *folder)
{
    static const char *const names[] = {"images", "image", "imgs",        "img",
                                        "photos", "masks", "mask",        "trimaps",
                                        "labels", "gt",    "annotations", "segmentations"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(folder, names[i]) == 0) return 1;
    return 0;
}

static renyi_status check_names(const char *path, const char *const *folders, size_t n,
                                renyi_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!is_part_name(folders[i])) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.160s: its folders, \"%.40s\" and \"%.40s\", are parts of a dataset, not "
                   "classes: a folder for each class is needed, or a list of images and classes",
                   path, folders[0], folders[1]);
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
                     "above the dataset?",
                     path, folders[0]);
    else if (!st && kind == NUMBER && !*d->own.set.name)
        st = ry_fail(
            err, RENYI_ERR_FORMAT, -1,
            "%.160s: folders \"%.20s\", ... are numbers, which are no names for a sentence: "
            "give class names, or the dataset (imagenet) if they are its indices",
            path, folders[0]);
    else if (!st && kind == NAME) {
        if (!*d->own.set.name) st = check_names(path, folders, n, err);
        if (!st) st = label_names(d, folders, n, labels, err);
    } else if (!st) {
        st = label_imagenet(d, path, n, classes, labels, err);
        d->info.rule = kind == WNID ? RENYI_CLASS_BY_WNID : RENYI_CLASS_BY_INDEX;
    }
    ry_free(&d->al, classes);
    return st;
}

/* At least one of the listed images must exist; if not, the list belongs elsewhere. */
static renyi_status check_images(const renyi_dataset *d, const char *list, renyi_error *err)
{
    for (size_t i = 0; i < d->count; i++)
        if (access(d->images[i].path, F_OK) == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.160s: none of its %zu images is here, not even %.160s: does the list belong "
                   "to these images?",
                   list, d->count, d->images[0].path);
}

/* ---- layouts ------------------------------------------------------------------------------- */

/* Any other list has no class names; the user must give them. */
static renyi_status read_list(renyi_dataset *d, const char *images, const char *file,
                              const void *bytes, size_t size, renyi_error *err)
{
    if (d->own.names) return ry_dataset_list(d, images, file, bytes, size, err);
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "%.200s: a list has no class names; give them in a file, one a line", file);
}

/* A split of no known dataset: its images are beside it, or there in the folder "images". */
static renyi_status read_other_split(renyi_dataset *d, const char *file, renyi_error *err)
{
    const ry_text folder = ry_text_folder(ry_text_of(file));
    const ry_text here = folder.n ? folder : ry_text_of(".");
    const char *images = ry_pool_join(&d->pool, here, ry_text_of("images"));
    struct stat s;
    if (!images) return ry_fail_nomem(err, here.n);
    if (stat(images, &s)) images = ry_pool_copy(&d->pool, here);
    return images ? ry_dataset_read_file(d, ry_dataset_split, images, file, err)
                  : ry_fail_nomem(err, here.n);
}

static renyi_status read_aircraft(renyi_dataset *d, const ry_place *place, renyi_error *err)
{
    const char *names = ry_pool_join(&d->pool, ry_text_of(place->root), ry_text_of("variants.txt"));
    if (!names) return ry_fail_nomem(err, strlen(place->root));
    RY_TRY(ry_dataset_read_file(d, ry_dataset_variants, NULL, names, err));
    return ry_dataset_read_file(d, ry_dataset_variant_list, place->images, place->list, err);
}

static renyi_status read_collection(renyi_dataset *d, const char *path, renyi_error *err)
{
    ry_place place;
    RY_TRY(ry_collection_place(&place, &d->own.set, path, &d->pool, err));
    d->own.root = place.root;
    d->info.collection = d->own.set.name;
    switch (d->own.set.layout) {
    case RENYI_LAYOUT_SPLIT:
        RY_TRY(ry_dataset_read_file(d, ry_dataset_split, place.images, place.list, err));
        break;
    case RENYI_LAYOUT_VARIANTS: RY_TRY(read_aircraft(d, &place, err)); break;
    case RENYI_LAYOUT_IMAGENET: return ry_dataset_folder(d, place.images, 0, err);
    }
    return check_images(d, place.list, err);
}

static renyi_status read_path(renyi_dataset *d, const char *path, renyi_error *err)
{
    struct stat s;
    if (*d->own.set.name) return read_collection(d, path, err);
    if (stat(path, &s)) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode)) return ry_dataset_folder(d, path, 0, err);
    if (!ry_text_ends_with(ry_text_of(path), ".json"))
        return ry_dataset_read_file(d, read_list, NULL, path, err);
    RY_TRY(read_other_split(d, path, err));
    return check_images(d, path, err);
}

/* ---- opening ------------------------------------------------------------------------------- */

static renyi_status check_options(const renyi_dataset_options *o, renyi_error *err)
{
    if (o->class_map || o->real_labels || o->valid_labels || o->ground_truth || o->n_classes ||
        o->unlabelled)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "label files, n_classes and unlabelled are for the classes of a model; this "
                       "dataset has its own classes");
    return RENYI_OK;
}

static renyi_status check_model(const renyi_dataset *d, const char *path, const renyi_model *m,
                                renyi_error *err)
{
    renyi_model_info info;
    if (!m) return RENYI_OK;
    renyi_model_get_info(m, &info);
    if (info.n_classes == d->info.n_classes) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1, "%.200s has %u classes, the model %u", path,
                   d->info.n_classes, info.n_classes);
}

static renyi_status count_empty(renyi_dataset *d, renyi_error *err)
{
    unsigned char *seen = ry_calloc(&d->al, d->info.n_classes, 1);
    if (!seen) return ry_fail_nomem(err, d->info.n_classes);
    for (size_t i = 0; i < d->count; i++) seen[d->images[i].label] = 1;
    for (uint32_t i = 0; i < d->info.n_classes; i++) d->info.n_empty += !seen[i];
    ry_free(&d->al, seen);
    return RENYI_OK;
}

renyi_status ry_dataset_own(renyi_dataset *d, const char *path, const renyi_model *m,
                            const renyi_dataset_options *o, renyi_error *err)
{
    RY_TRY(check_options(o, err));
    if (o->class_names && strcmp(o->class_names, "clip") == 0)
        d->own.imagenet = RENYI_NAMES_CLIP;
    else if (o->class_names && strcmp(o->class_names, "wordnet") == 0)
        d->own.imagenet = RENYI_NAMES_IMAGENET;
    else if (o->class_names)
        RY_TRY(ry_dataset_read_file(d, ry_own_read_names, NULL, o->class_names, err));
    if (o->collection && strcmp(o->collection, "auto") == 0)
        RY_TRY(ry_collection_guess(&d->own.set, path, &d->pool, err));
    else if (o->collection)
        RY_TRY(renyi_collection_find(o->collection, &d->own.set, err));
    RY_TRY(read_path(d, path, err));
    if (d->own.imagenet && d->info.names_from != d->own.imagenet)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "%.200s: class names '%s' are those of ImageNet, and this dataset has other "
                       "classes; for a file of this name give ./%s",
                       path, o->class_names, o->class_names);
    RY_TRY(check_model(d, path, m, err));
    return count_empty(d, err);
}
