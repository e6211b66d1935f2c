/* gguf_blocks.c - the values of GGUF's block types.
 *
 * Each block holds integers of 4 to 8 bits. The types _0 multiply them by one scale d; the types _1
 * add a minimum m. The types _K have 256 numbers in parts of 32 or 16; the scale of a part is a
 * small integer times the d of the block, its minimum a small integer times dmin. Halves are
 * little-endian, and the lower half of a byte comes first in its part.
 *
 *   Q8_0   d | 32 x i8                                 34 bytes
 *   Q4_0   d | 16 bytes: numbers j and j + 16          18, minus 8
 *   Q4_1   d, m | the same                             20
 *   Q5_0   d | 32 fifth bits | the same                22, minus 16
 *   Q5_1   d, m | 32 fifth bits | the same             24
 *   Q4_K   d, dmin | 12 bytes of scales | 4 x 32       144: parts 2c and 2c + 1 share 32 bytes
 *   Q5_K   d, dmin | scales | 32 fifth bits | 4 x 32   176: bit p of byte j is that of part p
 *   Q6_K   128 low halves | 64 high pairs | 16 x i8 | d   210, minus 32
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/gguf/gguf_blocks.h"

#include "base/half.h"

#include <assert.h>

static float half_at(const uint8_t *p)
{
    return ry_half_to_float((uint16_t)(p[0] | (unsigned)p[1] << 8));
}

/* ---- 32 numbers ---------------------------------------------------------------------------- */

enum { SMALL = 32, LARGE = 256, PARTS = 8 };

static void from_q8_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    for (int j = 0; j < SMALL; j++) out[j] = d * (float)(int8_t)block[2 + j];
}

/* The numbers of 16 bytes, with a fifth bit each from `high`. */
static void unpack_32(const uint8_t *low, uint32_t high, int numbers[SMALL])
{
    for (int j = 0; j < 16; j++) {
        numbers[j] = (low[j] & 15) | (int)(high >> j & 1) << 4;
        numbers[j + 16] = low[j] >> 4 | (int)(high >> (j + 16) & 1) << 4;
    }
}

static uint32_t bits_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void from_q4_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    int q[SMALL];
    unpack_32(block + 2, 0, q);
    for (int j = 0; j < SMALL; j++) out[j] = d * (float)(q[j] - 8);
}

static void from_q4_1(const uint8_t *block, float *out)
{
    const float d = half_at(block), m = half_at(block + 2);
    int q[SMALL];
    unpack_32(block + 4, 0, q);
    for (int j = 0; j < SMALL; j++) out[j] = d * (float)q[j] + m;
}

static void from_q5_0(const uint8_t *block, float *out)
{
    const float d = half_at(block);
    int q[SMALL];
    unpack_32(block + 6, bits_at(block + 2), q);
    for (int j = 0; j < SMALL; j++) out[j] = d * (float)(q[j] - 16);
}

static void from_q5_1(const uint8_t *block, float *out)
{
    const float d = half_at(block), m = half_at(block + 2);
    int q[SMALL];
    unpack_32(block + 8, bits_at(block + 4), q);
    for (int j = 0; j < SMALL; j++) out[j] = d * (float)q[j] + m;
}

/* ---- 256 numbers --------------------------------------------------------------------------- */

/* Eight scales and eight minima of six bits in 12 bytes. The lower four bits of 4 .. 7 are in bytes
 * 8 .. 11, the upper two above those of 0 .. 3. */
static void unpack_scales(const uint8_t *s, float scale[PARTS], float min[PARTS])
{
    for (int i = 0; i < 4; i++) {
        scale[i] = (float)(s[i] & 63);
        min[i] = (float)(s[i + 4] & 63);
        scale[i + 4] = (float)((s[i + 8] & 15) | (s[i] >> 6) << 4);
        min[i + 4] = (float)(s[i + 8] >> 4 | (s[i + 4] >> 6) << 4);
    }
}

/* Q4_K; Q5_K if fifth bits are given. */
static void from_k(const uint8_t *block, const uint8_t *fifth, const uint8_t *low, float *out)
{
    const float d = half_at(block), dmin = half_at(block + 2);
    float scale[PARTS], min[PARTS];
    unpack_scales(block + 4, scale, min);
    for (int p = 0; p < PARTS; p++) {
        const float step = d * scale[p], least = dmin * min[p];
        const uint8_t *bytes = low + p / 2 * 32;
        for (int j = 0; j < 32; j++) {
            const int q = p % 2 ? bytes[j] >> 4 : bytes[j] & 15;
            const int high = fifth ? (fifth[j] >> p & 1) << 4 : 0;
            out[p * 32 + j] = step * (float)(q | high) - least;
        }
    }
}

static void from_q4_k(const uint8_t *block, float *out) { from_k(block, NULL, block + 16, out); }
static void from_q5_k(const uint8_t *block, float *out)
{
    from_k(block, block + 16, block + 48, out);
}

/* Two halves of 128; in each, parts of 32 numbers share bytes: the first two have the lower halves
 * of the 64 low bytes, the others the upper halves; the high bits of part p are bits 2p. */
static void from_q6_k(const uint8_t *block, float *out)
{
    const uint8_t *low = block, *high = block + 128, *scales = block + 192;
    const float d = half_at(block + 208);
    for (int half = 0; half < 2; half++, low += 64, high += 32, scales += 8, out += 128)
        for (int p = 0; p < 4; p++)
            for (int j = 0; j < 32; j++) {
                const uint8_t byte = low[p % 2 * 32 + j];
                const int q = (p < 2 ? byte & 15 : byte >> 4) | (high[j] >> 2 * p & 3) << 4;
                const float step = d * (float)(int8_t)scales[p * 2 + j / 16];
                out[p * 32 + j] = step * (float)(q - 32);
            }
}

/* ---- table --------------------------------------------------------------------------------- */

static const struct {
    uint16_t elements, bytes;
    void (*decode)(const uint8_t *block, float *out);
} types[] = {
    [RY_Q8_0 - RY_Q8_0] = {SMALL, 34, from_q8_0},  [RY_Q4_0 - RY_Q8_0] = {SMALL, 18, from_q4_0},
    [RY_Q4_1 - RY_Q8_0] = {SMALL, 20, from_q4_1},  [RY_Q5_0 - RY_Q8_0] = {SMALL, 22, from_q5_0},
    [RY_Q5_1 - RY_Q8_0] = {SMALL, 24, from_q5_1},  [RY_Q4_K - RY_Q8_0] = {LARGE, 144, from_q4_k},
    [RY_Q5_K - RY_Q8_0] = {LARGE, 176, from_q5_k}, [RY_Q6_K - RY_Q8_0] = {LARGE, 210, from_q6_k},
};

size_t ry_gguf_block_elements(ry_dtype t) { return t < RY_Q8_0 ? 0 : types[t - RY_Q8_0].elements; }
size_t ry_gguf_block_bytes(ry_dtype t) { return t < RY_Q8_0 ? 0 : types[t - RY_Q8_0].bytes; }

void ry_gguf_blocks_to_f32(ry_dtype t, const void *blocks, size_t n_blocks, float *out)
{
    const uint8_t *at = blocks;
    assert(t >= RY_Q8_0);
    for (size_t i = 0; i < n_blocks; i++, at += types[t - RY_Q8_0].bytes) {
        types[t - RY_Q8_0].decode(at, out);
        out += types[t - RY_Q8_0].elements;
    }
}
