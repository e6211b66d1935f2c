/* decode_png.c - reads PNG: every color type and depth, interlaced or not; the default
 * image of an animated PNG. Samples become bytes as in Pillow: 1 to 4 bits are spread over 0..255,
 * 16-bit colors keep the high byte, 16-bit grey is clamped to 255 (Pillow reads it as integers).
 * Masks are read as the numbers that are stored.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/png_reader.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>
#include <zlib.h>

/* Deflate expands at most 1032 times: a file that is too small for its image is refused before
 * memory is allocated. */
#define MAX_DEFLATE_RATIO 1032

typedef struct png_job {
    ry_png_reader *reader;
    const ry_encoded *in;
    renyi_error *err;
    ry_png_head head;
    size_t row_bytes;        /* of one row as stored */
    uint8_t palette[256][3]; /* of indexed images; black where the file has no entry */
    renyi_image image;
    uint8_t *rgb;    /* owned until the end */
    uint8_t *values; /* [height, width] instead of rgb, owned until the end */
    int as_plane;    /* read a plane instead of RGB */
    uint16_t odd;    /* a 16-bit value that does not fit in a plane; 0 = none */
    uint8_t *raw;    /* one row, or the whole image when interlaced */
} png_job;

renyi_status ry_png_fail_truncated(const ry_encoded *in, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)in->size,
                   "PNG: truncated: the image does not end within %zu bytes", in->size);
}

renyi_status ry_png_fail_palette(renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "PNG: an indexed image without a palette");
}

static uint32_t channels_of(ry_png_color color)
{
    switch (color) {
    case RY_PNG_RGB: return 3;
    case RY_PNG_GREY_ALPHA: return 2;
    case RY_PNG_RGB_ALPHA: return 4;
    default: return 1;
    }
}

/* ---- one row to RGB ------------------------------------------------------------------------ */

/* Sample x of a row with 1, 2, 4 or 8 bits a sample, leftmost in the high bits. */
static uint32_t sample_at(const uint8_t *row, size_t x, uint32_t depth)
{
    const size_t bit = x * depth;
    return (uint32_t)row[bit >> 3] >> (8 - depth - (bit & 7)) & ((1u << depth) - 1);
}

static void grey_row(uint8_t *rgb, const uint8_t *row, size_t width, uint32_t depth)
{
    const uint32_t spread = 255 / ((1u << (depth > 8 ? 8 : depth)) - 1);
    for (size_t x = 0; x < width; x++) {
        uint32_t v;
        if (depth == 16)
            v = row[2 * x] ? 255 : row[2 * x + 1];
        else
            v = sample_at(row, x, depth) * spread;
        memset(rgb + 3 * x, (int)v, 3);
    }
}

static void indexed_row(uint8_t *rgb, const uint8_t *row, size_t width, const png_job *job)
{
    for (size_t x = 0; x < width; x++)
        memcpy(rgb + 3 * x, job->palette[sample_at(row, x, job->head.bit_depth)], 3);
}

/* Channels of 8 or 16 bits (`step` bytes); the first one or three are the color. */
static void color_row(uint8_t *rgb, const uint8_t *row, size_t width, uint32_t channels,
                      size_t step)
{
    for (size_t x = 0; x < width; x++, row += channels * step) {
        rgb[3 * x] = row[0];
        rgb[3 * x + 1] = channels > 2 ? row[step] : row[0];
        rgb[3 * x + 2] = channels > 2 ? row[2 * step] : row[0];
    }
}

static void plane_row(png_job *job, uint8_t *values, const uint8_t *row)
{
    for (size_t x = 0; x < job->head.width; x++) {
        if (job->head.bit_depth != 16) {
            values[x] = (uint8_t)sample_at(row, x, job->head.bit_depth);
            continue;
        }
        const uint16_t v = (uint16_t)(row[2 * x] << 8 | row[2 * x + 1]);
        values[x] = v < 256 ? (uint8_t)v : 255;
        if (v > 255 && v != UINT16_MAX) job->odd = v;
    }
}

static void convert_row(png_job *job, uint32_t y, const uint8_t *row)
{
    const ry_png_head *h = &job->head;
    if (job->as_plane) {
        plane_row(job, job->values + (size_t)y * h->width, row);
        return;
    }
    uint8_t *rgb = job->rgb + y * job->image.stride;
    if (h->color == RY_PNG_INDEXED)
        indexed_row(rgb, row, h->width, job);
    else if (h->color == RY_PNG_GREY)
        grey_row(rgb, row, h->width, h->bit_depth);
    else
        color_row(rgb, row, h->width, channels_of(h->color), h->bit_depth / 8);
}

/* ---- steps --------------------------------------------------------------------------------- */

