/* xlsx.h - writes a table of texts as a spreadsheet (.xlsx, ECMA-376): one sheet with cells only.
 * MMBench's server accepts no other format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_XLSX_H
#define RY_XLSX_H

#include "base/buffer.h"
#include "eval/data/text_lines.h"

typedef struct ry_xlsx {
    ry_buffer sheet; /* XML of the rows so far */
    uint32_t row, column;
} ry_xlsx;

/* A zeroed struct with sheet.al set is an empty table. Cells are added from left to right; an empty
 * text is an empty cell. Numbers are passed as digits. */
void ry_xlsx_row(ry_xlsx *x); /* begins a row */
void ry_xlsx_text(ry_xlsx *x, ry_text text);
void ry_xlsx_number(ry_xlsx *x, ry_text digits);
/* Also returns RENYI_ERR_NOMEM if adding a cell failed. */
renyi_status ry_xlsx_write(ry_xlsx *x, const char *path, renyi_error *err) RENYI_CHECK;
void ry_xlsx_free(ry_xlsx *x);

#endif
