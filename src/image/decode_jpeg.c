/* decode_jpeg.c - reads JPEG with libjpeg-turbo and its defaults (accurate DCT, smooth upsampling),
 * as Pillow does; large images at a smaller scale if asked for, and only the columns and rows that
 * are read if the image is not wanted whole. A truncated file is an error in any case; damage that
 * the library only warns about is not, also as in Pillow.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/fit_rows.h"

#include "base/alloc.h"
#include "base/status.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

/* The sides of a decoded block: one number in libjpeg 6, two since libjpeg 7, whose interface the
 * libjpeg-turbo of Ubuntu has. */
#if JPEG_LIB_VERSION >= 70
#define BLOCK_WIDTH(lib) ((lib)->min_DCT_h_scaled_size)
#define BLOCK_HEIGHT(lib) ((lib)->min_DCT_v_scaled_size)
#else
#define BLOCK_WIDTH(lib) ((lib)->min_DCT_scaled_size)
#define BLOCK_HEIGHT(lib) ((lib)->min_DCT_scaled_size)
#endif

/* Each scan of a progressive image costs as much work as the whole image; encoders write about ten.
 */
#define MAX_SCANS 100

typedef struct jpeg_job {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf on_error;
    const ry_encoded *in;
    renyi_error *err;
    renyi_status status;
    renyi_image image;
    uint8_t *rgb;  /* owned until the end: [height, width, 3], or a few rows of the window */
    uint8_t *cmyk; /* [width, 4] or NULL */
} jpeg_job;

static jpeg_job *job_of(j_common_ptr lib) { return (jpeg_job *)lib->client_data; }

static int64_t position(const jpeg_job *job)
{
    return (int64_t)(job->in->size - job->source.bytes_in_buffer);
}

/* ---- callbacks of the library -------------------------------------------------------------- */

static void on_error(j_common_ptr lib)
{
    jpeg_job *job = job_of(lib);
    char text[JMSG_LENGTH_MAX];
    lib->err->format_message(lib, text);
    const renyi_status code =
        lib->err->msg_code == JERR_OUT_OF_MEMORY ? RENYI_ERR_NOMEM : RENYI_ERR_FORMAT;
    job->status = ry_fail(job->err, code, position(job), "JPEG: %s", text);
    longjmp(job->on_error, 1);
}

static void on_message(j_common_ptr lib) { (void)lib; } /* instead of printing to stderr */

static void on_progress(j_common_ptr lib)
{
    jpeg_job *job = job_of(lib);
    if (job->lib.input_scan_number <= MAX_SCANS) return;
    job->status =
        ry_fail(job->err, RENYI_ERR_LIMIT, position(job),
                "JPEG: more than %d scans; save it again as baseline JPEG or PNG", MAX_SCANS);
    longjmp(job->on_error, 1);
}

static void source_nothing(j_decompress_ptr lib) { (void)lib; }
static boolean source_empty(j_decompress_ptr lib)
{
    (void)lib;
    return FALSE; /* there are no more bytes: the caller sees a suspension */
}

static void source_skip(j_decompress_ptr lib, long n)
{
    if (n <= 0) return;
    const size_t step =
        (size_t)n < lib->src->bytes_in_buffer ? (size_t)n : lib->src->bytes_in_buffer;
    lib->src->next_input_byte += step;
    lib->src->bytes_in_buffer -= step;
}

/* ---- steps; each may leave through on_error ------------------------------------------------ */

static renyi_status truncated(jpeg_job *job)
{
    return ry_fail(job->err, RENYI_ERR_FORMAT, (int64_t)job->in->size,
                   "JPEG: truncated: the %zu bytes end in row %u of %u", job->in->size,
                   (unsigned)job->lib.output_scanline, (unsigned)job->lib.output_height);
}

