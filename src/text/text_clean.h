/* text_clean.h - what happens to a text before it is divided into tokens: as in OpenAI's CLIP, in
 * transformers' tokenizers of SigLIP and SigLIP 2, and in OpenCLIP.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TEXT_CLEAN_H
#define RY_TEXT_CLEAN_H

#include "base/buffer.h"

typedef enum ry_clean {
    RY_CLEAN_NONE,
    RY_CLEAN_LOWER,    /* SigLIP 2: lower case, character by character */
    RY_CLEAN_SIGLIP,   /* lower case, no ASCII punctuation, spaces in a row are one, none at the
                          ends */
    RY_CLEAN_OPEN_CLIP /* "canonicalize": HTML references replaced, composed, "_" is a space, no
                          ASCII punctuation, lower case, spaces in a row are one, none at the ends
                        */
} ry_clean;

/* A text as characters, with space for everything that cleaning does. */
typedef struct ry_characters {
    uint32_t *text, *spare; /* [RY_COMPOSE_GROWTH * bytes] */
    size_t n;
    void *block;
} ry_characters;

/* Decodes UTF-8; other bytes are RENYI_ERR_FORMAT with their place. */
renyi_status ry_characters_read(ry_characters *out, const char *text, size_t size,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_characters_free(ry_characters *c, const renyi_allocator *al);

/* OpenAI's cleaning: HTML references, composition, spaces at the ends, lower case. Its repair of
 * wrongly decoded text (ftfy) is left out. */
void ry_clean_clip(ry_characters *c);

/* Adds the cleaned text to `out`. */
renyi_status ry_clean_text(ry_clean how, const char *text, size_t size, ry_buffer *out,
                           renyi_error *err) RENYI_CHECK;

#endif
