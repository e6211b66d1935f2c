/* output.h - the forms in which results are printed: JSON, CSV and tables.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_OUTPUT_H
#define RENYI_OUTPUT_H

#include "cli/kit/cli.h"

#include <jansson.h>

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Text of unknown origin: bytes that are not UTF-8 become U+FFFD. NULL gives null. */
json_t *json_text(const char *text);
/* NaN and infinities, which JSON lacks, give null. */
json_t *json_number(double value);
json_t *json_preprocess(const renyi_preprocess *spec, const char *source);
/* {"file": ..., "error": ...} */
json_t *json_failure(const char *file, const char *reason);
/* A list of those from two lists of the same length. */
json_t *json_failures(const cli_strings *files, const cli_strings *reasons);
/* Prints and frees the document; ends the program if it is NULL (out of memory). */
void json_print(json_t *document);
void json_print_line(json_t *document); /* the same in one line */

const char *crop_mode_name(renyi_crop_mode mode);
const char *interpolation_name(renyi_interpolation interpolation);

/* ---- CSV (RFC 4180) ------------------------------------------------------------------------ */

void csv_cell(FILE *f, const char *text);         /* quoted where it must be; clean on a terminal */
void csv_real(FILE *f, int digits, double value); /* a comma first; NaN and inf are empty */

/* ---- tables -------------------------------------------------------------------------------- */

enum { TEXT_TABLE_MAX_COLUMNS = 16 };

typedef enum text_align {
    TEXT_LEFT,
    TEXT_RIGHT,
    TEXT_CLOSE /* right-aligned, one space from the column before instead of two */
} text_align;

/* Aligned columns for people, or Markdown. */
typedef struct text_table {
    size_t n_columns;
    text_align align[TEXT_TABLE_MAX_COLUMNS];
    cli_strings cells; /* row by row; the first row is the heading */
} text_table;

/* A column of the heading; only before the first cell of a row. */
void text_table_column(text_table *t, text_align align, const char *fmt, ...) CLI_PRINTF(3, 4);
/* The next cell. UTF-8, no line breaks. */
void text_table_cell(text_table *t, const char *fmt, ...) CLI_PRINTF(2, 3);
/* The next cell, a number; "-" if it is not finite. */
void text_table_real(text_table *t, int digits, double value);
/* Prints to stdout and empties it. `indent` spaces come before a row that is not Markdown. */
void text_table_put(text_table *t, int is_markdown, int indent);

/* A paragraph in lines of at most `width` columns. `first` begins the first line; the others are
 * indented by its width. */
void text_put_wrapped(const char *first, const char *text, size_t width);

#endif
