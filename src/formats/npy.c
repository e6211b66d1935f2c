/* npy.c - writes arrays of floats in NumPy's format.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/npy.h"

#include "base/output_file.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 128 }; /* bytes in front of the numbers: a multiple of 64, as NumPy wants it */

static void make_header(char out[HEADER], size_t rows, size_t columns)
{
    enum { FIXED = 10 };
    const unsigned length = HEADER - FIXED;
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(length & 0xff);
    out[9] = (char)(length >> 8);
    char dict[HEADER];
    const int n =
        snprintf(dict, sizeof dict,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, columns);
    memset(out + FIXED, ' ', length);
    memcpy(out + FIXED, dict, (size_t)n); /* two numbers of 20 digits fit */
    out[HEADER - 1] = '\n';
}

renyi_status ry_npy_write(const char *path, const ry_npy_part *parts, size_t n_parts,
                          size_t columns, const renyi_allocator *al, renyi_error *err)
{
    char header[HEADER];
    size_t rows = 0;
    ry_output_file f;
    for (size_t i = 0; i < n_parts; i++) rows += parts[i].n;
    make_header(header, rows, columns);
    renyi_status st = ry_output_file_open(&f, path, al, err);
    if (st) return st;
    st = ry_output_file_write(&f, header, sizeof header, err);
    for (size_t i = 0; !st && i < n_parts; i++)
        if (parts[i].n)
            st = ry_output_file_write(&f, parts[i].rows, parts[i].n * columns * sizeof(float), err);
    return ry_output_file_close(&f, st, al, err);
}
