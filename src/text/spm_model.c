/* spm_model.c - reads SentencePiece's model file, a Protocol Buffer with pieces and settings, of
 * type BPE (Llama, Gemma) or unigram (T5). Field numbers are those of sentencepiece_model.proto.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "base/utf8.h"
#include "formats/protobuf.h"
#include "text/spm.h"

#include <math.h>
#include <string.h>

enum { PIECES = 1, TRAINER = 2, NORMALIZER = 3 };                  /* of the file */
enum { TEXT = 1, SCORE = 2, TYPE = 3 };                            /* of a piece */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE }; /* its type */
enum { MODEL_TYPE_UNIGRAM = 1, MODEL_TYPE_BPE = 2, CHARS_MAP = 2 };

/* The settings of trainer and normalizer that matter, with their defaults. */
typedef struct settings {
    int32_t model_type, whitespace_suffix, byte_fallback, unk, bos, eos, pad;
    int32_t dummy_prefix, squeeze, escape;
    const void *chars_map; /* [n_chars_map] precompiled_charsmap */
    size_t n_chars_map;
    uint32_t n_pieces;
} settings;

typedef struct spec_field {
    uint32_t number;
    size_t at; /* of an int32_t in settings */
} spec_field;

static const spec_field trainer_fields[] = {
    {3, offsetof(settings, model_type)},     {24, offsetof(settings, whitespace_suffix)},
    {35, offsetof(settings, byte_fallback)}, {40, offsetof(settings, unk)},
    {41, offsetof(settings, bos)},           {42, offsetof(settings, eos)},
    {43, offsetof(settings, pad)},           {0, 0}};
static const spec_field normalizer_fields[] = {{3, offsetof(settings, dummy_prefix)},
                                               {4, offsetof(settings, squeeze)},
                                               {5, offsetof(settings, escape)},
                                               {0, 0}};

/* ---- settings ------------------------------------------------------------------------------ */

static renyi_status read_fields(ry_proto p, const spec_field *table, settings *out,
                                renyi_error *err)
{
    ry_proto_field f;
    for (int is_over;;) {
        RY_TRY(ry_proto_next(&p, &f, &is_over, err));
        if (is_over) return RENYI_OK;
        if (table == normalizer_fields && f.number == CHARS_MAP) {
            RY_TRY(ry_proto_want(&f, RY_PROTO_BYTES, err));
            out->chars_map = f.bytes;
            out->n_chars_map = f.n;
        }
        const spec_field *known = table;
        while (known->number && known->number != f.number) known++;
        if (!known->number) continue;
        RY_TRY(ry_proto_want(&f, RY_PROTO_VARINT, err));
        const int32_t value =
            (int32_t)(uint32_t)f.value; /* negative values are stored in 64 bits */
        memcpy((char *)out + known->at, &value, sizeof value);
    }
}

/* Reads everything except the pieces, which are counted. */
static renyi_status read_spec(ry_proto p, settings *out, renyi_error *err)
{
    const ry_proto whole = p;
    ry_proto_field f;
    *out = (settings){.model_type = MODEL_TYPE_UNIGRAM,
                      .bos = 1,
                      .eos = 2,
                      .pad = -1,
                      .dummy_prefix = 1,
                      .squeeze = 1,
                      .escape = 1};
    for (int is_over;;) {
        RY_TRY(ry_proto_next(&p, &f, &is_over, err));
        if (is_over) return RENYI_OK;
        if (f.number > NORMALIZER) continue;
        RY_TRY(ry_proto_want(&f, RY_PROTO_BYTES, err));
        if (f.number == PIECES)
            out->n_pieces += out->n_pieces <= RY_BPE_MAX_IDS;
        else
            RY_TRY(read_fields(ry_proto_inside(&whole, &f),
                               f.number == TRAINER ? trainer_fields : normalizer_fields, out, err));
    }
}

