/* bpe_decode.c - from ids back to text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "base/utf8.h"
#include "text/bpe.h"

#include <string.h>

/* Bytes of the ids, as yet in any encoding. */
typedef struct raw {
    char *at;
    size_t n;
    int is_word_over; /* a blank before whatever comes next */
} raw;

/* A symbol as written in the file: letters that write bytes, perhaps the end of a word. */
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
        } else { /* no letter of the alphabet: as it is written */
            memcpy(r->at + r->n, s.at + i, step);
            r->n += step;
        }
    }
}

/* Room that the bytes of all ids need at most, a blank for each counted in. */
static renyi_status measure(const ry_bpe *b, const int32_t *ids, size_t n, size_t *room,
                            renyi_error *err)
{
    *room = 1;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= b->n_ids || !b->symbols[ids[i]].at)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "id %d, at place %zu, is not in the vocabulary of %u", ids[i], i,
                           b->n_ids);
        if (!ry_add_size(*room, b->symbols[ids[i]].n + 1, room))
            return ry_fail_nomem(err, SIZE_MAX);
    }
    return RENYI_OK;
}

/* Valid UTF-8 of any bytes, as much as fits with a NUL; the length of all of it. */
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
    size_t room, end = 0;
    while (end < n && ids[end] != (int32_t)b->eot) end++;
    RY_TRY(measure(b, ids, end, &room, err));
    raw r = {ry_alloc(&b->al, room, 1), 0, 0};
    if (!r.at) return ry_fail_nomem(err, room);
    for (size_t i = 0; i < end; i++)
        if (ids[i] != (int32_t)b->sot) put_symbol(&r, b->symbols[ids[i]]);
    const size_t all = put_text(&r, text, size);
    if (length) *length = all;
    ry_free(&b->al, r.at);
    return RENYI_OK;
}
