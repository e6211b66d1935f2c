/* png_reader_libpng.c - the stored rows of a PNG by libpng, in builds without libspng.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/png_reader.h"

#include "base/png_hooks.h"
#include "base/status.h"

#include <string.h>

enum { MAX_CHUNKS = 1000 };

struct ry_png_reader {
    ry_png_hooks hooks;
    png_structp lib;
    png_infop info;
    const ry_encoded *in;
    size_t at; /* bytes of the file that are read */
    int is_truncated;
    uint32_t height;
};

static renyi_status fail_libpng(const ry_png_reader *r, renyi_error *err)
{
    if (r->hooks.wanted) return ry_fail_nomem(err, r->hooks.wanted);
    if (r->is_truncated) return ry_png_fail_truncated(r->in, err);
    const char *what = strstr(r->hooks.reason, "CRC error") ? "wrong checksum: " : "";
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "PNG: %s%s", what, r->hooks.reason);
}

static void give_bytes(png_structp lib, png_bytep out, size_t n)
{
    ry_png_reader *r = png_get_io_ptr(lib);
    if (n > r->in->size - r->at) {
        r->is_truncated = 1;
        png_error(lib, "truncated");
    }
    memcpy(out, r->in->bytes + r->at, n);
    r->at += n;
}

renyi_status ry_png_reader_new(ry_png_reader **out, const ry_encoded *in, renyi_error *err)
{
    ry_png_reader *r = *out = ry_calloc(NULL, 1, sizeof *r);
    if (!r) return ry_fail_nomem(err, sizeof *r);
    r->in = in;
    r->lib = ry_png_new(&r->hooks, 0);
    if (r->lib) r->info = png_create_info_struct(r->lib);
    return r->info ? RENYI_OK : fail_libpng(r, err);
}

void ry_png_reader_free(ry_png_reader *r)
{
    if (r) png_destroy_read_struct(&r->lib, &r->info, NULL);
    ry_free(NULL, r);
}

/* Leaves out every chunk that does not decide about the pixels. */
static int read_head(ry_png_reader *r, ry_png_head *head)
{
    int depth, color, interlace;
    if (setjmp(png_jmpbuf(r->lib))) return -1;
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    png_set_crc_action(r->lib, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
#endif
    png_set_read_fn(r->lib, r, give_bytes);
    png_set_user_limits(r->lib, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* the caller has limits */
    png_set_chunk_malloc_max(r->lib, RY_PNG_MAX_CHUNK);
    png_set_chunk_cache_max(r->lib, MAX_CHUNKS);
    png_set_keep_unknown_chunks(r->lib, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(r->lib, r->info);
    png_get_IHDR(r->lib, r->info, &head->width, &head->height, &depth, &color, &interlace, NULL,
                 NULL);
    head->bit_depth = (uint8_t)depth;
    head->color = (ry_png_color)color;
    head->is_interlaced = interlace != PNG_INTERLACE_NONE;
    return 0;
}

renyi_status ry_png_read_head(ry_png_reader *r, ry_png_head *head, renyi_error *err)
{
    if (read_head(r, head)) return fail_libpng(r, err);
    r->height = head->height;
    return RENYI_OK;
}

renyi_status ry_png_palette(ry_png_reader *r, uint8_t palette[256][3], renyi_error *err)
{
    png_colorp colors;
    int n;
    if (!png_get_PLTE(r->lib, r->info, &colors, &n)) return ry_png_fail_palette(err);
    for (int i = 0; i < n && i < 256; i++) {
        palette[i][0] = colors[i].red;
        palette[i][1] = colors[i].green;
        palette[i][2] = colors[i].blue;
    }
    return RENYI_OK;
}

static int read_row(ry_png_reader *r, uint32_t y, uint8_t *row)
{
    if (setjmp(png_jmpbuf(r->lib))) return -1;
    if (y == 0) png_start_read_image(r->lib);
    png_read_row(r->lib, row, NULL);
    return 0;
}

renyi_status ry_png_row(ry_png_reader *r, uint32_t y, uint8_t *row, size_t row_bytes,
                        renyi_error *err)
{
    (void)row_bytes;
    return read_row(r, y, row) ? fail_libpng(r, err) : RENYI_OK;
}

/* A pass adds its pixels to the rows. */
static int read_passes(ry_png_reader *r, uint8_t *rows, size_t row_bytes)
{
    if (setjmp(png_jmpbuf(r->lib))) return -1;
    const int passes = png_set_interlace_handling(r->lib);
    png_start_read_image(r->lib);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < r->height; y++) png_read_row(r->lib, rows + y * row_bytes, NULL);
    return 0;
}

renyi_status ry_png_rows(ry_png_reader *r, uint8_t *rows, size_t row_bytes, renyi_error *err)
{
    return read_passes(r, rows, row_bytes) ? fail_libpng(r, err) : RENYI_OK;
}
