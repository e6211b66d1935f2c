/* resize_avx2.c - the resize kernels with AVX2, with the same bits as the plain ones in resize.c.
 *
 * The 22-bit weights are split into hi * 2^15 + lo, so that the 16-bit multiply-add can be used;
 * its sums wrap modulo 2^32 like those of the plain kernels, so no bit is lost.
 * SPDX-License-Identifier: Apache-2.0 */
#include "image/resize.h"

#include <immintrin.h>
#include <string.h>

#define HALF (1 << (RY_TAP_BITS - 1))

static int32_t pair_at(const int16_t *k)
{
    int32_t two;
    memcpy(&two, k, sizeof two);
    return two;
}

/* ---- across: four rows at a time, so that the weights are arranged once for all of them ---- */

enum { ROWS = 4 };

/* Four weights a b c d as pairs for the multiply-add: ab ab ab ab | cd cd cd cd. */
static __m256i spread(const int16_t *k)
{
    const __m256i four = _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)(const void *)k));
    return _mm256_permutevar8x32_epi32(four, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

/* Four pixels of 3 bytes as 16-bit pairs of one channel: r0r1 g0g1 b0b1 00 | r2r3 g2g3 b2b3 00.
 * Reads 16 bytes of which 12 count. */
static __m256i four_pixels(const uint8_t *p)
{
    const __m256i order =
        _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                         -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), order);
}

static void store_pixel(uint8_t *out, __m256i hi, __m256i lo)
{
    const __m256i sum = _mm256_add_epi32(lo, _mm256_slli_epi32(hi, RY_TAP_LOW_BITS));
    __m128i v = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    v = _mm_srai_epi32(_mm_add_epi32(v, _mm_set1_epi32(HALF)), RY_TAP_BITS);
    v = _mm_packs_epi32(v, v);
    v = _mm_packus_epi16(v, v);
    const int32_t rgb = _mm_cvtsi128_si32(v);
    memcpy(out, &rgb, 3);
}

/* One output column of four rows. */
static void column_of_rows(uint8_t *out, size_t out_stride, const uint8_t *p, size_t stride,
                           const ry_taps *taps, uint32_t i)
{
    const int16_t *kh = taps->hi + (size_t)i * taps->width;
    const int16_t *kl = taps->lo + (size_t)i * taps->width;
    __m256i hi[ROWS], lo[ROWS];
    for (int r = 0; r < ROWS; r++) hi[r] = lo[r] = _mm256_setzero_si256();
    for (uint32_t x = 0; x < taps->count[i]; x += 4, p += 12) {
        const __m256i h = spread(kh + x), l = spread(kl + x);
        for (int r = 0; r < ROWS; r++) {
            const __m256i v = four_pixels(p + (size_t)r * stride);
            hi[r] = _mm256_add_epi32(hi[r], _mm256_madd_epi16(v, h));
            lo[r] = _mm256_add_epi32(lo[r], _mm256_madd_epi16(v, l));
        }
    }
    for (int r = 0; r < ROWS; r++) store_pixel(out + (size_t)r * out_stride, hi[r], lo[r]);
}

/* The same for outputs whose last load would reach beyond the row, and for the last rows. */
static void column_of_row(uint8_t *out, const uint8_t *p, const ry_taps *taps, uint32_t i)
{
    const int32_t *k = taps->k + (size_t)i * taps->width;
    __m128i sum = _mm_set1_epi32(HALF);
    for (uint32_t x = 0; x < taps->count[i]; x++, p += 3) {
        const __m128i v = _mm_setr_epi32(p[0], p[1], p[2], 0);
        sum = _mm_add_epi32(sum, _mm_mullo_epi32(v, _mm_set1_epi32(k[x])));
    }
    sum = _mm_srai_epi32(sum, RY_TAP_BITS);
    sum = _mm_packs_epi32(sum, sum);
    const int32_t rgb = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
    memcpy(out, &rgb, 3);
}

/* Loads of whole groups of four pixels, and 4 bytes more, stay inside the row. */
static int loads_fit(const ry_taps *taps, uint32_t i, uint32_t width)
{
    const size_t groups = ((size_t)taps->count[i] + 3) / 4;
    return 3 * (size_t)taps->first[i] + 12 * groups + 4 <= 3 * (size_t)width;
}

static void across_avx2(uint8_t *out, size_t out_stride, const ry_pixels *in, const ry_taps *taps)
{
    for (uint32_t y = 0; y < in->rows; y += ROWS) {
        const uint8_t *row = in->at + y * in->stride;
        uint8_t *to = out + y * out_stride;
        const uint32_t left = in->rows - y < ROWS ? in->rows - y : ROWS;
        for (uint32_t i = 0; i < taps->n; i++) {
            const uint8_t *p = row + 3 * (size_t)taps->first[i];
            if (left == ROWS && loads_fit(taps, i, in->width))
                column_of_rows(to + 3 * (size_t)i, out_stride, p, in->stride, taps, i);
            else
                for (uint32_t r = 0; r < left; r++)
                    column_of_row(to + r * out_stride + 3 * (size_t)i, p + r * in->stride, taps, i);
        }
    }
}

/* ---- down: 32 bytes of two rows at a time -------------------------------------------------- */

typedef struct sums {
    __m256i hi[4], lo[4];
} sums;

/* a, b: 32 bytes of two rows. Unpacking and, later, packing swap within halves of the register the
 * same way, so the bytes come out in order. */
static void add_pair(sums *s, __m256i a, __m256i b, __m256i kh, __m256i kl)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const __m256i v[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                          _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
    for (int q = 0; q < 4; q++) {
        s->hi[q] = _mm256_add_epi32(s->hi[q], _mm256_madd_epi16(v[q], kh));
        s->lo[q] = _mm256_add_epi32(s->lo[q], _mm256_madd_epi16(v[q], kl));
    }
}

static __m256i finish_sums(const sums *s)
{
    __m256i v[4];
    for (int q = 0; q < 4; q++) {
        v[q] = _mm256_add_epi32(s->lo[q], _mm256_slli_epi32(s->hi[q], RY_TAP_LOW_BITS));
        v[q] = _mm256_srai_epi32(_mm256_add_epi32(v[q], _mm256_set1_epi32(HALF)), RY_TAP_BITS);
    }
    return _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
}

static __m256i load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static void down_avx2(uint8_t *out, const uint8_t *in, size_t stride, size_t n_bytes,
                      const ry_taps *taps, uint32_t i)
{
    const uint32_t count = taps->count[i];
    const int16_t *kh = taps->hi + (size_t)i * taps->width;
    const int16_t *kl = taps->lo + (size_t)i * taps->width;
    size_t x = 0;
    for (; x + 32 <= n_bytes; x += 32) {
        sums s;
        for (int q = 0; q < 4; q++) s.hi[q] = s.lo[q] = _mm256_setzero_si256();
        for (uint32_t y = 0; y < count; y += 2) {
            const uint8_t *a = in + y * stride + x;
            const uint8_t *b =
                y + 1 < count ? a + stride : a; /* beyond the last row the weight is 0 */
            add_pair(&s, load32(a), load32(b), _mm256_set1_epi32(pair_at(kh + y)),
                     _mm256_set1_epi32(pair_at(kl + y)));
        }
        _mm256_storeu_si256((__m256i *)(void *)(out + x), finish_sums(&s));
    }
    if (x < n_bytes) ry_resize_scalar.down(out + x, in + x, stride, n_bytes - x, taps, i);
}

const ry_resize_kernels ry_resize_vec8 = {across_avx2, down_avx2};
