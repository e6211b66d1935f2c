/* png_build.h - writes small PNG files for tests: any colour type and depth, not compressed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_PNG_BUILD_H
#define RENYI_TESTS_PNG_BUILD_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PNG_GREY = 0, PNG_RGB = 2, PNG_PALETTE = 3, PNG_GREY_ALPHA = 4 };

typedef struct png_file {
    uint8_t *bytes; /* free() it */
    size_t size;
} png_file;

static inline void png_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(v >> (24 - 8 * i));
}

static inline uint32_t png_crc(const uint8_t *bytes, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static inline void png_chunk(png_file *f, const char *name, const uint8_t *data, size_t n)
{
    f->bytes = realloc(f->bytes, f->size + n + 12);
    if (!f->bytes) abort();
    uint8_t *at = f->bytes + f->size;
    png_u32(at, (uint32_t)n);
    memcpy(at + 4, name, 4);
    if (n) memcpy(at + 8, data, n);
    png_u32(at + 8 + n, png_crc(at + 4, n + 4));
    f->size += n + 12;
}

/* zlib stream of stored blocks */
static inline uint8_t *png_stored(const uint8_t *raw, size_t n, size_t *size)
{
    uint8_t *out = malloc(2 + n + (n / 65535 + 1) * 5 + 4), *at = out;
    uint32_t a = 1, b = 0;
    if (!out) abort();
    *at++ = 0x78;
    *at++ = 0x01;
    for (size_t done = 0; done < n;) {
        const size_t len = n - done < 65535 ? n - done : 65535;
        *at++ = done + len == n;
        at[0] = (uint8_t)len, at[1] = (uint8_t)(len >> 8);
        at[2] = (uint8_t)~at[0], at[3] = (uint8_t)~at[1];
        memcpy(at + 4, raw + done, len);
        at += 4 + len;
        done += len;
    }
    for (size_t i = 0; i < n; i++) {
        a = (a + raw[i]) % 65521;
        b = (b + a) % 65521;
    }
    png_u32(at, b << 16 | a);
    *size = (size_t)(at + 4 - out);
    return out;
}

/* samples: [height, width * channels] as they are to be stored; orientation 0 = no eXIf chunk. */
static inline png_file png_build(uint32_t width, uint32_t height, int type, int depth,
                                 const uint16_t *samples, uint8_t orientation)
{
    const size_t channels = type == PNG_RGB ? 3 : type == PNG_GREY_ALPHA ? 2 : 1;
    const size_t row = (width * channels * (size_t)depth + 7) / 8, n = (row + 1) * height;
    uint8_t head[13] = {0}, palette[256 * 3], *raw = calloc(1, n);
    uint8_t exif[26] = {'M', 'M',  0, 42, 0, 0, 0, 8, 0, 1,
                        1,   0x12, 0, 3,  0, 0, 0, 1, 0, orientation};
    png_file f = {malloc(8), 8};
    size_t size;
    if (!raw || !f.bytes) abort();
    memcpy(f.bytes, "\x89PNG\r\n\x1a\n", 8);
    png_u32(head, width);
    png_u32(head + 4, height);
    head[8] = (uint8_t)depth, head[9] = (uint8_t)type;
    for (size_t i = 0; i < sizeof palette; i++) palette[i] = (uint8_t)(i * 7);
    for (uint32_t y = 0; y < height; y++)
        for (size_t x = 0; x < width * channels; x++) {
            const uint16_t v = samples[y * width * channels + x];
            uint8_t *line = raw + y * (row + 1) + 1;
            const size_t bit = x * (size_t)depth;
            if (depth == 16)
                line[2 * x] = (uint8_t)(v >> 8), line[2 * x + 1] = (uint8_t)v;
            else
                line[bit / 8] |= (uint8_t)(v << (8 - depth - (int)(bit & 7)));
        }
    png_chunk(&f, "IHDR", head, sizeof head);
    if (type == PNG_PALETTE) png_chunk(&f, "PLTE", palette, depth == 8 ? 768 : 3u << depth);
    if (orientation) png_chunk(&f, "eXIf", exif, sizeof exif);
    uint8_t *stored = png_stored(raw, n, &size);
    png_chunk(&f, "IDAT", stored, size);
    png_chunk(&f, "IEND", NULL, 0);
    free(stored);
    free(raw);
    return f;
}

#endif
