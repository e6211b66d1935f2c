/* test_stash.c - many pieces, given back at once.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/stash.h"
#include "fixtures/test_heap.h"

#include <string.h>

#include "test.h"

/* Pieces of all sizes are zeroed, aligned, apart from each other, and stay where they are. */
static void test_pieces(void **state)
{
    enum { N = 400 };
    test_heap heap = {0};
    ry_stash s = {.al = test_heap_of(&heap)};
    unsigned char *piece[N];
    (void)state;
    for (size_t i = 0; i < N; i++) {
        const size_t n = i % 100 == 99 ? 100000 + i : i * 3;
        piece[i] = ry_stash_take(&s, n, 1);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % 16, 0);
        for (size_t k = 0; k < n; k++) assert_int_equal(piece[i][k], 0);
        memset(piece[i], (int)(i % 255) + 1, n);
    }
    for (size_t i = 0; i < N; i++) {
        const size_t n = i % 100 == 99 ? 100000 + i : i * 3;
        for (size_t k = 0; k < n; k++) assert_int_equal(piece[i][k], i % 255 + 1);
    }
    assert_string_equal(ry_stash_text(&s, "a text"), "a text");
    assert_true(heap.calls < 20);
    ry_stash_free(&s);
    assert_int_equal(heap.live, 0);
    assert_non_null(ry_stash_take(&s, 1, 1)); /* empty, and good for more */
    ry_stash_free(&s);
    ry_stash_free(&s);
    assert_int_equal(heap.live, 0);
}

static void test_refusals(void **state)
{
    test_heap heap = {.fail_at = 2};
    ry_stash s = {.al = test_heap_of(&heap)};
    (void)state;
    assert_null(ry_stash_take(&s, SIZE_MAX, 2));
    assert_null(ry_stash_take(&s, SIZE_MAX, 1));
    assert_null(ry_stash_take(&s, SIZE_MAX - 40, 1));
    assert_non_null(ry_stash_take(&s, 1000, 8));
    assert_null(ry_stash_take(&s, 100000, 8)); /* no second block */
    assert_non_null(ry_stash_take(&s, 1000, 8));
    ry_stash_free(&s);
    assert_int_equal(heap.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
