/* bpe_split.h - where words begin and end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_BPE_SPLIT_H
#define RY_BPE_SPLIT_H

#include <stddef.h>
#include <stdint.h>

typedef enum ry_word_kind {
    RY_WORD_NONE, /* the text is over */
    RY_WORD_TEXT,
    RY_WORD_SOT, /* <|startoftext|> as such */
    RY_WORD_EOT
} ry_word_kind;

/* The word at or behind *at in lower-case text [n]: *at becomes its start, *end its end. The first
 * that fits of: a special token; 's 't 're 've 'm 'll 'd; letters; one number; other characters
 * that are no blanks. */
ry_word_kind ry_bpe_next_word(const uint32_t *text, size_t n, size_t *at, size_t *end);

#endif
