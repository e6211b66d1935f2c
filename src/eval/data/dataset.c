/* dataset.c - bodies of the dataset part of eval.h: opening, choosing photos, looking them up.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/data/dataset.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/rng.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { DEFAULT_CLASSES = 1000, MAX_PATH = 1 << 16 };

renyi_status ry_dataset_add(renyi_dataset *d, ry_text folder, ry_text name, uint32_t label,
                            renyi_error *err)
{
    if (d->count >= d->max_images)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %llu photos; see max_images",
                       (unsigned long long)d->max_images);
    if (memchr(name.at, 0, name.n) || folder.n + name.n > MAX_PATH)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "\"%.*s\" is no file name", RY_SHOWN(name));
    if (name.n && name.at[0] == '/') folder.n = 0; /* stands for itself */
    char *path = ry_pool_join(&d->pool, folder, name);
    if (!path || !ry_grow(&d->al, (void **)&d->photos, &d->capacity, d->count, sizeof *d->photos))
        return ry_fail_nomem(err, name.n);
    d->photos[d->count] = (ry_photo){.path = path,
                                     .file_at = (uint32_t)(strlen(path) - name.n),
                                     .label = label,
                                     .index = d->count};
    d->count++;
    return RENYI_OK;
}

int ry_is_photo_name(ry_text name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp", ".ppm", ".pgm", ".pnm"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t n = strlen(endings[i]);
        if (name.n > n && strncasecmp(name.at + name.n - n, endings[i], n) == 0) return 1;
    }
    return 0;
}

renyi_status ry_fail_class(const renyi_dataset *d, const char *file, uint64_t line, ry_text word,
                           renyi_error *err)
{
    char place[32] = "";
    if (line) snprintf(place, sizeof place, ":%llu", (unsigned long long)line);
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s%s: \"%.*s\" is no class: wanted an index below %u%s, or a name of the model "
                   "or of a class map",
                   file, place, RY_SHOWN(word), d->classes.n,
                   d->classes.n == RY_IMAGENET_CLASSES ? ", a WordNet id of ImageNet's" : "");
}

/* ---- choosing ------------------------------------------------------------------------------ */

static int is_valid_class(const renyi_dataset *d, uint32_t class)
{
    for (uint32_t low = 0, high = d->info.n_valid; low < high;) {
        const uint32_t middle = (low + high) / 2;
        if (d->valid[middle] == class) return 1;
        if (d->valid[middle] < class)
            low = middle + 1;
        else
            high = middle;
    }
    return !d->info.n_valid;
}

/* Can the model be right about it at all? */
static int has_answer(const renyi_dataset *d, const ry_photo *p)
{
    if (d->unlabelled) return 1;
    if (!p->right) return p->label != RENYI_NO_CLASS && is_valid_class(d, p->label);
    for (uint32_t i = 0; i < p->n_right; i++)
        if (is_valid_class(d, p->right[i])) return 1;
    return 0;
}

static void leave_out(renyi_dataset *d)
{
    size_t kept = 0;
    d->info.n_found = d->count;
    for (size_t i = 0; i < d->count; i++)
        if (has_answer(d, &d->photos[i])) d->photos[kept++] = d->photos[i];
    d->info.n_left_out = d->count - kept;
    d->count = kept;
}

/* Uniform below n without bias: numbers of the last, incomplete round are drawn again. */
static uint64_t draw_below(ry_rng *rng, uint64_t n)
{
    const uint64_t whole = UINT64_MAX - UINT64_MAX % n;
    uint64_t r;
    do r = ry_rng_next(rng);
    while (r >= whole);
    return r % n;
}

void ry_photos_shuffle(ry_photo *photos, size_t n, uint64_t seed)
{
    ry_rng rng = ry_rng_new(seed);
    for (size_t i = n; i > 1; i--) { /* Fisher and Yates */
        const size_t j = (size_t)draw_below(&rng, i);
        const ry_photo swapped = photos[i - 1];
        photos[i - 1] = photos[j];
        photos[j] = swapped;
    }
}

static uint64_t fingerprint(const renyi_dataset *d)
{
    uint64_t hash = RY_HASH_START;
    for (size_t i = 0; i < d->count; i++) {
        const ry_photo *p = &d->photos[i];
        hash = ry_hash_add_text(hash, p->path + p->file_at);
        hash = ry_hash_add(hash, &p->label, sizeof p->label);
        if (p->right) hash = ry_hash_add(hash, p->right, p->n_right * sizeof *p->right);
    }
    return hash;
}

static void choose(renyi_dataset *d, const renyi_dataset_options *o)
{
    if (o->shuffle) ry_photos_shuffle(d->photos, d->count, o->seed);
    if (o->limit && o->limit < d->count) d->count = (size_t)o->limit;
    d->info.n_chosen = d->count;
    d->info.fingerprint = fingerprint(d);
    d->info.shard = o->shard;
    d->info.n_shards = o->n_shards;
    if (!o->n_shards) return;
    size_t kept = 0;
    for (size_t i = o->shard; i < d->count; i += o->n_shards) d->photos[kept++] = d->photos[i];
    d->count = kept;
}

/* ---- opening ------------------------------------------------------------------------------- */

typedef renyi_status label_reader(renyi_dataset *d, const char *file, const void *bytes,
                                  size_t size, renyi_error *err);

static renyi_status read_class_map(renyi_dataset *d, const char *file, const void *bytes,
                                   size_t size, renyi_error *err)
{
    return ry_classes_map(&d->classes, file, bytes, size, err);
}

