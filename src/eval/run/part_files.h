/* part_files.h - FILE.rank1, FILE.rank2, ...: what ranks write beside a FILE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_PART_FILES_H
#define RY_PART_FILES_H

#include "renyi/renyi.h"

/* FILE.rank<r>; owned (ry_free). NULL = no memory. */
char *ry_part_path(const char *file, uint32_t rank, const renyi_allocator *al);

/* Numbers of the parts that lie beside FILE, ascending, owned (ry_free); a folder that cannot be
 * listed has none. */
renyi_status ry_part_list(const char *file, uint32_t **numbers, size_t *count,
                          const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
