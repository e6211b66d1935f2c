/* spm_decode.c - from ids back to text, one at a time: bytes wait until they are a character.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "text/spm.h"

#include <string.h>

#define UNKNOWN_TEXT " \xe2\x81\x87 " /* as SentencePiece writes it */
#define BLANK_BYTES (sizeof RY_SPM_BLANK - 1)

/* Could more bytes make a character of these? */
static int is_beginning(const uint8_t *bytes, size_t n)
{
    uint32_t c;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4) return 0;
    return ry_utf8_get((const char *)bytes, n, &c) == n && c == RY_UTF8_BAD;
}

/* The first of the bytes that wait: a character, or U+FFFD for one byte. */
static size_t take_first(renyi_lm_stream *state, char *text)
{
    uint32_t c;
    size_t step = ry_utf8_get((const char *)state->waiting, state->n_waiting, &c);
    if (c == RY_UTF8_BAD) {
        c = RY_REPLACEMENT;
        step = 1;
    }
    state->n_waiting = (uint8_t)(state->n_waiting - step);
    memmove(state->waiting, state->waiting + step, state->n_waiting);
    return ry_utf8_put(text, c);
}

size_t ry_spm_flush(renyi_lm_stream *state, char *text)
{
    size_t n = 0;
    while (state->n_waiting) n += take_first(state, text + n);
    return n;
}

/* At most three wait, so there is room for one more. */
static size_t put_byte(renyi_lm_stream *state, uint8_t byte, char *text)
{
    size_t n = 0;
    state->waiting[state->n_waiting++] = byte;
    while (state->n_waiting && !is_beginning(state->waiting, state->n_waiting))
        n += take_first(state, text + n);
    state->has_begun = 1;
    return n;
}

/* A piece's text; the blank that a text begins with is not part of it. */
static size_t put_piece(const ry_spm *s, renyi_lm_stream *state, ry_symbol piece, char *text)
{
    size_t i = 0, n = 0;
    const int is_dropped = !state->has_begun && (s->prefix != RY_PREFIX_NEVER || s->is_squeezed);
    if (is_dropped && piece.n >= BLANK_BYTES && !memcmp(piece.at, RY_SPM_BLANK, BLANK_BYTES)) {
        i = BLANK_BYTES;
        state->has_begun = !s->is_squeezed; /* then all of them */
    }
    while (i < piece.n) {
        const int is_blank =
            piece.n - i >= BLANK_BYTES && !memcmp(piece.at + i, RY_SPM_BLANK, BLANK_BYTES);
        text[n++] = is_blank ? ' ' : piece.at[i];
        i += is_blank ? BLANK_BYTES : 1;
    }
    if (n) state->has_begun = 1;
    return n;
}

static size_t put_name(renyi_lm_stream *state, const char *name, size_t n, char *text)
{
    memcpy(text, name, n);
    state->has_begun = 1;
    return n;
}

size_t ry_spm_put(const ry_spm *s, renyi_lm_stream *state, int32_t id,
                  char text[RENYI_LM_STREAM_ROOM], int *is_bad)
{
    *is_bad = id < 0 || (uint32_t)id >= s->bpe->n_ids || !s->bpe->symbols[id].at;
    if (*is_bad) return 0;
    const ry_symbol piece = s->bpe->symbols[id];
    const uint8_t kind = s->kinds[id];
    if (kind == RY_PIECE_BYTE) return put_byte(state, (uint8_t)ry_spm_byte(piece), text);
    const size_t n = ry_spm_flush(state, text);
    if (kind != RY_PIECE_CONTROL && kind != RY_PIECE_UNKNOWN)
        return n + put_piece(s, state, piece, text + n);
    if (state->flags & RENYI_LM_SPECIAL) return n + put_name(state, piece.at, piece.n, text + n);
    if (kind == RY_PIECE_CONTROL) return n;
    return n + put_name(state, UNKNOWN_TEXT, sizeof UNKNOWN_TEXT - 1, text + n);
}
