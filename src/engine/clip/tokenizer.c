/* tokenizer.c - the tokenizers of text towers: CLIP's byte-pair encoding, and SigLIP's from
 * SentencePiece (T5's unigram model, Gemma's BPE); texts to ids and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/clip/tokenizer.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/status.h"
#include "engine/clip/tower_tokenizer.h"
#include "engine/core/engine_options.h"

#include <string.h>

#define LOOKED_FOR                                                                             \
    "spiece.model, tokenizer.json, vocab.json with merges.txt, bpe_simple_vocab_16e6.txt.gz, " \
    "bpe_simple_vocab_16e6.txt and tokenizer.model"
static const char *const file_names[] = {"spiece.model",
                                         "tokenizer.json",
                                         "vocab.json",
                                         "bpe_simple_vocab_16e6.txt.gz",
                                         "bpe_simple_vocab_16e6.txt",
                                         "tokenizer.model",
                                         NULL};

/* ---- the public functions ------------------------------------------------------------------ */

renyi_status renyi_tokenizer_open(renyi_tokenizer **out, const char *path, const renyi_options *opt,
                                  renyi_error *err)
{
    renyi_options o;
    if (!out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tokenizer_open: out is NULL");
    *out = NULL;
    if (!path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tokenizer_open: path is NULL");
    RY_TRY(ry_options_read(&o, opt, err));
    renyi_tokenizer *t = ry_calloc(&o.allocator, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    t->al = o.allocator;
    const ry_file_reader r = {&t->al, ry_limits(&o.limits).max_header_bytes};
    renyi_status st = ry_file_find(&r, path, file_names, LOOKED_FOR, &t->source, err);
    if (!st) st = ry_tower_tokenizer_read(t, &r, err);
    if (st) {
        renyi_tokenizer_free(t);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

void renyi_tokenizer_free(renyi_tokenizer *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_bpe_free(t->clip);
    ry_spm_free(t->spm);
    ry_free(&al, t->source);
    ry_free(&al, t);
}

static const ry_bpe *tables_of(const renyi_tokenizer *t) { return t->spm ? t->spm->bpe : t->clip; }

void renyi_tokenizer_get_info(const renyi_tokenizer *t, renyi_tokenizer_info *info)
{
    const ry_bpe *b = tables_of(t);
    *info = (renyi_tokenizer_info){.source = t->source,
                                   .n_ids = b->n_ids,
                                   .n_merges = b->n_merges,
                                   .sot = t->sot,
                                   .eot = t->eot,
                                   .pad = t->pad,
                                   .kind = t->kind,
                                   .clean = t->clean};
}

/* The ids of a text without those that begin and end it. */
static renyi_status encode(const renyi_tokenizer *t, const char *text, size_t size,
                           ry_id_sink *sink, renyi_error *err)
{
    if (!t->spm) return ry_bpe_encode(t->clip, text, size, sink, err);
    if (size > RENYI_TEXT_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a text of %zu bytes; at most %d accepted", size,
                       RENYI_TEXT_MAX);
    return ry_spm_encode(t->spm, text ? text : "", size, 0, 0, sink, err);
}

static uint32_t n_special(const renyi_tokenizer *t) { return (t->sot >= 0) + (t->eot >= 0); }

renyi_status renyi_tokenizer_encode(const renyi_tokenizer *t, const char *text, size_t size,
                                    uint32_t context, int truncate, int32_t *ids, uint32_t *n,
                                    renyi_error *err)
{
    if (!t || !ids || (!text && size) || context < 2)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "renyi_tokenizer_encode: needs a tokenizer, text and ids, and a context of at least 2");
    const uint32_t ends = n_special(t);
    size_t at = t->sot >= 0;
    ry_id_sink sink = {ids + at, context - ends, 0};
    RY_TRY(encode(t, text, size, &sink, err));
    if (sink.n > sink.capacity && !truncate)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "the text needs %zu tokens, the model reads %u: shorten it, or cut it off "
                       "(--truncate; truncate in C, Python and JSON)",
                       sink.n + ends, context);
    if (t->sot >= 0) ids[0] = t->sot;
    at += sink.n < sink.capacity ? sink.n : sink.capacity;
    const int has_eot = t->spm && t->spm->clean == RY_CLEAN_SIGLIP && at && ids[at - 1] == t->eot;
    if (t->eot >= 0 && !has_eot) ids[at++] = t->eot; /* transformers adds no second one */
    if (n) *n = (uint32_t)at;
    for (; at < context; at++) ids[at] = t->pad;
    return RENYI_OK;
}

renyi_status renyi_tokenizer_count(const renyi_tokenizer *t, const char *text, size_t size,
                                   uint32_t *n, renyi_error *err)
{
    ry_id_sink sink = {NULL, 0, 0};
    if (!t || !n || (!text && size))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tokenizer_count: an argument is NULL");
    RY_TRY(encode(t, text, size, &sink, err));
    *n = (uint32_t)sink.n + n_special(t); /* few ids per byte, so it fits */
    return RENYI_OK;
}

renyi_status renyi_tokenizer_decode(const renyi_tokenizer *t, const int32_t *ids, size_t n,
                                    char *text, size_t size, size_t *length, renyi_error *err)
{
    if (!t || (!ids && n) || (!text && size))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tokenizer_decode: an argument is NULL");
    if (t->spm) return ry_tower_tokenizer_decode(t, ids, n, text, size, length, err);
    return ry_bpe_decode(t->clip, ids, n, text, size, length, err);
}

const char *renyi_tokenizer_piece(const renyi_tokenizer *t, int32_t id, size_t *size)
{
    const ry_symbol piece = ry_bpe_symbol(tables_of(t), id);
    *size = piece.n;
    return piece.at;
}
