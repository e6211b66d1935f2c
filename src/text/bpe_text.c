/* bpe_text.c - from a text to ids: cleaned as CLIP was trained with it, split into words, merged.
 * The repair of wrongly decoded text (ftfy) that OpenAI's package does first is left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/bpe_split.h"
#include "text/html_entities.h"
#include "text/unicode.h"

#include <string.h>

/* Two arrays of characters, with room for all that cleaning does. */
typedef struct characters {
    uint32_t *text, *spare; /* [RY_COMPOSE_GROWTH * bytes] */
    size_t n;
} characters;

static renyi_status decode(characters *c, const char *text, size_t size, renyi_error *err)
{
    c->n = 0;
    for (size_t i = 0, step; i < size; i += step) {
        step = ry_utf8_get(text + i, size - i, &c->text[c->n]);
        if (c->text[c->n++] == RY_UTF8_BAD)
            return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)i,
                           "the text is not UTF-8: byte %zu, 0x%02x", i, (unsigned char)text[i]);
    }
    return RENYI_OK;
}

/* Python's str.strip() counts the separators 1C to 1F as blanks, its patterns do not. */
static int is_stripped(uint32_t c)
{
    return (c >= 0x1c && c <= 0x1f) || ry_unicode_class(c) & RY_SPACE;
}

/* Blanks in the middle need no care: words do not contain them. */
static void strip(characters *c)
{
    size_t first = 0;
    while (c->n && is_stripped(c->text[c->n - 1])) c->n--;
    while (first < c->n && is_stripped(c->text[first])) first++;
    c->n -= first;
    memmove(c->text, c->text + first, c->n * sizeof *c->text);
}

static void clean(characters *c)
{
    c->n = ry_html_unescape(c->text, c->n);
    c->n = ry_html_unescape(c->text, c->n); /* twice, as they did */
    c->n = ry_unicode_compose(c->text, c->n, c->spare);
    strip(c);
    c->n =
        ry_unicode_lower(c->text, c->n, c->spare); /* fits: what doubles here did not grow there */
    uint32_t *lower = c->spare;
    c->spare = c->text;
    c->text = lower;
}

static renyi_status encode_words(const ry_bpe *b, characters *c, ry_merge_list *scratch,
                                 ry_id_sink *out, renyi_error *err)
{
    char *bytes = (char *)c->spare; /* free by now, and four bytes a character */
    size_t at = 0, end;
    for (ry_word_kind kind; (kind = ry_bpe_next_word(c->text, c->n, &at, &end)); at = end) {
        if (kind != RY_WORD_TEXT) {
            ry_id_put(out, kind == RY_WORD_SOT ? b->sot : b->eot);
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
    const size_t room = RY_COMPOSE_GROWTH * (size + 1);
    uint32_t *block = ry_alloc(&b->al, room, 2 * sizeof *block);
    if (!block) return ry_fail_nomem(err, room * 2 * sizeof *block);
    characters c = {block, block + room, 0};
    renyi_status st = decode(&c, text, size, err);
    if (!st) {
        clean(&c);
        st = encode_words(b, &c, &scratch, out, err);
    }
    ry_merge_list_free(&scratch, &b->al);
    ry_free(&b->al, block);
    return st;
}
