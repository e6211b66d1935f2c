/* embed_images.c - renyi_embed_photos: embeds images as rows of length 1; other threads decode the
 * next images meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/gallery/gallery_index.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "eval/data/dataset.h"
#include "eval/run/pipeline.h"
#include "renyi/clip.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_BATCH = 8 };

/* The state of one call. */
typedef struct embedding {
    const renyi_allocator *al;
    renyi_embed_options o; /* defaults filled in */
    ry_image_spec spec;
    int normalize; /* mean or std differ from the session's */
    renyi_session *session;
    renyi_dataset *images;
    size_t *todo, n;
    size_t dim, rows_each; /* numbers of an image, in so many rows */
    float *rows, *outputs; /* [n, dim] the caller's; [batch, dim] of the session */
    uint8_t *is_done;
} embedding;

/* ---- options -------------------------------------------------------------------------------- */

renyi_status ry_embed_options_read(renyi_embed_options *out, renyi_preprocess *preprocess,
                                   const renyi_model *m, const renyi_embed_options *given,
                                   renyi_error *err)
{
    renyi_model_info info;
    RY_TRY(ry_struct_read(out, sizeof *out, given, "renyi_embed_options", err));
    renyi_model_get_info(m, &info);
    *preprocess = out->preprocess ? *out->preprocess : info.preprocess;
    if (preprocess->size != info.image_size)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "images of %u pixels for a model that takes %u; open the model with that "
                       "image_size",
                       preprocess->size, info.image_size);
    if (!out->batch) out->batch = DEFAULT_BATCH;
    if (out->output == RENYI_OUTPUT_AUTO) out->output = RENYI_OUTPUT_EMBEDDING;
    if (!out->n_threads) out->n_threads = ry_cpu_threads(1);
    return RENYI_OK;
}

renyi_status ry_embed_session(renyi_session **out, const renyi_model *m,
                              const renyi_embed_options *o, uint32_t batch, renyi_error *err)
{
    const renyi_session_options options = {.struct_size = sizeof options,
                                           .max_batch = batch,
                                           .n_threads = o->n_threads,
                                           .policy = o->policy,
                                           .output = o->output};
    return renyi_session_new(out, m, &options, err);
}

/* ---- images --------------------------------------------------------------------------------- */

/* The pipeline reads images from a dataset, so the paths become one. */
static renyi_status list_images(embedding *e, const char *const *paths, renyi_error *err)
{
    e->images = ry_calloc(e->al, 1, sizeof *e->images);
    if (!e->images) return ry_fail_nomem(err, sizeof *e->images);
    e->images->al = *e->al;
    e->todo = ry_alloc(e->al, e->n, sizeof *e->todo);
    if (!e->todo) return ry_fail_nomem(err, e->n * sizeof *e->todo);
    e->images->pool.al = &e->images->al;
    e->images->max_images = e->n;
    for (size_t i = 0; i < e->n; i++) {
        e->todo[i] = i;
        RY_TRY(
            ry_dataset_add(e->images, (ry_text){"", 0}, ry_text_of(paths[i]), RENYI_NO_CLASS, err));
    }
    return RENYI_OK;
}

static void report_failure(const embedding *e, size_t index, const char *message)
{
    renyi_dataset_image image;
    renyi_dataset_get_image(e->images, index, &image);
    if (e->o.on_failure) e->o.on_failure(e->o.user, image.path, message);
}

/* Whether a row can be compared: finite and not all zeros. */
static int is_usable_row(const float *row, size_t dim)
{
    double square = 0.0;
    for (size_t k = 0; k < dim; k++) square += (double)row[k] * (double)row[k];
    return isfinite(square) && square > 0.0;
}

