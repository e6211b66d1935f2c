/* bpe_encode.c - CLIP's encoding in use: a text is cleaned, split into words and merged to ids; ids
 * become text again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/text_clean.h"
#include "text/unicode.h"

#include <string.h>

/* ---- words of a text ------------------------------------------------------------------------- */

/* The length of `start` if text [n] begins with it, else 0. */
static size_t match_start(const uint32_t *text, size_t n, const char *start)
{
    const size_t length = strlen(start);
    if (n < length) return 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != (unsigned char)start[i]) return 0;
    return length;
}

static size_t match_contraction(const uint32_t *text, size_t n)
{
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (match_start(text, n, endings[i])) return strlen(endings[i]);
    return 0;
}

typedef enum word_kind {
    WORD_NONE, /* the end of the text */
    WORD_TEXT,
    WORD_SOT, /* "<|startoftext|>" as text */
    WORD_EOT
} word_kind;

/* The next word at or after *at of lower-case text [n]: *at becomes its start, *end its end. The
 * first that matches of: a special token; 's 't 're 've 'm 'll 'd; letters; one number; other
 * characters that are not spaces. */
static word_kind next_word(const uint32_t *text, size_t n, size_t *at, size_t *end)
{
    enum { KINDS = RY_LETTER | RY_NUMBER | RY_SPACE };
    size_t i = *at, length;
    while (i < n && ry_unicode_class(text[i]) & RY_SPACE) i++;
    *at = *end = i;
    if (i == n) return WORD_NONE;
    if ((length = match_start(text + i, n - i, RY_BPE_SOT))) return *end = i + length, WORD_SOT;
    if ((length = match_start(text + i, n - i, RY_BPE_EOT))) return *end = i + length, WORD_EOT;
    if ((length = match_contraction(text + i, n - i))) return *end = i + length, WORD_TEXT;
    const uint32_t kind = ry_unicode_class(text[i]) & KINDS;
    i++;
    while (kind != RY_NUMBER && i < n && (ry_unicode_class(text[i]) & KINDS) == kind) i++;
    *end = i;
    return WORD_TEXT;
}

/* ---- ids of a word --------------------------------------------------------------------------- */

int ry_bpe_rule(const void *self, const ry_merge_list *l, uint32_t left, uint32_t right,
                ry_join *out)
{
    const ry_merge *m = ry_bpe_merge_of(self, l->id[left], l->id[right]);
    if (m) *out = (ry_join){m->rank, m->whole};
    return m != NULL;
}

renyi_status ry_bpe_word(const ry_bpe *b, const char *word, size_t n, ry_merge_list *scratch,
                         ry_id_sink *out, renyi_error *err)
{
    const ry_merge_rule rule = {ry_bpe_rule, b};
    RY_TRY(ry_merge_list_reset(scratch, n, &b->al, err));
    for (uint32_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)word[i];
        const uint32_t id = b->byte_id[i + 1 == n][byte];
        if (id == UINT32_MAX)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "the vocabulary has no symbol for the byte 0x%02x%s", byte,
                           i + 1 == n ? " at the end of a word" : "");
        ry_merge_list_put(scratch, i, id);
    }
    ry_merge_list_run(scratch, &rule);
    for (uint32_t i = 0; i < n; i = scratch->behind[i]) /* RY_NOWHERE >= n */
        ry_id_put(out, scratch->id[i]);
    return RENYI_OK;
}

/* ---- ids of a text --------------------------------------------------------------------------- */

static renyi_status encode_words(const ry_bpe *b, ry_characters *c, ry_merge_list *scratch,
                                 ry_id_sink *out, renyi_error *err)
{
    char *bytes = (char *)c->spare; /* unused now; it has four bytes per character */
    size_t at = 0, end;
    for (word_kind kind; (kind = next_word(c->text, c->n, &at, &end)); at = end) {
        if (kind != WORD_TEXT) {
            ry_id_put(out, kind == WORD_SOT ? b->sot : b->eot);
            continue;
        }
        size_t n = 0;
        for (size_t i = at; i < end; i++) n += ry_utf8_put(bytes + n, c->text[i]);
        RY_TRY(ry_bpe_word(b, bytes, n, scratch, out, err));
    }
    return RENYI_OK;
}

