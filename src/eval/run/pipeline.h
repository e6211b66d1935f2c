/* pipeline.h - decodes images into batches while the model runs.
 *
 * Batches are in a ring and are returned in order. The threads that decode must not take cores from
 * the model: its threads share work in small tiles and wait for each other by spinning, so one core
 * that decodes for a moment delays them all. Hence while the model runs only `n_beside` threads
 * decode (the cores that the model leaves free, often none). When the next batch is not ready, all
 * threads decode, the caller's too, until the ring is full.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PIPELINE_H
#define RY_PIPELINE_H

#include "renyi/eval.h"
#include "renyi/gallery.h"

/* How image files become pixels [size, size, 3]: renyi_image_load_pixels with these. The heap is
 * the C library's, so any thread may load. */
typedef struct ry_image_spec {
    renyi_preprocess preprocess;
    renyi_image_options load;
} ry_image_spec;

ry_image_spec ry_image_spec_of(const renyi_preprocess *preprocess, const renyi_limits *limits,
                               uint32_t apply_exif, renyi_decode_mode decode);

/* ---- batches ------------------------------------------------------------------------------- */

typedef struct ry_pipeline ry_pipeline;

/* Which images there are: those of a dataset or of a list of paths. Borrowed. */
typedef struct ry_image_source {
    const renyi_dataset *data; /* NULL: paths */
    const char *const *paths;
    renyi_photo_loader load; /* NULL = as the spec says; called on any thread */
    void *user;              /* its first argument */
} ry_image_source;

typedef struct ry_pipeline_options {
    ry_image_source source;
    const size_t *todo; /* [n_todo] images of the source, in the order wanted; NULL = the first;
                           borrowed */
    size_t n_todo;
    ry_image_spec spec;
    uint32_t batch;
    uint32_t n_beside;  /* threads that decode while the model runs */
    uint32_t n_threads; /* threads that decode while it does not, the caller's included */
    int normalize;      /* 1 = batches also have floats, normalized as spec says */
} ry_pipeline_options;

/* Why an image of a batch is missing. */
typedef struct ry_image_fault {
    size_t image; /* of the source */
    char message[496];
} ry_image_fault;

typedef struct ry_batch {
    uint8_t *pixels;        /* [n, size, size, 3] */
    float *chw;             /* [n, 3, size, size], only with `normalize` */
    size_t *images;         /* [n] of the source */
    double *seconds;        /* [n] that each took to load */
    uint32_t n;             /* images that could be read */
    ry_image_fault *faults; /* [n_faults] */
    uint32_t n_faults;
} ry_batch;

renyi_status ry_pipeline_new(ry_pipeline **out, const ry_pipeline_options *opt,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* The next batch, or NULL after the last; valid until the next call. The model is assumed to run
 * between two calls. */
const ry_batch *ry_pipeline_next(ry_pipeline *p);
double ry_pipeline_decode_seconds(ry_pipeline *p); /* of all threads together, so far */
void ry_pipeline_free(ry_pipeline *p);             /* waits for the threads; NULL is fine */

#endif
