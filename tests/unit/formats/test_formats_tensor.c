/* test_formats_tensor.c - element types, conversion to floats, sets of tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/formats_build.h"

#include "formats/tensor_set.h"

#include <math.h>

static void test_dtypes(void **state)
{
    (void)state;
    ry_dtype t;
    for (int i = RY_BOOL; i <= RY_F64; i++) {
        assert_true(ry_dtype_parse(ry_dtype_name((ry_dtype)i), &t));
        assert_int_equal(t, i);
        assert_in_range(ry_dtype_size(t), 1, 8);
    }
    assert_false(ry_dtype_parse("f32", &t));
    assert_false(ry_dtype_parse("F8_E4M3", &t));
}

/* Every half-precision number against a slow and obvious formula. */
static double half_value(unsigned h)
{
    const int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
    const double sign = h & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return exponent ? sign * ldexp(1024 + fraction, exponent - 25) : sign * ldexp(fraction, -24);
}

static void convert(ry_dtype dtype, const void *data, size_t n, float *out)
{
    ry_tensor t = {"t", dtype, 1, {n}, data, n * ry_dtype_size(dtype)};
    assert_int_equal(ry_tensor_to_f32(&t, out, NULL), RENYI_OK);
}

static void test_halves(void **state)
{
    (void)state;
    static unsigned char raw[2 * 65536 + 1];
    static float out[65536];
    for (unsigned h = 0; h < 65536; h++)
        raw[2 * h + 1] = (unsigned char)h, raw[2 * h + 2] = h >> 8 & 255;
    convert(RY_F16, raw + 1, 65536, out); /* odd address: any alignment is allowed */
    for (unsigned h = 0; h < 65536; h++) {
        const double want = half_value(h);
        if (isnan(want))
            assert_true(isnan(out[h]));
        else
            assert_true(out[h] == want && !signbit(out[h]) == !(h & 0x8000));
    }
    convert(RY_BF16, raw + 1, 65536, out);
    for (unsigned h = 0; h < 65536; h++) {
        const uint32_t bits = h << 16;
        assert_memory_equal(&out[h], &bits, 4);
    }
}

static void test_doubles(void **state)
{
    (void)state;
    const double in[] = {0.0, -0.0, 1.0 / 3, 1e300, -1e300, 1e-300, NAN};
    float out[7];
    convert(RY_F64, in, 7, out);
    assert_true(out[0] == 0 && signbit(out[1]) && out[2] == 1.0f / 3 && isinf(out[3]));
    assert_true(isinf(out[4]) && out[4] < 0 && out[5] == 0 && isnan(out[6]));
    convert(RY_F32, (const float[]){2.5f}, 1, out);
    assert_true(out[0] == 2.5f);
    convert(RY_F32, NULL, 0, out);
}

static void test_other_types(void **state)
{
    (void)state;
    renyi_error err;
    float out[1];
    ry_tensor t = {"num_batches", RY_I64, 1, {1}, "12345678", 8};
    assert_int_equal(ry_tensor_to_f32(&t, out, &err), RENYI_ERR_UNSUPPORTED);
    expect_message(&err, "num_batches");
    expect_message(&err, "I64");
}

static void test_shape_text(void **state)
{
    (void)state;
    char buf[16];
    ry_tensor t = {"t", RY_F32, 3, {1, 22, 333}, NULL, 0};
    assert_string_equal(ry_tensor_shape_text(&t, buf, sizeof buf), "[1, 22, 333]");
    t.shape[0] = UINT64_MAX;
    ry_tensor_shape_text(&t, buf, sizeof buf);
    assert_string_equal(buf + 12, "...");
    t.n_dims = 0;
    assert_string_equal(ry_tensor_shape_text(&t, buf, sizeof buf), "[]");
    assert_int_equal(ry_tensor_elements(&t), 1);
}

static ry_tensors *numbered(unsigned from, unsigned to)
{
    ry_tensors *set;
    assert_int_equal(ry_tensors_new(&set, NULL, NULL), RENYI_OK);
    for (unsigned i = from; i < to; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%u", i);
        const ry_tensor t = {name, RY_U8, 1, {i}, NULL, i};
        assert_int_equal(ry_tensors_add(set, &t, "f", NULL), RENYI_OK);
    }
    return set;
}

static void test_set(void **state)
{
    (void)state;
    renyi_error err;
    ry_tensors *set = numbered(0, 300), *more = numbered(300, 500);
    assert_int_equal(ry_tensors_add_meta(more, "format", "pt", NULL), RENYI_OK);
    assert_int_equal(ry_tensors_absorb(set, &more, "f", NULL), RENYI_OK);
    assert_null(more);
    assert_null(ry_tensors_find(set, "layer.1")); /* not before finish */
    assert_int_equal(ry_tensors_finish(set, "f", NULL), RENYI_OK);
    assert_int_equal(ry_tensors_count(set), 500);
    for (unsigned i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%u", i);
        assert_int_equal(ry_tensors_find(set, name)->bytes, i);
        assert_string_equal(ry_tensors_at(set, i)->name, name); /* order kept */
    }
    assert_null(ry_tensors_find(set, "layer.500"));
    assert_null(ry_tensors_find(set, ""));
    assert_string_equal(ry_tensors_meta(set, "format"), "pt");
    assert_null(ry_tensors_meta(set, "x"));

    more = numbered(7, 8);
    assert_int_equal(ry_tensors_absorb(set, &more, "f", NULL), RENYI_OK);
    assert_int_equal(ry_tensors_finish(set, "f.json", &err), RENYI_ERR_FORMAT);
    expect_message(&err, "f.json: two tensors are named 'layer.7'");
    ry_tensors_free(set);
    ry_tensors_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),     cmocka_unit_test(test_halves),
        cmocka_unit_test(test_doubles),    cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_shape_text), cmocka_unit_test(test_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
