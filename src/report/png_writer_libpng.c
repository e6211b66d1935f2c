/* png_writer_libpng.c - writes pixels as a PNG file with libpng, in builds without libspng.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/drawing.h"

#include "base/png_hooks.h"
#include "base/status.h"

typedef struct png_writer {
    ry_png_hooks hooks;
    png_structp lib;
    png_infop info;
    uint32_t width, height, per_metre;
} png_writer;

static void append_bytes(png_structp lib, png_bytep bytes, size_t n)
{
    ry_buffer *out = png_get_io_ptr(lib);
    ry_buffer_put(out, bytes, n);
    if (out->failed) png_error(lib, "no memory for the file");
}

static void flush_nothing(png_structp lib) { (void)lib; }

/* Level and filter are those of png_writer_spng.c. */
static int write_all(const png_writer *w, const uint8_t *rgb)
{
    if (setjmp(png_jmpbuf(w->lib))) return -1;
    png_set_compression_level(w->lib, 4);
    png_set_filter(w->lib, PNG_FILTER_TYPE_BASE, PNG_FILTER_PAETH);
    png_set_IHDR(w->lib, w->info, w->width, w->height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
    if (w->per_metre)
        png_set_pHYs(w->lib, w->info, w->per_metre, w->per_metre, PNG_RESOLUTION_METER);
    png_write_info(w->lib, w->info);
    for (uint32_t y = 0; y < w->height; y++) png_write_row(w->lib, rgb + (size_t)y * w->width * 3);
    png_write_end(w->lib, NULL);
    return 0;
}

renyi_status ry_put_png(ry_buffer *out, const uint8_t *rgb, uint32_t width, uint32_t height,
                        uint32_t per_metre, renyi_error *err)
{
    png_writer w = {.hooks.al = out->al, .width = width, .height = height, .per_metre = per_metre};
    w.lib = ry_png_new(&w.hooks, 1);
    if (!w.lib) return ry_fail_nomem(err, w.hooks.wanted);
    png_set_write_fn(w.lib, out, append_bytes, flush_nothing);
    w.info = png_create_info_struct(w.lib);
    const int bad = w.info ? write_all(&w, rgb) : -1;
    png_destroy_write_struct(&w.lib, &w.info);
    if (out->failed) return ry_fail_nomem(err, out->wanted);
    if (w.hooks.wanted) return ry_fail_nomem(err, w.hooks.wanted);
    if (bad)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "PNG of %u x %u pixels: %s", width, height,
                       w.hooks.reason);
    return RENYI_OK;
}
