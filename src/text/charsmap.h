/* charsmap.h - SentencePiece's table that rewrites characters (precompiled_charsmap): sequences of
 * bytes, found in a trie, become other texts. T5's is Unicode's normalization form KC with a few
 * additions, such as several kinds of spaces.
 *
 * The format: the number of bytes of the trie (32 bits, little-endian), the trie, the texts, each
 * with a NUL. The trie is a double array: a unit of 32 bits says where its children are; a value is
 * the offset of a text.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CHARSMAP_H
#define RY_CHARSMAP_H

#include "base/buffer.h"

/* Zeroed = empty: rewrites nothing. */
typedef struct ry_charsmap {
    uint32_t *units; /* [n_units] */
    size_t n_units;
    char *texts; /* [n_texts], the last is a NUL */
    size_t n_texts;
} ry_charsmap;

/* `bytes` [size] as in the file; 0 bytes give an empty table. On failure *out is empty. */
renyi_status ry_charsmap_read(ry_charsmap *out, const void *bytes, size_t size,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_charsmap_free(ry_charsmap *m, const renyi_allocator *al);

/* Adds the rewritten text [n], which is UTF-8, to `out`: at every place the longest sequence of the
 * table. RENYI_ERR_LIMIT above RY_CHARSMAP_MOST bytes. */
enum { RY_CHARSMAP_MOST = 1 << 24 };
renyi_status ry_charsmap_apply(const ry_charsmap *m, const char *text, size_t n, ry_buffer *out,
                               renyi_error *err) RENYI_CHECK;

#endif
