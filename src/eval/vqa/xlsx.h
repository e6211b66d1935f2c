/* xlsx.h - a table of texts as a spreadsheet: one sheet, nothing but cells (ECMA-376). MMBench's
 * server takes nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_XLSX_H
#define RY_XLSX_H

#include "eval/data/text_lines.h"

typedef struct ry_xlsx {
    const renyi_allocator *al;
    char *sheet; /* the XML so far */
    size_t used, capacity;
    uint32_t row, column;
    int failed; /* no memory */
} ry_xlsx;

/* A zeroed one with an allocator is empty. Cells fill a row from the left; an empty text leaves
 * its place empty. Numbers are given as digits. A lack of memory shows when it is written. */
void ry_xlsx_row(ry_xlsx *x);
void ry_xlsx_text(ry_xlsx *x, ry_text text);
void ry_xlsx_number(ry_xlsx *x, ry_text digits);
renyi_status ry_xlsx_write(ry_xlsx *x, const char *path, renyi_error *err) RENYI_CHECK;
void ry_xlsx_free(ry_xlsx *x);

#endif