static renyi_status read_header(jpeg_job *job)
{
    if (jpeg_read_header(&job->lib, TRUE) != JPEG_HEADER_OK)
        return ry_fail(job->err, RENYI_ERR_FORMAT, (int64_t)job->in->size,
                       "JPEG: truncated: the %zu bytes end before the first scan", job->in->size);
    const int channels = job->lib.num_components;
    if (channels != 1 && channels != 3 && channels != 4)
        return ry_fail(job->err, RENYI_ERR_UNSUPPORTED, position(job),
                       "JPEG: %d channels; 1, 3 and 4 are supported", channels);
    job->lib.out_color_space = channels == 4 ? JCS_CMYK : JCS_RGB;
    RY_TRY(ry_image_check_size(job->in, "JPEG", job->lib.image_width, job->lib.image_height,
                               job->err));
    job->lib.scale_num = 1; /* a scaled inverse DCT: 4, 2 or 1 pixels per side of a block of 8 */
    job->lib.scale_denom = ry_image_scale(job->in, job->lib.image_width, job->lib.image_height);
    jpeg_calc_output_dimensions(&job->lib);
    return RENYI_OK;
}

/* Four-channel JPEGs store inverted CMYK (Adobe's convention, which Pillow assumes for all).
 * Converts to RGB with Pillow's rounding of a * b / 255. */
static void cmyk_row(uint8_t *rgb, const uint8_t *inverted, size_t width)
{
    for (size_t x = 0; x < width; x++, rgb += 3, inverted += 4) {
        const uint32_t light = inverted[3];
        for (int c = 0; c < 3; c++) {
            const uint32_t t = (255u - inverted[c]) * light + 128;
            rgb[c] = (uint8_t)(light - (((t >> 8) + t) >> 8));
        }
    }
}

static renyi_status read_rows(jpeg_job *job)
{
    const size_t width = job->image.width;
    if (!jpeg_start_decompress(&job->lib)) return truncated(job);
    while (job->lib.output_scanline < job->lib.output_height) {
        uint8_t *to = job->rgb + job->lib.output_scanline * job->image.stride;
        JSAMPROW row = job->cmyk ? job->cmyk : to;
        if (jpeg_read_scanlines(&job->lib, &row, 1) != 1) return truncated(job);
        if (job->cmyk) cmyk_row(to, job->cmyk, width);
    }
    return RENYI_OK;
}

/* ---- a window of the image ----------------------------------------------------------------- */

enum { WINDOW_ROWS = 32 }; /* decoded at a time: they stay in the cache until they are resized */

/* Makes the library decode only the columns that are read, and a block more on both sides: smooth
 * upsampling reads the neighbours of a pixel. */
static ry_pixels choose_columns(jpeg_job *job)
{
    struct jpeg_decompress_struct *lib = &job->lib;
    ry_fit_rows *f = job->in->rows;
    const uint32_t block = (uint32_t)(lib->max_h_samp_factor * BLOCK_WIDTH(lib));
    const uint32_t first = f->left > block ? f->left - block : 0;
    const uint32_t end = f->left + f->width, last = lib->output_width - end;
    JDIMENSION left = first, width = end - first + (last < block ? last : block);
    if (width < lib->output_width)
        jpeg_crop_scanline(lib, &left, &width);
    else
        left = 0;
    ry_fit_rows_crop(f, left);
    return (ry_pixels){NULL, 3 * (size_t)width, width, 0};
}

/* Up to WINDOW_ROWS rows from the current one on. */
static renyi_status read_some(jpeg_job *job, ry_pixels *in, uint32_t end)
{
    const uint32_t first = job->lib.output_scanline;
    while (job->lib.output_scanline < end && job->lib.output_scanline - first < WINDOW_ROWS) {
        JSAMPROW row = job->rgb + (job->lib.output_scanline - first) * in->stride;
        if (jpeg_read_scanlines(&job->lib, &row, 1) != 1) return truncated(job);
    }
    in->at = job->rgb;
    in->rows = job->lib.output_scanline - first;
    ry_fit_rows_put(job->in->rows, in, first);
    return RENYI_OK;
}

/* Rows above and below the window are parsed but not computed. The last row is read, because only
 * reading tells that the file is truncated. */
