/* npy.h - writes NumPy's format: magic, version 1.0, u16 length of a Python dict, the dict, the
 * numbers row by row.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_NPY_H
#define RY_NPY_H

#include "renyi/renyi.h"

/* Consecutive rows of an array. */
typedef struct ry_npy_part {
    const float *rows; /* [n, columns] */
    size_t n;
} ry_npy_part;

/* One array of all parts' rows. The file appears under `path` only when it is complete. */
renyi_status ry_npy_write(const char *path, const ry_npy_part *parts, size_t n_parts,
                          size_t columns, const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

#endif
