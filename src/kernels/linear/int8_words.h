/* int8_words.h - the inner loop of linear_int8_template.h for AVX2, with sums of 16 bits.
 *
 * vpmaddubsw makes sums of 16 bits, and widening each to 32 bits costs a second multiplication. So
 * four steps of k, a chunk of 16 inputs, are added in 16 bits and widened once. A word (16 bits) is
 * the sum of one output over 8 of these inputs: numbers 0 and 1 of every four, or 2 and 3. It is
 * kept modulo 2^16, which loses nothing if the sum is known to fit:
 *
 *   sum_k w (x - c)   for a number c near x, the same for all rows of a tile
 *   its size          is at most |w| |x - c|, lengths of vectors of 8 numbers (Cauchy-Schwarz)
 *
 * What gives |x - c|^2 for any c is found when a row is converted, |w| when a tile begins a panel.
 * For rows where a chunk might not fit, product_rows computes it in 32 bits. Both ways are exact,
 * so the bits do not depend on the choice. Sums start from c times the sum of all w.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_INT8_WORDS_H
#define RY_INT8_WORDS_H

enum {
    WORD_STEPS = 4,                  /* steps of a chunk, four inputs each */
    WORD_K = 4 * WORD_STEPS,         /* inputs of a chunk */
    WORD_DEPTH = 8192,               /* inputs, at most */
    WORD_LEAST = 16,                 /* rows, so that what is found of weights pays */
    WORD_GROUPS = RY_GRID_ROWS / MR, /* of rows, at most */
    MIDDLE = 128                     /* moments are those of x - MIDDLE */
};

/* Rows of other depths take product_rows alone. */
static int words_take(size_t n_in) { return n_in % (4 * WORD_K) == 0 && n_in <= WORD_DEPTH; }

/* The moments of the words of four chunks: sums of squares and sums of x - MIDDLE, exact */
typedef struct moments {
    float squares[2][4], sums[2][4];
} moments;

/* The moments of a row, which follow the bytes of all rows. depth is a multiple of 64. */
static moments *moments_of(const ry_linear *l, const void *input, size_t rows, size_t row)
{
    char *all = (char *)(uintptr_t)input + ry_int8_input_bytes(l, rows);
    return (moments *)(void *)all + row * (l->n_in / (4 * WORD_K));
}

static size_t words_input_bytes(const ry_linear *l, size_t rows)
{
    const size_t more = words_take(l->n_in) ? rows * (l->n_in / (4 * WORD_K)) * sizeof(moments) : 0;
    return ry_int8_input_bytes(l, rows) + more;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The sums over the two words of each of four chunks; four: sums of two inputs, chunk by chunk */
RY_INLINE void store_sums(float to[2][4], const __m256i four[4])
{
    __m128i half[4], pair[2];
    RY_UNROLL
    for (int i = 0; i < 4; i++)
        half[i] =
            _mm_add_epi32(_mm256_castsi256_si128(four[i]), _mm256_extracti128_si256(four[i], 1));
    RY_UNROLL
    for (int i = 0; i < 2; i++)
        pair[i] = _mm_add_epi32(_mm_unpacklo_epi64(half[2 * i], half[2 * i + 1]),
                                _mm_unpackhi_epi64(half[2 * i], half[2 * i + 1]));
    const __m128 ab = _mm_castsi128_ps(pair[0]), cd = _mm_castsi128_ps(pair[1]);
    _mm_storeu_ps(to[0], _mm_cvtepi32_ps(_mm_castps_si128(_mm_shuffle_ps(ab, cd, 0x88))));
    _mm_storeu_ps(to[1], _mm_cvtepi32_ps(_mm_castps_si128(_mm_shuffle_ps(ab, cd, 0xdd))));
}

static void find_moments(moments *to, const uint8_t *q, size_t depth)
{
    const __m256i middle = _mm256_set1_epi16(MIDDLE), one = _mm256_set1_epi16(1);
    for (size_t k = 0; k < depth; k += 4 * WORD_K, to++) {
        __m256i squares[4], sums[4];
        RY_UNROLL
        for (int i = 0; i < 4; i++) {
            const void *at = q + k + (size_t)i * WORD_K;
            const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)at));
            const __m256i d = _mm256_sub_epi16(wide, middle);
            squares[i] = _mm256_madd_epi16(d, d);
            sums[i] = _mm256_madd_epi16(d, one);
        }
        store_sums(to->squares, squares);
        store_sums(to->sums, sums);
    }
}