static renyi_status embed_batch(embedding *e, const ry_batch *b, renyi_error *err)
{
    for (uint32_t i = 0; i < b->n_faults; i++)
        report_failure(e, b->faults[i].image, b->faults[i].message);
    if (!b->n) return RENYI_OK;
    RY_TRY(b->chw ? renyi_run_tensor(e->session, b->chw, b->n, e->outputs, err)
                  : renyi_run_pixels(e->session, b->pixels, b->n, e->outputs, err));
    for (uint32_t i = 0; i < b->n; i++) {
        const float *output = e->outputs + i * e->dim;
        float *row = e->rows + b->images[i] * e->dim;
        if (!is_usable_row(output, e->dim)) {
            report_failure(e, b->images[i], "the embedding of the model is not finite, or zero");
            continue;
        }
        memcpy(row, output, e->dim * sizeof *row);
        renyi_normalise_rows(row, e->rows_each, (uint32_t)(e->dim / e->rows_each));
        e->is_done[b->images[i]] = 1;
    }
    return RENYI_OK;
}

static renyi_status embed_all(embedding *e, renyi_error *err)
{
    const uint32_t cores = ry_cpu_cores();
    const uint32_t spare = cores > e->o.n_threads ? cores - e->o.n_threads : 0;
    const ry_pipeline_options options = {.data = e->images,
                                         .todo = e->todo,
                                         .n_todo = e->n,
                                         .spec = e->spec,
                                         .batch = e->o.batch,
                                         .n_beside = e->o.n_workers ? e->o.n_workers : spare,
                                         .n_threads = cores,
                                         .normalize = e->normalize};
    ry_pipeline *pipeline = NULL;
    uint64_t done = 0;
    renyi_status st = ry_pipeline_new(&pipeline, &options, e->al, err);
    for (const ry_batch *b; !st && (b = ry_pipeline_next(pipeline));) {
        st = embed_batch(e, b, err);
        done += b->n + b->n_faults;
        if (!st && e->o.progress && e->o.progress(e->o.user, done, e->n))
            st = ry_fail(err, RENYI_ERR_ABORTED, -1, "stopped by the progress callback");
    }
    ry_pipeline_free(pipeline);
    return st;
}

/* ---- public function ------------------------------------------------------------------------ */

static renyi_status embed_paths(embedding *e, const renyi_model *m, const char *const *paths,
                                const renyi_embed_options *opt, renyi_error *err)
{
    renyi_preprocess spec;
    renyi_model_info info;
    RY_TRY(ry_embed_options_read(&e->o, &spec, m, opt, err));
    renyi_model_get_info(m, &info);
    if (e->n < e->o.batch) e->o.batch = (uint32_t)e->n;
    e->spec = ry_image_spec_of(&spec, &e->o.limits, e->o.apply_exif);
    e->normalize = memcmp(spec.mean, info.preprocess.mean, sizeof spec.mean) != 0 ||
                   memcmp(spec.std, info.preprocess.std, sizeof spec.std) != 0;
    RY_TRY(ry_embed_session(&e->session, m, &e->o, e->o.batch, err));
    e->dim = renyi_session_outputs(e->session);
    e->rows_each = e->o.output == RENYI_OUTPUT_PATCHES ? info.n_patches : 1;
    e->outputs = ry_alloc(e->al, (size_t)e->o.batch * e->dim, sizeof *e->outputs);
    if (!e->outputs) return ry_fail_nomem(err, (size_t)e->o.batch * e->dim * sizeof *e->outputs);
    memset(e->rows, 0, e->n * e->dim * sizeof *e->rows);
    memset(e->is_done, 0, e->n);
    RY_TRY(list_images(e, paths, err));
    return embed_all(e, err);
}

renyi_status renyi_embed_photos(const renyi_model *m, const char *const *paths, size_t n,
                                const renyi_embed_options *opt, float *rows, uint8_t *is_done,
                                renyi_error *err)
{
    if (!m || (n && (!paths || !rows || !is_done)))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_embed_photos: NULL argument");
    if (!n) return RENYI_OK;
    embedding e = {.al = &e.o.allocator, .n = n, .rows = rows, .is_done = is_done};
    const renyi_status st = embed_paths(&e, m, paths, opt, err);
    renyi_session_free(e.session);
    renyi_dataset_free(e.images);
    ry_free(e.al, e.todo);
    ry_free(e.al, e.outputs);
    return st;
}
