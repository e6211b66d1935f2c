/* test_gram.c - the Gram matrix at every level against double: all tail sizes, strides wider than a
 * row, nothing read or written outside.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/kernel_test.h"

#define RY_SIMD_EMU16
#include "kernels/attention/gram_template.h"

static void check_block(const ry_kernels *k, const guarded *z, size_t z_row, const guarded *out,
                        size_t out_row, size_t n, size_t dim, size_t block)
{
    const size_t first = block * k->gram_rows;
    const size_t last = first + k->gram_rows < n ? first + k->gram_rows : n;
    for (size_t i = first; i < last; i++) {
        for (size_t j = 0; j < last; j++) {
            double want = 0.0, size = 0.0;
            for (size_t c = 0; c < dim; c++) {
                const double v = (double)z->data[i * z_row + c] * (double)z->data[j * z_row + c];
                want += v;
                size += fabs(v);
            }
            assert_true(fabs((double)out->data[i * out_row + j] - want) <= dot_bound(dim, size));
        }
        for (size_t j = last; j < out_row; j++) assert_true(isnan(out->data[i * out_row + j]));
    }
}

static void check_size(const ry_kernels *k, size_t n, size_t dim, size_t shift)
{
    const size_t z_row = dim + 3, out_row = n + 2;
    float *scratch = scratch_new(ry_gram_scratch(n, dim, k->gram_rows));
    guarded z = guard_new((n - 1) * z_row + dim, shift), out = guard_new(n * out_row, shift);
    for (size_t i = 0; i < n; i++) fill_random(z.data + i * z_row, dim);
    for (size_t b = ry_gram_blocks(n, k->gram_rows); b-- > 0;)
        k->gram(out.data, out_row, z.data, z_row, n, dim, b, scratch);
    for (size_t b = 0; b < ry_gram_blocks(n, k->gram_rows); b++)
        check_block(k, &z, z_row, &out, out_row, n, dim, b);
    assert_true(guard_intact(&out));
    guard_free(&z), guard_free(&out);
    free(scratch);
}

static void check_all(const ry_kernels *k)
{
    for (size_t n = 1; n <= 40; n++) check_size(k, n, 1 + n % 7 * 9, n % 16);
    for (size_t dim = 1; dim <= 40; dim++) check_size(k, 21, dim, dim % 16);
    check_size(k, 71, 192, 0);
    check_size(k, 130, 64, 3);
    check_size(k, 19, 1024, 1);
}

static void test_levels(void **state)
{
    (void)state;
    const ry_kernels sixteen = {.gram = gram, .gram_rows = GRAM_ROWS};
    at_every_level(check_all, &sixteen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
