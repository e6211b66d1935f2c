/* collection_list.c - the table of known data sets, read from data/collections.txt, which is inside
 * the library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/data/collection_list.h"

#include "base/status.h"
#include "prune/policy/policy_number.h"

#include <stdio.h>
#include <string.h>

extern const char ry_collections_txt[];

enum { COLUMNS = 13 };

int ry_next_word(ry_text *rest, ry_text *word)
{
    *rest = ry_text_trim(*rest);
    size_t n = 0;
    while (n < rest->n && rest->at[n] != ' ') n++;
    *word = (ry_text){rest->at, n};
    *rest = (ry_text){rest->at + n, rest->n - n};
    return n > 0;
}

static int is_passed_over(char c) { return c == '-' || c == '_' || c == ' '; }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

int ry_same_word(ry_text a, ry_text b)
{
    for (;;) {
        while (a.n && is_passed_over(*a.at)) a.at++, a.n--;
        while (b.n && is_passed_over(*b.at)) b.at++, b.n--;
        if (!a.n || !b.n) return a.n == b.n;
        if (lower(*a.at++) != lower(*b.at++)) return 0;
        a.n--, b.n--;
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

static void take_text(char out[RENYI_COLLECTION_TEXT], ry_text cell)
{
    const int is_nothing = cell.n == 1 && *cell.at == '-';
    snprintf(out, RENYI_COLLECTION_TEXT, "%.*s", is_nothing ? 0 : (int)cell.n, cell.at);
}

static double take_number(ry_text cell)
{
    double value = 0;
    return ry_read_decimal(cell.at, cell.n, &value) ? value : 0;
}

static renyi_layout take_layout(ry_text cell)
{
    if (ry_text_compare(cell, ry_text_of("split")) == 0) return RENYI_LAYOUT_SPLIT;
    if (ry_text_compare(cell, ry_text_of("variants")) == 0) return RENYI_LAYOUT_VARIANTS;
    return RENYI_LAYOUT_IMAGENET;
}

static void split_columns(ry_text line, ry_text cells[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++) {
        const char *bar = line.n ? memchr(line.at, '|', line.n) : NULL;
        const size_t n = bar ? (size_t)(bar - line.at) : line.n;
        cells[i] = ry_text_trim((ry_text){line.at, n});
        line = (ry_text){line.at + n + (bar != NULL), line.n - n - (bar != NULL)};
    }
}

/* Columns in the order that the file names. */
static void read_line(ry_text line, renyi_collection *out)
{
    ry_text cells[COLUMNS];
    split_columns(line, cells);
    *out = (renyi_collection){.layout = take_layout(cells[3]),
                              .is_subset = ry_text_compare(cells[3], ry_text_of("subset")) == 0,
                              .tca_scale = take_number(cells[10]),
                              .tca_lambda = take_number(cells[11]),
                              .tca_beta = take_number(cells[12])};
    take_text(out->name, cells[0]);
    take_text(out->title, cells[1]);
    take_text(out->aliases, cells[2]);
    if (!ry_text_number(cells[4], &out->n_classes)) out->n_classes = 0;
    take_text(out->folder, cells[5]);
    take_text(out->photos, cells[6]);
    take_text(out->list, cells[7]);
    take_text(out->templates, cells[8]);
    if (!ry_text_number(cells[9], &out->tca_size)) out->tca_size = 0;
}

/* Line i of the table, without remarks; 0 = there are not so many. */
static int find_line(size_t i, ry_text *line)
{
    ry_lines l = ry_lines_of(ry_collections_txt, strlen(ry_collections_txt));
    while (ry_lines_next(&l, line))
        if (line->n && *line->at != '#' && i-- == 0) return 1;
    return 0;
}

size_t renyi_collection_count(void)
{
    size_t n = 0;
    for (ry_text line; find_line(n, &line);) n++;
    return n;
}

void renyi_collection_get(size_t i, renyi_collection *out)
{
    ry_text line;
    *out = (renyi_collection){.n_classes = 0};
    if (find_line(i, &line)) read_line(line, out);
}

/* ---- by name ------------------------------------------------------------------------------- */

static int is_called(const renyi_collection *c, ry_text word)
{
    ry_text rest = ry_text_of(c->aliases), alias;
    if (ry_same_word(word, ry_text_of(c->name)) || ry_same_word(word, ry_text_of(c->title)) ||
        ry_same_word(word, ry_text_of(c->folder)))
        return 1;
    while (ry_next_word(&rest, &alias))
        if (ry_same_word(word, alias)) return 1;
    return 0;
}

renyi_status renyi_collection_find(const char *word, renyi_collection *out, renyi_error *err)
{
    char names[320] = "";
    if (!word || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_collection_find: NULL argument");
    for (size_t i = 0, n = renyi_collection_count(); i < n; i++) {
        renyi_collection_get(i, out);
        if (is_called(out, ry_text_of(word))) return RENYI_OK;
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", out->name);
    }
    *out = (renyi_collection){.n_classes = 0};
    return ry_fail(err, RENYI_ERR_ARG, -1, "no data set is called \"%.60s\"; there are: %s", word,
                   names);
}
