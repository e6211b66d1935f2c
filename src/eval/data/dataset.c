/* dataset.c - opens a dataset: lists its images, gives them classes, and chooses which ones to use.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/data/dataset.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/status.h"
#include "engine/core/engine_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DEFAULT_CLASSES = 1000, MAX_PATH = 1 << 16 };

renyi_status ry_dataset_add(renyi_dataset *d, ry_text folder, ry_text name, uint32_t label,
                            renyi_error *err)
{
    if (d->count >= d->max_images)
        return ry_fail(
            err, RENYI_ERR_LIMIT, -1,
            "more than %llu images: use a list of fewer, or in a program raise max_images",
            (unsigned long long)d->max_images);
    if (memchr(name.at, 0, name.n) || folder.n + name.n > MAX_PATH)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "\"%.*s\" is not a file name", RY_SHOWN(name));
    if (name.n && name.at[0] == '/') folder.n = 0; /* an absolute path */
    char *path = ry_pool_join(&d->pool, folder, name);
    if (!path || !ry_grow(&d->al, (void **)&d->images, &d->capacity, d->count, sizeof *d->images))
        return ry_fail_nomem(err, name.n);
    d->images[d->count] = (ry_dataset_entry){.path = path,
                                             .file_at = (uint32_t)(strlen(path) - name.n),
                                             .label = label,
                                             .index = d->count};
    d->count++;
    return RENYI_OK;
}

renyi_status ry_fail_class(const renyi_dataset *d, const char *file, uint64_t line, ry_text text,
                           renyi_error *err)
{
    char place[32] = "";
    if (line) snprintf(place, sizeof place, ":%llu", (unsigned long long)line);
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s%s: \"%.*s\" is not a class: wanted an index below %u%s, or a name of the "
                   "model or of a class map",
                   file, place, RY_SHOWN(text), d->classes.n,
                   d->classes.n == RY_IMAGENET_CLASSES ? ", a WordNet id of ImageNet" : "");
}

/* ---- choosing images ----------------------------------------------------------------------- */

static int is_valid_class(const renyi_dataset *d, uint32_t class)
{
    return !d->info.n_valid || ry_class_search(d->valid, d->info.n_valid, class) != RENYI_NO_CLASS;
}

/* Can the model be right about it at all? */
static int has_answer(const renyi_dataset *d, const ry_dataset_entry *e)
{
    if (d->unlabelled) return 1;
    if (!e->right) return e->label != RENYI_NO_CLASS && is_valid_class(d, e->label);
    for (uint32_t i = 0; i < e->n_right; i++)
        if (is_valid_class(d, e->right[i])) return 1;
    return 0;
}

static void leave_out(renyi_dataset *d)
{
    size_t kept = 0;
    d->info.n_found = d->count;
    for (size_t i = 0; i < d->count; i++)
        if (has_answer(d, &d->images[i])) d->images[kept++] = d->images[i];
    d->info.n_left_out = d->count - kept;
    d->count = kept;
}

/* Uniform below n. Numbers above the largest multiple of n are drawn again, so there is no bias. */
static uint64_t draw_below(ry_rng *rng, uint64_t n)
{
    const uint64_t whole = UINT64_MAX - UINT64_MAX % n;
    uint64_t r;
    do r = ry_rng_next(rng);
    while (r >= whole);
    return r % n;
}

void ry_dataset_shuffle(ry_dataset_entry *images, size_t n, uint64_t seed)
{
    ry_rng rng = ry_rng_new(seed);
    for (size_t i = n; i > 1; i--) { /* Fisher and Yates */
        const size_t j = (size_t)draw_below(&rng, i);
        const ry_dataset_entry swapped = images[i - 1];
        images[i - 1] = images[j];
        images[j] = swapped;
    }
}

static uint64_t hash_images(const renyi_dataset *d)
{
    uint64_t hash = RY_HASH_START;
    for (size_t i = 0; i < d->count; i++) {
        const ry_dataset_entry *e = &d->images[i];
        hash = ry_hash_add_text(hash, e->path + e->file_at);
        hash = ry_hash_add(hash, &e->label, sizeof e->label);
        if (e->right) hash = ry_hash_add(hash, e->right, e->n_right * sizeof *e->right);
    }
    return hash;
}

static void choose_images(renyi_dataset *d, const renyi_dataset_options *o)
{
    if (o->shuffle) ry_dataset_shuffle(d->images, d->count, o->seed);
    if (o->limit && o->limit < d->count) d->count = (size_t)o->limit;
    d->info.n_chosen = d->count;
    d->info.fingerprint = hash_images(d);
    d->info.shard = o->shard;
    d->info.n_shards = o->n_shards;
    if (!o->n_shards) return;
    size_t kept = 0;
    for (size_t i = o->shard; i < d->count; i += o->n_shards) d->images[kept++] = d->images[i];
    d->count = kept;
}

/* Images of one folder often follow each other, but a list may have any order: so a mark per class.
 */
static renyi_status count_classes(renyi_dataset *d, renyi_error *err)
{
    uint8_t *seen = ry_calloc(&d->al, d->info.n_classes, 1);
    if (!seen) return ry_fail_nomem(err, d->info.n_classes);
    for (size_t i = 0; i < d->count; i++) {
        const uint32_t label = d->images[i].label;
        if (label >= d->info.n_classes || seen[label]) continue;
        seen[label] = 1;
        d->info.n_seen++;
    }
    ry_free(&d->al, seen);
    return RENYI_OK;
}

/* ---- listing images ------------------------------------------------------------------------ */

