/* output.c - the forms in which results are printed: JSON, CSV and tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- JSON ---------------------------------------------------------------------------------- */

json_t *json_text(const char *text)
{
    if (!text) return json_null();
    json_t *direct = json_string(text);
    if (direct) return direct;

    const size_t size = strlen(text);
    char *valid = cli_alloc(3 * size + 1, 1), *to = valid;
    for (size_t i = 0, n; i < size; i += n) {
        uint32_t code;
        int is_hidden;
        n = renyi_text_next(text + i, size - i, &code, &is_hidden);
        const int is_bad = is_hidden && code == 0xfffd; /* U+FFFD itself is not hidden */
        memcpy(to, is_bad ? "\xef\xbf\xbd" : text + i, is_bad ? 3 : n);
        to += is_bad ? 3 : n;
    }
    json_t *repaired = json_string(valid);
    free(valid);
    return repaired;
}

json_t *json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

const char *crop_mode_name(renyi_crop_mode mode)
{
    return mode == RENYI_CROP_SQUASH ? "squash" : mode == RENYI_CROP_BORDER ? "border" : "center";
}

const char *interpolation_name(renyi_interpolation interpolation)
{
    switch (interpolation) {
    case RENYI_BILINEAR: return "bilinear";
    case RENYI_LANCZOS: return "lanczos";
    case RENYI_BICUBIC: break;
    }
    return "bicubic";
}

json_t *json_preprocess(const renyi_preprocess *spec, const char *source)
{
    return json_pack("{s:i, s:f, s:s, s:s, s:[f,f,f], s:[f,f,f], s:o}", "size", (int)spec->size,
                     "crop_pct", spec->crop_pct, "crop_mode", crop_mode_name(spec->crop_mode),
                     "interpolation", interpolation_name(spec->interpolation), "mean",
                     spec->mean[0], spec->mean[1], spec->mean[2], "std", spec->std[0], spec->std[1],
                     spec->std[2], "source", json_text(source));
}

json_t *json_failure(const char *file, const char *reason)
{
    return json_pack("{s:o, s:o}", "file", json_text(file), "error", json_text(reason));
}

json_t *json_failures(const cli_strings *files, const cli_strings *reasons)
{
    json_t *list = json_array();

    for (size_t i = 0; i < files->count; i++)
        json_array_append_new(list, json_failure(files->items[i], reasons->items[i]));
    return list;
}

/* Hidden characters that jansson leaves as they are (from DEL on) are escaped: the document stays
 * exact, and a terminal that shows it is safe. They occur only inside strings. */
static int write_piece(const char *bytes, size_t size, void *stream)
{
    size_t done = 0;

    for (size_t i = 0, n; i < size; i += n) {
        uint32_t code;
        int is_hidden;
        n = renyi_text_next(bytes + i, size - i, &code, &is_hidden);
        if (!is_hidden || code < 0x7f) continue;
        if (fwrite(bytes + done, 1, i - done, stream) != i - done) return -1;
        done = i + n;
        if (code > 0xffff) fprintf(stream, "\\u%04X", 0xd800 + ((code - 0x10000) >> 10));
        if (fprintf(stream, "\\u%04X", code > 0xffff ? 0xdc00 + (code & 0x3ff) : code) < 0)
            return -1;
    }
    return fwrite(bytes + done, 1, size - done, stream) == size - done ? 0 : -1;
}

static void print_json(json_t *document, size_t flags)
{
    if (!document) {
        cli_error("out of memory");
        exit(CLI_FAILED);
    }
    /* A failed write sets the error flag of stdout; cli_finish_output reports it. */
    if (json_dump_callback(document, write_piece, stdout, flags | JSON_REAL_PRECISION(9)) == 0)
        putchar('\n');
    json_decref(document);
}

void json_print(json_t *document) { print_json(document, JSON_INDENT(2)); }

void json_print_line(json_t *document) { print_json(document, JSON_COMPACT); }

/* ---- CSV ----------------------------------------------------------------------------------- */

