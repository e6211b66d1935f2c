/* zip.h - the directory of a zip archive (APPNOTE 6.3, zip64 too) over bytes in memory. Nothing is
 * unpacked: an entry is a range of the archive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_ZIP_H
#define RY_ZIP_H

#include "renyi/renyi.h"

typedef struct ry_zip_entry {
    const char *name; /* [name_length], borrowed from the archive, not NUL-terminated */
    uint32_t name_length;
    uint16_t method;           /* 0 = stored */
    uint64_t header_offset;    /* of the local header */
    const unsigned char *data; /* [size] as stored */
    uint64_t size;
} ry_zip_entry;

typedef struct ry_zip {
    const unsigned char *bytes; /* borrowed */
    size_t size;
    ry_zip_entry *entries; /* sorted by name; no name twice, no two entries overlap */
    size_t n_entries;
} ry_zip;

/* `what` names the archive in messages. On failure *zip is empty. */
renyi_status ry_zip_open(ry_zip *zip, const void *bytes, size_t size, const char *what,
                         const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_zip_close(ry_zip *zip, const renyi_allocator *al); /* a zeroed one is allowed */

const ry_zip_entry *ry_zip_find(const ry_zip *zip, const char *name, size_t length);

#endif
