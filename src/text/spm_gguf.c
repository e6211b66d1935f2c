/* spm_gguf.c - reads the tokenizer among the values of a GGUF: "llama", SentencePiece's pieces with
 * scores, or "gpt2", byte-level symbols and merges.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "text/spm.h"

#include <string.h>

#define KEY(name) "tokenizer.ggml." name

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE }; /* types of tokens */

/* The file while it is read. */
typedef struct source {
    const ry_gguf *g;
    const ry_gguf_value *tokens, *scores, *types, *merges;
    int is_byte_level;
    uint8_t *is_special; /* [tokens] */
} source;

/* ---- values -------------------------------------------------------------------------------- */

static renyi_status fail_value(const ry_gguf_value *v, const char *key, const char *why,
                               renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_FORMAT, v ? (int64_t)v->offset : -1, "%s %s", key, why);
}

/* An array with a value for each token. */
static renyi_status check_array(const source *s, const ry_gguf_value *v, const char *key,
                                renyi_error *err)
{
    double number;
    if (!v) return fail_value(v, key, "is missing: convert the model again", err);
    if (v->is_array && v->count == s->tokens->count && ry_gguf_number(v, 0, &number))
        return RENYI_OK;
    return fail_value(v, key, "is not an array of numbers, one for each token", err);
}

static ry_symbol text_of(const ry_gguf *g, const char *key)
{
    const ry_gguf_value *v = ry_gguf_find(g, key);
    ry_gguf_texts texts;
    ry_gguf_text text;
    if (!v || v->is_array) return (ry_symbol){NULL, 0};
    texts = ry_gguf_texts_of(v);
    return ry_gguf_next_text(&texts, &text) ? (ry_symbol){text.at, text.n} : (ry_symbol){NULL, 0};
}

static int is_text(ry_symbol s, const char *text)
{
    return s.at && s.n == strlen(text) && !memcmp(s.at, text, s.n);
}

static int flag(const ry_gguf *g, const char *key, int otherwise)
{
    const ry_gguf_value *v = ry_gguf_find(g, key);
    return v && v->kind == RY_GGUF_BOOL && !v->is_array ? *v->at != 0 : otherwise;
}

/* A token id, or -1. */
static int32_t id_of(const source *s, const char *key, int32_t otherwise)
{
    const ry_gguf_value *v = ry_gguf_find(s->g, key);
    int64_t id = otherwise;
    if (v && (v->is_array || !ry_gguf_integer(v, 0, &id))) return -1;
    return id >= 0 && (uint64_t)id < s->tokens->count ? (int32_t)id : -1;
}

static renyi_status find_parts(source *s, renyi_error *err)
{
    const ry_symbol model = text_of(s->g, KEY("model"));
    s->tokens = ry_gguf_find(s->g, KEY("tokens"));
    s->scores = ry_gguf_find(s->g, KEY("scores"));
    s->types = ry_gguf_find(s->g, KEY("token_type"));
    s->merges = ry_gguf_find(s->g, KEY("merges"));
    if (!s->tokens)
        return ry_fail(err, RENYI_ERR_IO, -1,
                       "no tokenizer in this GGUF (" KEY("tokens") "); give the file of the "
                                                                   "language model, or another "
                                                                   "tokenizer");
    s->is_byte_level = is_text(model, "gpt2");
    if (!s->is_byte_level && !is_text(model, "llama"))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       KEY("model") " is '%.*s'; 'llama' and 'gpt2' are supported",
                       (int)(model.n < 40 ? model.n : 40), model.at ? model.at : "");
    if (!s->tokens->is_array || s->tokens->kind != RY_GGUF_TEXT || !s->tokens->count)
        return fail_value(s->tokens, KEY("tokens"), "is not an array of texts", err);
    if (!s->is_byte_level) RY_TRY(check_array(s, s->scores, KEY("scores"), err));
    if (s->types) RY_TRY(check_array(s, s->types, KEY("token_type"), err));
    if (s->is_byte_level && (!s->merges || !s->merges->is_array || s->merges->kind != RY_GGUF_TEXT))
        return fail_value(s->merges, KEY("merges"), "is not an array of texts", err);
    return RENYI_OK;
}

