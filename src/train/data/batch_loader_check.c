/* batch_loader_check.c - see batch_loader_check.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/batch_loader_check.h"

#include "base/limits.h"
#include "base/status.h"

#include <inttypes.h>

static void fill_in(ry_loader_options *o)
{
    o->limits = ry_limits(&o->limits);
    if (!o->micro_batch) o->micro_batch = 8;
    if (o->micro_batch > o->batch) o->micro_batch = o->batch;
    o->micro_batch += o->micro_batch % 2;
    if (!o->repeats) o->repeats = 1;
    if (!o->n_threads) o->n_threads = 1;
    if (!o->n_ranks) o->n_ranks = 1;
}

static renyi_status check_numbers(const ry_loader_options *o, renyi_error *err)
{
    if (!o->image_size || o->image_size > 16384)
        return ry_fail(err, RENYI_ERR_ARG, -1, "image size %" PRIu32 "; 1 to 16384 is allowed",
                       o->image_size);
    if (!o->batch || o->batch > 1u << 24)
        return ry_fail(err, RENYI_ERR_ARG, -1, "batch size %" PRIu32 "; 1 to 16777216 is allowed",
                       o->batch);
    if (!o->n_classes)
        return ry_fail(err, RENYI_ERR_ARG, -1, "0 classes; at least 1 must be there to learn");
    if (!(o->smoothing >= 0.0 && o->smoothing <= 1.0))
        return ry_fail(err, RENYI_ERR_ARG, -1, "label smoothing %g; 0 to 1 is allowed",
                       o->smoothing);
    for (int c = 0; c < 3; c++)
        if (!(o->std[c] > 0.0))
            return ry_fail(err, RENYI_ERR_ARG, -1, "deviation %g of colour %d; it must be above 0",
                           o->std[c], c);
    if (o->rank >= o->n_ranks)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rank %" PRIu32 " of %" PRIu32, o->rank, o->n_ranks);
    if (o->n_workers > 1024 || o->n_threads > 1024)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%" PRIu32 " threads for photos; up to 1024",
                       o->n_workers > o->n_threads ? o->n_workers : o->n_threads);
    return RENYI_OK;
}

static renyi_status check_labels(const ry_loader_options *o, const renyi_dataset *d, uint64_t n,
                                 renyi_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(d, (size_t)i, &image);
        if (image.label == RENYI_NO_CLASS)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "%s has no class; training needs one for every photo", image.file);
        if (image.label >= o->n_classes)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "%s is of class %" PRIu32 ", the model has %" PRIu32 " (0 to %" PRIu32
                           ")",
                           image.file, image.label, o->n_classes, o->n_classes - 1);
    }
    return RENYI_OK;
}

renyi_status ry_loader_check(ry_loader_options *o, const renyi_dataset *d, renyi_error *err)
{
    renyi_dataset_info info;
    fill_in(o);
    RY_TRY(check_numbers(o, err));
    RY_TRY(ry_augment_check(&o->augment, err));
    renyi_dataset_get_info(d, &info);
    if (!info.n_images) return ry_fail(err, RENYI_ERR_ARG, -1, "no photos to learn from");
    if (info.n_images < o->batch && !o->keep_last)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "a batch of %" PRIu32 " from %" PRIu64
                       " photos, and incomplete batches are left out: use a batch of at most that",
                       o->batch, info.n_images);
    return check_labels(o, d, info.n_images, err);
}