/* ---- what a tile knows of its rows ----------------------------------------------------------- */

typedef struct word_rows {
    uint8_t c;
    /* of every group and chunk: the largest |x - c| in units of 1 / 64, rounded up */
    uint16_t length[WORD_GROUPS][WORD_DEPTH / WORD_K];
} word_rows;

/* The mean of all numbers of the rows */
static uint8_t mean_of(const moments *m, size_t n, size_t depth, size_t rows)
{
    __m128 sum = _mm_setzero_ps();
    for (size_t i = 0; i < n * rows; i++)
        sum = _mm_add_ps(sum, _mm_add_ps(_mm_loadu_ps(m[i].sums[0]), _mm_loadu_ps(m[i].sums[1])));
    float four[4];
    _mm_storeu_ps(four, sum);
    const float total = (four[0] + four[1]) + (four[2] + four[3]);
    return (uint8_t)((float)MIDDLE + 0.5f + total / (float)(rows * depth));
}

/* m: moments of the tile's rows. Groups are those of product_in_words. */
static void word_rows_of(word_rows *to, const moments *m, size_t depth, size_t rows)
{
    const size_t groups = (rows + MR - 1) / MR, least = rows / groups, more = rows % groups;
    const size_t n = depth / (4 * WORD_K);
    to->c = mean_of(m, n, depth, rows);
    /* sum (x - MIDDLE - e)^2 over eight numbers */
    const float e = (float)(to->c - MIDDLE);
    const __m128 twice = _mm_set1_ps(-2.0f * e), last = _mm_set1_ps(8.0f * e * e);
    for (size_t g = 0; g < groups; g++) {
        const size_t mr = least + (g < more);
        for (size_t i = 0; i < n; i++) {
            __m128 most = _mm_sub_ps(_mm_setzero_ps(), last);
            for (size_t r = 0; r < mr; r++) {
                const moments *at = m + r * n + i;
                RY_UNROLL
                for (int v = 0; v < 2; v++)
                    most = _mm_max_ps(most, _mm_fmadd_ps(_mm_loadu_ps(at->sums[v]), twice,
                                                         _mm_loadu_ps(at->squares[v])));
            }
            const __m128 length = _mm_sqrt_ps(_mm_add_ps(most, last)); /* at most 722 */
            __m128i whole = _mm_cvttps_epi32(_mm_mul_ps(length, _mm_set1_ps(64.0f)));
            whole = _mm_add_epi32(whole, _mm_set1_epi32(1));
            _mm_storel_epi64((__m128i *)(void *)(to->length[g] + 4 * i),
                             _mm_packus_epi32(whole, whole));
        }
        m += mr * n;
    }
}

/* ---- what a tile knows of a panel ------------------------------------------------------------ */

typedef struct word_panel {
    /* of each chunk of a part: -c times the sums of w; the largest length of x - c that fits */
    _Alignas(64) int16_t start[KC / WORD_K][2 * PANEL];
    uint16_t most[KC / WORD_K];
    uint8_t c;
    int32_t whole[PANEL]; /* c times the sums of w of the part */
} word_panel;

/* Sums of the numbers of each word of a chunk w; at most 8 x 127 */
RY_INLINE void sums_of_weights(const int8_t *w, vi sums[2])
{
    const __m256i ones = _mm256_set1_epi8(1);
    RY_UNROLL
    for (int v = 0; v < 2; v++) {
        sums[v] = _mm256_setzero_si256();
        RY_UNROLL
        for (int t = 0; t < WORD_STEPS; t++) {
            const vb some = vb_load(w + t * 4 * PANEL + v * 32);
            sums[v] = _mm256_add_epi16(sums[v], _mm256_maddubs_epi16(ones, some));
        }
    }
}

