/* text_table.c - see text_table.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/text_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void add(text_table *t, const char *fmt, va_list args)
{
    char text[256];

    vsnprintf(text, sizeof text, fmt, args);
    cli_strings_add(&t->cells, cli_copy(text));
}

void text_table_column(text_table *t, text_align align, const char *fmt, ...)
{
    va_list args;

    if (t->n_columns == TEXT_TABLE_MAX_COLUMNS) return;
    t->align[t->n_columns++] = align;
    va_start(args, fmt);
    add(t, fmt, args);
    va_end(args);
}

void text_table_cell(text_table *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add(t, fmt, args);
    va_end(args);
}

/* Characters on the terminal: continuation bytes of UTF-8 take no room. */
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
        cli_put_clean(stdout, t->cells.items[i]);
        if (t->align[c] == TEXT_LEFT && !is_last) put_blanks(blanks);
        if (i + 1 == t->n_columns) fputs(cli_plain(stdout), stdout);
        if (is_last) putchar('\n');
    }
}

static void put_markdown(const text_table *t)
{
    for (size_t i = 0; i < t->cells.count; i++) {
        fputs(i % t->n_columns ? " " : "| ", stdout);
        cli_put_clean(stdout, t->cells.items[i]);
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
