/* decode.h - encoded bytes to RGB: one signature for every format. Each reader checks the size that
 * the header states against the limits before it allocates anything of that size.
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
 * colours are dropped, not blended. Scratch inside the decoding libraries is from the C heap. */
typedef renyi_status ry_image_reader(renyi_image *out, const ry_encoded *in, renyi_error *err);

ry_image_reader ry_decode_jpeg, ry_decode_png, ry_decode_webp, ry_decode_ppm;

/* One number a pixel: what a grey or indexed PNG stores, whatever it looks like. Samples of 1, 2, 4
 * and 8 bits are not spread over 0..255; of 16 bits, 0 to 255 stay and 65535 is 255. Other 16-bit
 * values, colours and alpha are errors that say so. */
typedef struct ry_plane {
    uint8_t *values; /* [height, width]; owned (ry_alloc) */
    uint32_t width, height;
} ry_plane;

/* On failure *out is not touched. */
renyi_status ry_decode_png_plane(ry_plane *out, const ry_encoded *in, renyi_error *err) RENYI_CHECK;

/* For readers: limits first, then the pixels. `format` begins the message. */
renyi_status ry_image_check_size(const ry_encoded *in, const char *format, uint64_t width,
                                 uint64_t height, renyi_error *err) RENYI_CHECK;
renyi_status ry_image_new(renyi_image *out, uint8_t **rgb, const ry_encoded *in, uint32_t width,
                          uint32_t height, renyi_error *err) RENYI_CHECK;

#endif
