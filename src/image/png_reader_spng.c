/* png_reader_spng.c - the stored rows of a PNG by libspng.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/png_reader.h"

#include "base/alloc.h"
#include "base/status.h"

#include <spng.h>

struct ry_png_reader {
    const ry_encoded *in;
    spng_ctx *lib;
    uint32_t height;
};

static renyi_status fail_spng(const ry_png_reader *r, int code, renyi_error *err)
{
    const renyi_status status = code == SPNG_EMEM            ? RENYI_ERR_NOMEM
                                : code == SPNG_ECHUNK_LIMITS ? RENYI_ERR_LIMIT
                                                             : RENYI_ERR_FORMAT;
    if (code == SPNG_IO_EOF || code == SPNG_EOF) return ry_png_fail_truncated(r->in, err);
    return ry_fail(err, status, -1, "PNG: %s", spng_strerror(code));
}

renyi_status ry_png_reader_new(ry_png_reader **out, const ry_encoded *in, renyi_error *err)
{
    ry_png_reader *r = *out = ry_calloc(NULL, 1, sizeof *r);
    if (!r) return ry_fail_nomem(err, sizeof *r);
    r->in = in;
    r->lib = spng_ctx_new(0);
    return r->lib ? RENYI_OK : fail_spng(r, SPNG_EMEM, err);
}

void ry_png_reader_free(ry_png_reader *r)
{
    if (r) spng_ctx_free(r->lib);
    ry_free(NULL, r);
}

renyi_status ry_png_read_head(ry_png_reader *r, ry_png_head *head, renyi_error *err)
{
    struct spng_ihdr ihdr;
    int code = spng_set_png_buffer(r->lib, r->in->bytes, r->in->size);
    if (!code) code = spng_set_chunk_limits(r->lib, RY_PNG_MAX_CHUNK, RY_PNG_MAX_CACHE);
    if (!code) code = spng_get_ihdr(r->lib, &ihdr);
    if (code) return fail_spng(r, code, err);
    *head = (ry_png_head){.width = ihdr.width,
                          .height = ihdr.height,
                          .bit_depth = ihdr.bit_depth,
                          .color = (ry_png_color)ihdr.color_type,
                          .is_interlaced = ihdr.interlace_method != SPNG_INTERLACE_NONE};
    r->height = ihdr.height;
    return RENYI_OK;
}

renyi_status ry_png_palette(ry_png_reader *r, uint8_t palette[256][3], renyi_error *err)
{
    struct spng_plte plte;
    const int code = spng_get_plte(r->lib, &plte);
    if (code == SPNG_ECHUNKAVAIL) return ry_png_fail_palette(err);
    if (code) return fail_spng(r, code, err);
    for (uint32_t i = 0; i < plte.n_entries && i < 256; i++) {
        palette[i][0] = plte.entries[i].red;
        palette[i][1] = plte.entries[i].green;
        palette[i][2] = plte.entries[i].blue;
    }
    return RENYI_OK;
}

renyi_status ry_png_row(ry_png_reader *r, uint32_t y, uint8_t *row, size_t row_bytes,
                        renyi_error *err)
{
    int code = 0;
    if (y == 0) code = spng_decode_image(r->lib, NULL, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
    if (!code) code = spng_decode_row(r->lib, row, row_bytes);
    if (code && !(code == SPNG_EOI && y + 1 == r->height)) return fail_spng(r, code, err);
    return RENYI_OK;
}

renyi_status ry_png_rows(ry_png_reader *r, uint8_t *rows, size_t row_bytes, renyi_error *err)
{
    const int code = spng_decode_image(r->lib, rows, row_bytes * r->height, SPNG_FMT_RAW, 0);
    return code ? fail_spng(r, code, err) : RENYI_OK;
}
