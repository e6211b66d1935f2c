/* trainer_data.c - opens the images of a run, with their classes and class names.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "train/run/trainer.h"
#include "train/settings/settings_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which folder ---------------------------------------------------------------------------- */

/* Sets the setting `name` to DIR/part if there is such a folder. */
static renyi_status set_part_folder(renyi_train *t, const char *name, const char *folder,
                                    const char *part, renyi_error *err)
{
    size_t index;
    char *path = ry_path_in(&t->al, folder, part);
    renyi_status st = path ? RENYI_OK : ry_fail_nomem(err, strlen(folder) + strlen(part) + 2);
    if (!st && ry_is_folder(path) && ry_setting_find(name, &index))
        st = ry_settings_set(&t->s, index, path, &t->al, err);
    ry_free(&t->al, path);
    return st;
}

/* If DIR/train is a folder, DIR has the training and the val images. */
static renyi_status find_parts(renyi_train *t, renyi_error *err)
{
    char *whole = ry_strdup(&t->al, t->s.opt.data);
    char *train = whole ? ry_path_in(&t->al, whole, "train") : NULL;
    renyi_status st = train ? RENYI_OK : ry_fail_nomem(err, strlen(t->s.opt.data) + 8);
    if (!st && ry_is_folder(train)) {
        st = set_part_folder(t, "data-dir", whole, "train", err);
        if (!st && !t->s.opt.val) st = set_part_folder(t, "val-dir", whole, "val", err);
        if (!st && !t->s.opt.val) st = set_part_folder(t, "val-dir", whole, "validation", err);
    }
    ry_free(&t->al, train);
    ry_free(&t->al, whole);
    return st;
}

/* ---- how many classes ------------------------------------------------------------------------ */

/* Folders in `path`; *highest is the largest number among their names, if all are numbers. */
static renyi_status count_folders(const char *path, uint64_t *count, uint64_t *highest,
                                  const renyi_allocator *al, renyi_error *err)
{
    int all_numbers = 1;
    ry_folder list;
    *count = *highest = 0;
    RY_TRY(ry_folder_read(&list, path, al, err));
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.items[i].name;
        const size_t digits = strspn(name, "0123456789");
        if (name[0] == '.' || list.items[i].kind != RY_ENTRY_FOLDER) continue;
        ++*count;
        if (name[digits] || digits > 9)
            all_numbers = 0;
        else if (strtoull(name, NULL, 10) > *highest)
            *highest = strtoull(name, NULL, 10);
    }
    ry_folder_free(&list);
    if (!all_numbers) *highest = 0;
    return RENYI_OK;
}

static renyi_status folders_to_classes(renyi_train *t, uint32_t *n, renyi_error *err)
{
    const char *path = t->s.opt.data;
    uint64_t count = 0, highest = 0;
    if (access(path, F_OK)) return ry_fail(err, RENYI_ERR_IO, -1, "%s: %s", path, strerror(errno));
    if (!ry_is_folder(path))
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s is a list: give the number of classes (classes)",
                       path);
    RY_TRY(count_folders(path, &count, &highest, &t->al, err));
    if (!count)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s has no folders: training needs a folder of images for each class", path);
    const uint64_t wanted = highest >= count ? highest + 1 : count;
    if (wanted > 1000000)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: classes up to %llu; at most 1000000 accepted",
                       path, (unsigned long long)wanted);
    *n = (uint32_t)wanted;
    return RENYI_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static renyi_status open_dataset(renyi_train *t, const renyi_model *model, uint32_t n_classes,
                                 renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const renyi_dataset_options d = {.struct_size = sizeof d,
                                     .n_classes = n_classes,
                                     .class_map = o->class_map,
                                     .limit = o->limit,
                                     .shuffle = o->limit != 0,
                                     .seed = o->seed,
                                     .allocator = t->al,
                                     .user = o->user,
                                     .on_note = o->on_note};
    return renyi_dataset_open(&t->data, o->data, model, &d, err);
}

