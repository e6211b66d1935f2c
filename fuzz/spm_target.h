/* spm_target.h - what the targets of Llama's tokenizer files do with what was read: ids of a few
 * texts stay inside the vocabulary, and texts of all ids are UTF-8, part by part.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_FUZZ_SPM_TARGET_H
#define RENYI_FUZZ_SPM_TARGET_H

#include "base/utf8.h"
#include "text/spm.h"

#include <stdlib.h>
#include <string.h>

/* One more id; what it adds must be whole characters and leave room for a NUL. */
static inline void fuzz_put(const ry_spm *s, renyi_lm_stream *stream, int32_t id)
{
    char text[RENYI_LM_STREAM_ROOM];
    int is_bad;
    const size_t n = ry_spm_put(s, stream, id, text, &is_bad);
    if (is_bad != !s->bpe->symbols[id].at) abort();
    if (n >= sizeof text || ry_utf8_valid(text, n) != n) abort();
}

static inline void fuzz_text(const ry_spm *s, const char *text, uint32_t flags)
{
    int32_t ids[512];
    ry_id_sink sink = {ids, 512, 0};
    renyi_lm_stream stream = {.flags = flags};
    renyi_error err = {0};
    if (ry_spm_encode(s, text, strlen(text), flags, 0, &sink, &err)) abort();
    for (size_t i = 0; i < sink.n && i < 512; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->bpe->n_ids) abort();
        fuzz_put(s, &stream, ids[i]);
    }
}

static inline void fuzz_spm(renyi_status st, ry_spm *s, const renyi_error *err)
{
    static const char *const texts[] = {"", "The  cat, that's 42. ", " aaaaaaaaaaaaaaaaaaaaaaab ",
                                        "<s> <image>\n</s> <unk> <0x41>",
                                        "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80\xe2\x96\x81x"};
    if ((st != RENYI_OK) != (s == NULL) || (st && !err->message[0])) abort();
    if (!s) return;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fuzz_text(s, texts[i], 0);
        fuzz_text(s, texts[i], RENYI_LM_PLAIN | RENYI_LM_SPECIAL);
    }
    renyi_lm_stream stream = {0};
    for (uint32_t id = 0; id < s->bpe->n_ids && id < 2048; id++) fuzz_put(s, &stream, (int32_t)id);
    ry_spm_free(s);
}

#endif
