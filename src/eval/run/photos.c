/* photos.c - renyi_run_photos: image files through a session, batch by batch; other threads decode
 * the next images meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "engine/core/session.h"
#include "eval/run/pipeline.h"

#include <string.h>

/* The state of one call. */
typedef struct photo_run {
    renyi_photos_options o; /* defaults filled in */
    renyi_session *session;
    float *outputs; /* [max_batch, dim] */
    size_t dim;
} photo_run;

static renyi_status check_preprocess(const renyi_preprocess *given, const renyi_preprocess *own,
                                     renyi_error *err)
{
    if (given->size == own->size) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "images of %u pixels for a model that takes %u; open the model with that "
                   "image_size",
                   given->size, own->size);
}

/* Answers and failures of a batch, merged in the order of the list. */
static renyi_status report_batch(const photo_run *r, const ry_batch *b, double ms, renyi_error *err)
{
    for (uint32_t i = 0, k = 0; r->o.on_photo && i + k < b->n + b->n_faults;) {
        const int is_fault = k < b->n_faults && (i == b->n || b->faults[k].image < b->images[i]);
        renyi_photo photo = {.index = is_fault ? b->faults[k].image : b->images[i]};
        if (is_fault) {
            photo.failure = b->faults[k++].message;
        } else {
            photo.outputs = r->outputs + i * r->dim;
            photo.ms = ms;
            photo.ms_decode = 1e3 * b->seconds[i];
            photo.place = i++;
        }
        if (r->o.on_photo(r->o.user, &photo))
            return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the callback");
    }
    return RENYI_OK;
}

static renyi_status run_batch(const photo_run *r, const ry_batch *b, renyi_error *err)
{
    const double start = ry_clock();
    if (b->n)
        RY_TRY(b->chw ? renyi_run_tensor(r->session, b->chw, b->n, r->outputs, err)
                      : renyi_run_pixels(r->session, b->pixels, b->n, r->outputs, err));
    return report_batch(r, b, b->n ? 1e3 * (ry_clock() - start) / b->n : 0.0, err);
}

static renyi_status run_batches(const photo_run *r, ry_pipeline *pipeline, size_t n,
                                renyi_error *err)
{
    uint64_t done = 0;
    for (const ry_batch *b; (b = ry_pipeline_next(pipeline));) {
        RY_TRY(run_batch(r, b, err));
        done += b->n + b->n_faults;
        if (r->o.progress && r->o.progress(r->o.user, done, n))
            return ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    }
    return RENYI_OK;
}

static renyi_status run_paths(photo_run *r, const char *const *paths, size_t n, renyi_error *err)
{
    const renyi_session *s = r->session;
    renyi_model_info info;
    renyi_model_get_info(s->model, &info);
    const renyi_preprocess *own = &info.preprocess;
    const renyi_preprocess *spec = r->o.preprocess ? r->o.preprocess : own;
    const uint32_t cores = ry_cpu_cores();
    const uint32_t spare = cores > s->n_threads ? cores - s->n_threads : 0;
    const ry_pipeline_options o = {
        .source = {.paths = paths, .load = r->o.load, .user = r->o.user},
        .n_todo = n,
        .spec = ry_image_spec_of(spec, &r->o.limits, r->o.apply_exif, r->o.decode),
        .batch = s->max_batch,
        .n_beside = r->o.n_workers ? r->o.n_workers : spare,
        .n_threads = cores,
        .normalize = memcmp(spec->mean, own->mean, sizeof spec->mean) != 0 ||
                     memcmp(spec->std, own->std, sizeof spec->std) != 0};
    ry_pipeline *pipeline;
    RY_TRY(check_preprocess(spec, own, err));
    RY_TRY(ry_pipeline_new(&pipeline, &o, &r->o.allocator, err));
    const renyi_status st = run_batches(r, pipeline, n, err);
    ry_pipeline_free(pipeline);
    return st;
}

renyi_status renyi_run_photos(renyi_session *s, const char *const *paths, size_t n,
                              const renyi_photos_options *opt, renyi_error *err)
{
    photo_run r = {.session = s};
    if (!s || (n && !paths))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_run_photos: NULL argument");
    RY_TRY(ry_struct_read(&r.o, sizeof r.o, opt, "renyi_photos_options", err));
    RY_TRY(ry_allocator_check(&r.o.allocator, "renyi_photos_options", err));
    if (!n) return RENYI_OK;
    r.dim = renyi_session_outputs(s);
    r.outputs = ry_alloc(&r.o.allocator, s->max_batch * r.dim, sizeof *r.outputs);
    if (!r.outputs) return ry_fail_nomem(err, s->max_batch * r.dim * sizeof *r.outputs);
    const renyi_status st = run_paths(&r, paths, n, err);
    ry_free(&r.o.allocator, r.outputs);
    return st;
}
