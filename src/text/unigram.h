/* unigram.h - SentencePiece's unigram model in use: of all ways to divide a text into pieces, the
 * one with the largest sum of scores (Viterbi's algorithm).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_UNIGRAM_H
#define RY_UNIGRAM_H

#include "text/spm.h"

/* After scores, kinds and pieces of `s` are set: sorts the pieces, so that all pieces that a text
 * begins with are found in one pass. */
renyi_status ry_unigram_index(ry_spm *s, renyi_error *err) RENYI_CHECK;

/* The pieces, scores and added tokens of a tokenizer.json of type Unigram (unigram_json.c); not
 * finished. On failure *out is NULL. */
renyi_status ry_unigram_read_tables(ry_spm **out, const json_t *root, const char *what,
                                    const renyi_allocator *al, renyi_error *err) RENYI_CHECK;

/* The best piece that ends at a place of the text. */
typedef struct ry_unigram_node {
    double score; /* of the best way from the start to this place */
    uint32_t begin, id;
} ry_unigram_node;

/* Divides text [n], which is UTF-8, and marks the pieces of the best way: nodes [n + 1], and for
 * each piece ends[begin] is the place behind it, ids[begin] its id or `unknown`. ends, ids: [n] */
void ry_unigram_divide(const ry_spm *s, const char *text, size_t n, ry_unigram_node *nodes,
                       uint32_t *ends, uint32_t *ids, uint32_t unknown);

#endif
