/* decode_jpeg.c - reads JPEG with libjpeg-turbo and its defaults (accurate DCT, smooth upsampling),
 * as Pillow does. A truncated file is an error; damage that the library only warns about is not,
 * also as in Pillow.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/decode.h"

#include "base/alloc.h"
#include "base/status.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

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
    uint8_t *rgb;  /* owned until the end: [height, width, 3] */
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
                   (unsigned)job->lib.output_scanline, (unsigned)job->lib.image_height);
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
    return ry_image_check_size(job->in, "JPEG", job->lib.image_width, job->lib.image_height,
                               job->err);
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
    const size_t width = job->lib.image_width;
    if (!jpeg_start_decompress(&job->lib)) return truncated(job);
    while (job->lib.output_scanline < job->lib.output_height) {
        uint8_t *to = job->rgb + job->lib.output_scanline * job->image.stride;
        JSAMPROW row = job->cmyk ? job->cmyk : to;
        if (jpeg_read_scanlines(&job->lib, &row, 1) != 1) return truncated(job);
        if (job->cmyk) cmyk_row(to, job->cmyk, width);
    }
    return RENYI_OK;
}

static renyi_status read_all(jpeg_job *job)
{
    RY_TRY(read_header(job));
    RY_TRY(ry_image_new(&job->image, &job->rgb, job->in, job->lib.image_width,
                        job->lib.image_height, job->err));
    if (job->lib.out_color_space == JCS_CMYK) {
        job->cmyk = ry_alloc(job->in->allocator, job->lib.image_width, 4);
        if (!job->cmyk) return ry_fail_nomem(job->err, 4 * (size_t)job->lib.image_width);
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
    if (job.status != RENYI_OK)
        ry_free(in->allocator, job.rgb);
    else
        *out = job.image;
    return job.status;
}
