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

/* ---- one image ----------------------------------------------------------------------------- */

/* How a file becomes the pixels that a model takes. */
typedef struct ry_image_spec {
    renyi_preprocess preprocess;
    renyi_limits limits; /* with defaults filled in */
    uint32_t apply_exif;
} ry_image_spec;

/* Reads, decodes, resizes and crops into pixels [size, size, 3]. Uses the C heap, so any thread may
 * call it. The message does not name the file. */
renyi_status ry_image_load(uint8_t *pixels, const char *path, const ry_image_spec *spec,
                           renyi_error *err) RENYI_CHECK;

/* The same; size: width and height of the image before it was resized, after it was turned. */
renyi_status ry_image_load_sized(uint8_t *pixels, uint32_t size[2], const char *path,
                                 const ry_image_spec *spec, renyi_error *err) RENYI_CHECK;

/* pixels [size, size, 3] -> chw [3, size, size] = (pixel / 255 - mean) / std */
void ry_image_normalize(float *chw, const uint8_t *pixels, const renyi_preprocess *spec);

/* ---- batches ------------------------------------------------------------------------------- */

typedef struct ry_pipeline ry_pipeline;

typedef struct ry_pipeline_options {
    const renyi_dataset *data; /* borrowed, like todo */
    const size_t *todo;        /* [n_todo] images of the dataset, in the order wanted */
    size_t n_todo;
    ry_image_spec spec;
    uint32_t batch;
    uint32_t n_beside;  /* threads that decode while the model runs */
    uint32_t n_threads; /* threads that decode while it does not, the caller's included */
    int normalize;      /* 1 = batches also have floats, normalized as spec says */
} ry_pipeline_options;

/* Why an image of a batch is missing. */
typedef struct ry_image_fault {
    size_t image; /* of the dataset */
    char message[496];
} ry_image_fault;

typedef struct ry_batch {
    uint8_t *pixels;        /* [n, size, size, 3] */
    float *chw;             /* [n, 3, size, size], only with `normalize` */
    size_t *images;         /* [n] of the dataset */
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
