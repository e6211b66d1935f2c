/* bpe.h - CLIP's byte-pair encoding: tables, files, text to ids and back.
 *
 * A word is the bytes of its UTF-8. Each byte is a symbol; the last byte of a word is another
 * symbol than the same byte elsewhere. Among all neighbors that a merge joins, those of the
 * earliest merge are joined first, until no merge applies. The symbols that remain are the ids.
 *
 * Files write symbols in letters: the 188 printable bytes of Latin-1 as themselves, the 68 others
 * as U+0100 and up. "</w>" at the end marks the end of a word.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BPE_H
#define RY_BPE_H

#include "base/buffer.h"
#include "renyi/clip.h"
#include "text/merge_list.h"

#include <jansson.h>

#define RY_BPE_SOT "<|startoftext|>"
#define RY_BPE_EOT "<|endoftext|>"
#define RY_BPE_END "</w>"
enum {
    RY_BPE_MAX_IDS = 1 << 20,  /* and as many merges */
    RY_BPE_MAX_SYMBOL = 1024,  /* bytes of a symbol as written */
    RY_BPE_FILE_MERGES = 48894 /* of a merges file: CLIP's is longer than its vocabulary */
};

/* As written in files; at = NULL: no symbol has this id. */
typedef struct ry_symbol {
    const char *at;
    size_t n;
} ry_symbol;

typedef struct ry_merge {
    uint32_t left, right; /* ids; both are UINT32_MAX in an empty slot */
    uint32_t rank;        /* position in the file, from 0 */
    uint32_t whole;       /* id of the result */
} ry_merge;

/* Immutable once read. */
typedef struct ry_bpe {
    renyi_allocator al;
    uint32_t n_ids, n_merges;
    uint32_t sot, eot;
    uint32_t byte_id[2][256]; /* id of a byte, and of a byte that ends a word; UINT32_MAX = none */
    ry_symbol *symbols;       /* [n_ids] by id */
    uint32_t *by_text;        /* [text_slots] hash table: ids by text; UINT32_MAX = empty */
    ry_merge *merges;         /* [merge_slots] hash table: merges by both ids */
    size_t text_slots, merge_slots; /* powers of two; at most half of the slots are used */
    ry_pool texts;
} ry_bpe;

/* ---- bpe.c: building the tables ------------------------------------------------------------ */

/* Space for this many ids and merges, both within limits. On failure *out is NULL. */
renyi_status ry_bpe_new(ry_bpe **out, uint32_t n_ids, uint32_t n_merges, const renyi_allocator *al,
                        renyi_error *err) RENYI_CHECK;
void ry_bpe_free(ry_bpe *b);

uint32_t ry_bpe_find(const ry_bpe *b, ry_symbol text); /* id, or UINT32_MAX */
ry_symbol ry_bpe_symbol(const ry_bpe *b, int32_t id);  /* at = NULL: no such id */
const ry_merge *ry_bpe_merge_of(const ry_bpe *b, uint32_t left, uint32_t right); /* or NULL */

/* A symbol (copied) and its id < n_ids; neither may exist already. The message does not name the
 * file. */
renyi_status ry_bpe_add(ry_bpe *b, ry_symbol text, uint32_t id, renyi_error *err) RENYI_CHECK;

/* The next merge; its parts must exist. The result must exist too, or it gets the id `next`. */
#define RY_BPE_KNOWN UINT32_MAX
renyi_status ry_bpe_join(ry_bpe *b, ry_symbol left, ry_symbol right, uint32_t next,
                         renyi_error *err) RENYI_CHECK;

/* After everything was added: finds the symbols of bytes and the two special ones. */
renyi_status ry_bpe_finish(ry_bpe *b, renyi_error *err) RENYI_CHECK;

/* The letter for a byte; and the byte of a letter, or -1. */
uint32_t ry_bpe_letter(uint32_t byte);
int ry_bpe_byte(uint32_t letter);

/* ---- bpe_files.c: reading files that are in memory; `what` names them ------------------------ */

/* A merges file has everything: bytes, bytes that end words, merges, special symbols. */
renyi_status ry_bpe_read_merges(ry_bpe **out, const char *text, size_t size, const char *what,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
uint32_t ry_bpe_count_merges(const char *text, size_t size); /* at most RY_BPE_FILE_MERGES */
/* vocab.json, parsed, with the text of merges.txt. */
renyi_status ry_bpe_read_vocab(ry_bpe **out, const json_t *vocab, const char *what,
                               const char *merges, size_t size, const char *what_merges,
                               const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* tokenizer.json */
renyi_status ry_bpe_read_tokenizer(ry_bpe **out, const json_t *root, const char *what,
                                   const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* Checks that the values of an object are ids; *n_ids grows to the largest + 1. */
renyi_status ry_bpe_count_ids(const json_t *vocab, const char *what, uint32_t *n_ids,
                              renyi_error *err) RENYI_CHECK;
/* "added_tokens" of tokenizer.json: special tokens, which may also be in the vocabulary. b = NULL:
 * only *n_ids grows to the largest id + 1. */
renyi_status ry_bpe_add_tokens(ry_bpe *b, const json_t *added, const char *what, uint32_t *n_ids,
                               renyi_error *err) RENYI_CHECK;
/* The tables of any tokenizer.json of type BPE: vocabulary, added tokens, merges; not finished. */
renyi_status ry_bpe_read_tables(ry_bpe **out, const json_t *root, const char *what,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* ---- bpe_encode.c: text to ids and back ---------------------------------------------------- */

/* Takes ids: the first `capacity` are stored, all are counted. */
typedef struct ry_id_sink {
    int32_t *ids;
    size_t capacity, n;
} ry_id_sink;
static inline void ry_id_put(ry_id_sink *out, uint32_t id)
{
    if (out->n < out->capacity) out->ids[out->n] = (int32_t)id;
    out->n++;
}

/* The merges as a rule of a ry_merge_list; self: the ry_bpe. */
int ry_bpe_rule(const void *self, const ry_merge_list *l, uint32_t left, uint32_t right,
                ry_join *out);
/* All ids of one word. The scratch grows with the words. */
renyi_status ry_bpe_word(const ry_bpe *b, const char *word, size_t n, ry_merge_list *scratch,
                         ry_id_sink *out, renyi_error *err) RENYI_CHECK;

/* All ids of a text of at most RENYI_TEXT_MAX bytes; without sot and eot. */
renyi_status ry_bpe_encode(const ry_bpe *b, const char *text, size_t size, ry_id_sink *out,
                           renyi_error *err) RENYI_CHECK;

/* See renyi_tokenizer_decode. */
renyi_status ry_bpe_decode(const ry_bpe *b, const int32_t *ids, size_t n, char *text, size_t size,
                           size_t *length, renyi_error *err) RENYI_CHECK;

#endif
