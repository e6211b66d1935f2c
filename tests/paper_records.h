/* paper_records.h - the paper's tables, record by record, for tests that compare the library's with
 * them. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_PAPER_RECORDS_H
#define RENYI_TESTS_PAPER_RECORDS_H

#include "shared.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* An array of records; NULL, and a loud line, when the file is absent. */
static inline json_t *paper_records(void)
{
    const char *path = shared_path("paper/tables.json");
    json_error_t error;
    if (!path) return NULL;
    json_t *records = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!records) fail_msg("%s: %s", path, error.text);
    return records;
}

/* How many cells of the library's table i the record is about; they must be equal to it. */
typedef int paper_cells(size_t i, const json_t *record);

/* Every record of the paper's table `number` is `label`'s and about one cell of the library's table
 * i. How many records that table has. */
static inline size_t paper_compare(const json_t *records, uint32_t number, const char *label,
                                   paper_cells *cells, size_t i)
{
    const json_t *record;
    size_t at, n = 0;
    json_array_foreach(records, at, record)
    {
        if (json_integer_value(json_object_get(record, "table")) != number) continue;
        assert_string_equal(label, json_string_value(json_object_get(record, "table_id")));
        assert_int_equal(cells(i, record), 1);
        n++;
    }
    return n;
}

#endif
