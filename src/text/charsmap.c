/* charsmap.c - reads SentencePiece's table that rewrites characters, and applies it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/charsmap.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"

#include <string.h>

/* ---- units of the double array ------------------------------------------------------------- */

static int has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
static uint32_t value_of(uint32_t unit) { return unit & 0x7fffffffu; }
static uint32_t label_of(uint32_t unit) { return unit & (1u << 31 | 0xffu); }
static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6); }

/* ---- reading ------------------------------------------------------------------------------- */

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Every text must be UTF-8, so that the result is. */
static renyi_status check_texts(const ry_charsmap *m, renyi_error *err)
{
    if (!m->n_texts || m->texts[m->n_texts - 1])
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "the table of characters (precompiled_charsmap) does not end with a text");
    if (ry_utf8_valid(m->texts, m->n_texts) == m->n_texts) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "the table of characters (precompiled_charsmap) has a text that is not UTF-8");
}

static renyi_status fill(ry_charsmap *out, const uint8_t *bytes, size_t size, size_t trie,
                         const renyi_allocator *al, renyi_error *err)
{
    out->n_units = trie / 4;
    out->n_texts = size - 4 - trie;
    out->units = ry_alloc(al, out->n_units, sizeof *out->units);
    out->texts = ry_alloc(al, out->n_texts, 1);
    if (!out->units || !out->texts) return ry_fail_nomem(err, size);
    for (size_t i = 0; i < out->n_units; i++) out->units[i] = read_u32(bytes + 4 + 4 * i);
    memcpy(out->texts, bytes + 4 + trie, out->n_texts);
    return check_texts(out, err);
}

renyi_status ry_charsmap_read(ry_charsmap *out, const void *bytes, size_t size,
                              const renyi_allocator *al, renyi_error *err)
{
    *out = (ry_charsmap){0};
    if (!size) return RENYI_OK;
    const size_t trie = size >= 4 ? read_u32(bytes) : 0;
    if (!trie || trie % 4 || trie > size - 4)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "the table of characters (precompiled_charsmap) has %zu bytes, its trie "
                       "%zu",
                       size, trie);
    const renyi_status st = fill(out, bytes, size, trie, al, err);
    if (st) ry_charsmap_free(out, al);
    return st;
}

void ry_charsmap_free(ry_charsmap *m, const renyi_allocator *al)
{
    ry_free(al, m->units);
    ry_free(al, m->texts);
    *m = (ry_charsmap){0};
}

/* ---- rewriting ----------------------------------------------------------------------------- */

/* The length of the longest sequence that text [n] begins with, 0 = none, and its new text. A
 * damaged trie may lead anywhere: every step is checked. */
static size_t match(const ry_charsmap *m, const char *text, size_t n, const char **to)
{
    enum { LONGEST = 256 }; /* bytes of a sequence; those of real tables have less than 20 */
    size_t length = 0, at = offset_of(m->units[0]);
    for (size_t i = 0; i < n && i < LONGEST; i++) {
        const uint32_t byte = (unsigned char)text[i];
        at ^= byte;
        if (at >= m->n_units || label_of(m->units[at]) != byte) break;
        const int is_end = has_value(m->units[at]);
        at ^= offset_of(m->units[at]);
        if (at >= m->n_units) break;
        if (!is_end) continue;
        const uint32_t value = value_of(m->units[at]);
        if (value >= m->n_texts) break;
        length = i + 1;
        *to = m->texts + value;
    }
    return length;
}

renyi_status ry_charsmap_apply(const ry_charsmap *m, const char *text, size_t n, ry_buffer *out,
                               renyi_error *err)
{
    const size_t before = out->size;
    for (size_t i = 0, step; i < n; i += step) {
        const char *to = NULL;
        uint32_t c;
        step = m->n_units ? match(m, text + i, n - i, &to) : 0;
        if (step) {
            ry_buffer_text(out, to);
        } else {
            step = ry_utf8_get(text + i, n - i, &c);
            ry_buffer_put(out, text + i, step);
        }
        if (out->size - before > RY_CHARSMAP_MOST)
            return ry_fail(err, RENYI_ERR_LIMIT, -1,
                           "the text has more than %d bytes after its characters were rewritten",
                           RY_CHARSMAP_MOST);
    }
    return out->failed ? ry_fail_nomem(err, out->wanted) : RENYI_OK;
}