renyi_status ry_dataset_read_file(renyi_dataset *d, ry_list_reader *read, const char *images,
                                  const char *file, renyi_error *err)
{
    ry_mapped_file f;
    RY_TRY(ry_mapped_file_open(&f, file, d->max_list_bytes, err));
    const renyi_status st = read(d, images, file, f.data, f.size, err);
    ry_mapped_file_close(&f);
    return st;
}

static renyi_status read_class_map(renyi_dataset *d, const char *images, const char *file,
                                   const void *bytes, size_t size, renyi_error *err)
{
    (void)images;
    return ry_classes_map(&d->classes, file, bytes, size, err);
}

/* `file` may be NULL. */
static renyi_status read_labels(renyi_dataset *d, ry_list_reader *read, const char *file,
                                renyi_error *err)
{
    return file ? ry_dataset_read_file(d, read, NULL, file, err) : RENYI_OK;
}

static renyi_status list_images(renyi_dataset *d, const char *path, const renyi_dataset_options *o,
                                renyi_error *err)
{
    struct stat st;
    if (stat(path, &st)) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        if (o->ground_truth)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "%s is a list, which has its own classes; ground truth is for folders",
                           path);
        return ry_dataset_read_file(d, ry_dataset_list, NULL, path, err);
    }
    RY_TRY(ry_dataset_folder(d, path, o->ground_truth || d->unlabelled, err));
    return read_labels(d, ry_dataset_truth, o->ground_truth, err);
}

/* Images with the classes of a model. */
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
    RY_TRY(read_labels(d, read_class_map, o->class_map, err));
    RY_TRY(read_labels(d, ry_dataset_valid, o->valid_labels, err));
    return list_images(d, path, o, err);
}

static void note_foreign(const renyi_dataset *d, const char *path, const renyi_dataset_options *o)
{
    char kinds[128], text[512];
    ry_dataset_foreign(d, kinds, sizeof kinds);
    if (!*kinds || !o->on_note) return;
    snprintf(text, sizeof text, "%.300s: %s left out; convert them to JPEG, PNG or WebP", path,
             kinds);
    o->on_note(o->user, text);
}

static renyi_status fill_dataset(renyi_dataset *d, const char *path, const renyi_model *m,
                                 const renyi_dataset_options *o, renyi_error *err)
{
    RY_TRY(d->own.is_on ? ry_dataset_own(d, path, m, o, err) : list_labelled(d, path, m, o, err));
    note_foreign(d, path, o);
    if (!d->count) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no images here", path);
    RY_TRY(read_labels(d, ry_dataset_real, o->real_labels, err));
    leave_out(d);
    if (!d->count)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: %llu images, but none with a class that can be predicted; are the "
                       "class folders, ground truth or valid labels the right ones?",
                       path, (unsigned long long)d->info.n_found);
    choose_images(d, o);
    if (!d->count)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s: no image is in shard %u of %u", path, o->shard,
                       o->n_shards);
    d->info.n_images = d->count;
    d->info.valid = d->valid;
    return count_classes(d, err);
}

/* ---- opening ------------------------------------------------------------------------------- */

static renyi_status check_options(const renyi_dataset_options *o, renyi_error *err)
{
    if (o->n_shards && o->shard >= o->n_shards)
        return ry_fail(err, RENYI_ERR_ARG, -1, "shard %u of %u; allowed: 0 to %u", o->shard,
                       o->n_shards, o->n_shards - 1);
    if (o->unlabelled && (o->ground_truth || o->class_map || o->real_labels || o->valid_labels))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_dataset_options: label files, but unlabelled images");
    if (o->top_only && !o->unlabelled)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_dataset_options: top_only is for unlabelled images");
    return RENYI_OK;
}

renyi_status renyi_dataset_open(renyi_dataset **out, const char *path, const renyi_model *m,
                                const renyi_dataset_options *opt, renyi_error *err)
{
    renyi_dataset_options o;
    if (!out || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_dataset_open: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_dataset_options", err));
    RY_TRY(check_options(&o, err));
    renyi_dataset *d = ry_calloc(&o.allocator, 1, sizeof *d);
    if (!d) return ry_fail_nomem(err, sizeof *d);
    d->al = o.allocator;
    d->pool.al = &d->al;
    d->unlabelled = o.unlabelled != 0;
    d->is_flat = o.top_only != 0;
    d->user = o.user;
    d->on_failure = o.on_failure;
    d->own.is_on = o.own_classes || o.collection || o.class_names;
    d->max_images = o.max_images ? o.max_images : 1u << 24;
    d->max_list_bytes = o.max_list_bytes ? o.max_list_bytes : 1u << 30;
    const renyi_status st = fill_dataset(d, path, m, &o, err);
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
    ry_free(&al, d->images);
    ry_free(&al, d->valid);
    ry_free(&al, d->valid_order);
    ry_pool_free(&d->pool);
    ry_free(&al, d);
}

/* ---- looking up ---------------------------------------------------------------------------- */

void renyi_dataset_get_info(const renyi_dataset *d, renyi_dataset_info *info) { *info = d->info; }

void renyi_dataset_get_image(const renyi_dataset *d, size_t i, renyi_dataset_image *out)
{
    const ry_dataset_entry *e = &d->images[i];
    *out = (renyi_dataset_image){.path = e->path,
                                 .file = e->path + e->file_at,
                                 .index = e->index,
                                 .label = e->label,
                                 .n_right = e->right ? e->n_right : 1,
                                 .right = e->right ? e->right : &e->label};
}

/* Folders are sorted by label: the first of those with this one. */
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

const char *const *renyi_dataset_names(const renyi_dataset *d, uint32_t *count)
{
    const int has_names = d && d->own.names;
    *count = has_names ? d->info.n_classes : 0;
    return has_names ? d->own.names : NULL;
}
