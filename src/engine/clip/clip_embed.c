/* clip_embed.c - renyi_embed_texts: texts to rows of length 1, some at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/clip/clip_text.h"

#include <string.h>

enum { AT_A_TIME = 4096 }; /* texts whose ids are in memory: 1.3 MB */

/* Bytes of a text that a message shows: whole characters. */
static int shown(const char *text)
{
    enum { MOST = 40 };
    size_t n = strlen(text);
    if (n <= MOST) return (int)n;
    for (n = MOST; n && ((unsigned char)text[n] & 0xc0) == 0x80;) n--;
    return (int)n;
}

static renyi_status encode(const renyi_tokenizer *t, const char *text, uint32_t context,
                           int truncate, uint32_t number, int32_t *ids, uint32_t *length,
                           renyi_error *err)
{
    renyi_error why = {0};
    const renyi_status st =
        renyi_tokenizer_encode(t, text, strlen(text), context, truncate, ids, length, &why);
    if (!st) return RENYI_OK;
    const int n = shown(text);
    return ry_fail(err, st, why.offset, "text %u (\"%.*s%s\"): %s", number, n, text,
                   text[n] ? "..." : "", why.message);
}

renyi_status renyi_embed_texts(renyi_text_session *s, const renyi_tokenizer *tokenizer,
                               const char *const *texts, uint32_t n, int truncate, float *out,
                               renyi_error *err)
{
    renyi_text_info info;
    if (!s || !tokenizer || (n && (!texts || !out)))
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_embed_texts: NULL argument");
    const renyi_text *tower = ry_text_session_tower(s);
    renyi_text_get_info(tower, &info);
    const uint32_t room = n < AT_A_TIME ? n : AT_A_TIME;
    int32_t *ids = ry_alloc(&tower->al, (size_t)room * info.context, sizeof *ids);
    uint32_t *lengths = ry_alloc(&tower->al, room, sizeof *lengths);
    renyi_status st =
        ids && lengths ? RENYI_OK : ry_fail_nomem(err, (size_t)room * info.context * sizeof *ids);
    for (uint32_t done = 0; !st && done < n;) {
        const uint32_t count = n - done < room ? n - done : room;
        for (uint32_t i = 0; !st && i < count; i++)
            st = encode(tokenizer, texts[done + i], info.context, truncate, done + i + 1,
                        ids + (size_t)i * info.context, &lengths[i], err);
        float *rows = out + (size_t)done * info.embed_dim;
        if (!st) st = renyi_text_run(s, ids, lengths, count, rows, err);
        if (!st) renyi_normalise_rows(rows, count, info.embed_dim);
        done += count;
    }
    ry_free(&tower->al, ids);
    ry_free(&tower->al, lengths);
    return st;
}
