/* decode_webp.c - reads WebP with libwebp: lossy, lossless, with alpha (dropped). Of an animation
 * it reads the first frame on its canvas, as Pillow does.
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

static renyi_status decode_still(uint8_t *rgb, const renyi_image *image, const ry_encoded *in,
                                 renyi_error *err)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "WebP: libwebp of another version at run time");
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

renyi_status ry_decode_webp(renyi_image *out, const ry_encoded *in, renyi_error *err)
{
    WebPBitstreamFeatures features;
    const VP8StatusCode code = WebPGetFeatures(in->bytes, in->size, &features);
    if (code != VP8_STATUS_OK) return fail_webp(in, code, err);
    renyi_image image;
    uint8_t *rgb;
    RY_TRY(
        ry_image_check_size(in, "WebP", (uint64_t)features.width, (uint64_t)features.height, err));
    RY_TRY(
        ry_image_new(&image, &rgb, in, (uint32_t)features.width, (uint32_t)features.height, err));
    const renyi_status st = features.has_animation ? decode_first_frame(rgb, &image, in, err)
                                                   : decode_still(rgb, &image, in, err);
    if (st != RENYI_OK)
        ry_free(in->allocator, rgb);
    else
        *out = image;
    return st;
}
