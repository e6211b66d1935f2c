/* unigram.c - divides a text into the pieces with the largest sum of scores.
 *
 * The arithmetic is that of the program that wrote the file, so that texts with nearly equal sums
 * are divided in the same way: SentencePiece adds in floats, Hugging Face's tokenizers in doubles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/unigram.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"

#include <float.h>
#include <string.h>

#define UNKNOWN_PENALTY 10.0 /* below the lowest score, as in SentencePiece */
#define NOWHERE UINT32_MAX

/* ---- the index ----------------------------------------------------------------------------- */

/* A text that is split before every space has no piece with a space inside. */
static int is_matched(const ry_spm *s, uint32_t id)
{
    const ry_symbol text = s->bpe->symbols[id];
    const size_t blank = sizeof RY_SPM_BLANK - 1;
    if (!text.at || (s->kinds[id] != RY_PIECE_TEXT && s->kinds[id] != RY_PIECE_WHOLE)) return 0;
    for (size_t i = 1; s->is_split && i + blank <= text.n; i++)
        if (!memcmp(text.at + i, RY_SPM_BLANK, blank)) return 0;
    return 1;
}

renyi_status ry_unigram_index(ry_spm *s, renyi_error *err)
{
    const uint32_t n = s->bpe->n_ids;
    uint8_t *marks = ry_calloc(&s->al, n, 1);
    if (!marks) return ry_fail_nomem(err, n);
    s->lowest = DBL_MAX;
    s->highest = -DBL_MAX;
    for (uint32_t id = 0; id < n; id++) {
        marks[id] = (uint8_t)is_matched(s, id);
        if (!marks[id] || s->kinds[id] != RY_PIECE_TEXT) continue;
        if (s->scores[id] < s->lowest) s->lowest = s->scores[id];
        if (s->scores[id] > s->highest) s->highest = s->scores[id];
    }
    if (s->lowest > s->highest) s->lowest = s->highest = 0.0; /* no pieces of text */
    const renyi_status st = ry_piece_set_collect(&s->matched, s, marks, 1, err);
    ry_free(&s->al, marks);
    return st;
}

/* ---- the best way -------------------------------------------------------------------------- */

typedef struct search {
    const ry_spm *s;
    const char *text;
    size_t n;
    ry_unigram_node *nodes;
} search;

/* A piece from `begin` to `end`; the earlier of two equal ways stays. */
static void offer(const search *v, size_t begin, size_t end, uint32_t id, double score)
{
    ry_unigram_node *to = &v->nodes[end];
    const double sum = score + v->nodes[begin].score;
    if (to->begin != NOWHERE && !(sum > to->score)) return;
    *to = (ry_unigram_node){v->s->sums_in_floats ? (double)(float)sum : sum, (uint32_t)begin, id};
}

static double score_of(const ry_spm *s, uint32_t id, size_t length)
{
    /* a piece that the trainer was told to keep whole */
    if (s->kinds[id] == RY_PIECE_WHOLE) return (double)length * s->highest - 0.1;
    return s->scores[id];
}

/* Offers all pieces that begin at `begin`; 1 if the character there, of `step` bytes, is one. */
static int offer_pieces(const search *v, size_t begin, size_t step)
{
    const ry_spm *s = v->s;
    ry_piece_range in = {0, s->matched.n};
    int is_known = 0;
    for (size_t d = 0; begin + d < v->n && in.low < in.high; d++) {
        const unsigned char byte = (unsigned char)v->text[begin + d];
        const uint32_t id = ry_piece_set_step(&s->matched, s->bpe, &in, d, byte);
        if (id == RY_SPM_NONE) continue;
        offer(v, begin, begin + d + 1, id, score_of(s, id, d + 1));
        is_known |= d + 1 == step;
    }
    return is_known;
}

void ry_unigram_divide(const ry_spm *s, const char *text, size_t n, ry_unigram_node *nodes,
                       uint32_t *ends, uint32_t *ids, uint32_t unknown)
{
    const search v = {s, text, n, nodes};
    nodes[0] = (ry_unigram_node){0.0, 0, unknown};
    for (size_t i = 1; i <= n; i++) nodes[i] = (ry_unigram_node){0.0, NOWHERE, unknown};
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t c;
        step = ry_utf8_get(text + i, n - i, &c);
        if (!offer_pieces(&v, i, step))
            offer(&v, i, i + step, unknown, s->lowest - UNKNOWN_PENALTY);
    }
    for (size_t end = n; end; end = nodes[end].begin) {
        ends[nodes[end].begin] = (uint32_t)end;
        ids[nodes[end].begin] = nodes[end].id;
    }
}
