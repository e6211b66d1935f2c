/* gunzip.c - unpacks gzip files with zlib, up to a limit of bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/gunzip.h"

#include "base/buffer.h"
#include "base/status.h"

#include <string.h>

#define ZLIB_CONST /* its input is const */
#include <zlib.h>

enum { FIRST_SPACE = 1 << 16, GZIP_WINDOW = 15 + 16 /* the largest window, with gzip's header */ };

int ry_is_gzip(const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    return size >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

/* zlib's own memory comes from our heap too. */
static void *zlib_alloc(void *al, unsigned count, unsigned size)
{
    return ry_alloc(al, count, size);
}
static void zlib_free(void *al, void *p) { ry_free(al, p); }

/* What has been unpacked so far. */
typedef struct unpacked {
    void *bytes; /* [capacity] */
    size_t size, capacity;
    size_t space; /* of the capacity, what may be used: at most max */
    size_t max;
    const renyi_allocator *al;
} unpacked;

static renyi_status reserve_space(unpacked *u, const char *what, renyi_error *err)
{
    if (u->size < u->space) return RENYI_OK;
    if (u->size == u->max)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: unpacks to more than %zu bytes", what,
                       u->max);
    if (!ry_reserve(u->al, &u->bytes, &u->capacity, u->size, u->size ? 1 : FIRST_SPACE, 1))
        return ry_fail_nomem(err, 2 * u->size);
    u->space = u->capacity < u->max ? u->capacity : u->max;
    return RENYI_OK;
}

/* One member after the other: gzip files may be joined end to end. */
static renyi_status unpack(z_stream *z, unpacked *u, size_t left, const char *what,
                           renyi_error *err)
{
    const size_t all = left;
    for (;;) {
        RY_TRY(reserve_space(u, what, err));
        const size_t space = u->space - u->size;
        z->avail_in = (uInt)(left < UINT32_MAX ? left : UINT32_MAX);
        z->avail_out = (uInt)(space < UINT32_MAX ? space : UINT32_MAX);
        z->next_out = (Bytef *)u->bytes + u->size;
        const uInt in = z->avail_in, out = z->avail_out;
        const int code = inflate(z, Z_NO_FLUSH);
        left -= in - z->avail_in;
        u->size += out - z->avail_out;
        if (code == Z_MEM_ERROR) return ry_fail_nomem(err, 0);
        if (code == Z_STREAM_END && (!left || !ry_is_gzip(z->next_in, left))) return RENYI_OK;
        if (code == Z_STREAM_END && inflateReset(z) == Z_OK) continue;
        if (code == Z_BUF_ERROR && left == 0)
            return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)all, "%s: gzip data end too early",
                           what);
        if (code != Z_OK && code != Z_BUF_ERROR)
            return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)(all - left),
                           "%s: byte %zu: damaged gzip data (%s)", what, all - left,
                           z->msg ? z->msg : "zlib gives no reason");
    }
}

renyi_status ry_gunzip(uint8_t **out, size_t *out_size, const void *bytes, size_t size,
                       const char *what, uint64_t max_bytes, const renyi_allocator *al,
                       renyi_error *err)
{
    z_stream z = {.next_in = bytes, .zalloc = zlib_alloc, .zfree = zlib_free};
    unpacked u = {.al = al, .max = max_bytes < SIZE_MAX ? (size_t)max_bytes : SIZE_MAX};
    *out = NULL;
    z.opaque = (void *)(uintptr_t)al; /* only read */
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) return ry_fail_nomem(err, 0);
    const renyi_status st = unpack(&z, &u, size, what, err);
    inflateEnd(&z);
    if (st) {
        ry_free(al, u.bytes);
        return st;
    }
    *out = u.bytes;
    *out_size = u.size;
    return RENYI_OK;
}
