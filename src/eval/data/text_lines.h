/* text_lines.h - reads text files: spans of text, lines, comma-separated records.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEXT_LINES_H
#define RY_TEXT_LINES_H

#include "base/buffer.h"

/* ---- spans --------------------------------------------------------------------------------- */

/* Borrowed bytes, not NUL-terminated. */
typedef struct ry_text {
    const char *at;
    size_t n;
} ry_text;

ry_text ry_text_of(const char *s);
ry_text ry_text_trim(ry_text t);           /* without blanks at either end */
int ry_text_compare(ry_text a, ry_text b); /* byte order: < 0, 0, > 0 */
/* Digits only and at most UINT32_MAX: returns 1 and sets *out. */
int ry_text_number(ry_text t, uint32_t *out);
/* Is it longer than `ending`, and does it end with it in any case? */
int ry_text_ends_with(ry_text t, const char *ending);
/* The next of several words separated by blanks and tabs, cut off *rest; 0 = there is none. */
int ry_text_next_word(ry_text *rest, ry_text *word);
/* Splits "name of class, 12" at the last of the separators into "name of class" and "12". Without a
 * separator *head is empty. Returns whether *head has text. */
int ry_text_split_last(ry_text t, const char *separators, ry_text *head, ry_text *last);
/* Folder and file name of a path; the folder of "name" is "", that of "/name" is "/". */
ry_text ry_text_folder(ry_text path);
ry_text ry_text_file_name(ry_text path);
/* For "%.*s": text from a file in a message, at most 80 bytes of it. */
#define RY_SHOWN(t) (int)((t).n < 80 ? (t).n : 80), (t).at

/* ---- lines --------------------------------------------------------------------------------- */

/* "\n" and "\r\n" end a line; a UTF-8 byte order mark at the start is skipped. */
typedef struct ry_lines {
    const char *at, *end;
    uint64_t number; /* of the last line returned, from 1 */
} ry_lines;

ry_lines ry_lines_of(const void *bytes, size_t size);
int ry_lines_next(ry_lines *l, ry_text *line); /* 0 at the end; the last line needs no newline */

/* ---- copies -------------------------------------------------------------------------------- */

char *ry_pool_copy(ry_pool *p, ry_text t);                    /* with a NUL */
char *ry_pool_join(ry_pool *p, ry_text folder, ry_text name); /* "folder/name" */

/* ---- comma-separated records --------------------------------------------------------------- */

enum { RY_CSV_FIELDS = 64 };

/* RFC 4180: fields in quotes may have commas, line ends and doubled quotes. */
typedef struct ry_csv {
    const char *name; /* of the file, for messages */
    char separator;   /* a comma; with a tab, quotes inside a field are plain characters */
    const char *at, *end;
    uint64_t line; /* where the last record returned begins, from 1 */
    uint64_t next; /* where the next one begins */
    ry_pool *pool; /* for fields with doubled quotes */
} ry_csv;

ry_csv ry_csv_of(const char *name, const void *bytes, size_t size, ry_pool *pool);

/* The next record that is not an empty line: *n fields, borrowed; *n = 0 at the end. */
renyi_status ry_csv_next(ry_csv *c, ry_text fields[RY_CSV_FIELDS], size_t *n,
                         renyi_error *err) RENYI_CHECK;

#endif
