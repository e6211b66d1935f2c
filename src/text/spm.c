/* spm.c - the tables of SentencePiece's tokenizers: pieces with kinds and ranks, and pieces
 * searched in texts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/spm.h"

#include "base/alloc.h"
#include "base/status.h"
#include "text/unigram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

renyi_status ry_spm_new(ry_spm **out, ry_bpe *bpe, const char *kind, renyi_error *err)
{
    const renyi_allocator al = bpe->al;
    const uint32_t n = bpe->n_ids;
    *out = NULL;
    ry_spm *s = ry_calloc(&al, 1, sizeof *s);
    if (!s) {
        ry_bpe_free(bpe);
        return ry_fail_nomem(err, sizeof *s);
    }
    *s = (ry_spm){.al = al, .bpe = bpe, .kind = kind, .bos = -1, .eos = -1, .unk = -1, .pad = -1};
    s->kinds = ry_calloc(&al, n, sizeof *s->kinds);
    s->strips = ry_calloc(&al, n, sizeof *s->strips);
    if (!s->kinds || !s->strips) {
        ry_spm_free(s);
        return ry_fail_nomem(err, n);
    }
    *out = s;
    return RENYI_OK;
}

void ry_spm_free(ry_spm *s)
{
    if (!s) return;
    const renyi_allocator al = s->al;
    ry_bpe_free(s->bpe);
    ry_free(&al, s->ranks);
    ry_free(&al, s->kinds);
    ry_free(&al, s->strips);
    ry_free(&al, s->special.ids);
    ry_free(&al, s->whole.ids);
    ry_free(&al, s->scores);
    ry_free(&al, s->matched.ids);
    ry_charsmap_free(&s->map, &al);
    ry_free(&al, s);
}

/* ---- ranks --------------------------------------------------------------------------------- */

typedef struct scored {
    float score;
    uint32_t id;
} scored;

static int better_first(const void *a, const void *b)
{
    const float x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return (x < y) - (x > y);
}

renyi_status ry_spm_rank(ry_spm *s, const float *scores, renyi_error *err)
{
    const uint32_t n = s->bpe->n_ids;
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(scores[i]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "the score of piece %u is not a number", i);
    scored *order = ry_alloc(&s->al, n, sizeof *order);
    s->ranks = ry_alloc(&s->al, n, sizeof *s->ranks);
    if (!order || !s->ranks) {
        ry_free(&s->al, order);
        return ry_fail_nomem(err, n * sizeof *order);
    }
    for (uint32_t i = 0; i < n; i++) order[i] = (scored){scores[i], i};
    qsort(order, n, sizeof *order, better_first);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i && order[i].score < order[i - 1].score) rank = i;
        s->ranks[order[i].id] = rank;
    }
    ry_free(&s->al, order);
    return RENYI_OK;
}

/* ---- sets of pieces ------------------------------------------------------------------------ */

typedef struct entry {
    ry_symbol text;
    uint32_t id;
} entry;

