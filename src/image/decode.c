/* decode.c - image files and bytes to RGB: finds the format, checks limits, calls its reader.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/fit_rows.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"

#include <inttypes.h>
#include <string.h>

static int has_magic(const uint8_t *bytes, size_t size, size_t at, const char *magic, size_t n)
{
    return size >= at + n && !memcmp(bytes + at, magic, n);
}

static int is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

renyi_image_format renyi_image_sniff(const void *bytes, size_t size)
{
    const uint8_t *b = bytes;
    if (!b) return RENYI_IMAGE_UNKNOWN;
    if (has_magic(b, size, 0, "\xff\xd8\xff", 3)) return RENYI_IMAGE_JPEG;
    if (has_magic(b, size, 0, "\x89PNG\r\n\x1a\n", 8)) return RENYI_IMAGE_PNG;
    if (has_magic(b, size, 0, "RIFF", 4) && has_magic(b, size, 8, "WEBP", 4))
        return RENYI_IMAGE_WEBP;
    if (size >= 3 && b[0] == 'P' && (b[1] == '5' || b[1] == '6') && is_space(b[2]))
        return RENYI_IMAGE_PPM;
    return RENYI_IMAGE_UNKNOWN;
}

/* Formats that are not read: the message names them and says what to do. */
static const struct known_format {
    const char *name;
    const char *magic;
    uint8_t size, at;
} KNOWN[] = {
    {"GIF", "GIF8", 4, 0},
    {"TIFF", "II*\0", 4, 0},
    {"TIFF", "MM\0*", 4, 0},
    {"BigTIFF", "II+\0", 4, 0},
    {"AVIF", "ftypavi", 7, 4},
    {"HEIC", "ftyphei", 7, 4},
    {"HEIC", "ftypmif1", 8, 4},
    {"HEIC", "ftypmsf1", 8, 4},
    {"JPEG 2000", "\0\0\0\x0cjP  ", 8, 0},
    {"JPEG 2000", "\xff\x4f\xff\x51", 4, 0},
    {"JPEG XL", "\xff\x0a", 2, 0},
    {"JPEG XL", "\0\0\0\x0cJXL ", 8, 0},
    {"Photoshop", "8BPS", 4, 0},
    {"Windows icon", "\0\0\1\0", 4, 0},
    {"PDF", "%PDF", 4, 0},
    {"SVG", "<svg", 4, 0},
    {"BMP", "BM", 2, 0},
    {"plain PBM", "P1", 2, 0},
    {"plain PGM", "P2", 2, 0},
    {"plain PPM", "P3", 2, 0},
    {"PBM", "P4", 2, 0},
    {"PAM", "P7", 2, 0},
    {"PFM", "Pf", 2, 0},
    {"PFM", "PF", 2, 0},
};

static renyi_status decode_unknown(renyi_image *out, const ry_encoded *in, renyi_error *err)
{
    (void)out;
    if (!in->size) return ry_fail(err, RENYI_ERR_FORMAT, 0, "empty: there is no image in 0 bytes");
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (has_magic(in->bytes, in->size, KNOWN[i].at, KNOWN[i].magic, KNOWN[i].size))
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, 0,
                           "%s is not supported; convert to PNG or JPEG", KNOWN[i].name);
    char hex[3 * 8 + 1] = "";
    for (size_t i = 0; i < 8 && i < in->size; i++) {
        const uint8_t c = in->bytes[i];
        hex[3 * i] = ' ';
        hex[3 * i + 1] = "0123456789abcdef"[c >> 4];
        hex[3 * i + 2] = "0123456789abcdef"[c & 15];
        hex[3 * i + 3] = 0;
    }
    return ry_fail(err, RENYI_ERR_FORMAT, 0,
                   "not an image: it starts with%s; JPEG, PNG, WebP and binary PPM are known", hex);
}

