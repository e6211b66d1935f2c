/* test_formats_gguf.c - valid GGUF files, and files damaged in each field with their messages;
 * random damage.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/gguf_build.h"

#include "base/rng.h"
#include "formats/tensor_set.h"

#include <math.h>

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q8_0 = 8, Q2_K = 10, Q4_K = 12, I32 = 26 };

/* ---- good files ---------------------------------------------------------------------------- */

static void build_good(bytes *b)
{
    gguf_begin(b, 3, 3, 9);
    gguf_string(b, "general.architecture", "llama");
    gguf_u32(b, "llama.block_count", 7);
    gguf_key(b, "real", RY_GGUF_F32);
    put(b, &(float){0.1f}, 4);
    gguf_key(b, "flag", RY_GGUF_BOOL);
    put_uint(b, 1, 1);
    gguf_key(b, "small", RY_GGUF_I8);
    put_uint(b, 0xfe, 1);
    gguf_key(b, "large", RY_GGUF_U64);
    put_uint(b, UINT64_MAX, 8);
    gguf_array(b, "mean", RY_GGUF_F64, 3);
    for (int i = 0; i < 3; i++) put(b, &(double){0.25 * i}, 8);
    gguf_array(b, "texts", RY_GGUF_TEXT, 3);
    gguf_text(b, "a"), gguf_text(b, ""), gguf_text(b, "bc");
    gguf_array(b, "wide", RY_GGUF_I16, 65);
    for (int i = 0; i < 65; i++) put_uint(b, (uint64_t)(-i), 2);
    gguf_tensor(b, "b", 32, 2, Q4_0, 64);
    gguf_tensor(b, "a", 3, 2, F32, 0);
    gguf_tensor(b, "c", 5, 0, I32, 128);
    gguf_data(b, 32, 148);
}

static void check_values(const ry_gguf *g)
{
    int64_t n;
    double x;
    ry_gguf_text text;
    assert_int_equal(g->n_values, 9);
    assert_null(ry_gguf_find(g, "none"));
    assert_null(ry_gguf_find(g, "fla"));
    assert_true(ry_gguf_integer(ry_gguf_find(g, "small"), 0, &n));
    assert_int_equal(n, -2);
    assert_false(ry_gguf_integer(ry_gguf_find(g, "small"), 1, &n));
    assert_false(ry_gguf_integer(ry_gguf_find(g, "large"), 0, &n));
    assert_false(ry_gguf_integer(ry_gguf_find(g, "real"), 0, &n));
    assert_true(ry_gguf_integer(ry_gguf_find(g, "wide"), 64, &n));
    assert_int_equal(n, -64);
    assert_true(ry_gguf_number(ry_gguf_find(g, "mean"), 2, &x));
    assert_true(x == 0.5);
    ry_gguf_texts texts = ry_gguf_texts_of(ry_gguf_find(g, "texts"));
    static const char *const want[] = {"a", "", "bc"};
    for (int i = 0; i < 3; i++) {
        assert_true(ry_gguf_next_text(&texts, &text));
        assert_int_equal(text.n, strlen(want[i]));
        assert_memory_equal(text.at, want[i], text.n);
    }
    assert_false(ry_gguf_next_text(&texts, &text));
    texts = ry_gguf_texts_of(ry_gguf_find(g, "mean"));
    assert_false(ry_gguf_next_text(&texts, &text));
}

static void check_config(const ry_gguf *g)
{
    json_t *j;
    assert_int_equal(ry_gguf_config(&j, g, "m", NULL), RENYI_OK);
    assert_string_equal(json_string_value(json_object_get(j, "general.architecture")), "llama");
    assert_int_equal(json_integer_value(json_object_get(j, "llama.block_count")), 7);
    assert_true(json_is_true(json_object_get(j, "flag")));
    assert_true(fabs(json_real_value(json_object_get(j, "real")) - (double)0.1f) == 0.0);
    assert_int_equal(json_array_size(json_object_get(j, "mean")), 3);
    assert_null(json_object_get(j, "texts"));
    assert_null(json_object_get(j, "wide"));  /* long arrays stay out */
    assert_null(json_object_get(j, "large")); /* beyond 63 bits */
    json_decref(j);
}

