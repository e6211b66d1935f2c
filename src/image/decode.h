/* decode.h - encoded images to RGB: one reader per format, and EXIF orientation.
 *
 * Each reader checks the size in the file's header against the limits before it allocates memory of
 * that size.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_DECODE_H
#define RY_DECODE_H

#include "renyi/renyi.h"

/* Where a whole image lies in its pixels, which may have been decoded at a smaller scale. The last
 * pixel of a scaled JPEG may be partly outside the image, so sides are not always whole numbers. */
typedef struct ry_whole {
    uint32_t width, height;         /* in the file, turned with the pixels */
    double left, top, across, down; /* in decoded pixels */
} ry_whole;

/* Scaled decoding: what the image is for, and what the reader did. */
typedef struct ry_scaling {
    const renyi_preprocess *spec;
    ry_whole whole; /* set by ry_image_scale; width 0 = the reader decodes every pixel */
} ry_scaling;

/* fit_rows.h: takes rows as they are decoded. */
typedef struct ry_fit_rows ry_fit_rows;

typedef struct ry_encoded {
    const uint8_t *bytes;
    size_t size;
    renyi_limits limits; /* defaults filled in */
    const renyi_allocator *allocator;
    ry_scaling *scaling; /* NULL = every pixel */
    ry_fit_rows *rows;   /* NULL = the image is wanted. A reader may give it the rows instead; then
                            rows->is_done is set and the image has no pixels */
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

/* For readers that can scale: 1, 2, 4 or 8, by which both sides may be divided. The decoded image
 * then has at least twice the size that it will be resized to. 1 without in->scaling. */
uint32_t ry_image_scale(const ry_encoded *in, uint32_t width, uint32_t height);

/* ---- exif.c: how the camera was held ------------------------------------------------------- */

/* 1 to 8 from JPEG's APP1, PNG's eXIf or WebP's EXIF chunk; 1 (upright) if there is none or it is
 * invalid: a broken tag never makes an image unreadable. Any bytes are allowed. */
uint32_t ry_exif_orientation(const uint8_t *bytes, size_t size, renyi_image_format format);

/* Replace the pixels of a dense image by the turned ones. On failure it is unchanged. */
renyi_status ry_image_turn(renyi_image *image, uint32_t orientation, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;
/* The same for the place of the whole image in pixels of width x height, before they are turned. */
void ry_whole_turn(ry_whole *whole, uint32_t width, uint32_t height, uint32_t orientation);
renyi_status ry_plane_turn(ry_plane *plane, uint32_t orientation, const renyi_allocator *al,
                           renyi_error *err) RENYI_CHECK;

#endif
