/* dataset_own.c - data sets that say themselves which classes there are and what they are called:
 * known ones in the layouts people have them, and any folder of folders.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "eval/data/collection_list.h"
#include "eval/data/dataset.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

renyi_status ry_own_start(renyi_dataset *d, uint32_t n, renyi_error *err)
{
    d->own.names = ry_pool_take(&d->pool, n * sizeof *d->own.names);
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

renyi_status ry_own_check_photos(const renyi_dataset *d, const char *list, renyi_error *err)
{
    for (size_t i = 0; i < d->count; i++)
        if (access(d->photos[i].path, F_OK) == 0) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%.160s: none of its %zu photos is here, not even %.160s: does the list belong "
                   "to these photos?",
                   list, d->count, d->photos[0].path);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A reader of a file whose photos are below `photos`. */
typedef renyi_status list_reader(renyi_dataset *d, const char *photos, const char *file,
                                 const void *bytes, size_t size, renyi_error *err);

static renyi_status read_below(renyi_dataset *d, list_reader *read, const char *photos,
                               const char *file, renyi_error *err)
{
    ry_mapped_file f;
    RY_TRY(ry_mapped_file_open(&f, file, d->max_list_bytes, err));
    const renyi_status st = read(d, photos, file, f.data, f.size, err);
    ry_mapped_file_close(&f);
    return st;
}

static renyi_status read_names(renyi_dataset *d, const char *photos, const char *file,
                               const void *bytes, size_t size, renyi_error *err)
{
    (void)photos;
    return ry_own_read_names(d, file, bytes, size, err);
}

static renyi_status read_variants(renyi_dataset *d, const char *photos, const char *file,
                                  const void *bytes, size_t size, renyi_error *err)
{
    (void)photos;
    return ry_dataset_variants(d, file, bytes, size, err);
}

/* Any other list has classes that only the user's names can tell. */
static renyi_status read_list(renyi_dataset *d, const char *photos, const char *file,
                              const void *bytes, size_t size, renyi_error *err)
{
    (void)photos;
    if (d->own.names) return ry_dataset_list(d, file, bytes, size, err);
    return ry_fail(
        err, RENYI_ERR_ARG, -1,
        "%.200s: a list does not say what its classes are called; give their names, one a line",
        file);
}

static int is_json(const char *file)
{
    const size_t n = strlen(file);
    return n > 5 && strcasecmp(file + n - 5, ".json") == 0;
}

/* A split of no known data set: photos are beside it, or in "images" there. */
static renyi_status read_some_split(renyi_dataset *d, const char *file, renyi_error *err)
{
    const char *slash = strrchr(file, '/');
    const ry_text here = slash ? (ry_text){file, (size_t)(slash - file) + 1} : ry_text_of("./");
    const char *photos = ry_pool_join(&d->pool, here, ry_text_of("images"));
    struct stat s;
    if (!photos) return ry_fail_nomem(err, here.n);
    if (stat(photos, &s)) photos = ry_pool_copy(&d->pool, here);
    return photos ? read_below(d, ry_dataset_split, photos, file, err) : ry_fail_nomem(err, here.n);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static renyi_status read_aircraft(renyi_dataset *d, const ry_place *place, renyi_error *err)
{
    const char *names = ry_pool_join(&d->pool, ry_text_of(place->root), ry_text_of("variants.txt"));
    if (!names) return ry_fail_nomem(err, strlen(place->root));
    RY_TRY(read_below(d, read_variants, NULL, names, err));
    return read_below(d, ry_dataset_variant_list, place->photos, place->list, err);
}

static renyi_status read_collection(renyi_dataset *d, const char *path, renyi_error *err)
{
    ry_place place;
    RY_TRY(ry_collection_place(&place, &d->own.set, path, &d->pool, err));
    d->own.root = place.root;
    d->info.collection = d->own.set.name;
    switch (d->own.set.layout) {
    case RENYI_LAYOUT_SPLIT:
        RY_TRY(read_below(d, ry_dataset_split, place.photos, place.list, err));
        break;
    case RENYI_LAYOUT_VARIANTS: RY_TRY(read_aircraft(d, &place, err)); break;
    case RENYI_LAYOUT_IMAGENET: return ry_dataset_folder(d, place.photos, 0, err);
    }
    return ry_own_check_photos(d, place.list, err);
}

static renyi_status read_path(renyi_dataset *d, const char *path, renyi_error *err)
{
    struct stat s;
    if (*d->own.set.name) return read_collection(d, path, err);
    if (stat(path, &s)) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode)) return ry_dataset_folder(d, path, 0, err);
    if (!is_json(path)) return read_below(d, read_list, NULL, path, err);
    RY_TRY(read_some_split(d, path, err));
    return ry_own_check_photos(d, path, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static renyi_status check_options(const renyi_dataset_options *o, renyi_error *err)
{
    if (o->class_map || o->real_labels || o->valid_labels || o->ground_truth || o->n_classes ||
        o->unlabelled)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "label files, n_classes and unlabelled are for the classes of a model; this "
                       "data set has classes of its own");
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
    for (size_t i = 0; i < d->count; i++) seen[d->photos[i].label] = 1;
    for (uint32_t i = 0; i < d->info.n_classes; i++) d->info.n_empty += !seen[i];
    ry_free(&d->al, seen);
    return RENYI_OK;
}

renyi_status ry_dataset_own(renyi_dataset *d, const char *path, const renyi_model *m,
                            const renyi_dataset_options *o, renyi_error *err)
{
    RY_TRY(check_options(o, err));
    if (o->class_names) RY_TRY(read_below(d, read_names, NULL, o->class_names, err));
    if (o->collection && strcmp(o->collection, "auto") == 0)
        RY_TRY(ry_collection_guess(&d->own.set, path, &d->pool, err));
    else if (o->collection)
        RY_TRY(renyi_collection_find(o->collection, &d->own.set, err));
    RY_TRY(read_path(d, path, err));
    RY_TRY(check_model(d, path, m, err));
    return count_empty(d, err);
}

const char *const *renyi_dataset_names(const renyi_dataset *d, uint32_t *count)
{
    const int has_names = d && d->own.names;
    *count = has_names ? d->info.n_classes : 0;
    return has_names ? d->own.names : NULL;
}