static renyi_status read_window(jpeg_job *job)
{
    struct jpeg_decompress_struct *lib = &job->lib;
    ry_fit_rows *f = job->in->rows;
    if (!jpeg_start_decompress(lib)) return truncated(job);
    ry_pixels in = choose_columns(job);
    const uint32_t block = (uint32_t)(lib->max_v_samp_factor * BLOCK_HEIGHT(lib));
    const uint32_t end = f->top + f->rows, height = lib->output_height;
    job->rgb = ry_alloc(job->in->allocator, WINDOW_ROWS, in.stride);
    if (!job->rgb) return ry_fail_nomem(job->err, WINDOW_ROWS * in.stride);
    if (f->top > block) (void)jpeg_skip_scanlines(lib, f->top - block);
    while (lib->output_scanline < end) RY_TRY(read_some(job, &in, end));
    if (lib->output_scanline + 1 < height)
        (void)jpeg_skip_scanlines(lib, height - 1 - lib->output_scanline);
    if (lib->output_scanline < height) RY_TRY(read_some(job, &in, height));
    ry_fit_rows_end(f);
    return RENYI_OK;
}

/* CMYK and samplings that cameras do not use are decoded whole: with 4 x 2 a window at a smaller
 * scale has other bits near its edges. */
static renyi_status can_window(jpeg_job *job, int *can)
{
    const ry_scaling *scaling = job->in->scaling;
    const ry_whole *whole = scaling && scaling->whole.width ? &scaling->whole : NULL;
    *can = 0;
    if (!job->in->rows || job->lib.out_color_space == JCS_CMYK) return RENYI_OK;
    if (job->lib.max_h_samp_factor > 2 || job->lib.max_v_samp_factor > 2) return RENYI_OK;
    return ry_fit_rows_begin(job->in->rows, job->lib.output_width, job->lib.output_height, whole,
                             can, job->err);
}

static renyi_status read_all(jpeg_job *job)
{
    int can;
    RY_TRY(read_header(job));
    RY_TRY(can_window(job, &can));
    if (can) return read_window(job);
    RY_TRY(ry_image_new(&job->image, &job->rgb, job->in, job->lib.output_width,
                        job->lib.output_height, job->err));
    if (job->lib.out_color_space == JCS_CMYK) {
        job->cmyk = ry_alloc(job->in->allocator, job->image.width, 4);
        if (!job->cmyk) return ry_fail_nomem(job->err, 4 * (size_t)job->image.width);
    }
    return read_rows(job);
}

/* A function of its own, so that no local variable is used across setjmp. */
static void run_job(jpeg_job *job)
{
    if (setjmp(job->on_error)) return;
    jpeg_create_decompress(&job->lib);
    job->lib.client_data = job;
    job->lib.src = &job->source;
    job->lib.progress = &job->progress;
    job->status = read_all(job);
}

renyi_status ry_decode_jpeg(renyi_image *out, const ry_encoded *in, renyi_error *err)
{
    jpeg_job job;
    memset(&job, 0, sizeof job);
    job.in = in;
    job.err = err;
    job.lib.err = jpeg_std_error(&job.errors);
    job.lib.client_data = &job; /* an error may come before the library is set up */
    job.errors.error_exit = on_error;
    job.errors.output_message = on_message;
    job.progress.progress_monitor = on_progress;
    job.source = (struct jpeg_source_mgr){.next_input_byte = in->bytes,
                                          .bytes_in_buffer = in->size,
                                          .init_source = source_nothing,
                                          .fill_input_buffer = source_empty,
                                          .skip_input_data = source_skip,
                                          .resync_to_restart = jpeg_resync_to_restart,
                                          .term_source = source_nothing};
    run_job(&job);
    jpeg_destroy_decompress(&job.lib);
    ry_free(in->allocator, job.cmyk);
    if (job.status != RENYI_OK || (in->rows && in->rows->is_done)) ry_free(in->allocator, job.rgb);
    if (job.status == RENYI_OK) *out = job.image;
    return job.status;
}
