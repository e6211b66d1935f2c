/* test_base.c - src/base: messages, checked sizes, heap, arena, mapped files, numbers, CPU.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/formats_build.h"
#include "fixtures/test_heap.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/rng.h"
#include "base/status.h"

#include <math.h>
#include <sys/stat.h>

static void test_messages(void **state)
{
    (void)state;
    renyi_error err;
    char long_name[1000];
    memset(long_name, 'n', sizeof long_name), long_name[999] = 0;
    assert_int_equal(ry_fail(NULL, RENYI_ERR_IO, -1, "no error struct"), RENYI_ERR_IO);
    assert_int_equal(ry_fail(&err, RENYI_ERR_FORMAT, 7, "a\nb\tc\x1b[0m %d", 5), RENYI_ERR_FORMAT);
    assert_string_equal(err.message, "a b c\uFFFD[0m 5"); /* one line without control characters */
    assert_int_equal(err.offset, 7);
    assert_int_equal(ry_fail_in(&err, RENYI_ERR_FORMAT, "file"), RENYI_ERR_FORMAT);
    assert_string_equal(err.message, "file: a b c\uFFFD[0m 5");
    assert_int_equal(err.offset, 7);
    (void)ry_fail(&err, RENYI_ERR_IO, -1, "%s", long_name);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(ry_fail_nomem(&err, 12), RENYI_ERR_NOMEM);
    expect_message(&err, "12 bytes");
    for (int s = RENYI_ERR_ABORTED; s <= RENYI_OK; s++)
        assert_string_not_equal(renyi_status_name((renyi_status)s), "unknown status");
    assert_string_equal(renyi_status_name((renyi_status)99), "unknown status");
}

static void test_checked(void **state)
{
    (void)state;
    size_t n = 0;
    uint64_t v = 0;
    assert_true(ry_mul_size(SIZE_MAX / 2, 2, &n) && n == SIZE_MAX - 1);
    assert_false(ry_mul_size(SIZE_MAX / 2 + 1, 2, &n));
    assert_true(ry_add_size(SIZE_MAX - 1, 1, &n) && n == SIZE_MAX);
    assert_false(ry_add_size(SIZE_MAX, 1, &n));
    assert_true(ry_mul_u64(UINT64_MAX, 1, &v) && ry_mul_u64(UINT64_MAX, 0, &v));
    assert_false(ry_mul_u64(1ull << 32, 1ull << 32, &v));
    assert_false(ry_add_u64(UINT64_MAX, 1, &v));
}

static void test_alloc(void **state)
{
    (void)state;
    test_heap heap = {.fail_at = 4, .fail_on = 1};
    const renyi_allocator al = test_heap_of(&heap);
    assert_null(ry_alloc(NULL, SIZE_MAX, 2));
    assert_null(ry_alloc(NULL, SIZE_MAX, 1));
    void *empty = ry_alloc(NULL, 0, 4);
    assert_non_null(empty);
    ry_free(NULL, empty);
    ry_free(NULL, NULL);
    unsigned char *zeroed = ry_calloc(&al, 100, 3);
    char *text = ry_strdup(&al, "copy");
    void *last = ry_alloc(&al, 1, 1);
    assert_null(ry_alloc(&al, 1, 1)); /* the fourth call fails */
    assert_null(ry_strdup(&al, "x"));
    assert_int_equal((uintptr_t)zeroed % RY_ALIGN, 0);
    for (int i = 0; i < 300; i++) assert_int_equal(zeroed[i], 0);
    assert_string_equal(text, "copy");
    ry_free(&al, zeroed);
    ry_free(&al, text);
    ry_free(&al, last);
    assert_int_equal(heap.live, 0);
    unsigned char *large = ry_alloc(NULL, 1, (size_t)16 << 20); /* huge pages */
    assert_non_null(large);
    assert_int_equal((uintptr_t)large % RY_ALIGN, 0);
    large[((size_t)16 << 20) - 1] = 1;
    ry_free(NULL, large);
}

static void test_arena(void **state)
{
    (void)state;
    ry_arena measure = {NULL, 0, 0, 0};
    assert_null(RY_TAKE(&measure, 3, float));
    assert_null(RY_TAKE(&measure, 65, char));
    assert_int_equal(measure.used, 64 + 128);
    assert_int_equal(measure.overflow, 0);
    unsigned char *block = ry_alloc(NULL, measure.used, 1);
    ry_arena bind = {block, 0, measure.used, 0};
    assert_ptr_equal(RY_TAKE(&bind, 3, float), block);
    assert_ptr_equal(RY_TAKE(&bind, 65, char), block + 64);
    assert_int_equal(bind.overflow, 0);
    assert_null(RY_TAKE(&bind, 1, char));
    assert_int_equal(bind.overflow, 1);
    ry_free(NULL, block);
    ry_arena huge = {NULL, 0, 0, 0};
    assert_null(ry_arena_take(&huge, SIZE_MAX, 2));
    assert_int_equal(huge.overflow, 1);
}

