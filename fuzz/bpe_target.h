/* bpe_target.h - what the targets of tokenizer files do with a vocabulary that was read: ids of a
 * few texts stay inside it, and texts of all ids are UTF-8.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_FUZZ_BPE_TARGET_H
#define RENYI_FUZZ_BPE_TARGET_H

#include "base/utf8.h"
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

static inline void fuzz_utf8(const char *text, size_t n)
{
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t c;
        step = ry_utf8_get(text + i, n - i, &c);
        if (c == RY_UTF8_BAD) abort();
    }
}

/* Ids, and their text again; an error must say something. */
static inline void fuzz_encode(const ry_bpe *b, const char *text, size_t size)
{
    int32_t ids[512];
    char back[256];
    size_t length = 0;
    ry_id_sink sink = {ids, 512, 0};
    renyi_error err = {0};
    if (ry_bpe_encode(b, text, size, &sink, &err)) {
        if (!err.message[0]) abort();
        return;
    }
    const size_t n = sink.n < 512 ? sink.n : 512;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= b->n_ids) abort();
    if (ry_bpe_decode(b, ids, n, back, sizeof back, &length, &err)) abort();
    fuzz_utf8(back, strlen(back));
}

static inline void fuzz_vocabulary(renyi_status st, ry_bpe *b, const renyi_error *err)
{
    static const char *const texts[] = {"", "The cat, that's 42.", "aaaaaaaaaaaaaaaaaaaaaaab",
                                        "\xe6\x97\xa5\xe6\x9c\xac <|endoftext|>"};
    if ((st != RENYI_OK) != (b == NULL) || (st && !err->message[0])) abort();
    if (!b) return;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        fuzz_encode(b, texts[i], strlen(texts[i]));
    for (uint32_t id = 0; id < b->n_ids && id < 2048; id++) {
        const int32_t one = (int32_t)id;
        char text[64];
        renyi_error e = {0};
        const renyi_status got = ry_bpe_decode(b, &one, 1, text, sizeof text, NULL, &e);
        if (got && (b->symbols[id].at || id == b->eot)) abort();
        if (!got) fuzz_utf8(text, strlen(text));
    }
    ry_bpe_free(b);
}

#endif