renyi_status ry_bpe_encode(const ry_bpe *b, const char *text, size_t size, ry_id_sink *out,
                           renyi_error *err)
{
    ry_merge_list scratch = {0};
    if (size > RENYI_TEXT_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a text of %zu bytes; at most %d accepted", size,
                       RENYI_TEXT_MAX);
    ry_characters c;
    renyi_status st = ry_characters_read(&c, text, size, &b->al, err);
    if (!st) {
        ry_clean_clip(&c);
        st = encode_words(b, &c, &scratch, out, err);
    }
    ry_merge_list_free(&scratch, &b->al);
    ry_characters_free(&c, &b->al);
    return st;
}

/* ---- text of ids ----------------------------------------------------------------------------- */

/* The bytes of the ids, which may not be UTF-8. */
typedef struct raw {
    char *at;
    size_t n;
    int is_word_over; /* a space goes before the next symbol */
} raw;

/* Adds the bytes of a symbol, which is written in letters and may end a word. */
static void put_symbol(raw *r, ry_symbol s)
{
    const size_t tail = sizeof RY_BPE_END - 1;
    const int is_end = s.n > tail && !memcmp(s.at + s.n - tail, RY_BPE_END, tail);
    const size_t n = is_end ? s.n - tail : s.n;
    if (r->is_word_over) r->at[r->n++] = ' ';
    r->is_word_over = is_end;
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t letter;
        step = ry_utf8_get(s.at + i, n - i, &letter);
        const int byte = ry_bpe_byte(letter);
        if (byte >= 0) {
            r->at[r->n++] = (char)byte;
        } else { /* not a letter for a byte: copied */
            memcpy(r->at + r->n, s.at + i, step);
            r->n += step;
        }
    }
}

/* An upper bound for the bytes of all ids, with a space for each. */
static renyi_status measure_ids(const ry_bpe *b, const int32_t *ids, size_t n, size_t *bytes,
                                renyi_error *err)
{
    *bytes = 1;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= b->n_ids || !b->symbols[ids[i]].at)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "id %d, at place %zu, is not in the vocabulary of %u", ids[i], i,
                           b->n_ids);
        if (!ry_add_size(*bytes, b->symbols[ids[i]].n + 1, bytes))
            return ry_fail_nomem(err, SIZE_MAX);
    }
    return RENYI_OK;
}

/* Writes valid UTF-8, as much as fits with a NUL; returns the length of all of it. */
static size_t put_text(const raw *r, char *text, size_t size)
{
    size_t length = 0, written = 0;
    for (size_t i = 0, step; i < r->n; i += step) {
        uint32_t c;
        char utf8[4];
        step = ry_utf8_get(r->at + i, r->n - i, &c);
        const size_t n = ry_utf8_put(utf8, c == RY_UTF8_BAD ? RY_REPLACEMENT : c);
        if (written == length && length + n < size) { /* no character after one that did not fit */
            memcpy(text + written, utf8, n);
            written += n;
        }
        length += n;
    }
    if (size) text[written] = '\0';
    return length;
}

renyi_status ry_bpe_decode(const ry_bpe *b, const int32_t *ids, size_t n, char *text, size_t size,
                           size_t *length, renyi_error *err)
{
    size_t bytes, end = 0;
    while (end < n && ids[end] != (int32_t)b->eot) end++;
    RY_TRY(measure_ids(b, ids, end, &bytes, err));
    raw r = {ry_alloc(&b->al, bytes, 1), 0, 0};
    if (!r.at) return ry_fail_nomem(err, bytes);
    for (size_t i = 0; i < end; i++)
        if (ids[i] != (int32_t)b->sot) put_symbol(&r, b->symbols[ids[i]]);
    const size_t all = put_text(&r, text, size);
    if (length) *length = all;
    ry_free(&b->al, r.at);
    return RENYI_OK;
}
