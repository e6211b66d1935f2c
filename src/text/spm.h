/* spm.h - SentencePiece's tokenizers (Llama, T5, Gemma): tables, files, text to ids and back.
 *
 * Pieces are texts in which a space is written as U+2581. There are two kinds of models.
 * BPE (Llama, Gemma): every character of a text is a symbol; neighbors are joined as long as the
 * result is a piece, the best piece first. SentencePiece's files give every piece a score;
 * tokenizer.json lists the merges instead. Unigram (T5): the text is divided into the pieces with
 * the largest sum of scores. Characters that are not part of a piece become bytes, which are pieces
 * "<0x00>" to "<0xFF>", or the unknown piece. A GGUF may have a byte-level tokenizer instead
 * (byte_level.h): its symbols are pieces too.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_SPM_H
#define RY_SPM_H

#include "formats/gguf/gguf.h"
#include "renyi/lm.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/charsmap.h"
#include "text/text_clean.h"

#define RY_SPM_BLANK "\xe2\x96\x81" /* U+2581: a space in a piece */
#define RY_SPM_NONE UINT32_MAX

typedef enum ry_piece_kind {
    RY_PIECE_TEXT = 0,
    RY_PIECE_UNKNOWN, /* stands for characters without a piece if there are no byte pieces */
    RY_PIECE_CONTROL, /* <s>, </s>, <image>: not text */
    RY_PIECE_WHOLE,   /* never joined with its neighbors */
    RY_PIECE_BYTE
} ry_piece_kind;

/* Which texts get a space in front: none; the first; also those after a special id. */
typedef enum ry_prefix { RY_PREFIX_NEVER, RY_PREFIX_FIRST, RY_PREFIX_ALWAYS } ry_prefix;

/* Pieces that are searched in a text. They are sorted, so that no choice of pieces makes the search
 * slow. */
typedef struct ry_piece_set {
    uint32_t *ids; /* [n] sorted by their bytes */
    uint32_t n;
    uint8_t begins[256]; /* 1 = one of them begins with this byte */
} ry_piece_set;

/* Places [low, high) of a set: the pieces that begin with the bytes of a text so far. */
typedef struct ry_piece_range {
    uint32_t low, high;
} ry_piece_range;

enum { RY_STRIP_LEFT = 1, RY_STRIP_RIGHT = 2 }; /* removes the spaces before, after it */

/* Immutable once read. */
typedef struct ry_spm {
    renyi_allocator al;
    ry_bpe *bpe;     /* pieces by id and by text; merges of tokenizer.json */
    uint32_t *ranks; /* [n_ids] of pieces, the best is 0; NULL: merges are used */
    uint8_t *kinds;  /* [n_ids] ry_piece_kind */
    uint8_t *strips; /* [n_ids] RY_STRIP_* of special pieces */
    uint32_t byte_id[256];
    ry_piece_set special; /* become ids wherever they are in a text */
    ry_piece_set whole;   /* become symbols before characters do */
    const char *kind;     /* of file; static */
    int32_t bos, eos, unk, pad;
    ry_prefix prefix;
    int is_prefix_once; /* no second space in front of one */
    int is_squeezed;    /* spaces at both ends are removed, several become one */
    int has_bytes;      /* byte fallback */
    int is_unk_fused;   /* several unknown characters become one id */
    ry_clean clean;     /* what happens to a text first */
    ry_charsmap map;    /* and then to its characters */

    ry_split split; /* of a byte-level tokenizer; else RY_SPLIT_NONE */

    /* Unigram models only (unigram.h). */
    double *scores;               /* [n_ids]; NULL = a BPE model */
    ry_piece_set matched;         /* the pieces that a text is divided into */
    double lowest, highest;       /* scores */
    int sums_in_floats, is_split; /* as SentencePiece adds; pieces end before every space */
} ry_spm;

/* ---- spm.c: building the tables ------------------------------------------------------------ */

/* Takes ownership of `bpe`, also on failure. All pieces are of kind text. On failure *out is NULL.
 */
renyi_status ry_spm_new(ry_spm **out, ry_bpe *bpe, const char *kind, renyi_error *err) RENYI_CHECK;
void ry_spm_free(ry_spm *s);

/* scores: [n_ids]; finite. Equal scores have equal ranks. */
renyi_status ry_spm_rank(ry_spm *s, const float *scores, renyi_error *err) RENYI_CHECK;

/* After kinds, ranks and settings are set: finds the byte pieces and builds the sets. Special
 * pieces are those of kind control or unknown and those flagged in is_special [n_ids], which may be
 * NULL. */
renyi_status ry_spm_finish(ry_spm *s, const uint8_t *is_special, renyi_error *err) RENYI_CHECK;

int ry_spm_byte(ry_symbol piece); /* 0xE6 of "<0xE6>"; -1 = not a byte */

/* All ids whose marks [n_ids] equal `mark`. */
renyi_status ry_piece_set_collect(ry_piece_set *set, const ry_spm *s, const uint8_t *marks,
                                  uint8_t mark, renyi_error *err) RENYI_CHECK;
/* Narrows `in`, all of `set` at first, to the pieces whose byte `depth` is `byte` too. Returns the
 * one that ends there, or RY_SPM_NONE. */
uint32_t ry_piece_set_step(const ry_piece_set *set, const ry_bpe *b, ry_piece_range *in,
                           size_t depth, unsigned char byte);
/* The longest piece of the set that text [n] begins with, or RY_SPM_NONE. */
uint32_t ry_piece_set_match(const ry_piece_set *set, const ry_bpe *b, const char *text, size_t n);

/* ---- reading files that are in memory; `what` names them ----------------------------------- */

/* Files beside tokenizer.model; both may be NULL. */
typedef struct ry_spm_beside {
    const json_t *added;  /* added_tokens.json: { "<image>": 32000 } */
    const json_t *config; /* tokenizer_config.json; "legacy" decides the prefix */
    const char *what_added, *what_config;
} ry_spm_beside;

/* spm_model.c: SentencePiece's model file. */
renyi_status ry_spm_read_model(ry_spm **out, const void *bytes, size_t size, const char *what,
                               const ry_spm_beside *beside, const renyi_allocator *al,
                               renyi_error *err) RENYI_CHECK;
/* spm_json.c: tokenizer.json. */
renyi_status ry_spm_read_json(ry_spm **out, const json_t *root, const char *what,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* spm_json.c: [{ "piece": " the", "score": -6 }, ...]: <unk>, <s>, </s>, bytes, the rest. */
renyi_status ry_spm_read_pieces(ry_spm **out, const json_t *root, const char *what,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* spm_gguf.c: the tokenizer among the values of a GGUF. RENYI_ERR_IO: there is none. */
renyi_status ry_spm_read_gguf(ry_spm **out, const ry_gguf *g, const char *what,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* ---- spm_encode.c: text to ids and back ---------------------------------------------------- */

/* Any text; is_inner: it follows a special id. Without bos. */
renyi_status ry_spm_encode(const ry_spm *s, const char *text, size_t size, uint32_t flags,
                           int is_inner, ry_id_sink *out, renyi_error *err) RENYI_CHECK;

/* See renyi_lm_stream_put and _end. Return the bytes written, without a NUL; *is_bad = 1 if there
 * is no such id. */
size_t ry_spm_put(const ry_spm *s, renyi_lm_stream *state, int32_t id,
                  char text[RENYI_LM_STREAM_ROOM], int *is_bad);
size_t ry_spm_flush(renyi_lm_stream *state, char *text);

#endif
