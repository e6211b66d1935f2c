/* tower_tokenizer.h - the struct behind a renyi_tokenizer, and how it is read.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TOWER_TOKENIZER_H
#define RY_TOWER_TOKENIZER_H

#include "engine/clip/tokenizer.h"
#include "renyi/clip.h"
#include "text/spm.h"

/* One of clip and spm is set. */
struct renyi_tokenizer {
    renyi_allocator al;
    ry_bpe *clip;
    ry_spm *spm;
    char *source;
    int32_t sot, eot, pad;    /* sot, eot: -1 = no such id is added */
    const char *kind, *clean; /* of renyi_tokenizer_info */
};

/* Reads t->source and the configs beside it. t->al and t->source are set. */
renyi_status ry_tower_tokenizer_read(renyi_tokenizer *t, const ry_file_reader *r,
                                     renyi_error *err) RENYI_CHECK;

/* renyi_tokenizer_decode for SentencePiece's. */
renyi_status ry_tower_tokenizer_decode(const renyi_tokenizer *t, const int32_t *ids, size_t n,
                                       char *text, size_t size, size_t *length,
                                       renyi_error *err) RENYI_CHECK;

#endif