static void test_good(void **state)
{
    (void)state;
    renyi_error err = {0};
    bytes b;
    ry_gguf g;
    for (uint32_t version = 2; version <= 3; version++) {
        build_good(&b);
        b.data[4] = (unsigned char)version;
        unsigned char *data = exact_copy(b.data, b.size);
        if (ry_gguf_parse(&g, data, b.size, "m", NULL, NULL, &err)) fail_msg("%s", err.message);
        check_values(&g);
        check_config(&g);
        assert_int_equal(ry_tensors_count(g.tensors), 3);
        assert_string_equal(ry_tensors_at(g.tensors, 0)->name, "a"); /* in the order of bytes */
        const ry_tensor *t = ry_tensors_find(g.tensors, "b");
        assert_int_equal(t->dtype, RY_Q4_0);
        assert_int_equal(t->shape[0], 2);
        assert_int_equal(t->shape[1], 32);
        assert_int_equal(t->bytes, 36);
        assert_int_equal(*(const unsigned char *)t->data, 65);
        ry_gguf_free(&g, NULL);
        free(data);
    }
    gguf_begin(&b, 3, 0, 0); /* nothing in it */
    assert_int_equal(ry_gguf_parse(&g, b.data, b.size, "m", NULL, NULL, &err), RENYI_OK);
    ry_gguf_free(&g, NULL);
}

