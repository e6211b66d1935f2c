/* text_clean.c - cleans a text before it is divided into tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/text_clean.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "text/html_entities.h"
#include "text/unicode.h"

#include <string.h>

enum { BLANK = 0x2581 }; /* a space in a piece */

/* ---- characters ---------------------------------------------------------------------------- */

renyi_status ry_characters_read(ry_characters *out, const char *text, size_t size,
                                const renyi_allocator *al, renyi_error *err)
{
    const size_t capacity = RY_COMPOSE_GROWTH * (size + 1);
    uint32_t *block = ry_alloc(al, capacity, 2 * sizeof *block);
    *out = (ry_characters){block, block ? block + capacity : NULL, 0, block};
    if (!block) return ry_fail_nomem(err, capacity * 2 * sizeof *block);
    for (size_t i = 0, step; i < size; i += step) {
        step = ry_utf8_get(text + i, size - i, &out->text[out->n]);
        if (out->text[out->n++] == RY_UTF8_BAD)
            return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)i,
                           "the text is not UTF-8: byte %zu, 0x%02x", i, (unsigned char)text[i]);
    }
    return RENYI_OK;
}

void ry_characters_free(ry_characters *c, const renyi_allocator *al)
{
    ry_free(al, c->block);
    *c = (ry_characters){0};
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Python's str.strip() removes the separators 1C to 1F too. */
static int is_stripped(uint32_t c)
{
    return (c >= 0x1c && c <= 0x1f) || ry_unicode_class(c) & RY_SPACE;
}

static void strip_ends(ry_characters *c)
{
    size_t first = 0;
    while (c->n && is_stripped(c->text[c->n - 1])) c->n--;
    while (first < c->n && is_stripped(c->text[first])) first++;
    c->n -= first;
    memmove(c->text, c->text + first, c->n * sizeof *c->text);
}

/* Spaces in a row become one, none at the ends. */
static void squeeze_spaces(ry_characters *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!is_stripped(c->text[i]))
            c->text[n++] = c->text[i];
        else if (n && c->text[n - 1] != ' ')
            c->text[n++] = ' ';
    }
    while (n && c->text[n - 1] == ' ') n--;
    c->n = n;
}

static int is_punctuation(uint32_t c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static void drop_punctuation(ry_characters *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!is_punctuation(c->text[i])) c->text[n++] = c->text[i];
    c->n = n;
}

static void replace_all(ry_characters *c, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->text[i] == from) c->text[i] = to;
}

/* It fits: characters that double here have not grown before. */
static void lower(ry_characters *c, int has_final_sigma)
{
    c->n = ry_unicode_lower(c->text, c->n, c->spare, has_final_sigma);
    uint32_t *text = c->spare;
    c->spare = c->text;
    c->text = text;
}

static void compose(ry_characters *c)
{
    c->n = ry_html_unescape(c->text, c->n);
    c->n = ry_html_unescape(c->text, c->n); /* twice, as in OpenAI's package */
    c->n = ry_unicode_compose(c->text, c->n, c->spare);
}

/* ---- cleaning ------------------------------------------------------------------------------ */

/* Spaces inside need no care: words do not contain them. */
void ry_clean_clip(ry_characters *c)
{
    compose(c);
    strip_ends(c);
    lower(c, 1);
}

static void clean(ry_characters *c, ry_clean how)
{
    switch (how) {
    case RY_CLEAN_NONE: break;
    case RY_CLEAN_LOWER: lower(c, 0); break;
    case RY_CLEAN_SIGLIP:
        replace_all(c, BLANK, ' ');
        lower(c, 1);
        drop_punctuation(c);
        squeeze_spaces(c);
        break;
    case RY_CLEAN_OPEN_CLIP:
        compose(c);
        replace_all(c, '_', ' ');
        drop_punctuation(c);
        lower(c, 1);
        squeeze_spaces(c);
        break;
    }
}

renyi_status ry_clean_text(ry_clean how, const char *text, size_t size, ry_buffer *out,
                           renyi_error *err)
{
    ry_characters c;
    char utf8[4];
    const renyi_status st = ry_characters_read(&c, text, size, out->al, err);
    if (!st) {
        clean(&c, how);
        for (size_t i = 0; i < c.n; i++) ry_buffer_put(out, utf8, ry_utf8_put(utf8, c.text[i]));
    }
    ry_characters_free(&c, out->al);
    if (st) return st;
    return out->failed ? ry_fail_nomem(err, out->wanted) : RENYI_OK;
}
