/* formats_build.h - builds model files in memory, good and bad, for the tests of src/formats.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_FORMATS_BUILD_H
#define RENYI_TESTS_FORMATS_BUILD_H

#include "renyi/renyi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- bytes --------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char data[1 << 16];
    size_t size;
} bytes;

static inline void put(bytes *b, const void *p, size_t n)
{
    assert_true(n <= sizeof b->data - b->size);
    if (n) memcpy(b->data + b->size, p, n);
    b->size += n;
}

static inline void put_uint(bytes *b, uint64_t v, int width)
{
    for (int i = 0; i < width; i++)
        put(b, &(unsigned char){(unsigned char)(i < 8 ? v >> 8 * i : 0)}, 1);
}

/* Parsers get a block of exactly this size, so that the sanitizers see a read behind it. */
static inline unsigned char *exact_copy(const void *p, size_t n)
{
    unsigned char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n) memcpy(copy, p, n);
    return copy;
}

static inline void expect_message(const renyi_error *err, const char *needle)
{
    if (!strstr(err->message, needle)) fail_msg("'%s' does not say '%s'", err->message, needle);
}

static inline void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* ---- safetensors --------------------------------------------------------------------------- */

/* Header text, then n_data bytes 0, 1, 2, ... */
static inline void build_safetensors(bytes *b, const char *json, size_t n_data)
{
    b->size = 0;
    put_uint(b, strlen(json), 8);
    put(b, json, strlen(json));
    for (size_t i = 0; i < n_data; i++) put_uint(b, i, 1);
}

/* ---- zip ----------------------------------------------------------------------------------- */

typedef struct zip_builder {
    bytes out, directory;
    unsigned n_entries;
} zip_builder;

static inline void zip_add(zip_builder *z, const char *name, const void *data, size_t n)
{
    const size_t at = z->out.size;
    put(&z->out, "PK\3\4", 4);
    put_uint(&z->out, 0, 14);
    put_uint(&z->out, n, 4);
    put_uint(&z->out, n, 4);
    put_uint(&z->out, strlen(name), 4); /* and no extra field */
    put(&z->out, name, strlen(name));
    put(&z->out, data, n);
    put(&z->directory, "PK\1\2", 4);
    put_uint(&z->directory, 0, 16);
    put_uint(&z->directory, n, 4);
    put_uint(&z->directory, n, 4);
    put_uint(&z->directory, strlen(name), 2);
    put_uint(&z->directory, 0, 12);
    put_uint(&z->directory, at, 4);
    put(&z->directory, name, strlen(name));
    z->n_entries++;
}

static inline void zip_end(zip_builder *z)
{
    const size_t at = z->out.size;
    put(&z->out, z->directory.data, z->directory.size);
    put(&z->out, "PK\5\6\0\0\0\0", 8);
    put_uint(&z->out, z->n_entries, 2);
    put_uint(&z->out, z->n_entries, 2);
    put_uint(&z->out, z->directory.size, 4);
    put_uint(&z->out, at, 4);
    put_uint(&z->out, 0, 2);
}

/* ---- pickle -------------------------------------------------------------------------------- */

static inline void pk(bytes *b, const char *opcodes) { put(b, opcodes, strlen(opcodes)); }

static inline void pk_text(bytes *b, const char *s)
{
    pk(b, "X");
    put_uint(b, strlen(s), 4);
    pk(b, s);
}

static inline void pk_int(bytes *b, int64_t v)
{
    pk(b, "\x8a\x08");
    put_uint(b, (uint64_t)v, 8);
}

static inline void pk_global(bytes *b, const char *module, const char *name)
{
    pk(b, "c"), pk(b, module), pk(b, "\n"), pk(b, name), pk(b, "\n");
}

/* A tuple of n numbers. */
static inline void pk_extent(bytes *b, const int64_t *v, size_t n)
{
    pk(b, "(");
    for (size_t i = 0; i < n; i++) pk_int(b, v[i]);
    pk(b, "t");
}

typedef struct pk_tensor {
    const char *storage; /* "FloatStorage" */
    const char *key;
    int64_t elements, offset;
    size_t n_dims;
    int64_t sizes[9], strides[9];
} pk_tensor;

/* Leaves a tensor on the stack. */
static inline void pk_put_tensor(bytes *b, const pk_tensor *t)
{
    pk_global(b, "torch._utils", "_rebuild_tensor_v2");
    pk(b, "((");
    pk_text(b, "storage");
    pk_global(b, "torch", t->storage);
    pk_text(b, t->key);
    pk_text(b, "cpu");
    pk_int(b, t->elements);
    pk(b, "tQ");
    pk_int(b, t->offset);
    pk_extent(b, t->sizes, t->n_dims);
    pk_extent(b, t->strides, t->n_dims);
    pk(b, "\x89");
    pk_global(b, "collections", "OrderedDict");
    pk(b, ")RtR");
}

/* ---- allocators ---------------------------------------------------------------------------- */

/* Hands out `left` blocks, then NULL; `live` must be 0 in the end. */
typedef struct counted_heap {
    long left, live, failures;
} counted_heap;

static inline void *counted_alloc(void *user, size_t size, size_t align)
{
    counted_heap *h = user;
    void *p = NULL;
    if (h->left-- <= 0 || posix_memalign(&p, align, size)) {
        h->failures++;
        return NULL;
    }
    h->live++;
    return p;
}

static inline void counted_release(void *user, void *ptr, size_t size)
{
    (void)size;
    ((counted_heap *)user)->live--;
    free(ptr);
}

static inline renyi_allocator counted_allocator(counted_heap *h)
{
    return (renyi_allocator){counted_alloc, counted_release, h};
}

#endif