/* How a byte-level tokenizer splits texts. */
static renyi_status find_split(const ry_gguf *g, ry_split *out, renyi_error *err)
{
    const ry_symbol pre = text_of(g, KEY("pre"));
    *out = is_text(pre, "smollm") ? RY_SPLIT_SMOLLM : RY_SPLIT_GPT2;
    if (is_text(pre, "smollm") || is_text(pre, "gpt-2")) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                   KEY("pre") " is '%.*s'; 'smollm' and 'gpt-2' are supported",
                   (int)(pre.n < 40 ? pre.n : 40), pre.at ? pre.at : "");
}

/* ---- tokens -------------------------------------------------------------------------------- */

/* Symbols that are text are written in letters for bytes. */
static renyi_status check_letters(ry_symbol text, renyi_error *err)
{
    if (text.n > RY_BYTE_LEVEL_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%zu bytes; at most %d accepted", text.n,
                       RY_BYTE_LEVEL_MAX);
    for (size_t i = 0; i < text.n;) {
        uint32_t letter;
        i += ry_utf8_get(text.at + i, text.n - i, &letter);
        if (ry_bpe_byte(letter) < 0)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "U+%04X stands for no byte; is it a token of its own (type %d)?",
                           (unsigned)letter, USER_DEFINED);
    }
    return RENYI_OK;
}

static renyi_status add_token(ry_spm *spm, const source *s, ry_symbol text, uint32_t id,
                              renyi_error *err)
{
    int64_t type = NORMAL;
    if (s->types && !ry_gguf_integer(s->types, id, &type)) type = 0;
    if (type < NORMAL || type > BYTE)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "its type is %lld; 1 to 6 expected",
                       (long long)type);
    if (ry_utf8_valid(text.at, text.n) != text.n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "its text is not UTF-8");
    if (type == BYTE && ry_spm_byte(text) < 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "its type is that of bytes, whose names are <0x00> to <0xFF>");
    if (s->is_byte_level && type == NORMAL) RY_TRY(check_letters(text, err));
    RY_TRY(ry_bpe_add(spm->bpe, text, id, err));
    spm->kinds[id] = type == UNKNOWN                      ? RY_PIECE_UNKNOWN
                     : type == CONTROL                    ? RY_PIECE_CONTROL
                     : s->is_byte_level && type != NORMAL ? RY_PIECE_WHOLE
                     : type == BYTE                       ? RY_PIECE_BYTE
                                                          : RY_PIECE_TEXT;
    spm->has_bytes |= type == BYTE;
    s->is_special[id] = type == USER_DEFINED;
    return RENYI_OK;
}

static renyi_status add_tokens(ry_spm *spm, const source *s, renyi_error *err)
{
    ry_gguf_texts texts = ry_gguf_texts_of(s->tokens);
    ry_gguf_text text;
    for (uint32_t id = 0; ry_gguf_next_text(&texts, &text); id++) {
        const renyi_status st = add_token(spm, s, (ry_symbol){text.at, text.n}, id, err);
        if (!st) continue;
        char where[64];
        snprintf(where, sizeof where, KEY("tokens") ", token %u", id);
        return ry_fail_in(err, st, where);
    }
    return RENYI_OK;
}

static renyi_status add_scores(ry_spm *spm, const source *s, renyi_error *err)
{
    const uint32_t n = spm->bpe->n_ids;
    float *scores = ry_calloc(&spm->al, n, sizeof *scores);
    if (!scores) return ry_fail_nomem(err, n * sizeof *scores);
    for (uint32_t i = 0; i < n; i++) {
        double score = 0.0;
        (void)ry_gguf_number(s->scores, i, &score); /* check_array */
        scores[i] = (float)score;
    }
    const renyi_status st = ry_spm_rank(spm, scores, err);
    ry_free(&spm->al, scores);
    return st;
}

