/* spm_json.c - reads Llama tokenizers in JSON: Hugging Face's tokenizer.json (BPE with merges,
 * spaces as U+2581, byte pieces), and plain lists of pieces with scores.
 *
 * The tables of tokenizer.json are read as for any BPE; here it is checked that the file asks for
 * no other treatment of text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "text/spm.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* How the file treats spaces. */
typedef struct blanks {
    int are_replaced;
    ry_prefix prefix;
    int is_prefix_once;
} blanks;

static renyi_status fail_unlike(const char *what, const char *part, const char *is,
                                renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   "%s: \"%s\" %.64s: not a tokenizer like Llama's; only these are supported", what,
                   part, is);
}

static int is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && !strcmp(json_string_value(value), text);
}

/* ---- tokenizer.json: spaces ---------------------------------------------------------------- */

/* One step of "normalizer". */
static renyi_status normalizer_step(const json_t *step, const char *what, blanks *b,
                                    renyi_error *err)
{
    const json_t *type = json_object_get(step, "type");
    const json_t *pattern = ry_json_object(step, "pattern");
    if (is_text(type, "Prepend") && is_text(json_object_get(step, "prepend"), RY_SPM_BLANK)) {
        b->prefix = RY_PREFIX_ALWAYS;
        return RENYI_OK;
    }
    if (is_text(type, "Replace") && is_text(json_object_get(pattern, "String"), " ") &&
        is_text(json_object_get(step, "content"), RY_SPM_BLANK)) {
        b->are_replaced = 1;
        return RENYI_OK;
    }
    return fail_unlike(what, "normalizer", "does more than write spaces as U+2581", err);
}

static renyi_status read_normalizer(const json_t *root, const char *what, blanks *b,
                                    renyi_error *err)
{
    const json_t *normalizer = json_object_get(root, "normalizer");
    const json_t *steps = json_object_get(normalizer, "normalizers");
    if (!normalizer || json_is_null(normalizer)) return RENYI_OK;
    if (!is_text(json_object_get(normalizer, "type"), "Sequence"))
        return normalizer_step(normalizer, what, b, err);
    for (size_t i = 0; i < json_array_size(steps); i++)
        RY_TRY(normalizer_step(json_array_get(steps, i), what, b, err));
    return RENYI_OK;
}

/* Newer files: Metaspace, which adds no second space in front of one. */
static renyi_status read_pre_tokenizer(const json_t *root, const char *what, blanks *b,
                                       renyi_error *err)
{
    const json_t *pre = json_object_get(root, "pre_tokenizer");
    const char *scheme = "always", *type = "?";
    int is_split = 1;
    if (!pre || json_is_null(pre)) return RENYI_OK;
    RY_TRY(ry_json_string(pre, "type", &type, what, err));
    if (strcmp(type, "Metaspace") != 0) return fail_unlike(what, "pre_tokenizer", type, err);
    RY_TRY(ry_json_string(pre, "prepend_scheme", &scheme, what, err));
    RY_TRY(ry_json_bool(pre, "split", &is_split, what, err));
    if (is_split || !is_text(json_object_get(pre, "replacement"), RY_SPM_BLANK))
        return fail_unlike(what, "pre_tokenizer", "splits at spaces, or writes them differently",
                           err);
    b->are_replaced = b->is_prefix_once = 1;
    if (!strcmp(scheme, "first"))
        b->prefix = RY_PREFIX_FIRST;
    else if (!strcmp(scheme, "always"))
        b->prefix = RY_PREFIX_ALWAYS;
    else if (strcmp(scheme, "never") != 0)
        return fail_unlike(what, "prepend_scheme", scheme, err);
    return RENYI_OK;
}

static renyi_status read_blanks(const json_t *root, const char *what, blanks *b, renyi_error *err)
{
    RY_TRY(read_normalizer(root, what, b, err));
    RY_TRY(read_pre_tokenizer(root, what, b, err));
    if (!b->are_replaced)
        return fail_unlike(what, "normalizer", "does not write spaces as U+2581", err);
    return RENYI_OK;
}

/* ---- tokenizer.json: model ----------------------------------------------------------------- */

