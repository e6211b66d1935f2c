/* byte_level.h - byte-pair encoding over the bytes of a text, as GPT-2 and SmolLM2 have it: a rule
 * splits the text into words, each byte of a word is a symbol, and neighbors are merged.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BYTE_LEVEL_H
#define RY_BYTE_LEVEL_H

#include "text/bpe.h"

/* How a text is split. GPT-2: 's 't 're 've 'm 'll 'd | letters | numbers | other characters that
 * are not spaces, each with one space in front if there is one | spaces, the last of which belongs
 * to the word that follows. SmolLM: every number is a word of its own first; then the same. */
typedef enum ry_split { RY_SPLIT_NONE, RY_SPLIT_GPT2, RY_SPLIT_SMOLLM } ry_split;

/* Finds the symbols of bytes, after all symbols were added. */
void ry_byte_level_finish(ry_bpe *b);

/* All ids of text [n], which is UTF-8. */
renyi_status ry_byte_level_encode(const ry_bpe *b, ry_split split, const char *text, size_t n,
                                  ry_merge_list *scratch, ry_id_sink *out,
                                  renyi_error *err) RENYI_CHECK;

/* A symbol has at most so many bytes as written, so that its text, with U+FFFD for a byte, fits
 * RENYI_LM_STREAM_ROOM. */
enum { RY_BYTE_LEVEL_MAX = 340 };

#endif
