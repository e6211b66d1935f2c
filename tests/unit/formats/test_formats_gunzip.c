/* test_formats_gunzip.c - gzip files: whole, joined, cut, damaged, too large.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "fixtures/test_heap.h"
#include "formats/gunzip.h"

#include <string.h>

#include <zlib.h>

#include "test.h"

enum { PLAIN = 300000 };
static uint8_t plain[PLAIN], packed[PLAIN];

/* A gzip file of the first n bytes of `plain`. */
static size_t pack(size_t n, uint8_t *out, size_t capacity)
{
    z_stream z = {
        .next_in = plain, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)capacity};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return capacity - z.avail_out;
}

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLAIN; i++) plain[i] = (uint8_t)(i * i >> 7);
    return 0;
}

static void test_whole(void **state)
{
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, PLAIN};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = pack(sizes[i], packed, sizeof packed);
        uint8_t *out;
        size_t size;
        renyi_error err = {0};
        assert_true(ry_is_gzip(packed, n));
        if (ry_gunzip(&out, &size, packed, n, "x.gz", PLAIN + 1, NULL, &err))
            fail_msg("%s", err.message);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(out, plain, size);
        ry_free(NULL, out);
    }
    assert_false(ry_is_gzip("\x1f", 1));
    assert_false(ry_is_gzip("PK\3\4", 4));
}

static void test_joined(void **state)
{
    size_t n = pack(1000, packed, sizeof packed), size;
    uint8_t *out;
    renyi_error err = {0};
    (void)state;
    n += pack(70000, packed + n, sizeof packed - n);
    memset(packed + n, 0, 8); /* zeros after the end, as tapes leave them, are ignored */
    if (ry_gunzip(&out, &size, packed, n + 8, "x.gz", PLAIN, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(size, 71000);
    assert_memory_equal(out + 1000, plain, 70000);
    ry_free(NULL, out);
}

static void test_faults(void **state)
{
    const size_t n = pack(5000, packed, sizeof packed);
    uint8_t *out, broken[sizeof plain];
    size_t size;
    (void)state;
    for (size_t cut = 0; cut < n; cut += cut < 30 ? 1 : 97) {
        renyi_error err = {0};
        assert_int_equal(ry_gunzip(&out, &size, packed, cut, "x.gz", PLAIN, NULL, &err),
                         RENYI_ERR_FORMAT);
        assert_null(out);
        assert_non_null(strstr(err.message, "x.gz: gzip data end too early"));
    }
    for (size_t at = 0; at < n;
         at += at < 30 ? 1 : 97) { /* some bits have no meaning: no error then */
        renyi_error err = {0};
        memcpy(broken, packed, n);
        broken[at] ^= 0x55;
        const renyi_status st = ry_gunzip(&out, &size, broken, n, "x.gz", PLAIN, NULL, &err);
        assert_true(!st || strstr(err.message, "x.gz: "));
        ry_free(NULL, out);
    }
}

static void test_limit_and_memory(void **state)
{
    const size_t n = pack(200000, packed, sizeof packed);
    renyi_status st;
    uint8_t *out;
    size_t size, at = 0;
    renyi_error err = {0};
    (void)state;
    assert_int_equal(ry_gunzip(&out, &size, packed, n, "x.gz", 199999, NULL, &err),
                     RENYI_ERR_LIMIT);
    assert_non_null(strstr(err.message, "x.gz: unpacks to more than 199999 bytes"));
    do {
        test_heap heap = {.fail_at = ++at};
        const renyi_allocator al = test_heap_of(&heap);
        st = ry_gunzip(&out, &size, packed, n, "x.gz", PLAIN, &al, &err);
        ry_free(&al, out);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        assert_int_equal(heap.live, 0);
    } while (st);
    assert_true(at > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_joined),
                                       cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_limit_and_memory)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