static renyi_status read_with(renyi_dataset *d, label_reader *read, const char *file,
                              renyi_error *err)
{
    ry_mapped_file f;
    if (!file) return RENYI_OK;
    RY_TRY(ry_mapped_file_open(&f, file, d->max_list_bytes, err));
    const renyi_status st = read(d, file, f.data, f.size, err);
    ry_mapped_file_close(&f);
    return st;
}

static renyi_status list_photos(renyi_dataset *d, const char *path, const renyi_dataset_options *o,
                                renyi_error *err)
{
    struct stat st;
    if (stat(path, &st)) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        if (o->ground_truth)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "%s is a list and has classes of its own; ground truth is for folders",
                           path);
        return read_with(d, ry_dataset_list, path, err);
    }
    RY_TRY(ry_dataset_folder(d, path, o->ground_truth || d->unlabelled, err));
    return read_with(d, ry_dataset_truth, o->ground_truth, err);
}

/* Photos with the classes of a model. */
static renyi_status list_labelled(renyi_dataset *d, const char *path, const renyi_model *m,
                                  const renyi_dataset_options *o, renyi_error *err)
{
    uint32_t n_classes = o->n_classes;
    renyi_model_info info;
    if (!n_classes && m) {
        renyi_model_get_info(m, &info);
        n_classes = info.n_classes;
        if (!n_classes && !d->unlabelled) return ry_no_classifier(&info, err);
    }
    d->info.n_classes = n_classes ? n_classes : DEFAULT_CLASSES;
    RY_TRY(ry_classes_open(&d->classes, d->info.n_classes, m, &d->al, err));
    RY_TRY(read_with(d, read_class_map, o->class_map, err));
    RY_TRY(read_with(d, ry_dataset_valid, o->valid_labels, err));
    return list_photos(d, path, o, err);
}

static renyi_status fill(renyi_dataset *d, const char *path, const renyi_model *m,
                         const renyi_dataset_options *o, renyi_error *err)
{
    RY_TRY(d->own.is_on ? ry_dataset_own(d, path, m, o, err) : list_labelled(d, path, m, o, err));
    if (!d->count) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no photos here", path);
    RY_TRY(read_with(d, ry_dataset_real, o->real_labels, err));
    leave_out(d);
    if (!d->count)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: %llu photos, but none with a class that can be predicted; are the "
                       "class folders, ground truth or valid labels the right ones?",
                       path, (unsigned long long)d->info.n_found);
    choose(d, o);
    if (!d->count)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s: no photo is in shard %u of %u", path, o->shard,
                       o->n_shards);
    d->info.n_images = d->count;
    d->info.valid = d->valid;
    return RENYI_OK;
}

renyi_status renyi_dataset_open(renyi_dataset **out, const char *path, const renyi_model *m,
                                const renyi_dataset_options *opt, renyi_error *err)
{
    renyi_dataset_options o = {0};
    if (!out || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_dataset_open: NULL argument");
    *out = NULL;
    if (opt) {
        if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_dataset_options: struct_size %u, this library knows %zu",
                           opt->struct_size, sizeof o);
        memcpy(&o, opt, opt->struct_size);
    }
    if (o.n_shards && o.shard >= o.n_shards)
        return ry_fail(err, RENYI_ERR_ARG, -1, "shard %u of %u; allowed: 0 to %u", o.shard,
                       o.n_shards, o.n_shards - 1);
    if (o.unlabelled && (o.ground_truth || o.class_map || o.real_labels || o.valid_labels))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_dataset_options: label files for photos that need no labels");
    renyi_dataset *d = ry_calloc(&o.allocator, 1, sizeof *d);
    if (!d) return ry_fail_nomem(err, sizeof *d);
    d->al = o.allocator;
    d->pool.al = &d->al;
    d->unlabelled = o.unlabelled != 0;
    d->own.is_on = o.own_classes || o.collection || o.class_names;
    d->max_images = o.max_images ? o.max_images : 1u << 24;
    d->max_list_bytes = o.max_list_bytes ? o.max_list_bytes : 1u << 30;
    const renyi_status st = fill(d, path, m, &o, err);
    ry_classes_free(&d->classes);
    if (st) {
        renyi_dataset_free(d);
        return st;
    }
    *out = d;
    return RENYI_OK;
}

void renyi_dataset_free(renyi_dataset *d)
{
    if (!d) return;
    const renyi_allocator al = d->al;
    ry_free(&al, d->photos);
    ry_free(&al, d->valid);
    ry_free(&al, d->valid_order);
    ry_pool_free(&d->pool);
    ry_free(&al, d);
}

void renyi_dataset_get_info(const renyi_dataset *d, renyi_dataset_info *info) { *info = d->info; }

void renyi_dataset_get_image(const renyi_dataset *d, size_t i, renyi_dataset_image *out)
{
    const ry_photo *p = &d->photos[i];
    *out = (renyi_dataset_image){.path = p->path,
                                 .file = p->path + p->file_at,
                                 .index = p->index,
                                 .label = p->label,
                                 .n_right = p->right ? p->n_right : 1,
                                 .right = p->right ? p->right : &p->label};
}

const char *renyi_dataset_class_name(const renyi_dataset *d, uint32_t label)
{
    for (uint32_t low = 0, high = d ? d->info.n_folders : 0; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        if (d->folders[middle].label < label)
            low = middle + 1;
        else if (d->folders[middle].label > label ||
                 (middle && d->folders[middle - 1].label == label))
            high = middle;
        else
            return d->folders[middle].name;
    }
    return NULL;
}
