/* zip.c - reads the directory of a zip archive, zip64 included; entries must be stored
 * uncompressed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/zip.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

enum {
    MAX_ENTRIES = 200000,
    LOCAL_SIZE = 30, /* fixed part of a local header */
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR64_SIZE = 20,
    FLAG_ENCRYPTED = 1
};

static uint16_t u16(const unsigned char *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t u32(const unsigned char *p) { return u16(p) | (uint32_t)u16(p + 2) << 16; }
static uint64_t u64(const unsigned char *p) { return u32(p) | (uint64_t)u32(p + 4) << 32; }

typedef struct directory {
    const char *what;
    renyi_error *err;
    uint64_t offset, size, n_entries;
} directory;

static renyi_status fail_at(const directory *d, uint64_t at, const char *what)
{
    return ry_fail(d->err, RENYI_ERR_FORMAT, (int64_t)at, "%s: zip: byte %llu: %s", d->what,
                   (ull)at, what);
}

/* ---- where the directory is ---------------------------------------------------------------- */

/* The end record is at the end of the file; a comment, whose length it states, may follow it. */
static int find_end(const ry_zip *z, size_t *at)
{
    if (z->size < END_SIZE) return 0;
    const size_t last = z->size - END_SIZE, lowest = last > 65535 ? last - 65535 : 0;
    for (size_t i = last + 1; i-- > lowest;) {
        const unsigned char *p = z->bytes + i;
        if (!memcmp(p, "PK\5\6", 4) && u16(p + 20) == z->size - i - END_SIZE) {
            *at = i;
            return 1;
        }
    }
    return 0;
}

/* If there is a zip64 end record, its numbers count. */
static renyi_status read_end64(directory *d, const ry_zip *z, size_t end)
{
    if (end < LOCATOR64_SIZE) return RENYI_OK;
    const unsigned char *locator = z->bytes + end - LOCATOR64_SIZE;
    if (memcmp(locator, "PK\6\7", 4)) return RENYI_OK;
    const uint64_t at = u64(locator + 8);
    if (at > end || end - at < END64_SIZE || memcmp(z->bytes + at, "PK\6\6", 4))
        return fail_at(d, end - LOCATOR64_SIZE, "the zip64 end record is not where it should be");
    const unsigned char *p = z->bytes + at;
    if (u32(p + 16) || u32(p + 20) || u64(p + 24) != u64(p + 32))
        return fail_at(d, at, "archives in several parts are not supported");
    d->n_entries = u64(p + 32);
    d->size = u64(p + 40);
    d->offset = u64(p + 48);
    return RENYI_OK;
}

static renyi_status find_directory(directory *d, const ry_zip *z)
{
    size_t end;
    if (!find_end(z, &end))
        return ry_fail(d->err, RENYI_ERR_FORMAT, -1,
                       "%s: zip: no end record in %zu bytes; the file is cut short", d->what,
                       z->size);
    const unsigned char *p = z->bytes + end;
    if (u16(p + 4) || u16(p + 6) || u16(p + 8) != u16(p + 10))
        return fail_at(d, end, "archives in several parts are not supported");
    d->n_entries = u16(p + 10);
    d->size = u32(p + 12);
    d->offset = u32(p + 16);
    RY_TRY(read_end64(d, z, end));
    if (d->offset > end || d->size > end - d->offset)
        return ry_fail(d->err, RENYI_ERR_FORMAT, (int64_t)end,
                       "%s: zip: directory of %llu bytes at %llu outside the file of %zu bytes",
                       d->what, (ull)d->size, (ull)d->offset, z->size);
    if (d->n_entries > MAX_ENTRIES)
        return ry_fail(d->err, RENYI_ERR_LIMIT, (int64_t)end,
                       "%s: zip: %llu entries; at most %d accepted", d->what, (ull)d->n_entries,
                       MAX_ENTRIES);
    if (d->n_entries > d->size / CENTRAL_SIZE)
        return fail_at(d, end, "more entries announced than the directory can hold");
    return RENYI_OK;
}

/* ---- entries ------------------------------------------------------------------------------- */

typedef struct sizes {
    uint64_t packed, unpacked, header;
} sizes;

/* Fields that do not fit 32 bits are stored, in this order, in the extra field with id 1. */
static int read_zip64_sizes(sizes *s, const unsigned char *extra, size_t n)
{
    uint64_t *const fields[] = {&s->unpacked, &s->packed, &s->header};
    while (n >= 4) {
        const size_t length = u16(extra + 2);
        if (length > n - 4) return 0;
        if (u16(extra) == 1) {
            size_t at = 0;
            for (size_t i = 0; i < 3; i++) {
                if (*fields[i] != UINT32_MAX) continue;
                if (length - at < 8) return 0;
                *fields[i] = u64(extra + 4 + at);
                at += 8;
            }
            return 1;
        }
        extra += 4 + length;
        n -= 4 + length;
    }
    return s->packed != UINT32_MAX && s->unpacked != UINT32_MAX && s->header != UINT32_MAX;
}

/* The data begins after the local header, which has a variable length. */
static renyi_status locate_data(const directory *d, const ry_zip *z, ry_zip_entry *e,
                                const sizes *s)
{
    if (s->header > d->offset || d->offset - s->header < LOCAL_SIZE)
        return fail_at(d, s->header, "a local header outside the archive");
    const unsigned char *local = z->bytes + s->header;
    if (memcmp(local, "PK\3\4", 4)) return fail_at(d, s->header, "no local header here");
    const uint64_t skip = (uint64_t)LOCAL_SIZE + u16(local + 26) + u16(local + 28);
    const uint64_t space = d->offset - s->header;
    if (skip > space || s->packed > space - skip)
        return ry_fail(
            d->err, RENYI_ERR_FORMAT, (int64_t)s->header,
            "%s: zip: entry '%.*s' of %llu bytes at %llu reaches into the directory at %llu",
            d->what, e->name_length < 120 ? (int)e->name_length : 120, e->name, (ull)s->packed,
            (ull)s->header, (ull)d->offset);
    e->header_offset = s->header;
    e->data = local + skip;
    e->size = s->packed;
    return RENYI_OK;
}

/* One entry of the directory at `at`; *next is the offset of the next one. */
static renyi_status read_entry(const directory *d, const ry_zip *z, ry_zip_entry *e, uint64_t at,
                               uint64_t *next)
{
    const uint64_t end = d->offset + d->size;
    const unsigned char *p = z->bytes + at;
    if (end - at < CENTRAL_SIZE || memcmp(p, "PK\1\2", 4))
        return fail_at(d, at, "no directory entry here");
    const size_t name = u16(p + 28), extra = u16(p + 30), comment = u16(p + 32);
    if (name + extra + comment > end - at - CENTRAL_SIZE)
        return fail_at(d, at, "a directory entry longer than the directory");
    if (u16(p + 8) & FLAG_ENCRYPTED) return fail_at(d, at, "encrypted entries are not supported");
    sizes s = {u32(p + 20), u32(p + 24), u32(p + 42)};
    if (!read_zip64_sizes(&s, p + CENTRAL_SIZE + name, extra))
        return fail_at(d, at, "bad zip64 field");
    e->name = (const char *)p + CENTRAL_SIZE;
    e->name_length = (uint32_t)name;
    e->method = u16(p + 10);
    if (!e->method && s.packed != s.unpacked)
        return fail_at(d, at, "a stored entry whose two sizes differ");
    *next = at + CENTRAL_SIZE + name + extra + comment;
    return locate_data(d, z, e, &s);
}

static int by_offset(const void *a, const void *b)
{
    const ry_zip_entry *x = a, *y = b;
    return (x->header_offset > y->header_offset) - (x->header_offset < y->header_offset);
}

static int compare_names(const char *a, size_t n, const char *b, size_t m)
{
    const int order = memcmp(a, b, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

static int by_name(const void *a, const void *b)
{
    const ry_zip_entry *x = a, *y = b;
    return compare_names(x->name, x->name_length, y->name, y->name_length);
}

static renyi_status read_entries(const directory *d, ry_zip *z)
{
    uint64_t at = d->offset;
    for (size_t i = 0; i < z->n_entries; i++) RY_TRY(read_entry(d, z, &z->entries[i], at, &at));
    qsort(z->entries, z->n_entries, sizeof *z->entries, by_offset);
    for (size_t i = 1; i < z->n_entries; i++) {
        const ry_zip_entry *e = &z->entries[i - 1];
        if (e->data + e->size > z->bytes + e[1].header_offset)
            return fail_at(d, e[1].header_offset, "two entries overlap");
    }
    qsort(z->entries, z->n_entries, sizeof *z->entries, by_name);
    for (size_t i = 1; i < z->n_entries; i++)
        if (!by_name(&z->entries[i - 1], &z->entries[i]))
            return fail_at(d, z->entries[i].header_offset, "two entries of one name");
    return RENYI_OK;
}

renyi_status ry_zip_open(ry_zip *zip, const void *bytes, size_t size, const char *what,
                         const renyi_allocator *al, renyi_error *err)
{
    directory d = {what, err, 0, 0, 0};
    *zip = (ry_zip){bytes, size, NULL, 0};
    renyi_status st = find_directory(&d, zip);
    if (!st) {
        zip->n_entries = (size_t)d.n_entries;
        zip->entries = ry_calloc(al, zip->n_entries, sizeof *zip->entries);
        st = zip->entries ? read_entries(&d, zip)
                          : ry_fail_nomem(err, zip->n_entries * sizeof *zip->entries);
    }
    if (st) ry_zip_close(zip, al);
    return st;
}

void ry_zip_close(ry_zip *zip, const renyi_allocator *al)
{
    ry_free(al, zip->entries);
    memset(zip, 0, sizeof *zip);
}

const ry_zip_entry *ry_zip_find(const ry_zip *zip, const char *name, size_t length)
{
    size_t low = 0, high = zip->n_entries;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const ry_zip_entry *e = &zip->entries[mid];
        const int order = compare_names(name, length, e->name, e->name_length);
        if (!order) return e;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}
