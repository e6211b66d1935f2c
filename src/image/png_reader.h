/* png_reader.h - the stored rows of a PNG, by libspng or, in builds without it, by libpng.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Samples are as in the file: 1, 2 and 4 bits packed, the leftmost in the high bits; 16 bits with
 * the high byte first; nothing converted.
 */
#ifndef RY_PNG_READER_H
#define RY_PNG_READER_H

#include "image/decode.h"

typedef enum ry_png_color {
    RY_PNG_GREY = 0,
    RY_PNG_RGB = 2,
    RY_PNG_INDEXED = 3,
    RY_PNG_GREY_ALPHA = 4,
    RY_PNG_RGB_ALPHA = 6
} ry_png_color;

typedef struct ry_png_head {
    uint32_t width, height;
    uint8_t bit_depth;
    ry_png_color color;
    int is_interlaced;
} ry_png_head;

/* Limits for one ancillary chunk (profiles, texts), and for all of them. */
enum { RY_PNG_MAX_CHUNK = 16 << 20, RY_PNG_MAX_CACHE = 32 << 20 };

typedef struct ry_png_reader ry_png_reader;

/* Its memory comes from the C heap, as that of the decoding libraries. `in` is borrowed. */
renyi_status ry_png_reader_new(ry_png_reader **out, const ry_encoded *in, renyi_error *err);
void ry_png_reader_free(ry_png_reader *r);

/* First. Checks no limits of the image's size, and takes no memory of its size. */
renyi_status ry_png_read_head(ry_png_reader *r, ry_png_head *head, renyi_error *err);

/* Fills the colors that the file has and leaves the others. For indexed images. */
renyi_status ry_png_palette(ry_png_reader *r, uint8_t palette[256][3], renyi_error *err);

/* The next row [row_bytes] of an image that is not interlaced; `y` counts from 0. */
renyi_status ry_png_row(ry_png_reader *r, uint32_t y, uint8_t *row, size_t row_bytes,
                        renyi_error *err);
/* All rows [height, row_bytes] at once; zero before. */
renyi_status ry_png_rows(ry_png_reader *r, uint8_t *rows, size_t row_bytes, renyi_error *err);

/* Messages that do not depend on the library. */
renyi_status ry_png_fail_truncated(const ry_encoded *in, renyi_error *err);
renyi_status ry_png_fail_palette(renyi_error *err);

#endif