static renyi_status check_model(const json_t *model, const char *what, renyi_error *err)
{
    static const char *const marks[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = "BPE";
    int ignores_merges = 0;
    double dropout = 0;
    RY_TRY(ry_json_string(model, "type", &type, what, err));
    if (strcmp(type, "BPE") != 0) return fail_unlike(what, "type", type, err);
    for (size_t i = 0; i < 2; i++) {
        const char *mark = "";
        RY_TRY(ry_json_string(model, marks[i], &mark, what, err));
        if (*mark) return fail_unlike(what, marks[i], mark, err);
    }
    RY_TRY(ry_json_bool(model, "ignore_merges", &ignores_merges, what, err));
    if (ignores_merges) return fail_unlike(what, "ignore_merges", "is true", err);
    RY_TRY(ry_json_double(model, "dropout", &dropout, what, err));
    if (dropout != 0) return fail_unlike(what, "dropout", "is not 0", err);
    return RENYI_OK;
}

static int32_t id_of(const ry_spm *s, const char *text)
{
    const uint32_t id = *text ? ry_bpe_find(s->bpe, (ry_symbol){text, strlen(text)}) : RY_SPM_NONE;
    return id == RY_SPM_NONE ? -1 : (int32_t)id;
}

/* Added tokens are found anywhere in a text; those marked special are control pieces. */
static renyi_status mark_added(ry_spm *s, const json_t *added, const char *what,
                               uint8_t *is_special, renyi_error *err)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        int is_control = 0, left = 0, right = 0, single = 0;
        uint32_t id = 0;
        RY_TRY(ry_json_uint(token, "id", &id, what, err)); /* checked when it was added */
        RY_TRY(ry_json_bool(token, "special", &is_control, what, err));
        RY_TRY(ry_json_bool(token, "lstrip", &left, what, err));
        RY_TRY(ry_json_bool(token, "rstrip", &right, what, err));
        RY_TRY(ry_json_bool(token, "single_word", &single, what, err));
        if (single)
            return fail_unlike(what, "added_tokens",
                               "has a token that is found only as a whole word", err);
        is_special[id] = 1;
        s->strips[id] = (uint8_t)((left ? RY_STRIP_LEFT : 0) | (right ? RY_STRIP_RIGHT : 0));
        if (is_control) s->kinds[id] = RY_PIECE_CONTROL;
    }
    return RENYI_OK;
}

static renyi_status read_settings(ry_spm *s, const json_t *root, const char *what, renyi_error *err)
{
    const json_t *model = ry_json_object(root, "model");
    const char *unk = "";
    RY_TRY(ry_json_string(model, "unk_token", &unk, what, err));
    RY_TRY(ry_json_bool(model, "byte_fallback", &s->has_bytes, what, err));
    RY_TRY(ry_json_bool(model, "fuse_unk", &s->is_unk_fused, what, err));
    s->bos = id_of(s, "<s>");
    s->eos = id_of(s, "</s>");
    s->unk = id_of(s, unk);
    uint8_t *is_special = ry_calloc(&s->al, s->bpe->n_ids, 1);
    if (!is_special) return ry_fail_nomem(err, s->bpe->n_ids);
    renyi_status st = mark_added(s, json_object_get(root, "added_tokens"), what, is_special, err);
    if (s->unk >= 0) s->kinds[s->unk] = RY_PIECE_UNKNOWN;
    if (!st) {
        st = ry_spm_finish(s, is_special, err);
        if (st) (void)ry_fail_in(err, st, what);
    }
    ry_free(&s->al, is_special);
    return st;
}

renyi_status ry_spm_read_json(ry_spm **out, const json_t *root, const char *what,
                              const renyi_allocator *al, renyi_error *err)
{
    blanks b = {0, RY_PREFIX_NEVER, 0};
    ry_bpe *bpe;
    ry_spm *s;
    *out = NULL;
    RY_TRY(check_model(ry_json_object(root, "model"), what, err));
    RY_TRY(read_blanks(root, what, &b, err));
    RY_TRY(ry_bpe_read_tables(&bpe, root, what, al, err));
    RY_TRY(ry_spm_new(&s, bpe, "tokenizer.json", err));
    s->prefix = b.prefix;
    s->is_prefix_once = b.is_prefix_once;
    const renyi_status st = read_settings(s, root, what, err);
    if (st) {
        ry_spm_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

/* ---- lists of pieces ------------------------------------------------------------------------- */

/* As used by small Llamas: spaces are spaces, the id is the position, and the first three pieces
 * are unknown, begin and end. */

/* Spaces as in pieces; `out` has three bytes for each. */
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

static renyi_status read_pieces(ry_spm *s, const json_t *root, renyi_error *err)
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
    if (!st) st = read_pieces(s, root, err);
    if (st) {
        ry_spm_free(s);
        return ry_fail_in(err, st, what);
    }
    *out = s;
    return RENYI_OK;
}