static void test_alignment(void **state)
{
    (void)state;
    bytes b;
    ry_gguf g;
    renyi_error err = {0};
    gguf_begin(&b, 3, 2, 1);
    gguf_u32(&b, "general.alignment", 8);
    gguf_tensor(&b, "a", 2, 0, F32, 0);
    gguf_tensor(&b, "b", 1, 0, F32, 8);
    gguf_data(&b, 8, 12);
    if (ry_gguf_parse(&g, b.data, b.size, "m", NULL, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(*(const unsigned char *)ry_tensors_find(g.tensors, "b")->data, 9);
    ry_gguf_free(&g, NULL);
}

/* ---- bad files ----------------------------------------------------------------------------- */

static void refuse_bytes(const void *p, size_t n, renyi_status code, const char *needle)
{
    renyi_error err = {RENYI_OK, 0, ""};
    ry_gguf g;
    unsigned char *data = exact_copy(p, n);
    const renyi_status st = ry_gguf_parse(&g, data, n, "bad.gguf", NULL, NULL, &err);
    free(data);
    assert_null(g.values);
    assert_null(g.tensors);
    if (st != code) fail_msg("status %d instead of %d: %s", st, code, err.message);
    expect_message(&err, "bad.gguf: ");
    expect_message(&err, needle);
}

static void refuse(const bytes *b, renyi_status code, const char *needle)
{
    refuse_bytes(b->data, b->size, code, needle);
}

static void test_beginning(void **state)
{
    (void)state;
    bytes b;
    refuse_bytes("", 0, RENYI_ERR_FORMAT, "does not begin with GGUF");
    refuse_bytes("GGUG\3\0\0\0", 8, RENYI_ERR_FORMAT, "does not begin with GGUF");
    refuse_bytes("GGUF\3\0", 6, RENYI_ERR_FORMAT, "byte 4: the version needs 4 bytes, 2 are left");
    refuse_bytes("GGUF\1\0\0\0", 8, RENYI_ERR_UNSUPPORTED, "GGUF version 1; 2 and 3 are read");
    refuse_bytes("GGUF\4\0\0\0", 8, RENYI_ERR_UNSUPPORTED, "GGUF version 4");
    refuse_bytes("GGUF\0\0\0\3", 8, RENYI_ERR_UNSUPPORTED, "big-endian");
    gguf_begin(&b, 3, 0, 0);
    refuse_bytes(b.data, 20, RENYI_ERR_FORMAT, "byte 16: the number of values needs 8 bytes");
    gguf_begin(&b, 3, 100001, 0);
    refuse(&b, RENYI_ERR_LIMIT, "byte 8: 100001 tensors; at most 100000 accepted");
    gguf_begin(&b, 3, UINT64_MAX, 0);
    refuse(&b, RENYI_ERR_LIMIT, "18446744073709551615 tensors");
    gguf_begin(&b, 3, 0, UINT64_MAX);
    refuse(&b, RENYI_ERR_LIMIT, "byte 16: 18446744073709551615 values; at most 65536");
    gguf_begin(&b, 3, 5, 0);
    refuse(&b, RENYI_ERR_FORMAT, "byte 24: the list of tensors needs 165 bytes, 0 are left");
    gguf_begin(&b, 3, 0, 9);
    refuse(&b, RENYI_ERR_FORMAT, "byte 24: the list of values needs 126 bytes, 0 are left");
}

/* One value, then zeros. */
static void begin_value(bytes *b) { gguf_begin(b, 3, 0, 1); }
static void end_value(bytes *b) { put_uint(b, 0, 32); }

static void test_values(void **state)
{
    (void)state;
    bytes b;
    begin_value(&b), put_uint(&b, UINT64_MAX, 8), end_value(&b);
    refuse(&b, RENYI_ERR_FORMAT, "byte 32: a key needs 18446744073709551615 bytes, 32 are left");
    begin_value(&b), gguf_key(&b, "", 4), end_value(&b);
    refuse(&b, RENYI_ERR_FORMAT, "byte 24: a key of 0 bytes; 1 to 65535 expected");
    begin_value(&b), gguf_key(&b, "\xff", 4), end_value(&b);
    refuse(&b, RENYI_ERR_FORMAT, "byte 24: a key is not UTF-8");
    begin_value(&b), gguf_key(&b, "k", 13), end_value(&b);
    refuse(&b, RENYI_ERR_FORMAT, "byte 33: key 'k' has a value of kind 13; 0 to 12 expected");
    begin_value(&b), gguf_string(&b, "k", "abc");
    refuse_bytes(b.data, b.size - 1, RENYI_ERR_FORMAT, "a text needs 3 bytes, 2 are left");
    begin_value(&b), gguf_array(&b, "k", 99, 1), end_value(&b);
    refuse(&b, RENYI_ERR_FORMAT, "key 'k' has a value of kind 99");
    begin_value(&b), gguf_array(&b, "k", RY_GGUF_ARRAY, 1), end_value(&b);
    refuse(&b, RENYI_ERR_UNSUPPORTED, "key 'k' is an array of arrays");
    begin_value(&b), gguf_array(&b, "k", RY_GGUF_U32, 9), end_value(&b);
    refuse(&b, RENYI_ERR_FORMAT, "an array needs 36 bytes, 32 are left");
    begin_value(&b), gguf_array(&b, "k", RY_GGUF_F64, UINT64_MAX / 2), end_value(&b);
    refuse(&b, RENYI_ERR_FORMAT, "an array needs 18446744073709551615 bytes");
    begin_value(&b), gguf_array(&b, "k", RY_GGUF_TEXT, 5), end_value(&b);
    refuse(&b, RENYI_ERR_FORMAT, "a text needs 8 bytes, 0 are left");
    gguf_begin(&b, 3, 0, 2), gguf_u32(&b, "k", 1), gguf_u32(&b, "k", 2);
    refuse(&b, RENYI_ERR_FORMAT, "key 'k' occurs twice");
    begin_value(&b), gguf_u32(&b, "split.count", 3);
    refuse(&b, RENYI_ERR_UNSUPPORTED, "one of 3 parts of a model; join them");
    begin_value(&b), gguf_string(&b, "split.count", "3");
    refuse(&b, RENYI_ERR_FORMAT, "'split.count' is not a whole number from 0");
    const uint32_t alignments[] = {0, 3, 48, 1u << 21};
    for (int i = 0; i < 4; i++) {
        begin_value(&b), gguf_u32(&b, "general.alignment", alignments[i]);
        refuse(&b, RENYI_ERR_FORMAT, "a power of two up to 1048576 expected");
    }
}

static void refuse_tensor(uint64_t x, uint64_t y, uint32_t type, uint64_t offset, renyi_status code,
                          const char *needle)
{
    bytes b;
    gguf_begin(&b, 3, 1, 0);
    gguf_tensor(&b, "w", x, y, type, offset);
    gguf_data(&b, 32, 64);
    refuse(&b, code, needle);
}

static void test_tensors(void **state)
{
    (void)state;
    bytes b;
    gguf_begin(&b, 3, 1, 0), put_uint(&b, 1025, 8), put_uint(&b, 1, 1100);
    refuse(&b, RENYI_ERR_FORMAT, "the name of a tensor of 1025 bytes; 1 to 1024 expected");
    gguf_begin(&b, 3, 1, 0), put_uint(&b, 2, 8), put(&b, "a", 2), put_uint(&b, 1, 64);
    refuse(&b, RENYI_ERR_FORMAT, "byte 24: the name of a tensor is not UTF-8, or has a zero byte");
    for (uint32_t n = 0; n <= 5; n += 5) {
        gguf_begin(&b, 3, 1, 0), gguf_text(&b, "w"), put_uint(&b, n, 4), put_uint(&b, 1, 64);
        refuse(&b, RENYI_ERR_FORMAT, "dimensions; 1 to 4 expected");
    }
    refuse_tensor(0, 0, F32, 0, RENYI_ERR_FORMAT, "tensor 'w' has dimension 0 of size 0");
    refuse_tensor(UINT64_MAX, 2, F32, 0, RENYI_ERR_FORMAT, "which is 0 or too large");
    refuse_tensor(INT64_MAX, 0, F32, 0, RENYI_ERR_FORMAT, "tensor 'w' has");
    refuse_tensor(32, 0, 40, 0, RENYI_ERR_FORMAT, "tensor 'w' has the unknown type 40");
    refuse_tensor(32, 0, 4, 0, RENYI_ERR_FORMAT, "tensor 'w' has the unknown type 4");
    refuse_tensor(256, 0, Q2_K, 0, RENYI_ERR_UNSUPPORTED, "tensor 'w' has type Q2_K; F32, F16");
    refuse_tensor(33, 0, Q8_0, 0, RENYI_ERR_FORMAT,
                  "tensor 'w' has rows of 33 numbers; blocks of Q8_0 have 32");
    refuse_tensor(128, 2, Q4_K, 0, RENYI_ERR_FORMAT,
                  "tensor 'w' has rows of 128 numbers; blocks of Q4_K have 256");
    refuse_tensor(256, 1, Q4_K, 0, RENYI_ERR_FORMAT,
                  "tensor 'w' has 144 bytes from 0 on; there are 64 for all tensors");
    refuse_tensor(16, 0, F32, 1, RENYI_ERR_FORMAT, "tensor 'w' has 64 bytes from 1 on");
    refuse_tensor(8, 0, F32, 16, RENYI_ERR_FORMAT,
                  "tensor 'w' begins at 16, not a multiple of the alignment 32");
    refuse_tensor(8, 0, F32, UINT64_MAX - 7, RENYI_ERR_FORMAT, "bytes from 18446744073709551608");
    gguf_begin(&b, 3, 2, 0);
    gguf_tensor(&b, "v", 16, 0, F32, 0), gguf_tensor(&b, "w", 8, 0, F32, 32);
    gguf_data(&b, 32, 64);
    refuse(&b, RENYI_ERR_FORMAT, "tensor 'w' begins at 32, before 'v' ends at 64");
    gguf_begin(&b, 3, 2, 0);
    gguf_tensor(&b, "w", 8, 0, F32, 0), gguf_tensor(&b, "w", 8, 0, F32, 32);
    gguf_data(&b, 32, 64);
    refuse(&b, RENYI_ERR_FORMAT, "two tensors are named 'w'");
}

/* ---- limits and damage --------------------------------------------------------------------- */

static void test_limits(void **state)
{
    (void)state;
    const renyi_limits limits = {.max_header_bytes = 200};
    renyi_error err = {0};
    bytes b;
    ry_gguf g;
    build_good(&b);
    assert_int_equal(ry_gguf_parse(&g, b.data, b.size, "m", &limits, NULL, &err), RENYI_ERR_LIMIT);
    expect_message(&err, "the first 200 bytes, which are the limit");
}

/* Cut at every byte, then random bytes changed: an error with a message, or a consistent file. */
static void test_damage(void **state)
{
    (void)state;
    bytes good, b;
    ry_rng rng = ry_rng_new(26);
    build_good(&good);
    for (size_t n = 0; n < good.size; n++) {
        renyi_error err = {0};
        ry_gguf g;
        unsigned char *data = exact_copy(good.data, n);
        assert_int_not_equal(ry_gguf_parse(&g, data, n, "cut", NULL, NULL, &err), RENYI_OK);
        assert_true(err.message[0] != 0);
        free(data);
    }
    for (int round = 0; round < 20000; round++) {
        renyi_error err = {0};
        ry_gguf g;
        json_t *j;
        b = good;
        for (int k = 0; k < 1 + round % 3; k++)
            b.data[ry_rng_next(&rng) % b.size] = (unsigned char)ry_rng_next(&rng);
        if (ry_gguf_parse(&g, b.data, b.size, "damaged", NULL, NULL, &err)) {
            assert_true(err.message[0] != 0);
            continue;
        }
        assert_int_equal(ry_gguf_config(&j, &g, "damaged", NULL), RENYI_OK);
        json_decref(j);
        ry_gguf_free(&g, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),      cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_beginning), cmocka_unit_test(test_values),
        cmocka_unit_test(test_tensors),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