static int by_bytes(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int order = memcmp(x->text.at, y->text.at, x->text.n < y->text.n ? x->text.n : y->text.n);
    if (order) return order;
    if (x->text.n != y->text.n) return x->text.n < y->text.n ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

renyi_status ry_piece_set_collect(ry_piece_set *set, const ry_spm *s, const uint8_t *marks,
                                  uint8_t mark, renyi_error *err)
{
    const uint32_t n_ids = s->bpe->n_ids;
    entry *entries = ry_alloc(&s->al, n_ids, sizeof *entries);
    uint32_t n = 0;
    if (!entries) return ry_fail_nomem(err, n_ids * sizeof *entries);
    for (uint32_t i = 0; i < n_ids; i++)
        if (marks[i] == mark && s->bpe->symbols[i].at)
            entries[n++] = (entry){s->bpe->symbols[i], i};
    set->ids = ry_alloc(&s->al, n, sizeof *set->ids);
    if (!set->ids) {
        ry_free(&s->al, entries);
        return ry_fail_nomem(err, n * sizeof *set->ids);
    }
    if (n) qsort(entries, n, sizeof *entries, by_bytes);
    for (set->n = 0; set->n < n; set->n++) {
        set->ids[set->n] = entries[set->n].id;
        set->begins[(unsigned char)entries[set->n].text.at[0]] = 1;
    }
    ry_free(&s->al, entries);
    return RENYI_OK;
}

/* The first of ids[low .. high-1] whose byte `depth` is at least `byte`; a piece that ends there
 * comes first. */
static uint32_t first_from(const ry_piece_set *set, const ry_bpe *b, ry_piece_range in,
                           size_t depth, int byte)
{
    while (in.low < in.high) {
        const uint32_t middle = in.low + (in.high - in.low) / 2;
        const ry_symbol text = b->symbols[set->ids[middle]];
        const int is = text.n > depth ? (unsigned char)text.at[depth] : -1;
        if (is < byte)
            in.low = middle + 1;
        else
            in.high = middle;
    }
    return in.low;
}

uint32_t ry_piece_set_step(const ry_piece_set *set, const ry_bpe *b, ry_piece_range *in,
                           size_t depth, unsigned char byte)
{
    in->low = first_from(set, b, *in, depth, byte);
    in->high = first_from(set, b, *in, depth, byte + 1);
    if (in->low == in->high) return RY_SPM_NONE;
    const uint32_t id = set->ids[in->low];
    return b->symbols[id].n == depth + 1 ? id : RY_SPM_NONE;
}

uint32_t ry_piece_set_match(const ry_piece_set *set, const ry_bpe *b, const char *text, size_t n)
{
    ry_piece_range in = {0, set->begins[(unsigned char)text[0]] ? set->n : 0};
    uint32_t longest = RY_SPM_NONE;
    for (size_t depth = 0; depth < n && in.low < in.high; depth++) {
        const uint32_t id = ry_piece_set_step(set, b, &in, depth, (unsigned char)text[depth]);
        if (id != RY_SPM_NONE) longest = id;
    }
    return longest;
}

/* ---- bytes --------------------------------------------------------------------------------- */

int ry_spm_byte(ry_symbol piece)
{
    static const char digits[] = "0123456789ABCDEF";
    if (piece.n != 6 || memcmp(piece.at, "<0x", 3) != 0 || piece.at[5] != '>') return -1;
    const char *high = memchr(digits, piece.at[3], 16), *low = memchr(digits, piece.at[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static renyi_status find_bytes(ry_spm *s, renyi_error *err)
{
    memset(s->byte_id, 0xff, sizeof s->byte_id); /* RY_SPM_NONE */
    for (uint32_t id = 0; id < s->bpe->n_ids; id++) {
        const int byte = s->bpe->symbols[id].at ? ry_spm_byte(s->bpe->symbols[id]) : -1;
        if (byte < 0) continue;
        s->byte_id[byte] = id;
        s->kinds[id] = RY_PIECE_BYTE;
    }
    for (unsigned byte = 0; byte < 256; byte++)
        if (s->byte_id[byte] == RY_SPM_NONE)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "characters without a piece become bytes, but there is no piece "
                           "'<0x%02X>'",
                           byte);
    return RENYI_OK;
}

renyi_status ry_spm_finish(ry_spm *s, const uint8_t *is_special, renyi_error *err)
{
    const uint32_t n = s->bpe->n_ids;
    if (s->has_bytes) RY_TRY(find_bytes(s, err));
    if (!s->has_bytes && s->unk < 0 && !s->split)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "neither bytes nor an unknown piece for characters without a piece");
    uint8_t *marks = ry_calloc(&s->al, n, 1);
    if (!marks) return ry_fail_nomem(err, n);
    for (uint32_t i = 0; i < n; i++)
        marks[i] = s->kinds[i] == RY_PIECE_CONTROL || s->kinds[i] == RY_PIECE_UNKNOWN ||
                   (is_special && is_special[i]);
    renyi_status st = ry_piece_set_collect(&s->special, s, marks, 1, err);
    ry_free(&s->al, marks);
    if (!st && s->scores) st = ry_unigram_index(s, err);
    if (!st) st = ry_piece_set_collect(&s->whole, s, s->kinds, RY_PIECE_WHOLE, err);
    return st;
}
