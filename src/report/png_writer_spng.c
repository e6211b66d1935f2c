/* png_writer_spng.c - writes pixels as a PNG file with libspng.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/drawing.h"

#include "base/status.h"

#include <spng.h>

static int append_bytes(spng_ctx *ctx, void *user, void *bytes, size_t n)
{
    ry_buffer *out = user;
    (void)ctx;
    ry_buffer_put(out, bytes, n);
    return out->failed ? SPNG_IO_ERROR : 0;
}

static int encode_png(spng_ctx *ctx, ry_buffer *out, const uint8_t *rgb, struct spng_ihdr *head,
                      uint32_t per_metre)
{
    struct spng_phys dots = {.ppu_x = per_metre, .ppu_y = per_metre, .unit_specifier = 1};
    int bad = spng_set_png_stream(ctx, append_bytes, out);
    /* One filter instead of trying all five takes two thirds of the time for 0.4 % more bytes on
     * figures; level 6 would take 30 % longer for 3 % fewer. */
    if (!bad) bad = spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL, 4);
    if (!bad) bad = spng_set_option(ctx, SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_PAETH);
    if (!bad) bad = spng_set_ihdr(ctx, head);
    if (!bad && per_metre) bad = spng_set_phys(ctx, &dots);
    if (!bad)
        bad = spng_encode_image(ctx, rgb, (size_t)head->width * head->height * 3, SPNG_FMT_PNG,
                                SPNG_ENCODE_FINALIZE);
    return bad;
}

renyi_status ry_put_png(ry_buffer *out, const uint8_t *rgb, uint32_t width, uint32_t height,
                        uint32_t per_metre, renyi_error *err)
{
    struct spng_ihdr head = {
        .width = width, .height = height, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    if (!ctx) return ry_fail_nomem(err, sizeof head);
    const int bad = encode_png(ctx, out, rgb, &head, per_metre);
    spng_ctx_free(ctx);
    if (out->failed) return ry_fail_nomem(err, out->wanted);
    if (bad == SPNG_EMEM) return ry_fail_nomem(err, (size_t)width * 3);
    if (bad)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "PNG of %u x %u pixels: %s", width, height,
                       spng_strerror(bad));
    return RENYI_OK;
}
