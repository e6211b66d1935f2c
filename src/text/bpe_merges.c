/* bpe_merges.c - merges files: "left right" a line, the earliest first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/bpe.h"

#include "base/status.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* Walks over the lines that are merges. */
typedef struct lines {
    const char *at, *end;
    uint32_t number; /* of the line last given, from 1 */
} lines;

/* Empty lines at the end are none. */
static lines lines_of(const char *text, size_t size)
{
    while (size && (text[size - 1] == '\n' || text[size - 1] == '\r')) size--;
    return (lines){text, text + size, 0};
}

static ry_symbol raw_line(lines *l)
{
    const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
    ry_symbol line = {l->at, (size_t)((newline ? newline : l->end) - l->at)};
    l->at = newline ? newline + 1 : l->end;
    l->number++;
    if (line.n && line.at[line.n - 1] == '\r') line.n--;
    return line;
}

/* The first line may say which version it is; OpenAI's has the file's name before that. */
static int is_heading(ry_symbol line)
{
    static const char word[] = "#version";
    for (size_t i = 0; i + sizeof word - 1 <= line.n; i++)
        if (!memcmp(line.at + i, word, sizeof word - 1)) return 1;
    return 0;
}

static int next_line(lines *l, ry_symbol *line)
{
    while (l->at < l->end && l->number < UINT32_MAX) {
        *line = raw_line(l);
        if (l->number > 1 || !is_heading(*line)) return 1;
    }
    return 0;
}

static int split(ry_symbol line, ry_symbol *left, ry_symbol *right)
{
    const char *space = line.n ? memchr(line.at, ' ', line.n) : NULL;
    if (!space) return 0;
    *left = (ry_symbol){line.at, (size_t)(space - line.at)};
    *right = (ry_symbol){space + 1, line.n - left->n - 1};
    return left->n && right->n && !memchr(right->at, ' ', right->n);
}

uint32_t ry_bpe_count_lines(const char *text, size_t size)
{
    lines l = lines_of(text, size);
    ry_symbol line;
    uint32_t n = 0;
    while (n < RY_BPE_FILE_MERGES && next_line(&l, &line)) n++;
    return n;
}

renyi_status ry_bpe_join_lines(ry_bpe *b, const char *text, size_t size, const char *what,
                               uint32_t first_id, renyi_error *err)
{
    const uint32_t count = ry_bpe_count_lines(text, size);
    lines l = lines_of(text, size);
    ry_symbol line, left, right;
    char where[300];
    for (uint32_t i = 0; i < count && next_line(&l, &line); i++) {
        if (!split(line, &left, &right))
            return ry_fail(err, RENYI_ERR_FORMAT, line.at - text,
                           "%s: line %u: two symbols and a space between them expected", what,
                           l.number);
        const uint32_t next = first_id == RY_BPE_KNOWN ? RY_BPE_KNOWN : first_id + i;
        const renyi_status st = ry_bpe_join(b, left, right, next, err);
        if (!st) continue;
        snprintf(where, sizeof where, "%.240s: line %u", what, l.number);
        return ry_fail_in(err, st, where);
    }
    return RENYI_OK;
}

/* Ids 0 to 511: all bytes, those that write themselves first; then all of them as ends of words. */
static renyi_status add_bytes(ry_bpe *b, renyi_error *err)
{
    uint32_t id = 0;
    for (int is_end = 0; is_end < 2; is_end++)
        for (int is_hidden = 0; is_hidden < 2; is_hidden++)
            for (uint32_t byte = 0; byte < 256; byte++) {
                char text[8];
                if ((ry_bpe_letter(byte) != byte) != is_hidden) continue;
                size_t n = ry_utf8_put(text, ry_bpe_letter(byte));
                memcpy(text + n, RY_BPE_END, sizeof RY_BPE_END - 1);
                if (is_end) n += sizeof RY_BPE_END - 1;
                RY_TRY(ry_bpe_add(b, (ry_symbol){text, n}, id++, err));
            }
    return RENYI_OK;
}

static renyi_status fill(ry_bpe *b, const char *text, size_t size, const char *what,
                         uint32_t n_merges, renyi_error *err)
{
    const ry_symbol sot = {RY_BPE_SOT, sizeof RY_BPE_SOT - 1};
    const ry_symbol eot = {RY_BPE_EOT, sizeof RY_BPE_EOT - 1};
    renyi_status st = add_bytes(b, err);
    if (!st) RY_TRY(ry_bpe_join_lines(b, text, size, what, 512, err)); /* names file and line */
    if (!st) st = ry_bpe_add(b, sot, 512 + n_merges, err);
    if (!st) st = ry_bpe_add(b, eot, 512 + n_merges + 1, err);
    if (!st) st = ry_bpe_finish(b, err);
    return st ? ry_fail_in(err, st, what) : RENYI_OK;
}

renyi_status ry_bpe_read_merges(ry_bpe **out, const char *text, size_t size, const char *what,
                                const renyi_allocator *al, renyi_error *err)
{
    const uint32_t n_merges = ry_bpe_count_lines(text, size);
    *out = NULL;
    if (!n_merges)
        return ry_fail(err, RENYI_ERR_FORMAT, 0,
                       "%s: no merges in it; lines such as \"t h\" expected", what);
    RY_TRY(ry_bpe_new(out, 512 + n_merges + 2, n_merges, al, err));
    const renyi_status st = fill(*out, text, size, what, n_merges, err);
    if (st) {
        ry_bpe_free(*out);
        *out = NULL;
    }
    return st;
}