static ry_image_reader *reader_of(renyi_image_format format)
{
    switch (format) {
    case RENYI_IMAGE_JPEG: return ry_decode_jpeg;
    case RENYI_IMAGE_PNG: return ry_decode_png;
    case RENYI_IMAGE_WEBP: return ry_decode_webp;
    case RENYI_IMAGE_PPM: return ry_decode_ppm;
    case RENYI_IMAGE_UNKNOWN: break;
    }
    return decode_unknown;
}

renyi_status ry_image_check_size(const ry_encoded *in, const char *format, uint64_t width,
                                 uint64_t height, renyi_error *err)
{
    const renyi_limits *l = &in->limits;
    uint64_t pixels;
    if (!width || !height)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %" PRIu64 " x %" PRIu64 " has no pixels",
                       format, width, height);
    if (width > l->max_image_side || height > l->max_image_side)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%s: %" PRIu64 " x %" PRIu64 " pixels; a side may have %" PRIu32
                       ": make it smaller, or in a program raise limits.max_image_side",
                       format, width, height, l->max_image_side);
    if (!ry_mul_u64(width, height, &pixels) || pixels > l->max_pixels)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%s: %" PRIu64 " x %" PRIu64 " pixels; %" PRIu64
                       " are allowed: make it smaller, or in a program raise limits.max_pixels",
                       format, width, height, l->max_pixels);
    return RENYI_OK;
}

renyi_status ry_image_new(renyi_image *out, uint8_t **rgb, const ry_encoded *in, uint32_t width,
                          uint32_t height, renyi_error *err)
{
    const size_t stride = 3 * (size_t)width;
    *rgb = ry_alloc(in->allocator, height, stride);
    if (!*rgb) return ry_fail_nomem(err, height * stride);
    *out = (renyi_image){*rgb, width, height, stride};
    return RENYI_OK;
}

/* Programs built before there was a mode give shorter options. */
static renyi_decode_mode decode_mode(const renyi_image_options *opt)
{
    const int has_mode = opt && (!opt->struct_size || opt->struct_size == sizeof *opt);
    return has_mode ? opt->decode : RENYI_DECODE_EXACT;
}

static renyi_status check_options(const renyi_image_options *opt, renyi_error *err)
{
    if (!opt) return RENYI_OK;
    if (opt->struct_size && (opt->struct_size < offsetof(renyi_image_options, decode) ||
                             opt->struct_size > sizeof *opt))
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_image_options of %" PRIu32 " bytes; %zu wanted", opt->struct_size,
                       sizeof *opt);
    if ((unsigned)decode_mode(opt) > RENYI_DECODE_SCALED)
        return ry_fail(err, RENYI_ERR_ARG, -1, "decode mode %d is not known", (int)opt->decode);
    return RENYI_OK;
}

/* ---- public functions ---------------------------------------------------------------------- */

/* Decodes and turns. scaling: NULL = every pixel. rows: NULL = the image is wanted; an image that
 * is turned is not decoded to rows. */
static renyi_status decode_any(renyi_image *out, ry_scaling *scaling, ry_fit_rows *rows,
                               const void *bytes, size_t size, const renyi_image_options *opt,
                               renyi_error *err)
{
    ry_encoded in = {
        bytes,   size, ry_limits(opt ? &opt->limits : NULL), opt ? &opt->allocator : NULL,
        scaling, NULL};
    if (size > in.limits.max_image_bytes)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%zu bytes; an image file may have %" PRIu64
                       ": make it smaller, or in a program raise limits.max_image_bytes",
                       size, in.limits.max_image_bytes);
    const renyi_image_format format = renyi_image_sniff(bytes, size);
    renyi_image decoded;
    const uint32_t orientation =
        opt && opt->apply_exif ? ry_exif_orientation(bytes, size, format) : 1;
    if (orientation == 1) in.rows = rows;
    RY_TRY(reader_of(format)(&decoded, &in, err));
    if (orientation != 1) {
        if (scaling) ry_whole_turn(&scaling->whole, decoded.width, decoded.height, orientation);
        const renyi_status st = ry_image_turn(&decoded, orientation, in.allocator, err);
        if (st != RENYI_OK) {
            renyi_image_free(&decoded, opt);
            return st;
        }
    }
    *out = decoded;
    return RENYI_OK;
}

