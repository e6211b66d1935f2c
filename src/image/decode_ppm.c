/* decode_ppm.c - reads binary PGM (P5) and PPM (P6) with one or two bytes per sample.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/decode.h"

#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct reader {
    const uint8_t *bytes;
    size_t at, end;
} reader;

static int is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* A decimal number and the white space after it; comments run from # to the end of the line. */
static renyi_status read_number(reader *r, const char *what, uint32_t *out, renyi_error *err)
{
    uint64_t value = 0;
    int digits = 0;
    while (r->at < r->end) {
        const uint8_t c = r->bytes[r->at++];
        if (c == '#') {
            while (r->at < r->end && r->bytes[r->at] != '\n' && r->bytes[r->at] != '\r') r->at++;
            if (r->at < r->end) r->at++;
        } else if (is_space(c)) {
            if (digits) break;
        } else if (c < '0' || c > '9' || digits == 10) {
            return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)r->at - 1, "PPM: %s is not a number",
                           what);
        } else {
            value = value * 10 + (uint64_t)(c - '0');
            digits++;
        }
    }
    if (!digits || value > UINT32_MAX)
        return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)r->at, "PPM: no %s in the header", what);
    *out = (uint32_t)value;
    return RENYI_OK;
}

/* Sample to byte as in Pillow: colors are scaled, but grey with maxval above 255 is scaled to 65535
 * and then clamped to 255. */
static uint8_t to_byte(uint32_t sample, uint32_t maxval, int deep_grey)
{
    const double full = deep_grey ? 65535.0 : 255.0;
    const double v = nearbyint((double)sample / maxval * full); /* halves to even */
    return (uint8_t)(v < 255.0 ? v : 255.0);
}

typedef struct header {
    uint32_t width, height, maxval;
    uint32_t channels; /* 1 or 3 */
} header;

static void unpack_samples(uint8_t *rgb, const uint8_t *in, const header *h)
{
    const size_t samples = (size_t)h->width * h->height * h->channels;
    const int wide = h->maxval > 255, deep_grey = wide && h->channels == 1;
    const size_t copies = 3 / h->channels;
    uint8_t map[256];
    for (uint32_t v = 0; v < 256 && !wide; v++) map[v] = to_byte(v, h->maxval, 0);
    for (size_t i = 0; i < samples; i++) {
        const uint8_t v =
            wide ? to_byte((uint32_t)in[2 * i] << 8 | in[2 * i + 1], h->maxval, deep_grey)
                 : map[in[i]];
        memset(rgb + copies * i, v, copies);
    }
}

renyi_status ry_decode_ppm(renyi_image *out, const ry_encoded *in, renyi_error *err)
{
    reader r = {in->bytes, 2, in->size};
    header h = {.channels = in->bytes[1] == '6' ? 3 : 1};
    RY_TRY(read_number(&r, "width", &h.width, err));
    RY_TRY(read_number(&r, "height", &h.height, err));
    RY_TRY(read_number(&r, "maxval", &h.maxval, err));
    if (!h.maxval || h.maxval > 65535)
        return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)r.at,
                       "PPM: maxval %" PRIu32 "; it must be 1 to 65535", h.maxval);
    RY_TRY(ry_image_check_size(in, "PPM", h.width, h.height, err));
    const uint64_t wanted = (uint64_t)h.width * h.height * h.channels * (h.maxval > 255 ? 2 : 1);
    if (wanted > r.end - r.at)
        return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)r.end,
                       "PPM: truncated: %" PRIu32 " x %" PRIu32 " needs %" PRIu64
                       " bytes of pixels, %zu are left",
                       h.width, h.height, wanted, r.end - r.at);
    uint8_t *rgb;
    RY_TRY(ry_image_new(out, &rgb, in, h.width, h.height, err));
    unpack_samples(rgb, r.bytes + r.at, &h);
    return RENYI_OK;
}
