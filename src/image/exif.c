/* exif.c - finds the EXIF orientation in JPEG, PNG and WebP files, and turns pixels by it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/decode.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

typedef struct span {
    const uint8_t *at;
    size_t size;
} span;

static uint32_t read_be(const uint8_t *p, int n)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

static uint32_t read_le(const uint8_t *p, int n)
{
    uint32_t v = 0;
    while (n--) v = v << 8 | p[n];
    return v;
}

/* TIFF structure (CIPA DC-008): byte order, 42, offset of the first directory; a directory is a
 * count and entries of 12 bytes: tag, type, count, value. */
static uint32_t orientation_in_tiff(span t)
{
    enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3 };
    if (t.size >= 6 && !memcmp(t.at, "Exif\0\0", 6)) t = (span){t.at + 6, t.size - 6};
    if (t.size < 8 || (memcmp(t.at, "II", 2) && memcmp(t.at, "MM", 2))) return 1;
    uint32_t (*const read)(const uint8_t *, int) = t.at[0] == 'I' ? read_le : read_be;
    const size_t dir = read(t.at + 4, 4);
    if (read(t.at + 2, 2) != 42 || dir > t.size - 2) return 1;
    const size_t entries = read(t.at + dir, 2);
    for (size_t i = 0; i < entries; i++) {
        const size_t at = dir + 2 + 12 * i;
        if (at + 12 > t.size) return 1;
        if (read(t.at + at, 2) != TAG_ORIENTATION) continue;
        const uint32_t value = read(t.at + at + 8, 2);
        return read(t.at + at + 2, 2) == TYPE_SHORT && value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}

/* Segments up to the first scan: FF marker, length that counts itself. */
static span find_in_jpeg(span f)
{
    size_t at = 2;
    while (at + 4 <= f.size && f.at[at] == 0xff) {
        const uint8_t marker = f.at[at + 1];
        if (marker == 0xff) { /* fill byte */
            at++;
            continue;
        }
        const size_t length = read_be(f.at + at + 2, 2);
        if (marker == 0xda || length < 2 || length > f.size - at - 2) break;
        if (marker == 0xe1 && length >= 8 && !memcmp(f.at + at + 4, "Exif\0\0", 6))
            return (span){f.at + at + 4, length - 2};
        at += 2 + length;
    }
    return (span){f.at, 0};
}

/* Chunks: length, name, data, CRC. The chunk may come after the pixels. */
static span find_in_png(span f)
{
    for (size_t at = 8, n; (n = ry_png_chunk(f.at, f.size, at)) != SIZE_MAX; at += n + 12)
        if (!memcmp(f.at + at + 4, "eXIf", 4)) return (span){f.at + at + 8, n};
    return (span){f.at, 0};
}

/* RIFF chunks: name, length, data, padded to even. */
static span find_in_webp(span f)
{
    size_t at = 12;
    while (f.size >= 8 && at <= f.size - 8) {
        const size_t length = read_le(f.at + at + 4, 4);
        if (length > f.size - at - 8) break;
        if (!memcmp(f.at + at, "EXIF", 4)) return (span){f.at + at + 8, length};
        at += 8 + length + (length & 1);
    }
    return (span){f.at, 0};
}

uint32_t ry_exif_orientation(const uint8_t *bytes, size_t size, renyi_image_format format)
{
    const span file = {bytes, size};
    switch (format) {
    case RENYI_IMAGE_JPEG: return orientation_in_tiff(find_in_jpeg(file));
    case RENYI_IMAGE_PNG: return orientation_in_tiff(find_in_png(file));
    case RENYI_IMAGE_WEBP: return orientation_in_tiff(find_in_webp(file));
    case RENYI_IMAGE_PPM:
    case RENYI_IMAGE_UNKNOWN: break;
    }
    return 1;
}

/* Which stored pixel becomes pixel (x, y) of the turned image: sides swapped, then flipped. */
static const struct {
    uint8_t swap, flip_x, flip_y; /* flips act on the stored axes */
} TURN[9] = {
    {0, 0, 0}, {0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1}, /* -, 1: upright, 2, 3, 4 */
    {1, 0, 0}, {1, 0, 1}, {1, 1, 1}, {1, 1, 0},            /* 5, 6, 7, 8: on its side */
};

/* Pixels of `each` bytes from rows `stride` apart to dense rows in *out, which the caller owns. */
static renyi_status turn_pixels(uint8_t **out, const uint8_t *from, size_t stride, uint32_t *width,
                                uint32_t *height, size_t each, uint32_t orientation,
                                const renyi_allocator *al, renyi_error *err)
{
    const uint32_t w = *width, h = *height;
    const int swap = TURN[orientation].swap;
    const uint32_t new_w = swap ? h : w, new_h = swap ? w : h;
    uint8_t *to = *out = ry_alloc(al, new_h, each * new_w);
    if (!to) return ry_fail_nomem(err, new_h * each * new_w);
    for (uint32_t y = 0; y < new_h; y++) {
        for (uint32_t x = 0; x < new_w; x++, to += each) {
            uint32_t sx = swap ? y : x, sy = swap ? x : y;
            if (TURN[orientation].flip_x) sx = w - 1 - sx;
            if (TURN[orientation].flip_y) sy = h - 1 - sy;
            memcpy(to, from + sy * stride + each * sx, each);
        }
    }
    *width = new_w;
    *height = new_h;
    return RENYI_OK;
}

renyi_status ry_image_turn(renyi_image *image, uint32_t orientation, const renyi_allocator *al,
                           renyi_error *err)
{
    uint32_t w = image->width, h = image->height;
    uint8_t *turned;
    RY_TRY(turn_pixels(&turned, image->rgb, image->stride, &w, &h, 3, orientation, al, err));
    ry_free(al, (uint8_t *)(uintptr_t)image->rgb);
    *image = (renyi_image){turned, w, h, 3 * (size_t)w};
    return RENYI_OK;
}

void ry_whole_turn(ry_whole *whole, uint32_t width, uint32_t height, uint32_t orientation)
{
    ry_whole w = *whole;
    if (TURN[orientation].flip_x) w.left = width - w.left - w.across;
    if (TURN[orientation].flip_y) w.top = height - w.top - w.down;
    *whole =
        TURN[orientation].swap ? (ry_whole){w.height, w.width, w.top, w.left, w.down, w.across} : w;
}

renyi_status ry_plane_turn(ry_plane *plane, uint32_t orientation, const renyi_allocator *al,
                           renyi_error *err)
{
    uint32_t w = plane->width, h = plane->height;
    uint8_t *turned;
    RY_TRY(turn_pixels(&turned, plane->values, w, &w, &h, 1, orientation, al, err));
    ry_free(al, plane->values);
    *plane = (ry_plane){turned, w, h};
    return RENYI_OK;
}
