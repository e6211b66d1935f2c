/* spm_encode.c - SentencePiece's tokenizers in use: special pieces divide a text into sections,
 * whose characters become pieces; ids become text again, one at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "text/spm.h"
#include "text/unicode.h"
#include "text/unigram.h"

#include <string.h>

#define UNKNOWN (UINT32_MAX - 1)      /* a character without a piece */
#define UNKNOWN_TEXT " \xe2\x81\x87 " /* as SentencePiece writes it */
#define BLANK_BYTES (sizeof RY_SPM_BLANK - 1)

typedef struct encoder {
    const ry_spm *s;
    char *text; /* [n] of a section, spaces as in pieces */
    size_t n, capacity;
    ry_buffer clean, mapped; /* the section after the steps before */
    ry_merge_list list;
    ry_unigram_node *nodes; /* [n_nodes] of a unigram model */
    size_t n_nodes;
    ry_id_sink *out;
} encoder;

/* ---- spaces -------------------------------------------------------------------------------- */

static void put_blank(encoder *e)
{
    memcpy(e->text + e->n, RY_SPM_BLANK, BLANK_BYTES);
    e->n += BLANK_BYTES;
}

static int is_blank_at(const char *text, size_t n)
{
    return n >= BLANK_BYTES && !memcmp(text, RY_SPM_BLANK, BLANK_BYTES);
}

/* A section with spaces as in pieces: three bytes for each and one space more. */
static renyi_status normalize_spaces(encoder *e, const char *text, size_t n, int has_prefix,
                                     renyi_error *err)
{
    const ry_spm *s = e->s;
    e->n = 0;
    if (!ry_reserve(&s->al, (void **)&e->text, &e->capacity, 0, BLANK_BYTES * (n + 1), 1))
        return ry_fail_nomem(err, BLANK_BYTES * (n + 1));
    for (; s->is_squeezed && n && *text == ' '; text++) n--;
    if (!n) return RENYI_OK;
    const int has_one = s->is_prefix_once && (*text == ' ' || is_blank_at(text, n));
    if (has_prefix && !has_one) put_blank(e);
    for (size_t i = 0; i < n; i++) {
        if (text[i] != ' ')
            e->text[e->n++] = text[i];
        else if (!s->is_squeezed || text[i - 1] != ' ') /* text[0] is no space then */
            put_blank(e);
    }
    while (s->is_squeezed && e->n >= BLANK_BYTES &&
           is_blank_at(e->text + e->n - BLANK_BYTES, BLANK_BYTES))
        e->n -= BLANK_BYTES;
    return RENYI_OK;
}

