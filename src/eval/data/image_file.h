/* image_file.h - from the name of a photo to the pixels a model takes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_IMAGE_FILE_H
#define RY_IMAGE_FILE_H

#include "renyi/renyi.h"

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

#endif
