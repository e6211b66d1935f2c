/* csv.h - records of comma-separated files (RFC 4180): quotes, commas and line ends inside them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CSV_H
#define RY_CSV_H

#include "eval/data/text_lines.h"

enum { RY_CSV_FIELDS = 64 };

typedef struct ry_csv {
    const char *name; /* of the file, for messages */
    char separator;   /* a comma; with a tab, quotes inside a field mean themselves */
    const char *at, *end;
    uint64_t line; /* where the record last given begins, from 1 */
    uint64_t next; /* where the one after it does */
    ry_pool *pool; /* for fields with doubled quotes */
} ry_csv;

ry_csv ry_csv_of(const char *name, const void *bytes, size_t size, ry_pool *pool);

/* The next record that is not an empty line: *n fields, borrowed; *n = 0 at the end. */
renyi_status ry_csv_next(ry_csv *c, ry_text fields[RY_CSV_FIELDS], size_t *n,
                         renyi_error *err) RENYI_CHECK;

#endif
