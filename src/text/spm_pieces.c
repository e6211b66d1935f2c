/* spm_pieces.c - a list of pieces with scores in JSON, as small Llamas come with: blanks are
 * blanks, the id is the place, the first three are unknown, begin and end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "text/spm.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Blanks as pieces have them; `out` has room for three bytes of each. */
static ry_symbol with_blanks(const json_t *text, char *out)
{
    const char *at = json_string_value(text);
    size_t n = 0;
    for (size_t i = 0; i < json_string_length(text); i++) {
        if (at[i] != ' ') {
            out[n++] = at[i];
            continue;
        }
        memcpy(out + n, RY_SPM_BLANK, sizeof RY_SPM_BLANK - 1);
        n += sizeof RY_SPM_BLANK - 1;
    }
    return (ry_symbol){out, n};
}

static renyi_status add_piece(ry_spm *s, const json_t *entry, uint32_t id, float *score,
                              renyi_error *err)
{
    char text[3 * RY_BPE_MAX_SYMBOL];
    const json_t *piece = json_object_get(entry, "piece"),
                 *number = json_object_get(entry, "score");
    const double value = json_number_value(number);
    if (!json_is_string(piece) || json_string_length(piece) > RY_BPE_MAX_SYMBOL ||
        !json_is_number(number) || fabs(value) > (double)FLT_MAX)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "\"piece\" (a text of at most %d bytes) and \"score\" (a number) expected",
                       RY_BPE_MAX_SYMBOL);
    *score = (float)value;
    return ry_bpe_add(s->bpe, with_blanks(piece, text), id, err);
}

static renyi_status add_pieces(ry_spm *s, const json_t *root, float *scores, renyi_error *err)
{
    for (uint32_t id = 0; id < s->bpe->n_ids; id++) {
        const renyi_status st = add_piece(s, json_array_get(root, id), id, &scores[id], err);
        if (!st) continue;
        char where[32];
        snprintf(where, sizeof where, "entry %u", id);
        return ry_fail_in(err, st, where);
    }
    return ry_spm_rank(s, scores, err);
}

static renyi_status fill(ry_spm *s, const json_t *root, renyi_error *err)
{
    float *scores = ry_calloc(&s->al, s->bpe->n_ids, sizeof *scores);
    if (!scores) return ry_fail_nomem(err, s->bpe->n_ids * sizeof *scores);
    const renyi_status st = add_pieces(s, root, scores, err);
    ry_free(&s->al, scores);
    if (st) return st;
    s->unk = 0;
    s->bos = 1;
    s->eos = 2;
    s->kinds[0] = RY_PIECE_UNKNOWN;
    s->kinds[1] = s->kinds[2] = RY_PIECE_CONTROL;
    s->prefix = RY_PREFIX_ALWAYS;
    s->has_bytes = 1;
    return ry_spm_finish(s, NULL, err);
}

renyi_status ry_spm_read_pieces(ry_spm **out, const json_t *root, const char *what,
                                const renyi_allocator *al, renyi_error *err)
{
    const size_t n = json_array_size(root);
    ry_bpe *bpe = NULL;
    ry_spm *s = NULL;
    *out = NULL;
    if (n < 3)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: an array of at least 3 pieces expected",
                       what);
    renyi_status st = ry_bpe_new(
        &bpe, n > RY_BPE_MAX_IDS ? (uint32_t)RY_BPE_MAX_IDS + 1 : (uint32_t)n, 0, al, err);
    if (!st) st = ry_spm_new(&s, bpe, "pieces.json", err);
    if (!st) st = fill(s, root, err);
    if (st) {
        ry_spm_free(s);
        return ry_fail_in(err, st, what);
    }
    *out = s;
    return RENYI_OK;
}