/* Takes the model's class names only if the images have its classes. */
static renyi_status keep_labels(renyi_train *t, const renyi_model *model, uint32_t n,
                                renyi_error *err)
{
    ry_class_labels *l = &t->labels;
    renyi_dataset_info info;
    renyi_dataset_get_info(t->data, &info);
    *l = (ry_class_labels){ry_calloc(&t->al, n, sizeof *l->names), n};
    if (!l->names) return ry_fail_nomem(err, n * sizeof *l->names);
    if (info.rule == RENYI_CLASS_BY_ORDER) model = NULL; /* its classes are different */
    for (uint32_t i = 0; model && i < n; i++) {
        const char *name = ry_model_own_label(model, i);
        if (name && !(l->names[i] = ry_strdup(&t->al, name))) return ry_fail_nomem(err, n);
    }
    /* a folder called "007" gives no class name */
    for (size_t i = 0; info.n_folders && info.rule != RENYI_CLASS_BY_INDEX && i < info.n_images;
         i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(t->data, i, &image);
        const size_t length = strcspn(image.file, "/");
        if (image.label >= n || l->names[image.label]) continue;
        char *name = ry_calloc(&t->al, length + 1, 1);
        if (!name) return ry_fail_nomem(err, length + 1);
        l->names[image.label] = memcpy(name, image.file, length);
    }
    return RENYI_OK;
}

void ry_class_labels_free(ry_class_labels *l, const renyi_allocator *al)
{
    for (uint32_t i = 0; l->names && i < l->n; i++) ry_free(al, l->names[i]);
    ry_free(al, l->names);
    *l = (ry_class_labels){0};
}

/* The classes of `model` if the images have them, else those of the folders. */
static renyi_status open_data(renyi_train *t, const renyi_model *model, renyi_error *err)
{
    renyi_model_info info = {0};
    uint32_t n = (uint32_t)t->s.opt.classes;
    if (model) renyi_model_get_info(model, &info);
    const int takes_model = info.n_classes && (!n || n == info.n_classes);
    renyi_status st = takes_model ? open_dataset(t, model, info.n_classes, err) : RENYI_ERR_FORMAT;
    if (takes_model && st == RENYI_OK) {
        n = info.n_classes;
    } else {
        if (st != RENYI_ERR_FORMAT || (takes_model && n)) return st;
        if (!n) RY_TRY(folders_to_classes(t, &n, err));
        model = NULL;
        RY_TRY(open_dataset(t, NULL, n, err));
    }
    t->s.opt.classes = t->config.n_classes = n;
    return keep_labels(t, model, n, err);
}

static renyi_status open_label_model(renyi_train *t, const char *path, renyi_model **out,
                                     renyi_error *err)
{
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = t->s.opt.cpu,
                               .limits = t->s.opt.limits,
                               .allocator = t->al,
                               .dtype = RENYI_DTYPE_F32};
    return renyi_model_open(out, path, &opt, err);
}

renyi_status ry_train_data(renyi_train *t, const char *path, renyi_error *err)
{
    renyi_model *model = NULL;
    RY_TRY(find_parts(t, err));
    if (path) RY_TRY(open_label_model(t, path, &model, err));
    const renyi_status st = open_data(t, model, err);
    renyi_model_free(model);
    return st;
}

renyi_status ry_train_val(renyi_train *t, const char *path, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const renyi_dataset_options d = {.struct_size = sizeof d,
                                     .class_map = o->class_map,
                                     .limit = o->val_limit,
                                     .shuffle = o->val_limit != 0,
                                     .seed = o->seed,
                                     .allocator = t->al,
                                     .user = o->user,
                                     .on_note = o->on_note};
    renyi_model *model = NULL;
    if (!o->val) return RENYI_OK;
    RY_TRY(open_label_model(t, path, &model, err));
    const renyi_status st = renyi_dataset_open(&t->val, o->val, model, &d, err);
    renyi_model_free(model);
    return st;
}

renyi_status ry_train_loader(renyi_train *t, renyi_error *err)
{
    const renyi_train_options *o = ry_train_opt(t);
    const unsigned cores = ry_cpu_cores() / t->ranks.r.n_sharing;
    ry_loader_options l = {
        .image_size = t->config.image_size,
        .seed = o->seed,
        .batch = (uint32_t)o->batch,
        .micro_batch = (uint32_t)o->micro_batch,
        .repeats = (uint32_t)o->repeats,
        .n_classes = t->config.n_classes,
        .smoothing = o->smoothing,
        .n_workers =
            o->workers ? (uint32_t)o->workers : (cores > t->n_threads ? cores - t->n_threads : 0),
        .n_threads = t->n_threads,
        .rank = t->ranks.r.rank,
        .n_ranks = t->ranks.r.n_ranks,
        .apply_exif = o->exif,
        .cache_bytes = o->cache_mb << 20,
        .limits = o->limits,
    };
    memcpy(l.mean, t->config.preprocess.mean, sizeof l.mean);
    memcpy(l.std, t->config.preprocess.std, sizeof l.std);
    RY_TRY(ry_settings_augment(&l.augment, o, err));
    RY_TRY(ry_loader_new(&t->loader, t->data, &l, &t->al, err));
    t->steps_per_epoch = ry_loader_steps(t->loader);
    return RENYI_OK;
}
