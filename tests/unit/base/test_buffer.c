/* test_buffer.c - arrays and byte buffers that grow, pools of pieces, and failing allocations.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/buffer.h"
#include "fixtures/test_heap.h"

#include <string.h>

#include "test.h"

static void test_array(void **state)
{
    enum { N = 1000 };
    test_heap heap = {0};
    const renyi_allocator al = test_heap_of(&heap);
    void *items = NULL;
    size_t capacity = 0;
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        assert_true(ry_grow(&al, &items, &capacity, i, sizeof i));
        ((uint32_t *)items)[i] = i;
    }
    for (uint32_t i = 0; i < N; i++) assert_int_equal(((uint32_t *)items)[i], i);
    assert_true(heap.calls < 12); /* it doubles */
    assert_true(ry_reserve(&al, &items, &capacity, N, 5 * N, sizeof(uint32_t)));
    assert_true(capacity >= 6 * N);
    assert_false(ry_reserve(&al, &items, &capacity, N, SIZE_MAX, sizeof(uint32_t)));
    assert_false(ry_reserve(&al, &items, &capacity, N, SIZE_MAX / 2, sizeof(uint32_t)));
    assert_int_equal(((uint32_t *)items)[N - 1], N - 1); /* a failure changes nothing */
    ry_free(&al, items);
    assert_int_equal(heap.live, 0);
}

static void test_bytes(void **state)
{
    test_heap heap = {.fail_at = 3};
    const renyi_allocator al = test_heap_of(&heap);
    ry_buffer b = {.al = &al};
    (void)state;
    for (int i = 0; i < 4096; i++) ry_buffer_text(&b, "ab");
    assert_int_equal(b.size, 8192);
    assert_memory_equal(b.bytes + 8188, "abab", 4);
    assert_false(b.failed);
    ry_buffer_put(&b, "c", 1);
    assert_true(b.failed); /* the third allocation */
    assert_int_equal(b.size, 8192);
    ry_buffer_put(&b, "c", 1); /* nothing more is stored */
    assert_int_equal(b.size, 8192);
    ry_buffer_free(&b);
    assert_int_equal(heap.live, 0);
    ry_buffer_text(&b, "again");
    assert_memory_equal(b.bytes, "again", 5);
    ry_buffer_free(&b);
}

/* Pieces of all sizes are zeroed and aligned, do not overlap, and never move. */
static void test_pieces(void **state)
{
    enum { N = 400 };
    test_heap heap = {0};
    const renyi_allocator al = test_heap_of(&heap);
    ry_pool s = {.al = &al};
    unsigned char *piece[N];
    (void)state;
    for (size_t i = 0; i < N; i++) {
        const size_t n = i % 100 == 99 ? 100000 + i : i * 3;
        piece[i] = ry_pool_take(&s, n, 1);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % 16, 0);
        for (size_t k = 0; k < n; k++) assert_int_equal(piece[i][k], 0);
        memset(piece[i], (int)(i % 255) + 1, n);
    }
    for (size_t i = 0; i < N; i++) {
        const size_t n = i % 100 == 99 ? 100000 + i : i * 3;
        for (size_t k = 0; k < n; k++) assert_int_equal(piece[i][k], i % 255 + 1);
    }
    assert_string_equal(ry_pool_text(&s, "a text"), "a text");
    assert_true(heap.calls < 20);
    ry_pool_free(&s);
    assert_int_equal(heap.live, 0);
    assert_non_null(ry_pool_take(&s, 1, 1)); /* empty again */
    ry_pool_free(&s);
    ry_pool_free(&s);
    assert_int_equal(heap.live, 0);
}

static void test_refusals(void **state)
{
    test_heap heap = {.fail_at = 2};
    const renyi_allocator al = test_heap_of(&heap);
    ry_pool s = {.al = &al};
    (void)state;
    assert_null(ry_pool_take(&s, SIZE_MAX, 2));
    assert_null(ry_pool_take(&s, SIZE_MAX, 1));
    assert_null(ry_pool_take(&s, SIZE_MAX - 40, 1));
    assert_non_null(ry_pool_take(&s, 1000, 8));
    assert_null(ry_pool_take(&s, 100000, 8)); /* no second block */
    assert_non_null(ry_pool_take(&s, 1000, 8));
    ry_pool_free(&s);
    assert_int_equal(heap.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
