/* unigram_json.c - the tables of a tokenizer.json of type Unigram: pieces with scores.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "text/unigram.h"

#include <math.h>
#include <stdio.h>

/* "vocab": [["<pad>", 0.0], ["</s>", 0.0], ...]; the id is the position. */
static renyi_status add_piece(ry_spm *s, const json_t *entry, uint32_t id, renyi_error *err)
{
    const json_t *piece = json_array_get(entry, 0), *score = json_array_get(entry, 1);
    if (json_array_size(entry) != 2 || !json_is_string(piece) || !json_is_number(score) ||
        !isfinite(json_number_value(score)))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "a piece and its score expected");
    s->scores[id] = json_number_value(score);
    const ry_symbol text = {json_string_value(piece), json_string_length(piece)};
    return ry_bpe_add(s->bpe, text, id, err);
}

static renyi_status add_pieces(ry_spm *s, const json_t *vocab, const char *what, renyi_error *err)
{
    for (uint32_t id = 0; id < json_array_size(vocab); id++) {
        const renyi_status st = add_piece(s, json_array_get(vocab, id), id, err);
        if (!st) continue;
        char where[300];
        snprintf(where, sizeof where, "%.240s: \"vocab\", entry %u", what, id);
        return ry_fail_in(err, st, where);
    }
    return RENYI_OK;
}

renyi_status ry_unigram_read_tables(ry_spm **out, const json_t *root, const char *what,
                                    const renyi_allocator *al, renyi_error *err)
{
    const json_t *model = ry_json_object(root, "model"), *vocab = json_object_get(model, "vocab");
    const json_t *added = json_object_get(root, "added_tokens");
    const size_t n = json_array_size(vocab);
    uint32_t n_ids = n > RY_BPE_MAX_IDS ? (uint32_t)RY_BPE_MAX_IDS + 1 : (uint32_t)n;
    ry_bpe *bpe = NULL;
    *out = NULL;
    if (!n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: \"model\" with \"vocab\" (an array of pieces and scores) expected",
                       what);
    RY_TRY(ry_bpe_add_tokens(NULL, added, what, &n_ids, err));
    renyi_status st = ry_bpe_new(&bpe, n_ids, 0, al, err);
    if (st) return ry_fail_in(err, st, what);
    RY_TRY(ry_spm_new(out, bpe, "tokenizer.json", err));
    ry_spm *s = *out;
    s->scores = ry_calloc(&s->al, n_ids, sizeof *s->scores);
    if (!s->scores) st = ry_fail_nomem(err, n_ids * sizeof *s->scores);
    if (!st) st = add_pieces(s, vocab, what, err);
    if (!st) st = ry_bpe_add_tokens(s->bpe, added, what, &n_ids, err);
    if (!st) return RENYI_OK;
    ry_spm_free(s);
    *out = NULL;
    return st;
}
