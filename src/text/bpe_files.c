/* bpe_files.c - reads the tables of a byte-pair encoding: from a merges file ("left right" per
 * line, the earliest first), or from JSON as Hugging Face writes it (vocab.json with merges.txt,
 * tokenizer.json).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/status.h"
#include "base/utf8.h"
#include "text/bpe.h"

#include <stdio.h>
#include <string.h>

/* ---- merges files ---------------------------------------------------------------------------- */

/* Iterates over the lines that are merges. */
typedef struct lines {
    const char *at, *end;
    uint32_t number; /* of the last line returned, from 1 */
} lines;

/* Empty lines at the end do not count. */
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

/* The first line may state a version, in OpenAI's file after the file's name. */
static int is_heading(ry_symbol line)
{
    static const char mark[] = "#version";
    for (size_t i = 0; i + sizeof mark - 1 <= line.n; i++)
        if (!memcmp(line.at + i, mark, sizeof mark - 1)) return 1;
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

static int split_line(ry_symbol line, ry_symbol *left, ry_symbol *right)
{
    const char *space = line.n ? memchr(line.at, ' ', line.n) : NULL;
    if (!space) return 0;
    *left = (ry_symbol){line.at, (size_t)(space - line.at)};
    *right = (ry_symbol){space + 1, line.n - left->n - 1};
    return left->n && right->n && !memchr(right->at, ' ', right->n);
}

uint32_t ry_bpe_count_merges(const char *text, size_t size)
{
    lines l = lines_of(text, size);
    ry_symbol line;
    uint32_t n = 0;
    while (n < RY_BPE_FILE_MERGES && next_line(&l, &line)) n++;
    return n;
}

/* Adds the merges of all lines. first_id is the id of the first result and counts up, or
 * RY_BPE_KNOWN: the results are in the vocabulary. */
static renyi_status join_lines(ry_bpe *b, const char *text, size_t size, const char *what,
                               uint32_t first_id, renyi_error *err)
{
    const uint32_t count = ry_bpe_count_merges(text, size);
    lines l = lines_of(text, size);
    ry_symbol line, left, right;
    char where[300];
    for (uint32_t i = 0; i < count && next_line(&l, &line); i++) {
        if (!split_line(line, &left, &right))
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

/* Ids 0 to 511: all bytes, those that stand for themselves first; then the same at ends of words.
 */
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

static renyi_status add_merges_file(ry_bpe *b, const char *text, size_t size, const char *what,
                                    uint32_t n_merges, renyi_error *err)
{
    const ry_symbol sot = {RY_BPE_SOT, sizeof RY_BPE_SOT - 1};
    const ry_symbol eot = {RY_BPE_EOT, sizeof RY_BPE_EOT - 1};
    renyi_status st = add_bytes(b, err);
    if (!st)
        RY_TRY(join_lines(b, text, size, what, 512, err)); /* its message names file and line */
    if (!st) st = ry_bpe_add(b, sot, 512 + n_merges, err);
    if (!st) st = ry_bpe_add(b, eot, 512 + n_merges + 1, err);
    if (!st) st = ry_bpe_finish(b, err);
    return st ? ry_fail_in(err, st, what) : RENYI_OK;
}

renyi_status ry_bpe_read_merges(ry_bpe **out, const char *text, size_t size, const char *what,
                                const renyi_allocator *al, renyi_error *err)
{
    const uint32_t n_merges = ry_bpe_count_merges(text, size);
    *out = NULL;
    if (!n_merges)
        return ry_fail(err, RENYI_ERR_FORMAT, 0, "%s: no merges; lines such as \"t h\" expected",
                       what);
    RY_TRY(ry_bpe_new(out, 512 + n_merges + 2, n_merges, al, err));
    const renyi_status st = add_merges_file(*out, text, size, what, n_merges, err);
    if (st) {
        ry_bpe_free(*out);
        *out = NULL;
    }
    return st;
}

static ry_symbol symbol_of(const json_t *string)
{
    return (ry_symbol){json_string_value(string), json_string_length(string)};
}

/* ---- JSON: symbols --------------------------------------------------------------------------- */

renyi_status ry_bpe_count_ids(const json_t *vocab, const char *what, uint32_t *n_ids,
                              renyi_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)vocab, key, value)
    {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= RY_BPE_MAX_IDS)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: the id of '%.64s' is not a whole number from 0 to %d", what, key,
                           RY_BPE_MAX_IDS - 1);
        if ((uint32_t)id >= *n_ids) *n_ids = (uint32_t)id + 1;
    }
    return RENYI_OK;
}

static renyi_status add_symbols(ry_bpe *b, const json_t *vocab, const char *what, renyi_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)vocab, key, value)
    {
        const uint32_t id = (uint32_t)json_integer_value(value);
        const renyi_status st = ry_bpe_add(b, (ry_symbol){key, strlen(key)}, id, err);
        if (st) return ry_fail_in(err, st, what);
    }
    return RENYI_OK;
}

/* Finishes *out, or frees it after a failure st. */
static renyi_status finish_or_free(ry_bpe **out, renyi_status st, const char *what,
                                   renyi_error *err)
{
    if (!st) {
        st = ry_bpe_finish(*out, err);
        if (st) (void)ry_fail_in(err, st, what);
    }
    if (st) {
        ry_bpe_free(*out);
        *out = NULL;
    }
    return st;
}

static renyi_status new_bpe(ry_bpe **out, uint32_t n_ids, size_t n_merges, const char *what,
                            const renyi_allocator *al, renyi_error *err)
{
    const uint32_t n = n_merges > RY_BPE_MAX_IDS ? RY_BPE_MAX_IDS + 1 : (uint32_t)n_merges;
    const renyi_status st = ry_bpe_new(out, n_ids, n, al, err);
    return st ? ry_fail_in(err, st, what) : RENYI_OK;
}

