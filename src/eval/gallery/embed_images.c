/* embed_images.c - renyi_embed_photos: embeds image files as rows of length 1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/gallery/gallery_index.h"

#include "base/cpu.h"
#include "base/status.h"
#include "engine/core/engine_options.h"
#include "renyi/clip.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_BATCH = 8 };

/* The state of one call. */
typedef struct embedding {
    renyi_embed_options o; /* defaults filled in */
    const char *const *paths;
    size_t dim, rows_each; /* numbers of an image, in so many rows */
    float *rows;           /* [n, dim] the caller's */
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
                                           .output = o->output,
                                           .n_streams = o->n_streams};
    return renyi_session_new(out, m, &options, err);
}

/* ---- images --------------------------------------------------------------------------------- */

/* Whether a row can be compared: finite and not all zeros. */
static int is_usable_row(const float *row, size_t dim)
{
    double square = 0.0;
    for (size_t k = 0; k < dim; k++) square += (double)row[k] * (double)row[k];
    return isfinite(square) && square > 0.0;
}

static int take_row(void *user, const renyi_photo *photo)
{
    const embedding *e = user;
    const char *failure = photo->failure;
    if (!failure && !is_usable_row(photo->outputs, e->dim))
        failure = "the embedding of the model is not finite, or zero";
    if (failure) {
        if (e->o.on_failure) e->o.on_failure(e->o.user, e->paths[photo->index], failure);
        return 0;
    }
    float *row = e->rows + photo->index * e->dim;
    memcpy(row, photo->outputs, e->dim * sizeof *row);
    renyi_normalise_rows(row, e->rows_each, (uint32_t)(e->dim / e->rows_each));
    e->is_done[photo->index] = 1;
    return 0;
}

static int pass_progress(void *user, uint64_t done, uint64_t total)
{
    const embedding *e = user;
    return e->o.progress ? e->o.progress(e->o.user, done, total) : 0;
}

/* ---- public function ------------------------------------------------------------------------ */

static renyi_status embed_paths(embedding *e, const renyi_model *m, size_t n,
                                const renyi_embed_options *opt, renyi_error *err)
{
    renyi_preprocess spec;
    renyi_model_info info;
    renyi_session *session;
    uint32_t batch;
    RY_TRY(ry_embed_options_read(&e->o, &spec, m, opt, err));
    renyi_model_get_info(m, &info);
    RY_TRY(ry_streams_batch(&batch, e->o.batch, e->o.n_streams, err));
    if (n < batch) batch = (uint32_t)n;
    RY_TRY(ry_embed_session(&session, m, &e->o, batch, err));
    e->dim = renyi_session_outputs(session);
    e->rows_each = e->o.output == RENYI_OUTPUT_PATCHES ? info.n_patches : 1;
    memset(e->rows, 0, n * e->dim * sizeof *e->rows);
    memset(e->is_done, 0, n);
    const renyi_photos_options o = {.struct_size = sizeof o,
                                    .n_workers = e->o.n_workers,
                                    .apply_exif = e->o.apply_exif,
                                    .decode = e->o.decode,
                                    .preprocess = &spec,
                                    .limits = e->o.limits,
                                    .allocator = e->o.allocator,
                                    .user = e,
                                    .on_photo = take_row,
                                    .progress = pass_progress};
    const renyi_status st = renyi_run_photos(session, e->paths, n, &o, err);
    renyi_session_free(session);
    return st;
}

renyi_status renyi_embed_photos(const renyi_model *m, const char *const *paths, size_t n,
                                const renyi_embed_options *opt, float *rows, uint8_t *is_done,
                                renyi_error *err)
{
    if (!m || (n && (!paths || !rows || !is_done)))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_embed_photos: NULL argument");
    if (!n) return RENYI_OK;
    embedding e = {.paths = paths, .rows = rows, .is_done = is_done};
    return embed_paths(&e, m, n, opt, err);
}
