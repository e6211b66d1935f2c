/* fuzz_images.c - image and mask files: decoded, turned, resized; bytes that PNG checksums would
 * stop are repaired.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/limits.h"
#include "eval/masks/mask.h"
#include "fuzz_targets.h"
#include "image/decode.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Corrects the checksum of every chunk: otherwise hardly any changed byte gets past it. */
static uint32_t png_crc(const uint8_t *bytes, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Chunks from byte 8 on: length, name, data, CRC of name and data. */
static void png_repair(uint8_t *png, size_t size)
{
    for (size_t at = 8; size >= 12 && at <= size - 12;) {
        const size_t length = (size_t)png[at] << 24 | (size_t)png[at + 1] << 16 |
                              (size_t)png[at + 2] << 8 | png[at + 3];
        if (length > size - at - 12) break;
        const uint32_t crc = png_crc(png + at + 4, length + 4);
        for (size_t i = 0; i < 4; i++) png[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + length;
    }
}

/* A copy with right checksums; free() it. NULL = no memory. */
static uint8_t *png_repaired(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return NULL;
    if (size) memcpy(copy, data, size);
    png_repair(copy, size);
    return copy;
}

/* Scaled: for an input of one pixel, so that images of any size are divided. The whole
 * image has the size of one decoded exactly. */
static void decode_scaled(const uint8_t *data, size_t size, const renyi_image *exact)
{
    uint8_t out[3];
    uint32_t full[2];
    renyi_error err;
    const renyi_image_options opt = {.struct_size = sizeof opt,
                                     .apply_exif = 1,
                                     .limits = {.max_pixels = 1u << 18, .max_image_side = 4096},
                                     .decode = RENYI_DECODE_SCALED};
    const renyi_preprocess spec = {1,
                                   (renyi_crop_mode)(size % 3),
                                   (renyi_interpolation)(size / 3 % 3),
                                   0.9,
                                   {0.5, 0.5, 0.5},
                                   {1, 1, 1}};
    if (renyi_image_decode_pixels(out, full, data, size, &spec, &opt, &err)) return;
    if (exact && (full[0] != exact->width || full[1] != exact->height)) abort();
}

/* Reads the bytes as one format, rotates the image by its EXIF tag and resizes it; then the same
 * scaled. Small limits keep a run fast. */
static int decode_image(ry_image_reader *reader, renyi_image_format format, const uint8_t *data,
                        size_t size)
{
    const renyi_limits small = {.max_pixels = 1u << 18, .max_image_side = 4096};
    const ry_encoded in = {data, size, ry_limits(&small), NULL, NULL, NULL};
    const uint32_t orientation = ry_exif_orientation(data, size, format);
    renyi_error err;
    renyi_image image;
    if (renyi_image_sniff(data, size) != format) return 0;
    if (reader(&image, &in, &err)) {
        decode_scaled(data, size, NULL);
        return 0;
    }
    if (orientation < 1 || orientation > 8) abort();
    if (ry_image_turn(&image, orientation, NULL, &err) == RENYI_OK) {
        uint8_t out[24 * 24 * 3];
        const renyi_preprocess spec = {24,
                                       (renyi_crop_mode)(size % 3),
                                       (renyi_interpolation)(size / 3 % 3),
                                       0.9,
                                       {0.5, 0.5, 0.5},
                                       {1, 1, 1}};
        const renyi_image_options opt = {
            .struct_size = sizeof opt, .apply_exif = 1, .limits = small};
        if (renyi_image_fit(out, &image, &spec, NULL, &err)) abort();
        if (renyi_image_decode_pixels(out, NULL, data, size, &spec, &opt, &err)) abort();
        decode_scaled(data, size, &image);
    }
    ry_free(NULL, (void *)(uintptr_t)image.rgb);
    return 0;
}

/* ---- jpeg ------------------------------------------------------------------------------------ */

/* Any bytes as JPEG. */
int fuzz_jpeg(const uint8_t *data, size_t size)
{
    return decode_image(ry_decode_jpeg, RENYI_IMAGE_JPEG, data, size);
}

/* ---- png ------------------------------------------------------------------------------------- */

/* Any bytes as PNG; then the same with corrected checksums. */
int fuzz_png(const uint8_t *data, size_t size)
{
    decode_image(ry_decode_png, RENYI_IMAGE_PNG, data, size);
    uint8_t *copy = png_repaired(data, size);
    if (!copy) return 0;
    decode_image(ry_decode_png, RENYI_IMAGE_PNG, copy, size);
    free(copy);
    return 0;
}

/* ---- ppm ------------------------------------------------------------------------------------- */

/* Any bytes as PPM. */
int fuzz_ppm(const uint8_t *data, size_t size)
{
    return decode_image(ry_decode_ppm, RENYI_IMAGE_PPM, data, size);
}

/* ---- webp ------------------------------------------------------------------------------------ */

/* Any bytes as WebP. */
int fuzz_webp(const uint8_t *data, size_t size)
{
    return decode_image(ry_decode_webp, RENYI_IMAGE_WEBP, data, size);
}

/* ---- mask ------------------------------------------------------------------------------------ */

/* Any bytes as a PNG mask of any kind, rotated by its EXIF tag, to the class of each patch; then
 * the same with corrected checksums. */
static void read_mask(const uint8_t *data, size_t size)
{
    static const renyi_limits small = {.max_pixels = 1u << 18, .max_image_side = 4096};
    uint32_t image_size[2] = {0, 0};
    for (size_t i = 16; i < 24 && size >= 24; i++) /* what the header says, so that it fits */
        image_size[(i - 16) / 4] = image_size[(i - 16) / 4] << 8 | data[i];
    for (int variant = 0; variant < 6; variant++) {
        const ry_mask_spec spec = {
            .kind = (renyi_mask_kind)(variant % 3),
            .border_is_object = variant > 2,
            .apply_exif = variant > 2,
            .limits = ry_limits(&small),
            .preprocess = {.size = 24, .crop_mode = (renyi_crop_mode)(size % 3), .crop_pct = 0.9},
            .patch = 5};
        uint8_t sides[16];
        renyi_mask_kind kind;
        renyi_error err;
        if (ry_mask_read(sides, &kind, data, size, image_size, &spec, &err)) continue;
        if (kind != RENYI_MASK_TRIMAP && kind != RENYI_MASK_BINARY) abort();
        for (int p = 0; p < 16; p++)
            if (sides[p] > RY_OBJECT) abort();
    }
}

int fuzz_mask(const uint8_t *data, size_t size)
{
    read_mask(data, size);
    uint8_t *copy = png_repaired(data, size);
    if (copy) read_mask(copy, size);
    free(copy);
    return 0;
}