/* At least a quarter of the square of the largest length of a word of a chunk w */
RY_INLINE uint16_t longest_weights(const int8_t *w)
{
    __m256i most = _mm256_setzero_si256();
    RY_UNROLL
    for (int v = 0; v < 2; v++) {
        __m256i sum = _mm256_set1_epi16(WORD_STEPS); /* what is lost below */
        RY_UNROLL
        for (int t = 0; t < WORD_STEPS; t++) {
            const vb size = _mm256_abs_epi8(vb_load(w + t * 4 * PANEL + v * 32));
            sum = _mm256_add_epi16(sum, _mm256_srli_epi16(_mm256_maddubs_epi16(size, size), 2));
        }
        most = _mm256_max_epu16(most, sum);
    }
    const __m128i half =
        _mm_max_epu16(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    const __m128i least = _mm_minpos_epu16(_mm_xor_si128(half, _mm_set1_epi16(-1)));
    return (uint16_t)~_mm_extract_epi16(least, 0);
}

/* The next part of a panel: w [depth <= KC] */
static void add_weights(word_panel *to, const int8_t *w, size_t depth)
{
    const __m256i less = _mm256_set1_epi16((int16_t)-to->c), times = _mm256_set1_epi16(to->c);
    const size_t chunks = depth / WORD_K;
    vi whole[2] = {vi_zero(), vi_zero()};
    for (size_t i = 0; i < chunks; i++, w += WORD_K * PANEL) {
        vi sums[2];
        sums_of_weights(w, sums);
        RY_UNROLL
        for (int v = 0; v < 2; v++) {
            vb_store(to->start[i] + v * PANEL, _mm256_mullo_epi16(sums[v], less));
            whole[v] = _mm256_add_epi32(whole[v], _mm256_madd_epi16(sums[v], times));
        }
        to->most[i] = longest_weights(w);
    }
    for (int v = 0; v < 2; v++) vi_store(to->whole + v * VL, whole[v]);
    /* 64 x 32767 / (2 sqrt(quarter)), and a little less for rounding */
    for (size_t i = 0; i < chunks; i += 4) {
        __m128i *at = (__m128i *)(void *)(to->most + i);
        const __m128 length = _mm_sqrt_ps(_mm_cvtepi32_ps(_mm_cvtepu16_epi32(_mm_loadl_epi64(at))));
        const __m128 fits = _mm_div_ps(_mm_set1_ps(1048500.0f), length);
        const __m128i whole_fits = _mm_cvttps_epi32(_mm_min_ps(fits, _mm_set1_ps(65535.0f)));
        _mm_storel_epi64(at, _mm_packus_epi32(whole_fits, whole_fits));
    }
}

/* ---- the product ----------------------------------------------------------------------------- */

/* sums[mr, PANEL] += (x[mr, WORD_K] - c) * w, in 32 bits */
RY_INLINE void chunk_in_32(const int mr, const uint8_t *x, size_t x_row, const int8_t *w, uint8_t c,
                           int32_t *sums)
{
    vi less[2];
    sums_of_weights(w, less);
    product_rows(mr, x, x_row, w, WORD_K, sums, PANEL, sums);
    RY_UNROLL
    for (int v = 0; v < 2; v++) {
        less[v] = _mm256_madd_epi16(less[v], _mm256_set1_epi16(c));
        RY_UNROLL
        for (int i = 0; i < mr; i++) {
            int32_t *at = sums + i * PANEL + v * VL;
            vi_store(at, _mm256_sub_epi32(vi_load(at), less[v]));
        }
    }
}

/* The same in 16 bits. The asm keeps the compiler from adding products as a tree, which would need
 * more registers. */
RY_INLINE void chunk_in_16(const int mr, const uint8_t *x, size_t x_row, const int8_t *w,
                           const int16_t *start, int32_t *sums)
{
    vi words[MR][2];
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int v = 0; v < 2; v++) words[i][v] = vb_load(start + v * PANEL);
    RY_UNROLL
    for (int t = 0; t < WORD_STEPS; t++, w += 4 * PANEL) {
        const vb w0 = vb_load(w), w1 = vb_load(w + 32);
        RY_UNROLL
        for (int i = 0; i < mr; i++) {
            const vb xi = vb_four(x + (size_t)i * x_row + 4 * t);
            words[i][0] = _mm256_add_epi16(words[i][0], _mm256_maddubs_epi16(xi, w0));
            words[i][1] = _mm256_add_epi16(words[i][1], _mm256_maddubs_epi16(xi, w1));
            __asm__ volatile("" : "+x"(words[i][0]), "+x"(words[i][1])::"memory");
        }
    }
    RY_UNROLL
    for (int i = 0; i < mr; i++) RY_UNROLL
    for (int v = 0; v < 2; v++) {
        int32_t *at = sums + i * PANEL + v * VL;
        const vi both = _mm256_madd_epi16(words[i][v], _mm256_set1_epi16(1));
        vi_store(at, _mm256_add_epi32(vi_load(at), both));
    }
}

