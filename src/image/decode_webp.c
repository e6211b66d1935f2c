/* decode_webp.c - reads WebP with libwebp: lossy, lossless, with alpha (dropped). Of an animation
 * it reads the first frame on its canvas, as Pillow does. Large images are scaled if asked for,
 * unless they have alpha, whose transparent colors scaling would lose.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/decode.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

static const char *reason(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_BITSTREAM_ERROR: return "invalid data";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return "truncated";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "a feature that libwebp does not support";
    case VP8_STATUS_OUT_OF_MEMORY: return "out of memory";
    default: return "libwebp cannot read it";
    }
}

static renyi_status fail_webp(const ry_encoded *in, VP8StatusCode code, renyi_error *err)
{
    return ry_fail(err, code == VP8_STATUS_OUT_OF_MEMORY ? RENYI_ERR_NOMEM : RENYI_ERR_FORMAT, -1,
                   "WebP: %s (%zu bytes)", reason(code), in->size);
}

static renyi_status decode_still(uint8_t *rgb, const renyi_image *image, int is_scaled,
                                 const ry_encoded *in, renyi_error *err)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "WebP: libwebp of another version at run time");
    config.options.use_scaling = is_scaled;
    config.options.scaled_width = (int)image->width;
    config.options.scaled_height = (int)image->height;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = rgb;
    config.output.u.RGBA.stride = (int)image->stride;
    config.output.u.RGBA.size = image->stride * image->height;
    const VP8StatusCode code = WebPDecode(in->bytes, in->size, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? RENYI_OK : fail_webp(in, code, err);
}

static renyi_status decode_first_frame(uint8_t *rgb, const renyi_image *image, const ry_encoded *in,
                                       renyi_error *err)
{
    const WebPData data = {in->bytes, in->size};
    WebPAnimDecoderOptions options;
    WebPAnimInfo info;
    uint8_t *canvas = NULL; /* [height, width, 4], borrowed from the decoder */
    int time;
    if (!WebPAnimDecoderOptionsInit(&options))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "WebP: libwebp of another version at run time");
    WebPAnimDecoder *lib = WebPAnimDecoderNew(&data, &options);
    if (!lib) return fail_webp(in, VP8_STATUS_BITSTREAM_ERROR, err);
    const int ok = WebPAnimDecoderGetInfo(lib, &info) && info.canvas_width == image->width &&
                   info.canvas_height == image->height &&
                   WebPAnimDecoderGetNext(lib, &canvas, &time);
    if (ok)
        for (size_t i = 0; i < (size_t)image->width * image->height; i++)
            memcpy(rgb + 3 * i, canvas + 4 * i, 3);
    WebPAnimDecoderDelete(lib);
    return ok ? RENYI_OK : fail_webp(in, VP8_STATUS_BITSTREAM_ERROR, err);
}

/* One side of the scaled image; unlike a JPEG's, its pixels cover the whole image exactly. */
static uint32_t scaled_side(int side, uint32_t scale)
{
    return ((uint32_t)side + scale - 1) / scale;
}

static uint32_t choose_scale(const ry_encoded *in, const WebPBitstreamFeatures *f)
{
    if (f->has_animation || f->has_alpha) return 1;
    const uint32_t scale = ry_image_scale(in, (uint32_t)f->width, (uint32_t)f->height);
    if (scale > 1) {
        in->scaling->whole.across = scaled_side(f->width, scale);
        in->scaling->whole.down = scaled_side(f->height, scale);
    }
    return scale;
}

renyi_status ry_decode_webp(renyi_image *out, const ry_encoded *in, renyi_error *err)
{
    WebPBitstreamFeatures features;
    const VP8StatusCode code = WebPGetFeatures(in->bytes, in->size, &features);
    if (code != VP8_STATUS_OK) return fail_webp(in, code, err);
    renyi_image image;
    uint8_t *rgb;
    RY_TRY(
        ry_image_check_size(in, "WebP", (uint64_t)features.width, (uint64_t)features.height, err));
    const uint32_t scale = choose_scale(in, &features);
    RY_TRY(ry_image_new(&image, &rgb, in, scaled_side(features.width, scale),
                        scaled_side(features.height, scale), err));
    const renyi_status st = features.has_animation ? decode_first_frame(rgb, &image, in, err)
                                                   : decode_still(rgb, &image, scale > 1, in, err);
    if (st != RENYI_OK)
        ry_free(in->allocator, rgb);
    else
        *out = image;
    return st;
}