/* ---- vocab.json ---------------------------------------------------------------------------- */

renyi_status ry_bpe_read_vocab(ry_bpe **out, const json_t *vocab, const char *what,
                               const char *merges, size_t size, const char *what_merges,
                               const renyi_allocator *al, renyi_error *err)
{
    uint32_t n_ids = 0;
    *out = NULL;
    if (!json_object_size(vocab))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: an object of symbols and ids expected",
                       what);
    RY_TRY(ry_bpe_count_ids(vocab, what, &n_ids, err));
    RY_TRY(new_bpe(out, n_ids, ry_bpe_count_merges(merges, size), what_merges, al, err));
    renyi_status st = add_symbols(*out, vocab, what, err);
    if (!st) st = join_lines(*out, merges, size, what_merges, RY_BPE_KNOWN, err);
    return finish_or_free(out, st, what, err);
}

/* ---- tokenizer.json ------------------------------------------------------------------------ */

renyi_status ry_bpe_add_tokens(ry_bpe *b, const json_t *added, const char *what, uint32_t *n_ids,
                               renyi_error *err)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i), *content;
        uint32_t id = UINT32_MAX;
        RY_TRY(ry_json_uint(token, "id", &id, what, err));
        content = json_object_get(token, "content");
        if (!json_is_string(content) || id >= RY_BPE_MAX_IDS)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: \"added_tokens\", entry %zu: a content and an id from 0 to %d "
                           "expected",
                           what, i, RY_BPE_MAX_IDS - 1);
        if (id >= *n_ids) *n_ids = id + 1;
        if (!b || ry_bpe_find(b, symbol_of(content)) == id) continue;
        const renyi_status st = ry_bpe_add(b, symbol_of(content), id, err);
        if (st) return ry_fail_in(err, st, what);
    }
    return RENYI_OK;
}

/* "left right", or ["left", "right"] in newer files. */
static int split_merge(const json_t *merge, ry_symbol *left, ry_symbol *right)
{
    if (json_is_array(merge)) {
        *left = symbol_of(json_array_get(merge, 0));
        *right = symbol_of(json_array_get(merge, 1));
        return json_array_size(merge) == 2 && left->at && right->at;
    }
    const char *text = json_string_value(merge);
    const char *space = text ? strchr(text, ' ') : NULL;
    if (!space) return 0;
    *left = (ry_symbol){text, (size_t)(space - text)};
    *right = (ry_symbol){space + 1, json_string_length(merge) - left->n - 1};
    return 1;
}

static renyi_status join_merges(ry_bpe *b, const json_t *merges, const char *what, renyi_error *err)
{
    for (size_t i = 0; i < json_array_size(merges); i++) {
        ry_symbol left, right;
        char where[300];
        renyi_status st = RENYI_ERR_FORMAT;
        if (split_merge(json_array_get(merges, i), &left, &right))
            st = ry_bpe_join(b, left, right, RY_BPE_KNOWN, err);
        else
            (void)ry_fail(err, st, -1, "two symbols expected");
        if (!st) continue;
        snprintf(where, sizeof where, "%.240s: \"merges\", entry %zu", what, i);
        return ry_fail_in(err, st, where);
    }
    return RENYI_OK;
}

/* Tokenizers of language models and of BERT use the same file format. */
static renyi_status check_kind(const json_t *model, const char *what, renyi_error *err)
{
    const char *type = "BPE", *tail = "";
    RY_TRY(ry_json_string(model, "type", &type, what, err));
    RY_TRY(ry_json_string(model, "end_of_word_suffix", &tail, what, err));
    if (strcmp(type, "BPE") != 0 || strcmp(tail, RY_BPE_END) != 0)
        return ry_fail(
            err, RENYI_ERR_UNSUPPORTED, -1,
            "%s: a tokenizer of type %.32s with \"end_of_word_suffix\" \"%.32s\"; CLIP's "
            "is BPE with \"%s\"",
            what, type, tail, RY_BPE_END);
    return RENYI_OK;
}

renyi_status ry_bpe_read_tables(ry_bpe **out, const json_t *root, const char *what,
                                const renyi_allocator *al, renyi_error *err)
{
    const json_t *model = ry_json_object(root, "model"), *vocab = ry_json_object(model, "vocab");
    const json_t *merges = json_object_get(model, "merges");
    const json_t *added = json_object_get(root, "added_tokens");
    uint32_t n_ids = 0;
    *out = NULL;
    if (!vocab || !json_is_array(merges))
        return ry_fail(
            err, RENYI_ERR_FORMAT, -1,
            "%s: \"model\" with \"vocab\" (an object) and \"merges\" (an array) expected", what);
    RY_TRY(ry_bpe_count_ids(vocab, what, &n_ids, err));
    RY_TRY(ry_bpe_add_tokens(NULL, added, what, &n_ids, err));
    RY_TRY(new_bpe(out, n_ids, json_array_size(merges), what, al, err));
    renyi_status st = add_symbols(*out, vocab, what, err);
    if (!st) st = ry_bpe_add_tokens(*out, added, what, &n_ids, err);
    if (!st) st = join_merges(*out, merges, what, err);
    if (!st) return RENYI_OK;
    ry_bpe_free(*out);
    *out = NULL;
    return st;
}

renyi_status ry_bpe_read_tokenizer(ry_bpe **out, const json_t *root, const char *what,
                                   const renyi_allocator *al, renyi_error *err)
{
    *out = NULL;
    RY_TRY(check_kind(ry_json_object(root, "model"), what, err));
    RY_TRY(ry_bpe_read_tables(out, root, what, al, err));
    return finish_or_free(out, RENYI_OK, what, err);
}