/* A section as its pieces are made of it: cleaned, characters rewritten, spaces marked. */
static renyi_status prepare(encoder *e, const char *text, size_t n, int has_prefix,
                            renyi_error *err)
{
    const ry_spm *s = e->s;
    e->clean.size = e->mapped.size = 0;
    if (s->clean == RY_CLEAN_LOWER || s->clean == RY_CLEAN_SIGLIP) {
        RY_TRY(ry_clean_text(s->clean, text, n, &e->clean, err));
        text = e->clean.size ? e->clean.bytes : "";
        n = e->clean.size;
    }
    if (s->map.n_units) {
        RY_TRY(ry_charsmap_apply(&s->map, text, n, &e->mapped, err));
        text = e->mapped.size ? e->mapped.bytes : "";
        n = e->mapped.size;
    }
    if (s->clean == RY_CLEAN_SIGLIP && n && *text == ' ') has_prefix = 1; /* not a leading one */
    return normalize_spaces(e, text, n, has_prefix, err);
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* The id of a text as a piece, or UNKNOWN. */
static uint32_t piece_of(const ry_spm *s, const char *text, size_t n)
{
    const uint32_t id = ry_bpe_find(s->bpe, (ry_symbol){text, n});
    if (id == RY_SPM_NONE) return UNKNOWN;
    return s->kinds[id] == RY_PIECE_TEXT || s->kinds[id] == RY_PIECE_WHOLE ? id : UNKNOWN;
}

static int is_whole(const ry_spm *s, uint32_t id)
{
    return id != UNKNOWN && s->kinds[id] == RY_PIECE_WHOLE;
}

static size_t end_of(const encoder *e, uint32_t place)
{
    const uint32_t behind = e->list.behind[place];
    return behind == RY_NOWHERE ? e->n : behind;
}

/* SentencePiece's rule: any two symbols whose joined text is a piece. */
static int join_by_text(const void *self, const ry_merge_list *l, uint32_t left, uint32_t right,
                        ry_join *out)
{
    const encoder *e = self;
    const ry_spm *s = e->s;
    if (is_whole(s, l->id[left]) || is_whole(s, l->id[right])) return 0;
    const uint32_t id = piece_of(s, e->text + left, end_of(e, right) - left);
    if (id == UNKNOWN) return 0;
    *out = (ry_join){s->ranks[id], id};
    return 1;
}

static void put_symbols(encoder *e)
{
    const ry_spm *s = e->s;
    for (size_t i = 0, step; i < e->n; i += step) {
        uint32_t c, id = ry_piece_set_match(&s->whole, s->bpe, e->text + i, e->n - i);
        if (id != RY_SPM_NONE) {
            step = s->bpe->symbols[id].n;
        } else {
            step = ry_utf8_get(e->text + i, e->n - i, &c);
            id = piece_of(s, e->text + i, step);
        }
        ry_merge_list_put(&e->list, (uint32_t)i, id);
    }
}

static void put_ids(encoder *e)
{
    const ry_spm *s = e->s;
    int was_unknown = 0;
    for (uint32_t at = 0; at < e->n; at = e->list.behind[at]) {
        const int is_unknown = e->list.id[at] == UNKNOWN;
        if (!is_unknown) {
            ry_id_put(e->out, e->list.id[at]);
        } else if (s->has_bytes) {
            for (size_t i = at; i < end_of(e, at); i++)
                ry_id_put(e->out, s->byte_id[(unsigned char)e->text[i]]);
        } else if (!was_unknown || !s->is_unk_fused) {
            ry_id_put(e->out, (uint32_t)s->unk);
        }
        was_unknown = is_unknown;
    }
}

/* The pieces of a unigram model, as a list that needs no joining. */
static renyi_status divide(encoder *e, renyi_error *err)
{
    if (!ry_reserve(&e->s->al, (void **)&e->nodes, &e->n_nodes, 0, e->n + 1, sizeof *e->nodes))
        return ry_fail_nomem(err, (e->n + 1) * sizeof *e->nodes);
    ry_unigram_divide(e->s, e->text, e->n, e->nodes, e->list.behind, e->list.id, UNKNOWN);
    return RENYI_OK;
}

static int has_prefix(const ry_spm *s, int is_first)
{
    return s->prefix == RY_PREFIX_ALWAYS || (s->prefix == RY_PREFIX_FIRST && is_first);
}

static renyi_status encode_section(encoder *e, const char *text, size_t n, int is_first,
                                   renyi_error *err)
{
    const ry_spm *s = e->s;
    const ry_merge_rule pieces = {join_by_text, e}, merges = {ry_bpe_rule, s->bpe};
    if (s->split) return ry_byte_level_encode(s->bpe, s->split, text, n, &e->list, e->out, err);
    RY_TRY(prepare(e, text, n, has_prefix(s, is_first), err));
    if (!e->n) return RENYI_OK;
    RY_TRY(ry_merge_list_reset(&e->list, e->n, &s->al, err));
    if (s->scores) {
        RY_TRY(divide(e, err));
    } else {
        put_symbols(e);
        ry_merge_list_run(&e->list, s->ranks ? &pieces : &merges);
    }
    put_ids(e);
    return RENYI_OK;
}

/* ---- sections ------------------------------------------------------------------------------ */

/* Bytes of the spaces that the text begins with. */
static size_t leading_spaces(const char *text, size_t n)
{
    size_t i = 0;
    for (uint32_t c; i < n;) {
        const size_t step = ry_utf8_get(text + i, n - i, &c);
        if (!(ry_unicode_class(c) & RY_SPACE)) break;
        i += step;
    }
    return i;
}

/* Its length without the spaces at its end. */
static size_t without_trailing_spaces(const char *text, size_t n)
{
    size_t end = 0;
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t c;
        step = ry_utf8_get(text + i, n - i, &c);
        if (!(ry_unicode_class(c) & RY_SPACE)) end = i + step;
    }
    return end;
}