static void test_mapped_file(void **state)
{
    (void)state;
    const char *path = RENYI_BINARY_DIR "/test_base.tmp";
    renyi_error err;
    ry_mapped_file f;
    write_file(path, "hello", 5);
    assert_int_equal(ry_mapped_file_open(&f, path, 0, &err), RENYI_OK);
    assert_int_equal(f.size, 5);
    assert_memory_equal(f.data, "hello", 5);
    ry_mapped_file_close(&f);
    ry_mapped_file_close(&f);
    assert_int_equal(ry_mapped_file_open(&f, path, 4, &err), RENYI_ERR_LIMIT);
    expect_message(&err, "5 bytes; at most 4");
    write_file(path, "", 0);
    assert_int_equal(ry_mapped_file_open(&f, path, 0, &err), RENYI_OK);
    assert_int_equal(f.size, 0);
    assert_non_null(f.data);
    ry_mapped_file_close(&f);
    remove(path);
    assert_int_equal(ry_mapped_file_open(&f, path, 0, &err), RENYI_ERR_IO);
    expect_message(&err, path);
    assert_int_equal(ry_mapped_file_open(&f, RENYI_BINARY_DIR, 0, &err), RENYI_ERR_IO);
    expect_message(&err, "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0); /* no writer: opening must not hang */
    assert_int_equal(ry_mapped_file_open(&f, path, 0, &err), RENYI_ERR_IO);
    remove(path);
}

static void test_numbers(void **state)
{
    (void)state;
    ry_rng r = ry_rng_new(0);
    assert_true(ry_rng_next(&r) == 0xe220a8397b1dcdafu); /* published first value of SplitMix64 */
    double sum = 0, squares = 0;
    for (int i = 0; i < 100000; i++) {
        const double u = ry_rng_uniform(&r), n = ry_rng_normal(&r);
        assert_true(u >= 0 && u < 1);
        sum += n;
        squares += n * n;
    }
    assert_true(fabs(sum / 1e5) < 0.02 && fabs(squares / 1e5 - 1) < 0.02);
    const double before = ry_clock();
    assert_true(ry_clock() >= before);
}

static void test_limits(void **state)
{
    (void)state;
    const renyi_limits given = {1, 0, 3, 0, 5}, l = ry_limits(&given), d = ry_limits(NULL);
    assert_true(l.max_file_bytes == 1 && l.max_image_bytes == 3 && l.max_image_side == 5);
    assert_true(l.max_header_bytes == d.max_header_bytes && l.max_pixels == d.max_pixels);
    assert_true(d.max_file_bytes && d.max_header_bytes && d.max_image_bytes && d.max_pixels);
}

static void test_cpu(void **state)
{
    (void)state;
    renyi_error err;
    renyi_cpu level;
    assert_int_equal(ry_cpu_choose(RENYI_CPU_AUTO, &level, &err), RENYI_OK);
    assert_int_equal(level, renyi_cpu_detect());
    assert_int_equal(ry_cpu_choose(RENYI_CPU_SCALAR, &level, &err), RENYI_OK);
    assert_int_equal(level, RENYI_CPU_SCALAR);
    assert_int_equal(ry_cpu_choose((renyi_cpu)9, &level, &err), RENYI_ERR_ARG);
    assert_true(ry_cpu_cores() >= 1);
#if defined(__aarch64__)
    assert_string_equal(renyi_cpu_name(RENYI_CPU_NEON), "neon");
    assert_int_equal(ry_cpu_choose(RENYI_CPU_AVX512, &level, &err), RENYI_ERR_UNSUPPORTED);
    assert_true(ry_cpu_has_dotprod() || !ry_cpu_has_i8mm()); /* the later one includes it */
#else
    assert_string_equal(renyi_cpu_name(RENYI_CPU_AVX2), "avx2");
    assert_true(!ry_cpu_has_dotprod() && !ry_cpu_has_i8mm());
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),    cmocka_unit_test(test_checked),
        cmocka_unit_test(test_alloc),       cmocka_unit_test(test_arena),
        cmocka_unit_test(test_mapped_file), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_limits),      cmocka_unit_test(test_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