static renyi_status check_spec(const settings *spec, renyi_error *err)
{
    static const char *const types[] = {"unigram", "BPE", "word", "char"};
    const char *unlike = NULL;
    if (!spec->n_pieces)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "no pieces: not a SentencePiece model");
    if (spec->model_type != MODEL_TYPE_BPE && spec->model_type != MODEL_TYPE_UNIGRAM)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "a SentencePiece model of type %s; BPE and unigram are supported",
                       spec->model_type >= 1 && spec->model_type <= 4 ? types[spec->model_type - 1]
                                                                      : "unknown");
    if (spec->whitespace_suffix) unlike = "has spaces after words (treat_whitespace_as_suffix)";
    if (!spec->escape) unlike = "keeps spaces as they are (escape_whitespaces = false)";
    if (unlike)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "a SentencePiece model that %s; this is not supported", unlike);
    return RENYI_OK;
}

/* ---- pieces -------------------------------------------------------------------------------- */

typedef struct piece {
    ry_symbol text;
    float score;
    uint64_t type;
} piece;

static renyi_status read_piece(ry_proto p, piece *out, renyi_error *err)
{
    ry_proto_field f;
    *out = (piece){{"", 0}, 0, NORMAL};
    for (int is_over;;) {
        RY_TRY(ry_proto_next(&p, &f, &is_over, err));
        if (is_over) break;
        if (f.number == TEXT) {
            RY_TRY(ry_proto_want(&f, RY_PROTO_BYTES, err));
            out->text = (ry_symbol){(const char *)f.bytes, f.n};
        } else if (f.number == SCORE) {
            RY_TRY(ry_proto_want(&f, RY_PROTO_32, err));
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&out->score, &bits, sizeof bits);
        } else if (f.number == TYPE) {
            RY_TRY(ry_proto_want(&f, RY_PROTO_VARINT, err));
            out->type = f.value;
        }
    }
    if (ry_utf8_valid(out->text.at, out->text.n) != out->text.n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "its text is not UTF-8");
    if (out->type == BYTE && ry_spm_byte(out->text) < 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "its type is that of bytes, whose names are <0x00> to <0xFF>");
    if (out->type < NORMAL || out->type > BYTE || out->type == UNUSED)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1, "its type is %llu; 1 to 4 or 6 expected",
                       (unsigned long long)out->type);
    return RENYI_OK;
}

/* Pieces into s; scores [n_ids]. */
static renyi_status add_pieces(ry_spm *s, ry_proto p, float *scores, renyi_error *err)
{
    static const uint8_t kinds[] = {0,
                                    RY_PIECE_TEXT,
                                    RY_PIECE_UNKNOWN,
                                    RY_PIECE_CONTROL,
                                    RY_PIECE_WHOLE,
                                    RY_PIECE_TEXT,
                                    RY_PIECE_BYTE};
    const ry_proto whole = p;
    ry_proto_field f;
    uint32_t id = 0;
    for (int is_over;;) {
        piece one;
        RY_TRY(ry_proto_next(&p, &f, &is_over, err));
        if (is_over) return RENYI_OK;
        if (f.number != PIECES) continue;
        renyi_status st = read_piece(ry_proto_inside(&whole, &f), &one, err);
        if (!st) st = ry_bpe_add(s->bpe, one.text, id, err);
        if (st) {
            char where[32];
            snprintf(where, sizeof where, "piece %u", id);
            return ry_fail_in(err, st, where);
        }
        s->kinds[id] = kinds[one.type];
        scores[id++] = one.score;
    }
}

/* Tokens added by fine-tuning; their ids begin after the pieces. */
static renyi_status add_added(ry_spm *s, const ry_spm_beside *beside, renyi_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)beside->added, key, value)
    {
        const uint32_t id = (uint32_t)json_integer_value(value);
        const ry_symbol text = {key, strlen(key)};
        if (ry_bpe_find(s->bpe, text) != id) {
            const renyi_status st = ry_bpe_add(s->bpe, text, id, err);
            if (st) return ry_fail_in(err, st, beside->what_added);
        }
        if (s->kinds[id] != RY_PIECE_UNKNOWN) s->kinds[id] = RY_PIECE_CONTROL;
    }
    return RENYI_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* Ids are the positions of the pieces, then those of added tokens. */