static renyi_status read_header(png_job *job)
{
    RY_TRY(ry_png_reader_new(&job->reader, job->in, job->err));
    RY_TRY(ry_png_read_head(job->reader, &job->head, job->err));
    const ry_png_head *h = &job->head;
    RY_TRY(ry_image_check_size(job->in, "PNG", h->width, h->height, job->err));
    const uint64_t bits = (uint64_t)h->width * channels_of(h->color) * h->bit_depth;
    job->row_bytes = (size_t)((bits + 7) / 8);
    if ((uint64_t)job->row_bytes * h->height / MAX_DEFLATE_RATIO > job->in->size)
        return ry_fail(job->err, RENYI_ERR_FORMAT, (int64_t)job->in->size,
                       "PNG: truncated: %zu bytes cannot hold %u x %u pixels", job->in->size,
                       (unsigned)h->width, (unsigned)h->height);
    return RENYI_OK;
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

size_t ry_png_chunk(const uint8_t *bytes, size_t size, size_t at)
{
    if (size < 12 || at > size - 12) return SIZE_MAX;
    const size_t n = big_endian(bytes + at);
    return n <= size - at - 12 ? n : SIZE_MAX;
}

/* Compares the checksum of every pixel chunk: the libraries leave out the last one. libFuzzer must
 * get past checksums. */
static renyi_status check_pixel_chunks(const png_job *job)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    if (job) return RENYI_OK;
#endif
    const uint8_t *bytes = job->in->bytes;
    for (size_t at = 8, n; (n = ry_png_chunk(bytes, job->in->size, at)) != SIZE_MAX; at += n + 12) {
        if (memcmp(bytes + at + 4, "IEND", 4) == 0) break;
        if (memcmp(bytes + at + 4, "IDAT", 4) != 0) continue;
        const uint32_t stored = big_endian(bytes + at + 8 + n);
        const uint32_t found = (uint32_t)crc32(0, bytes + at + 4, (uInt)(n + 4));
        if (stored != found)
            return ry_fail(job->err, RENYI_ERR_FORMAT, (int64_t)at,
                           "PNG: damaged: the pixel data at byte %zu have the checksum %08x, the "
                           "file says %08x; copy or export it again",
                           at, (unsigned)found, (unsigned)stored);
    }
    return RENYI_OK;
}

/* Rows arrive from top to bottom: one is enough. */
static renyi_status read_rows(png_job *job)
{
    for (uint32_t y = 0; y < job->head.height; y++) {
        RY_TRY(ry_png_row(job->reader, y, job->raw, job->row_bytes, job->err));
        convert_row(job, y, job->raw);
    }
    return RENYI_OK;
}

static renyi_status read_interlaced(png_job *job)
{
    RY_TRY(ry_png_rows(job->reader, job->raw, job->row_bytes, job->err));
    for (uint32_t y = 0; y < job->head.height; y++)
        convert_row(job, y, job->raw + y * job->row_bytes);
    return RENYI_OK;
}

/* Memory for the result. */
static renyi_status take_output(png_job *job)
{
    const ry_png_head *h = &job->head;
    if (!job->as_plane)
        return ry_image_new(&job->image, &job->rgb, job->in, h->width, h->height, job->err);
    if (channels_of(h->color) != 1)
        return ry_fail(job->err, RENYI_ERR_UNSUPPORTED, -1,
                       "PNG: %s instead of one number per pixel; save it as gray or with a palette",
                       h->color == RY_PNG_RGB ? "RGB" : "an alpha channel");
    job->values = ry_alloc(job->in->allocator, h->height, h->width);
    return job->values ? RENYI_OK : ry_fail_nomem(job->err, (size_t)h->height * h->width);
}

static renyi_status read_all(png_job *job)
{
    RY_TRY(read_header(job));
    RY_TRY(check_pixel_chunks(job));
    if (job->head.color == RY_PNG_INDEXED)
        RY_TRY(ry_png_palette(job->reader, job->palette, job->err));
    RY_TRY(take_output(job));
    const size_t rows = job->head.is_interlaced ? job->head.height : 1;
    job->raw = ry_calloc(job->in->allocator, rows, job->row_bytes); /* libspng ORs bits into it */
    if (!job->raw) return ry_fail_nomem(job->err, rows * job->row_bytes);
    RY_TRY(job->head.is_interlaced ? read_interlaced(job) : read_rows(job));
    if (!job->odd) return RENYI_OK;
    return ry_fail(job->err, RENYI_ERR_UNSUPPORTED, -1,
                   "PNG: a 16-bit value of %u; 0 to 255 and 65535 are allowed", (unsigned)job->odd);
}

static renyi_status run_job(png_job *job)
{
    const renyi_status st = read_all(job);
    ry_png_reader_free(job->reader);
    ry_free(job->in->allocator, job->raw);
    if (st == RENYI_OK) return st;
    ry_free(job->in->allocator, job->rgb);
    ry_free(job->in->allocator, job->values);
    return st;
}

renyi_status ry_decode_png(renyi_image *out, const ry_encoded *in, renyi_error *err)
{
    png_job job = {.in = in, .err = err};
    RY_TRY(run_job(&job));
    *out = job.image;
    return RENYI_OK;
}

renyi_status ry_decode_png_plane(ry_plane *out, const ry_encoded *in, renyi_error *err)
{
    png_job job = {.in = in, .err = err, .as_plane = 1};
    RY_TRY(run_job(&job));
    *out = (ry_plane){job.values, job.head.width, job.head.height};
    return RENYI_OK;
}