renyi_status renyi_image_decode(renyi_image *out, const void *bytes, size_t size,
                                const renyi_image_options *opt, renyi_error *err)
{
    if (!out || (!bytes && size))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_image_decode: NULL argument");
    *out = (renyi_image){0};
    RY_TRY(check_options(opt, err));
    return decode_any(out, NULL, NULL, bytes, size, opt, err);
}

/* The image that rows did not take. */
static renyi_status fit_image(const ry_fit_rows *rows, const renyi_image *image,
                              const ry_whole *whole, renyi_error *err)
{
    return whole ? ry_fit_scaled(rows->out, image, whole, rows->spec, rows->kernels, rows->al, err)
                 : ry_fit(rows->out, image, rows->spec, rows->kernels, rows->al, err);
}

renyi_status renyi_image_decode_pixels(uint8_t *pixels, uint32_t *full_size, const void *bytes,
                                       size_t size, const renyi_preprocess *spec,
                                       const renyi_image_options *opt, renyi_error *err)
{
    ry_scaling scaling = {.spec = spec};
    ry_fit_rows rows = {.out = pixels, .spec = spec, .al = opt ? &opt->allocator : NULL};
    renyi_image image = {0};
    if (!pixels || !spec || (!bytes && size))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_image_decode_pixels: NULL argument");
    RY_TRY(check_options(opt, err));
    rows.kernels = ry_resize_best();
    const int may_scale = decode_mode(opt) == RENYI_DECODE_SCALED;
    renyi_status st = decode_any(&image, may_scale ? &scaling : NULL, &rows, bytes, size, opt, err);
    const ry_whole *whole = scaling.whole.width ? &scaling.whole : NULL;
    if (!st && full_size) {
        full_size[0] = rows.is_done ? rows.full_width : whole ? whole->width : image.width;
        full_size[1] = rows.is_done ? rows.full_height : whole ? whole->height : image.height;
    }
    if (!st && !rows.is_done) st = fit_image(&rows, &image, whole, err);
    renyi_image_free(&image, opt);
    ry_fit_rows_free(&rows);
    return st;
}

static renyi_status read_image(uint8_t **bytes, size_t *size, const char *path,
                               const renyi_image_options *opt, renyi_error *err)
{
    const renyi_limits limits = ry_limits(opt ? &opt->limits : NULL);
    RY_TRY(check_options(opt, err));
    return ry_file_read(bytes, size, path, limits.max_image_bytes, opt ? &opt->allocator : NULL,
                        NULL, err);
}

renyi_status renyi_image_load(renyi_image *out, const char *path, const renyi_image_options *opt,
                              renyi_error *err)
{
    uint8_t *bytes;
    size_t size;
    if (!out || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_image_load: NULL argument");
    *out = (renyi_image){0};
    RY_TRY(read_image(&bytes, &size, path, opt, err));
    const renyi_status st = renyi_image_decode(out, bytes, size, opt, err);
    ry_free(opt ? &opt->allocator : NULL, bytes);
    return st;
}

renyi_status renyi_image_load_pixels(uint8_t *pixels, const char *path,
                                     const renyi_preprocess *spec, const renyi_image_options *opt,
                                     renyi_error *err)
{
    uint8_t *bytes;
    size_t size;
    if (!path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_image_load_pixels: NULL argument");
    RY_TRY(read_image(&bytes, &size, path, opt, err));
    const renyi_status st = renyi_image_decode_pixels(pixels, NULL, bytes, size, spec, opt, err);
    ry_free(opt ? &opt->allocator : NULL, bytes);
    return st;
}

void renyi_image_free(renyi_image *image, const renyi_image_options *opt)
{
    if (!image) return;
    ry_free(opt ? &opt->allocator : NULL, (uint8_t *)(uintptr_t)image->rgb);
    *image = (renyi_image){0};
}