static renyi_status count_ids(const settings *spec, const ry_spm_beside *beside, uint32_t *n,
                              renyi_error *err)
{
    *n = spec->n_pieces;
    return beside->added ? ry_bpe_count_ids(beside->added, beside->what_added, n, err) : RENYI_OK;
}

/* The id if it is a piece of this kind, else -1. */
static int32_t id_of_kind(const ry_spm *s, const settings *spec, int32_t id, ry_piece_kind kind)
{
    return id >= 0 && (uint32_t)id < spec->n_pieces && s->kinds[id] == kind ? id : -1;
}

/* Scores of pieces to ranks of a BPE model, or to those of a unigram model. */
static renyi_status take_scores(ry_spm *s, const float *scores, const settings *spec,
                                renyi_error *err)
{
    if (spec->model_type == MODEL_TYPE_BPE) return ry_spm_rank(s, scores, err);
    const uint32_t n = s->bpe->n_ids;
    s->scores = ry_alloc(&s->al, n, sizeof *s->scores);
    if (!s->scores) return ry_fail_nomem(err, n * sizeof *s->scores);
    s->sums_in_floats = 1;
    for (uint32_t i = 0; i < n; i++) {
        s->scores[i] = (double)scores[i];
        if (!isfinite(scores[i]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "the score of piece %u is not a number", i);
    }
    return RENYI_OK;
}

static renyi_status fill_spm(ry_spm *s, ry_proto p, const settings *spec,
                             const ry_spm_beside *beside, renyi_error *err)
{
    int is_legacy = 1;
    float *scores = ry_calloc(&s->al, s->bpe->n_ids, sizeof *scores);
    if (!scores) return ry_fail_nomem(err, s->bpe->n_ids * sizeof *scores);
    renyi_status st = add_pieces(s, p, scores, err);
    if (!st) st = add_added(s, beside, err);
    if (!st) st = take_scores(s, scores, spec, err);
    ry_free(&s->al, scores);
    if (st) return st;
    RY_TRY(ry_charsmap_read(&s->map, spec->chars_map, spec->n_chars_map, &s->al, err));
    RY_TRY(ry_json_bool(beside->config, "legacy", &is_legacy, beside->what_config, err));
    s->unk = id_of_kind(s, spec, spec->unk, RY_PIECE_UNKNOWN);
    s->bos = id_of_kind(s, spec, spec->bos, RY_PIECE_CONTROL);
    s->eos = id_of_kind(s, spec, spec->eos, RY_PIECE_CONTROL);
    s->pad = id_of_kind(s, spec, spec->pad, RY_PIECE_CONTROL);
    s->prefix = !spec->dummy_prefix ? RY_PREFIX_NEVER
                : is_legacy         ? RY_PREFIX_ALWAYS
                                    : RY_PREFIX_FIRST;
    s->is_squeezed = spec->squeeze != 0;
    s->has_bytes = spec->byte_fallback != 0;
    s->is_unk_fused = 1;
    return ry_spm_finish(s, NULL, err);
}

renyi_status ry_spm_read_model(ry_spm **out, const void *bytes, size_t size, const char *what,
                               const ry_spm_beside *beside, const renyi_allocator *al,
                               renyi_error *err)
{
    static const ry_spm_beside nothing = {NULL, NULL, "", ""};
    const ry_proto p = ry_proto_of(bytes, size);
    uint32_t n_ids = 0;
    settings spec;
    ry_bpe *bpe = NULL;
    ry_spm *s = NULL;
    if (!beside) beside = &nothing;
    *out = NULL;
    renyi_status st = read_spec(p, &spec, err);
    if (!st) st = check_spec(&spec, err);
    if (!st) st = count_ids(&spec, beside, &n_ids, err);
    if (!st) st = ry_bpe_new(&bpe, n_ids, 0, al, err);
    if (!st) st = ry_spm_new(&s, bpe, "sentencepiece", err);
    if (!st) st = fill_spm(s, p, &spec, beside, err);
    if (st) {
        ry_spm_free(s);
        return ry_fail_in(err, st, what);
    }
    *out = s;
    return RENYI_OK;
}
