/* text_table.h - a table of short texts: aligned columns for people, or Markdown.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_TEXT_TABLE_H
#define RENYI_TEXT_TABLE_H

#include "cli/kit/cli.h"

enum { TEXT_TABLE_MAX_COLUMNS = 16 };

typedef enum text_align {
    TEXT_LEFT,
    TEXT_RIGHT,
    TEXT_CLOSE /* right-aligned, one blank behind the column before instead of two */
} text_align;

typedef struct text_table {
    size_t n_columns;
    text_align align[TEXT_TABLE_MAX_COLUMNS];
    cli_strings cells; /* row by row; the first row is the heading */
} text_table;

/* A column of the heading; only before the first cell of a row. */
void text_table_column(text_table *t, text_align align, const char *fmt, ...) CLI_PRINTF(3, 4);
/* The next cell. UTF-8, no line breaks. */
void text_table_cell(text_table *t, const char *fmt, ...) CLI_PRINTF(2, 3);
/* Print to stdout and empty it. `indent` blanks in front of a row that is not Markdown. */
void text_table_put(text_table *t, int is_markdown, int indent);

/* Words of a paragraph on lines of at most `width` columns: the first behind `first`, the others
 * below its end. */
void text_put_wrapped(const char *first, const char *text, size_t width);

#endif
