/* decode_png.c - reads PNG with libspng: every color type and depth, interlaced or not; the default
 * image of an animated PNG. Samples become bytes as in Pillow: 1 to 4 bits are spread over 0..255,
 * 16-bit colors keep the high byte, 16-bit grey is clamped to 255 (Pillow reads it as integers).
 * Masks are read as the numbers that are stored.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/decode.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

#include <spng.h>
#include <zlib.h>

/* Limits for one ancillary chunk (profiles, texts), and for all of them. */
#define MAX_CHUNK_BYTES ((size_t)16 << 20)
#define MAX_CACHE_BYTES ((size_t)32 << 20)

/* Deflate expands at most 1032 times: a file that is too small for its image is refused before
 * memory is allocated. */
#define MAX_DEFLATE_RATIO 1032

typedef struct png_job {
    spng_ctx *lib;
    const ry_encoded *in;
    renyi_error *err;
    struct spng_ihdr head;
    size_t row_bytes;        /* of one row as stored */
    uint8_t palette[256][3]; /* of indexed images; black where the file has no entry */
    renyi_image image;
    uint8_t *rgb;    /* owned until the end */
    uint8_t *values; /* [height, width] instead of rgb, owned until the end */
    int as_plane;    /* read a plane instead of RGB */
    uint16_t odd;    /* a 16-bit value that does not fit in a plane; 0 = none */
    uint8_t *raw;    /* one row, or the whole image when interlaced */
} png_job;

static renyi_status fail_png(const png_job *job, int code)
{
    const renyi_status status = code == SPNG_EMEM            ? RENYI_ERR_NOMEM
                                : code == SPNG_ECHUNK_LIMITS ? RENYI_ERR_LIMIT
                                                             : RENYI_ERR_FORMAT;
    if (code == SPNG_IO_EOF || code == SPNG_EOF)
        return ry_fail(job->err, status, (int64_t)job->in->size,
                       "PNG: truncated: the image does not end within %zu bytes", job->in->size);
    return ry_fail(job->err, status, -1, "PNG: %s", spng_strerror(code));
}

static uint32_t channels_of(uint8_t color_type)
{
    switch (color_type) {
    case SPNG_COLOR_TYPE_TRUECOLOR: return 3;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA: return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA: return 4;
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
    const struct spng_ihdr *h = &job->head;
    if (job->as_plane) {
        plane_row(job, job->values + (size_t)y * h->width, row);
        return;
    }
    uint8_t *rgb = job->rgb + y * job->image.stride;
    if (h->color_type == SPNG_COLOR_TYPE_INDEXED)
        indexed_row(rgb, row, h->width, job);
    else if (h->color_type == SPNG_COLOR_TYPE_GRAYSCALE)
        grey_row(rgb, row, h->width, h->bit_depth);
    else
        color_row(rgb, row, h->width, channels_of(h->color_type), h->bit_depth / 8);
}

/* ---- steps --------------------------------------------------------------------------------- */

static renyi_status read_header(png_job *job)
{
    int code = spng_set_png_buffer(job->lib, job->in->bytes, job->in->size);
    if (!code) code = spng_set_chunk_limits(job->lib, MAX_CHUNK_BYTES, MAX_CACHE_BYTES);
    if (!code) code = spng_get_ihdr(job->lib, &job->head);
    if (code) return fail_png(job, code);
    const struct spng_ihdr *h = &job->head;
    RY_TRY(ry_image_check_size(job->in, "PNG", h->width, h->height, job->err));
    const uint64_t bits = (uint64_t)h->width * channels_of(h->color_type) * h->bit_depth;
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

/* Compares the checksum of every pixel chunk: libspng leaves out the last one. libFuzzer must get
 * past checksums. */
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

static renyi_status read_palette(png_job *job)
{
    struct spng_plte plte;
    if (job->head.color_type != SPNG_COLOR_TYPE_INDEXED) return RENYI_OK;
    const int code = spng_get_plte(job->lib, &plte);
    if (code == SPNG_ECHUNKAVAIL)
        return ry_fail(job->err, RENYI_ERR_FORMAT, -1, "PNG: an indexed image without a palette");
    if (code) return fail_png(job, code);
    for (uint32_t i = 0; i < plte.n_entries && i < 256; i++) {
        job->palette[i][0] = plte.entries[i].red;
        job->palette[i][1] = plte.entries[i].green;
        job->palette[i][2] = plte.entries[i].blue;
    }
    return RENYI_OK;
}

/* Rows arrive from top to bottom: one is enough. */
static renyi_status read_rows(png_job *job)
{
    int code = spng_decode_image(job->lib, NULL, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
    for (uint32_t y = 0; y < job->head.height; y++) {
        if (!code) code = spng_decode_row(job->lib, job->raw, job->row_bytes);
        if (code && !(code == SPNG_EOI && y + 1 == job->head.height)) return fail_png(job, code);
        convert_row(job, y, job->raw);
    }
    return RENYI_OK;
}

static renyi_status read_interlaced(png_job *job)
{
    const size_t size = job->row_bytes * job->head.height;
    const int code = spng_decode_image(job->lib, job->raw, size, SPNG_FMT_RAW, 0);
    if (code) return fail_png(job, code);
    for (uint32_t y = 0; y < job->head.height; y++)
        convert_row(job, y, job->raw + y * job->row_bytes);
    return RENYI_OK;
}

/* Memory for the result. */
static renyi_status take_output(png_job *job)
{
    const struct spng_ihdr *h = &job->head;
    if (!job->as_plane)
        return ry_image_new(&job->image, &job->rgb, job->in, h->width, h->height, job->err);
    if (channels_of(h->color_type) != 1)
        return ry_fail(job->err, RENYI_ERR_UNSUPPORTED, -1,
                       "PNG: %s instead of one number per pixel; save it as grey or with a palette",
                       h->color_type == SPNG_COLOR_TYPE_TRUECOLOR ? "RGB" : "an alpha channel");
    job->values = ry_alloc(job->in->allocator, h->height, h->width);
    return job->values ? RENYI_OK : ry_fail_nomem(job->err, (size_t)h->height * h->width);
}

static renyi_status read_all(png_job *job)
{
    RY_TRY(read_header(job));
    RY_TRY(check_pixel_chunks(job));
    RY_TRY(read_palette(job));
    RY_TRY(take_output(job));
    const int interlaced = job->head.interlace_method != SPNG_INTERLACE_NONE;
    const size_t rows = interlaced ? job->head.height : 1;
    job->raw = ry_calloc(job->in->allocator, rows, job->row_bytes); /* libspng ORs bits into it */
    if (!job->raw) return ry_fail_nomem(job->err, rows * job->row_bytes);
    RY_TRY(interlaced ? read_interlaced(job) : read_rows(job));
    if (!job->odd) return RENYI_OK;
    return ry_fail(job->err, RENYI_ERR_UNSUPPORTED, -1,
                   "PNG: a 16-bit value of %u; 0 to 255 and 65535 are allowed", (unsigned)job->odd);
}

static renyi_status run_job(png_job *job)
{
    job->lib = spng_ctx_new(0);
    if (!job->lib) return ry_fail(job->err, RENYI_ERR_NOMEM, -1, "PNG: out of memory");
    const renyi_status st = read_all(job);
    spng_ctx_free(job->lib);
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
