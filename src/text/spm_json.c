/* spm_json.c - reads SentencePiece's tokenizers in JSON: Hugging Face's tokenizer.json (BPE with
 * merges, or unigram; spaces as U+2581), and plain lists of pieces with scores.
 *
 * The tables of tokenizer.json are read as for any BPE or unigram model; here the treatment of
 * text is read, and refused if it is not one of those known.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/status.h"
#include "text/unigram.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* How the file treats a text before it is divided. */
typedef struct blanks {
    int are_replaced;
    ry_prefix prefix;
    int is_prefix_once;
    int is_squeezed, is_split, is_unigram;
    ry_clean clean;
    const json_t *map; /* precompiled_charsmap, base64 */
} blanks;

static renyi_status fail_unlike(const char *what, const char *part, const char *is,
                                renyi_error *err)
{
    return ry_fail(
        err, RENYI_ERR_UNSUPPORTED, -1,
        "%s: \"%s\" %.64s: not a tokenizer like Llama's, Gemma's or T5's; only these are "
        "supported",
        what, part, is);
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
    if (is_text(type, "Lowercase")) {
        b->clean = RY_CLEAN_LOWER;
        return RENYI_OK;
    }
    if (is_text(type, "Precompiled") &&
        json_is_string(json_object_get(step, "precompiled_charsmap"))) {
        b->map = json_object_get(step, "precompiled_charsmap");
        return RENYI_OK;
    }
    const json_t *regex = json_object_get(pattern, "Regex");
    if (is_text(type, "Strip") ||
        (is_text(type, "Replace") && (is_text(regex, " {2,}") || is_text(regex, "\\s+")))) {
        b->is_squeezed = 1;
        return RENYI_OK;
    }
    return fail_unlike(what, "normalizer", "has a step that is not known", err);
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

/* Metaspace: spaces as U+2581, and no second space in front of one. */
static renyi_status read_metaspace(const json_t *pre, const char *what, blanks *b, renyi_error *err)
{
    const char *scheme = "always";
    int is_split = 1, has_prefix = 1;
    RY_TRY(ry_json_bool(pre, "add_prefix_space", &has_prefix, what, err)); /* of older files */
    if (!has_prefix) scheme = "never";
    RY_TRY(ry_json_string(pre, "prepend_scheme", &scheme, what, err));
    RY_TRY(ry_json_bool(pre, "split", &is_split, what, err));
    if ((is_split && !b->is_unigram) || !is_text(json_object_get(pre, "replacement"), RY_SPM_BLANK))
        return fail_unlike(what, "pre_tokenizer", "splits at spaces, or writes them differently",
                           err);
    b->is_split = is_split;
    b->are_replaced = b->is_prefix_once = 1;
    if (!strcmp(scheme, "first"))
        b->prefix = RY_PREFIX_FIRST;
    else if (!strcmp(scheme, "always"))
        b->prefix = RY_PREFIX_ALWAYS;
    else if (strcmp(scheme, "never") != 0)
        return fail_unlike(what, "prepend_scheme", scheme, err);
    return RENYI_OK;
}

/* Gemma splits at spaces, of which its normalizer has left none. T5 splits at spaces before
 * Metaspace, so that several in a row count as one. */
static renyi_status pre_tokenizer_step(const json_t *pre, const char *what, blanks *b,
                                       renyi_error *err)
{
    const char *type = "?";
    RY_TRY(ry_json_string(pre, "type", &type, what, err));
    if (!strcmp(type, "Metaspace")) return read_metaspace(pre, what, b, err);
    if (!strcmp(type, "Split") && b->are_replaced &&
        is_text(json_object_get(ry_json_object(pre, "pattern"), "String"), " "))
        return RENYI_OK;
    if (strcmp(type, "WhitespaceSplit") != 0 || !b->is_unigram)
        return fail_unlike(what, "pre_tokenizer", type, err);
    b->is_squeezed = 1;
    return RENYI_OK;
}

static renyi_status read_pre_tokenizer(const json_t *root, const char *what, blanks *b,
                                       renyi_error *err)
{
    const json_t *pre = json_object_get(root, "pre_tokenizer");
    const json_t *steps = json_object_get(pre, "pretokenizers");
    if (!pre || json_is_null(pre)) return RENYI_OK;
    if (!is_text(json_object_get(pre, "type"), "Sequence"))
        return pre_tokenizer_step(pre, what, b, err);
    for (size_t i = 0; i < json_array_size(steps); i++)
        RY_TRY(pre_tokenizer_step(json_array_get(steps, i), what, b, err));
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

static int is_unigram_model(const json_t *model)
{
    return is_text(json_object_get(model, "type"), "Unigram");
}

static renyi_status check_model(const json_t *model, const char *what, renyi_error *err)
{
    static const char *const marks[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = "BPE";
    int ignores_merges = 0;
    double dropout = 0;
    RY_TRY(ry_json_string(model, "type", &type, what, err));
    if (is_unigram_model(model)) return RENYI_OK;
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

/* The first of the names that is a piece. */
static int32_t id_of_either(const ry_spm *s, const char *name, const char *other)
{
    const int32_t id = id_of(s, name);
    return id >= 0 ? id : id_of(s, other);
}

/* The piece for characters without one: a name, or the id of a unigram model. */
static renyi_status read_unknown(ry_spm *s, const json_t *model, const char *what, renyi_error *err)
{
    const char *unk = "";
    uint32_t id = UINT32_MAX;
    RY_TRY(ry_json_string(model, "unk_token", &unk, what, err));
    s->unk = id_of(s, unk);
    if (!s->scores) return ry_json_bool(model, "fuse_unk", &s->is_unk_fused, what, err);
    s->is_unk_fused = 1;
    RY_TRY(ry_json_uint(model, "unk_id", &id, what, err));
    if (id < s->bpe->n_ids && s->bpe->symbols[id].at) s->unk = (int32_t)id;
    return RENYI_OK;
}

static renyi_status read_settings(ry_spm *s, const json_t *root, const char *what, renyi_error *err)
{
    const json_t *model = ry_json_object(root, "model");
    RY_TRY(read_unknown(s, model, what, err));
    RY_TRY(ry_json_bool(model, "byte_fallback", &s->has_bytes, what, err));
    s->bos = id_of_either(s, "<bos>", "<s>"); /* Gemma has <s> too, as a piece of HTML */
    s->eos = id_of_either(s, "<eos>", "</s>");
    s->pad = id_of(s, "<pad>");
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

static renyi_status read_map(ry_spm *s, const json_t *text, const char *what, renyi_error *err)
{
    const size_t n = text ? json_string_length(text) : 0;
    size_t size = 0;
    if (!n) return RENYI_OK;
    unsigned char *bytes = ry_alloc(&s->al, n / 4 * 3 + 3, 1);
    if (!bytes) return ry_fail_nomem(err, n);
    renyi_status st = RENYI_OK;
    if (!ry_base64_decode(json_string_value(text), n, bytes, &size))
        st = ry_fail(err, RENYI_ERR_FORMAT, -1, "\"precompiled_charsmap\" is not base64");
    if (!st) st = ry_charsmap_read(&s->map, bytes, size, &s->al, err);
    ry_free(&s->al, bytes);
    return st ? ry_fail_in(err, st, what) : RENYI_OK;
}

renyi_status ry_spm_read_json(ry_spm **out, const json_t *root, const char *what,
                              const renyi_allocator *al, renyi_error *err)
{
    const json_t *model = ry_json_object(root, "model");
    blanks b = {.prefix = RY_PREFIX_NEVER, .is_unigram = is_unigram_model(model)};
    ry_bpe *bpe;
    ry_spm *s;
    *out = NULL;
    RY_TRY(check_model(model, what, err));
    RY_TRY(read_blanks(root, what, &b, err));
    if (b.is_unigram) {
        RY_TRY(ry_unigram_read_tables(&s, root, what, al, err));
    } else {
        RY_TRY(ry_bpe_read_tables(&bpe, root, what, al, err));
        RY_TRY(ry_spm_new(&s, bpe, "tokenizer.json", err));
    }
    s->prefix = b.prefix;
    s->is_prefix_once = b.is_prefix_once;
    s->is_squeezed = b.is_squeezed;
    s->is_split = b.is_split;
    s->clean = b.clean;
    renyi_status st = read_map(s, b.map, what, err);
    if (!st) st = read_settings(s, root, what, err);
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
