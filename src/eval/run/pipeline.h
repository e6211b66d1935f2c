/* pipeline.h - photos become batches while the model runs.
 *
 * Batches stand in a ring and are handed out in order. The threads that fill it must not take cores
 * from the model: its threads share work in small tiles and wait for each other by spinning, so a
 * core that decodes for a moment stalls them all. Hence a gate: while the model runs, only
 * `n_beside` threads decode (the cores that the model leaves free, often none). When the next batch
 * is not ready, everyone decodes, the caller too, until the ring is full. On a machine where model
 * and decoding need the same cores their times add up either way; like this nothing is lost on top.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PIPELINE_H
#define RY_PIPELINE_H

#include "renyi/eval.h"

typedef struct ry_photo_spec {
    renyi_preprocess preprocess;
    renyi_limits limits; /* defaults filled in */
    uint32_t apply_exif;
} ry_photo_spec;

/* Read, decode, resize, crop into pixels [size, size, 3]. From the C heap, so any thread may call
 * it. The message leaves the file's name to the caller. */
renyi_status ry_photo_load(uint8_t *pixels, const char *path, const ry_photo_spec *spec,
                           renyi_error *err) RENYI_CHECK;

/* The same, and the width and height of the photo before it was resized, turned already. */
renyi_status ry_photo_load_sized(uint8_t *pixels, uint32_t size[2], const char *path,
                                 const ry_photo_spec *spec, renyi_error *err) RENYI_CHECK;

/* pixels [size, size, 3] -> floats [3, size, size] = (pixel / 255 - mean) / std */
void ry_photo_normalise(float *chw, const uint8_t *pixels, const renyi_preprocess *spec);

typedef struct ry_pipeline ry_pipeline;

typedef struct ry_pipeline_options {
    const renyi_dataset *data; /* borrowed, as todo */
    const size_t *todo;        /* [n_todo] photos of the dataset, in the order wanted */
    size_t n_todo;
    ry_photo_spec spec;
    uint32_t batch;
    uint32_t n_beside;  /* threads that decode while the model runs */
    uint32_t n_threads; /* threads that decode while it does not, the caller's counted in */
    int normalise;      /* hand out floats, normalised as spec says, instead of pixels */
} ry_pipeline_options;

/* Why a photo of a batch is missing. */
typedef struct ry_photo_fault {
    size_t photo; /* of the dataset */
    char message[496];
} ry_photo_fault;

typedef struct ry_batch {
    uint8_t *pixels;        /* [n, size, size, 3] */
    float *chw;             /* [n, 3, size, size], only with `normalise` */
    size_t *photos;         /* [n] of the dataset */
    uint32_t n;             /* photos that could be read */
    ry_photo_fault *faults; /* [n_faults] */
    uint32_t n_faults;
} ry_batch;

renyi_status ry_pipeline_new(ry_pipeline **out, const ry_pipeline_options *opt,
                             const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* The next batch, or NULL after the last one; good until the next call. The model is taken to run
 * from its return to the next call. */
const ry_batch *ry_pipeline_next(ry_pipeline *p);
double ry_pipeline_decode_seconds(ry_pipeline *p); /* work of all threads so far */
void ry_pipeline_free(ry_pipeline *p);             /* waits for the threads; NULL is fine */

#endif
