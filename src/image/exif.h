/* exif.h - how a camera was held. Cameras store the sensor's rows and a number from 1 to 8 that
 * says how to turn them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_EXIF_H
#define RY_EXIF_H

#include "image/decode.h"

/* 1 to 8 from JPEG's APP1, PNG's eXIf or WebP's EXIF chunk; 1 (upright) when there is none or it
 * makes no sense: a broken tag never makes a picture unreadable. Any bytes are fine. */
uint32_t ry_exif_orientation(const uint8_t *bytes, size_t size, renyi_image_format format);

/* Replace the pixels of a dense picture by the turned ones. On failure it is unchanged. */
renyi_status ry_image_turn(renyi_image *image, uint32_t orientation, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;
renyi_status ry_plane_turn(ry_plane *plane, uint32_t orientation, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;

#endif
