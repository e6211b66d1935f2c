/* gunzip.h - unpacks a gzip file (RFC 1952) that is in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_GUNZIP_H
#define RY_GUNZIP_H

#include "renyi/renyi.h"

int ry_is_gzip(const void *bytes, size_t size);

/* All of its bytes, owned by the caller (ry_free). More than `max_bytes` of them is
 * RENYI_ERR_LIMIT: a small file may unpack to a thousand times its size. `what` names the file. */
renyi_status ry_gunzip(uint8_t **out, size_t *out_size, const void *bytes, size_t size,
                       const char *what, uint64_t max_bytes, const renyi_allocator *al,
                       renyi_error *err) RENYI_CHECK;

#endif