static renyi_status encode_sections(encoder *e, const char *text, size_t size, int is_plain,
                                    int is_inner, renyi_error *err)
{
    const ry_spm *s = e->s;
    size_t begin = 0, at = 0;
    while (!is_plain && at < size) {
        const uint32_t id = ry_piece_set_match(&s->special, s->bpe, text + at, size - at);
        if (id == RY_SPM_NONE) {
            at++;
            continue;
        }
        size_t n = at - begin;
        if (s->strips[id] & RY_STRIP_LEFT) n = without_trailing_spaces(text + begin, n);
        RY_TRY(encode_section(e, text + begin, n, !begin && !is_inner, err));
        ry_id_put(e->out, id);
        at += s->bpe->symbols[id].n;
        if (s->strips[id] & RY_STRIP_RIGHT) at += leading_spaces(text + at, size - at);
        begin = at;
    }
    return encode_section(e, text + begin, size - begin, !begin && !is_inner, err);
}

static void free_encoder(encoder *e)
{
    ry_merge_list_free(&e->list, &e->s->al);
    ry_buffer_free(&e->clean);
    ry_buffer_free(&e->mapped);
    ry_free(&e->s->al, e->nodes);
    ry_free(&e->s->al, e->text);
}

renyi_status ry_spm_encode(const ry_spm *s, const char *text, size_t size, uint32_t flags,
                           int is_inner, ry_id_sink *out, renyi_error *err)
{
    if (size > RENYI_LM_TEXT_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a text of %zu bytes; at most %d accepted", size,
                       RENYI_LM_TEXT_MAX);
    const size_t valid = ry_utf8_valid(text, size);
    if (valid < size)
        return ry_fail(err, RENYI_ERR_FORMAT, (int64_t)valid,
                       "the text is not UTF-8: byte %zu, 0x%02x", valid,
                       (unsigned char)text[valid]);
    encoder e = {.s = s, .out = out, .clean = {.al = &s->al}, .mapped = {.al = &s->al}};
    ry_buffer whole = {.al = &s->al};
    renyi_status st = RENYI_OK;
    if (s->clean == RY_CLEAN_OPEN_CLIP) { /* before special pieces are searched */
        st = ry_clean_text(s->clean, text, size, &whole, err);
        text = whole.size ? whole.bytes : "";
        size = whole.size;
    }
    if (!st) st = encode_sections(&e, text, size, (flags & RENYI_LM_PLAIN) != 0, is_inner, err);
    free_encoder(&e);
    ry_buffer_free(&whole);
    return st;
}

/* ---- text of ids ----------------------------------------------------------------------------- */

/* Whether these bytes are the start of a character. */
static int is_partial(const uint8_t *bytes, size_t n)
{
    uint32_t c;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4) return 0;
    return ry_utf8_get((const char *)bytes, n, &c) == n && c == RY_UTF8_BAD;
}

/* Takes the first character of the waiting bytes, or one byte as U+FFFD. */
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

/* At most three bytes wait, so there is space for one more. */
static size_t put_byte(renyi_lm_stream *state, uint8_t byte, char *text)
{
    size_t n = 0;
    state->waiting[state->n_waiting++] = byte;
    while (state->n_waiting && !is_partial(state->waiting, state->n_waiting))
        n += take_first(state, text + n);
    state->has_begun = 1;
    return n;
}

/* The text of a piece, without the space at the start of a text. */
static size_t put_piece(const ry_spm *s, renyi_lm_stream *state, ry_symbol piece, char *text)
{
    size_t i = 0, n = 0;
    const int is_dropped = !state->has_begun && (s->prefix != RY_PREFIX_NEVER || s->is_squeezed);
    if (is_dropped && piece.n >= BLANK_BYTES && !memcmp(piece.at, RY_SPM_BLANK, BLANK_BYTES)) {
        i = BLANK_BYTES;
        state->has_begun = !s->is_squeezed; /* then all spaces are dropped */
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

/* The bytes of a byte-level symbol, which is written in letters. */
static size_t put_letters(renyi_lm_stream *state, ry_symbol symbol, char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < symbol.n;) {
        uint32_t letter;
        i += ry_utf8_get(symbol.at + i, symbol.n - i, &letter);
        n += put_byte(state, (uint8_t)ry_bpe_byte(letter), text + n);
    }
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
    if (s->split && kind == RY_PIECE_TEXT) return put_letters(state, piece, text);
    const size_t n = ry_spm_flush(state, text);
    if (kind != RY_PIECE_CONTROL && kind != RY_PIECE_UNKNOWN)
        return n + put_piece(s, state, piece, text + n);
    if (state->flags & RENYI_LM_SPECIAL) return n + put_name(state, piece.at, piece.n, text + n);
    if (kind == RY_PIECE_CONTROL) return n;
    return n + put_name(state, UNKNOWN_TEXT, sizeof UNKNOWN_TEXT - 1, text + n);
}