RY_INLINE void words_of_rows(const int mr, const uint8_t *x, size_t x_row, const int8_t *w,
                             size_t chunks, const uint16_t *length, const word_panel *p,
                             int32_t *sums)
{
    for (size_t i = 0; i < chunks; i++, x += WORD_K, w += WORD_K * PANEL) {
        if (__builtin_expect(length[i] <= p->most[i], 1))
            chunk_in_16(mr, x, x_row, w, p->start[i], sums);
        else
            chunk_in_32(mr, x, x_row, w, p->c, sums);
    }
}

/* mr: 3 or 4, as from WORD_LEAST rows on */
static void words_of_group(size_t mr, const uint8_t *x, size_t x_row, const int8_t *w,
                           size_t chunks, const uint16_t *length, const word_panel *p,
                           int32_t *sums)
{
    if (mr == MR)
        words_of_rows(MR, x, x_row, w, chunks, length, p, sums);
    else
        words_of_rows(MR - 1, x, x_row, w, chunks, length, p, sums);
}

/* sums[mr, PANEL] = whole, or added to them */
RY_INLINE void start_sums(int32_t *sums, size_t mr, const int32_t *whole, int add)
{
    const vi of[2] = {vi_load(whole), vi_load(whole + VL)};
    for (size_t i = 0; i < mr; i++, sums += PANEL)
        for (int v = 0; v < 2; v++)
            vi_store(sums + v * VL, add ? _mm256_add_epi32(vi_load(sums + v * VL), of[v]) : of[v]);
}

/* sums[rows, PANEL] = x[rows, depth] * panel */
static void product_in_words(const word_rows *known, const uint8_t *x, size_t depth, size_t rows,
                             const int8_t *panel, const int8_t *next, int32_t *sums)
{
    const size_t groups = (rows + MR - 1) / MR, least = rows / groups, more = rows % groups;
    const size_t share = depth * PANEL / groups / 64 * 64;
    word_panel p;
    p.c = known->c;
    for (size_t k = 0; k < depth; k += KC) {
        const size_t part = depth - k < KC ? depth - k : KC;
        const uint8_t *from = x + k;
        int32_t *to = sums;
        add_weights(&p, panel + k * PANEL, part);
        for (size_t g = 0; g < groups; g++) {
            const size_t mr = least + (g < more);
            if (k == 0) prefetch(next, share), next += share;
            start_sums(to, mr, p.whole, k != 0);
            words_of_group(mr, from, depth, panel + k * PANEL, part / WORD_K,
                           known->length[g] + k / WORD_K, &p, to);
            from += mr * depth, to += mr * PANEL;
        }
    }
}

#endif
