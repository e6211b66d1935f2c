/* calibration_images.c - renyi_calibration_photos: runs the images of a dataset through a
 * calibration, batch by batch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/model_handle.h"
#include "engine/write/calibration.h"
#include "eval/run/pipeline.h"

static void report_faults(const ry_batch *b, const renyi_dataset *d,
                          const renyi_calibration_photos_options *o)
{
    for (uint32_t i = 0; o->on_failure && i < b->n_faults; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(d, b->faults[i].image, &image);
        o->on_failure(o->user, image.file, b->faults[i].message);
    }
}

static renyi_status run_batches(renyi_calibration *c, const renyi_dataset *d, ry_pipeline *p,
                                const renyi_calibration_photos_options *o, uint64_t total,
                                renyi_error *err)
{
    uint64_t done = 0;
    for (const ry_batch *b; (b = ry_pipeline_next(p));) {
        report_faults(b, d, o);
        if (b->n) RY_TRY(renyi_calibration_run(c, b->pixels, b->n, err));
        done += b->n + b->n_faults;
        if (o->progress && o->progress(o->user, done, total))
            return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    }
    return RENYI_OK;
}

static renyi_status run_images(renyi_calibration *c, const renyi_dataset *d,
                               const renyi_calibration_photos_options *o, renyi_error *err)
{
    const renyi_model *m = ry_calibration_model(c);
    const uint32_t cores = ry_cpu_cores(), threads = ry_calibration_threads(c);
    renyi_dataset_info info;
    ry_pipeline *pipeline = NULL;
    renyi_dataset_get_info(d, &info);
    const ry_pipeline_options options = {.source = {.data = d},
                                         .n_todo = (size_t)info.n_images,
                                         .spec =
                                             ry_image_spec_of(&m->vit.config.preprocess, &o->limits,
                                                              o->apply_exif, RENYI_DECODE_EXACT),
                                         .batch = ry_calibration_batch(c),
                                         .n_beside = cores > threads ? cores - threads : 0,
                                         .n_threads = cores};
    renyi_status st = ry_pipeline_new(&pipeline, &options, &m->al, err);
    if (!st) st = run_batches(c, d, pipeline, o, info.n_images, err);
    ry_pipeline_free(pipeline);
    return st;
}

renyi_status renyi_calibration_photos(renyi_calibration *c, const renyi_dataset *d,
                                      const renyi_calibration_photos_options *opt, renyi_error *err)
{
    renyi_calibration_photos_options o;
    if (!c || !d) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_calibration_photos: NULL argument");
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_calibration_photos_options", err));
    const uint64_t before = renyi_calibration_images(c);
    RY_TRY(run_images(c, d, &o, err));
    if (renyi_calibration_images(c) > before) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_IO, -1, "no image could be read: nothing to calibrate with");
}
