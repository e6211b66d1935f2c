/* linear_avx512.c - for AVX-512: our packed products with weights as floats and as bfloat16, and
 * the conversion of rows to int8 and bfloat16 that oneDNN's products need.
 * SPDX-License-Identifier: Apache-2.0 */
#define RY_SIMD_AVX512
#include "kernels/linear/linear_template.h"
#include "kernels/linear/quant_template.h"

const ry_linear_vtable ry_linear_avx512 = {.pack = pack_f32,
                                           .reads = 1,
                                           .update = update_f32,
                                           .bind = bind_f32,
                                           .tiles = count_tiles,
                                           .tile = tile_f32,
                                           .row_padding = RY_LINE};

const ry_linear_vtable ry_linear_bf16_avx512 = {.pack = pack_bf16,
                                                .reads = 1,
                                                .bind = bind_bf16,
                                                .tiles = count_tiles,
                                                .tile = tile_bf16,
                                                .row_padding = RY_LINE};

/* The same rounding as in quant.c, 16 numbers at a time. */
RY_INLINE __m256i round_to_bf16(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x), upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), is_nan, quiet));
}

static RY_DECL_TO_BF16(to_bf16)
{
    for (size_t r = 0; r < rows; r++, x += x_row, y += y_row)
        for (size_t k = 0; k < n; k += VL) {
            const size_t left = n - k < VL ? n - k : VL;
            const __m256i half = round_to_bf16(vf_load_upto(x + k, left));
            __builtin_memcpy(y + k, &half, 2 * left);
        }
}

const ry_quant_kernels ry_quant_avx512 = {quantize_rows, finish_sums, to_bf16};
