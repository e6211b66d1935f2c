/* byte_level.c - splits a text into words and encodes their bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/byte_level.h"

#include "base/status.h"
#include "base/utf8.h"
#include "text/unicode.h"

#include <string.h>

enum { KINDS = RY_LETTER | RY_NUMBER | RY_SPACE, END = 1u << 30 };

/* The kind of the character at `at`, 0 for others than letters, numbers and spaces, END behind the
 * text; *step is its bytes. */
static uint32_t kind_at(const char *text, size_t n, size_t at, size_t *step)
{
    uint32_t c;
    *step = 0;
    if (at == n) return END;
    *step = ry_utf8_get(text + at, n - at, &c);
    return ry_unicode_class(c) & KINDS;
}

/* Where the characters of one kind from `at` on end. */
static size_t end_of_kind(const char *text, size_t n, size_t at, uint32_t kind)
{
    size_t step;
    while (kind_at(text, n, at, &step) == kind) at += step;
    return at;
}

static size_t contraction(const char *text, size_t n)
{
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t length = strlen(endings[i]);
        if (n >= length && !memcmp(text, endings[i], length)) return length;
    }
    return 0;
}

/* Spaces: all of them at the end of the text, else all but the last, but one at least. */
static size_t spaces(const char *text, size_t n)
{
    size_t at = 0, last = 0, step;
    while (kind_at(text, n, at, &step) == RY_SPACE) {
        last = at;
        at += step;
    }
    return at == n || !last ? at : last;
}

static size_t gpt2_word(const char *text, size_t n)
{
    size_t step;
    const size_t ending = contraction(text, n), blank = *text == ' ';
    if (ending) return ending;
    const uint32_t kind = kind_at(text, n, blank, &step);
    if (kind == END || kind == RY_SPACE) return spaces(text, n);
    return end_of_kind(text, n, blank, kind);
}

/* Bytes that are split apart from the rest: with SmolLM one number, or all up to the next one. */
static size_t part(ry_split split, const char *text, size_t n)
{
    size_t step, end = 0;
    if (split != RY_SPLIT_SMOLLM) return n;
    uint32_t kind = kind_at(text, n, 0, &step);
    if (kind == RY_NUMBER) return step;
    for (; kind != END && kind != RY_NUMBER; kind = kind_at(text, n, end, &step)) end += step;
    return end;
}

void ry_byte_level_finish(ry_bpe *b)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        char text[4];
        const size_t n = ry_utf8_put(text, ry_bpe_letter(byte));
        b->byte_id[0][byte] = b->byte_id[1][byte] = ry_bpe_find(b, (ry_symbol){text, n});
    }
}

/* All ids of one word. A vocabulary may lack bytes; as in llama.cpp they are left out, but keep
 * their neighbors apart. */
static renyi_status encode_word(const ry_bpe *b, const char *word, size_t n, ry_merge_list *list,
                                ry_id_sink *out, renyi_error *err)
{
    enum { MISSING = INT32_MAX }; /* beyond every id */
    const ry_merge_rule rule = {ry_bpe_rule, b};
    RY_TRY(ry_merge_list_reset(list, n, &b->al, err));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = b->byte_id[0][(unsigned char)word[i]];
        ry_merge_list_put(list, i, id == UINT32_MAX ? MISSING : id);
    }
    ry_merge_list_run(list, &rule);
    for (uint32_t i = 0; i < n; i = list->behind[i]) /* RY_NOWHERE >= n */
        if (list->id[i] != MISSING) ry_id_put(out, list->id[i]);
    return RENYI_OK;
}

renyi_status ry_byte_level_encode(const ry_bpe *b, ry_split split, const char *text, size_t n,
                                  ry_merge_list *scratch, ry_id_sink *out, renyi_error *err)
{
    for (size_t at = 0, end = 0, word; at < n; at += word) {
        if (at == end) end += part(split, text + at, n - at);
        word = gpt2_word(text + at, end - at);
        RY_TRY(encode_word(b, text + at, word, scratch, out, err));
    }
    return RENYI_OK;
}
