/* decode.h - encoded images to RGB: one reader per format, and EXIF orientation.
 *
 * Each reader checks the size in the file's header against the limits before it allocates memory of
 * that size.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DECODE_H
#define RY_DECODE_H

#include "renyi/renyi.h"

typedef struct ry_encoded {
    const uint8_t *bytes;
    size_t size;
    renyi_limits limits; /* defaults filled in */
    const renyi_allocator *allocator;
} ry_encoded;

/* On success *out owns its pixels (ry_alloc) and is dense: stride = 3 * width. On failure *out is
 * not touched. The result equals Pillow's Image.open(f).convert("RGB"): alpha and transparent
 * colors are dropped, not blended. The decoding libraries use the C heap for their own memory. */
typedef renyi_status ry_image_reader(renyi_image *out, const ry_encoded *in, renyi_error *err);

ry_image_reader ry_decode_jpeg, ry_decode_png, ry_decode_webp, ry_decode_ppm;

/* One number per pixel, as stored in a grey or indexed PNG. Samples of 1, 2, 4 and 8 bits are not
 * spread over 0..255; 16-bit values 0 to 255 are kept and 65535 becomes 255. Other 16-bit values,
 * colors and alpha are errors. */
typedef struct ry_plane {
    uint8_t *values; /* [height, width]; owned (ry_alloc) */
    uint32_t width, height;
} ry_plane;

/* On failure *out is not touched. */
renyi_status ry_decode_png_plane(ry_plane *out, const ry_encoded *in, renyi_error *err) RENYI_CHECK;

/* The length of the data of the PNG chunk that begins at byte `at`; SIZE_MAX if it does not end
 * within the file. A chunk is length, name, data and checksum; the first is at byte 8. */
size_t ry_png_chunk(const uint8_t *bytes, size_t size, size_t at);

/* For readers: check limits first, then allocate the pixels. `format` begins the message. */
renyi_status ry_image_check_size(const ry_encoded *in, const char *format, uint64_t width,
                                 uint64_t height, renyi_error *err) RENYI_CHECK;
renyi_status ry_image_new(renyi_image *out, uint8_t **rgb, const ry_encoded *in, uint32_t width,
                          uint32_t height, renyi_error *err) RENYI_CHECK;

/* ---- exif.c: how the camera was held ------------------------------------------------------- */

/* 1 to 8 from JPEG's APP1, PNG's eXIf or WebP's EXIF chunk; 1 (upright) if there is none or it is
 * invalid: a broken tag never makes an image unreadable. Any bytes are allowed. */
uint32_t ry_exif_orientation(const uint8_t *bytes, size_t size, renyi_image_format format);

/* Replace the pixels of a dense image by the turned ones. On failure it is unchanged. */
renyi_status ry_image_turn(renyi_image *image, uint32_t orientation, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;
renyi_status ry_plane_turn(ry_plane *plane, uint32_t orientation, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;

#endif