static renyi_status add_merges(ry_spm *spm, const source *s, renyi_error *err)
{
    ry_gguf_texts texts = ry_gguf_texts_of(s->merges);
    ry_gguf_text text;
    for (uint64_t i = 0; ry_gguf_next_text(&texts, &text); i++) {
        const char *blank = text.n > 1 ? memchr(text.at + 1, ' ', text.n - 1) : NULL;
        renyi_status st = RENYI_ERR_FORMAT;
        if (blank) {
            const size_t left = (size_t)(blank - text.at);
            st = ry_bpe_join(spm->bpe, (ry_symbol){text.at, left},
                             (ry_symbol){blank + 1, text.n - left - 1}, RY_BPE_KNOWN, err);
        } else {
            (void)ry_fail(err, st, -1, "two symbols and a space between them expected");
        }
        if (!st) continue;
        char where[64];
        snprintf(where, sizeof where, KEY("merges") ", entry %llu", (unsigned long long)i);
        return ry_fail_in(err, st, where);
    }
    return RENYI_OK;
}

/* ---- the tokenizer ------------------------------------------------------------------------- */

/* Texts of SentencePiece begin with bos unless the file says otherwise; others only if it does. */
static renyi_status fill(ry_spm *spm, const source *s, renyi_error *err)
{
    RY_TRY(add_tokens(spm, s, err));
    const int has_bos = flag(s->g, KEY("add_bos_token"), !s->is_byte_level);
    const int has_blank = flag(s->g, KEY("add_space_prefix"), 1);
    spm->bos = has_bos ? id_of(s, KEY("bos_token_id"), s->is_byte_level ? -1 : 1) : -1;
    spm->eos = id_of(s, KEY("eos_token_id"), s->is_byte_level ? -1 : 2);
    spm->unk = id_of(s, KEY("unknown_token_id"), s->is_byte_level ? -1 : 0);
    spm->pad = id_of(s, KEY("padding_token_id"), -1);
    spm->prefix = !s->is_byte_level && has_blank ? RY_PREFIX_ALWAYS : RY_PREFIX_NEVER;
    if (!s->is_byte_level) {
        RY_TRY(add_scores(spm, s, err));
        return ry_spm_finish(spm, s->is_special, err);
    }
    RY_TRY(find_split(s->g, &spm->split, err));
    RY_TRY(add_merges(spm, s, err));
    ry_byte_level_finish(spm->bpe);
    spm->has_bytes = 0;
    return ry_spm_finish(spm, s->is_special, err);
}

static renyi_status read_tokenizer(ry_spm **out, source *s, const renyi_allocator *al,
                                   renyi_error *err)
{
    ry_bpe *bpe = NULL;
    RY_TRY(find_parts(s, err));
    const uint64_t n = s->tokens->count, n_merges = s->is_byte_level ? s->merges->count : 0;
    if (n > RY_BPE_MAX_IDS || n_merges > RY_BPE_MAX_IDS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%llu tokens and %llu merges; at most %d of each accepted",
                       (unsigned long long)n, (unsigned long long)n_merges, RY_BPE_MAX_IDS);
    s->is_special = ry_calloc(al, (size_t)n, 1);
    if (!s->is_special) return ry_fail_nomem(err, (size_t)n);
    renyi_status st = ry_bpe_new(&bpe, (uint32_t)n, (uint32_t)n_merges, al, err);
    if (!st) st = ry_spm_new(out, bpe, s->is_byte_level ? "gguf gpt2" : "gguf llama", err);
    if (!st) st = fill(*out, s, err);
    ry_free(al, s->is_special);
    return st;
}

renyi_status ry_spm_read_gguf(ry_spm **out, const ry_gguf *g, const char *what,
                              const renyi_allocator *al, renyi_error *err)
{
    source s = {.g = g};
    *out = NULL;
    const renyi_status st = read_tokenizer(out, &s, al, err);
    if (st == RENYI_OK) return RENYI_OK;
    ry_spm_free(*out);
    *out = NULL;
    return ry_fail_in(err, st, what);
}