void csv_cell(FILE *f, const char *text)
{
    char *clean = isatty(fileno(f)) ? cli_clean(text) : NULL;
    const char *shown = clean ? clean : text;
    const int is_quoted = strpbrk(shown, ",\"\r\n") != NULL;

    if (is_quoted) putc('"', f);
    for (; *shown; shown++) {
        if (*shown == '"') putc('"', f);
        putc(*shown, f);
    }
    if (is_quoted) putc('"', f);
    free(clean);
}

void csv_real(FILE *f, int digits, double value)
{
    putc(',', f);
    if (isfinite(value)) fprintf(f, "%.*f", digits, value);
}

/* ---- tables -------------------------------------------------------------------------------- */

static void add_cell(text_table *t, const char *fmt, va_list args)
{
    char text[256];

    vsnprintf(text, sizeof text, fmt, args);
    cli_strings_add(&t->cells, cli_clean(text));
}

void text_table_column(text_table *t, text_align align, const char *fmt, ...)
{
    va_list args;

    if (t->n_columns == TEXT_TABLE_MAX_COLUMNS) return;
    t->align[t->n_columns++] = align;
    va_start(args, fmt);
    add_cell(t, fmt, args);
    va_end(args);
}

void text_table_cell(text_table *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_cell(t, fmt, args);
    va_end(args);
}

void text_table_real(text_table *t, int digits, double value)
{
    if (isfinite(value))
        text_table_cell(t, "%.*f", digits, value);
    else
        text_table_cell(t, "-");
}

/* Characters on the terminal: continuation bytes of UTF-8 are not counted. */
static size_t width_of(const char *text)
{
    size_t n = 0;

    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_blanks(size_t n)
{
    while (n--) putchar(' ');
}

static void put_aligned(const text_table *t, const size_t *widths, int indent)
{
    for (size_t i = 0; i < t->cells.count; i++) {
        const size_t c = i % t->n_columns, blanks = widths[c] - width_of(t->cells.items[i]);
        const int is_last = c + 1 == t->n_columns;

        put_blanks(c == 0 ? (size_t)indent : t->align[c] == TEXT_CLOSE ? 1 : 2);
        if (i == 0) fputs(cli_bold(stdout), stdout);
        if (t->align[c] != TEXT_LEFT) put_blanks(blanks);
        fputs(t->cells.items[i], stdout);
        if (t->align[c] == TEXT_LEFT && !is_last) put_blanks(blanks);
        if (i + 1 == t->n_columns) fputs(cli_plain(stdout), stdout);
        if (is_last) putchar('\n');
    }
}

static void put_markdown(const text_table *t)
{
    for (size_t i = 0; i < t->cells.count; i++) {
        fputs(i % t->n_columns ? " " : "| ", stdout);
        fputs(t->cells.items[i], stdout);
        fputs(" |", stdout);
        if ((i + 1) % t->n_columns == 0) putchar('\n');
        if (i + 1 != t->n_columns) continue;
        for (size_t c = 0; c < t->n_columns; c++)
            fputs(t->align[c] == TEXT_LEFT ? "|---" : "|--:", stdout);
        puts("|");
    }
}

void text_table_put(text_table *t, int is_markdown, int indent)
{
    size_t widths[TEXT_TABLE_MAX_COLUMNS] = {0};

    for (size_t i = 0; i < t->cells.count; i++) {
        const size_t width = width_of(t->cells.items[i]), c = i % t->n_columns;
        if (width > widths[c]) widths[c] = width;
    }
    if (is_markdown)
        put_markdown(t);
    else
        put_aligned(t, widths, indent);
    cli_strings_free(&t->cells);
    *t = (text_table){0};
}

void text_put_wrapped(const char *first, const char *text, size_t width)
{
    const size_t indent = width_of(first);
    size_t column = indent;

    fputs(first, stdout);
    while (*text) {
        const size_t length = strcspn(text, " ");
        if (column > indent && column + 1 + length > width) {
            putchar('\n');
            put_blanks(indent);
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        fwrite(text, 1, length, stdout);
        column += length;
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}
