/* fuzz_tokenizers.c - tokenizer files and texts: ids stay inside the vocabulary, decoded text is
 * UTF-8.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/utf8.h"
#include "formats/gunzip.h"
#include "fuzz_targets.h"
#include "text/bpe.h"
#include "text/spm.h"

#include <stdlib.h>
#include <string.h>

/* Uses a vocabulary: ids of a few texts are inside it, and the text of every id is UTF-8. */
static void check_utf8(const char *text, size_t n)
{
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t c;
        step = ry_utf8_get(text + i, n - i, &c);
        if (c == RY_UTF8_BAD) abort();
    }
}

/* Ids, and their text again; an error must say something. */
static void encode_bpe(const ry_bpe *b, const char *text, size_t size)
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
    check_utf8(back, strlen(back));
}

static void use_bpe(renyi_status st, ry_bpe *b, const renyi_error *err)
{
    static const char *const texts[] = {"", "The cat, that's 42.", "aaaaaaaaaaaaaaaaaaaaaaab",
                                        "\xe6\x97\xa5\xe6\x9c\xac <|endoftext|>"};
    if ((st != RENYI_OK) != (b == NULL) || (st && !err->message[0])) abort();
    if (!b) return;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        encode_bpe(b, texts[i], strlen(texts[i]));
    for (uint32_t id = 0; id < b->n_ids && id < 2048; id++) {
        const int32_t one = (int32_t)id;
        char text[64];
        renyi_error e = {0};
        const renyi_status got = ry_bpe_decode(b, &one, 1, text, sizeof text, NULL, &e);
        if (got && (b->symbols[id].at || id == b->eot)) abort();
        if (!got) check_utf8(text, strlen(text));
    }
    ry_bpe_free(b);
}

/* ---- merges ---------------------------------------------------------------------------------- */

/* Any bytes as a merges file, plain or gzip. */
int fuzz_merges(const uint8_t *data, size_t size)
{
    uint8_t *unpacked = NULL;
    size_t n = size;
    ry_bpe *b;
    renyi_error err = {0};
    if (ry_is_gzip(data, size)) {
        const renyi_status st = ry_gunzip(&unpacked, &n, data, size, "fuzz", 1 << 20, NULL, &err);
        if ((st != RENYI_OK) != (unpacked == NULL) || (st && !err.message[0])) abort();
        if (st) return 0;
    }
    const char *text = (const char *)(unpacked ? unpacked : data);
    const renyi_status st = ry_bpe_read_merges(&b, text, n, "fuzz", NULL, &err);
    use_bpe(st, b, &err);
    ry_free(NULL, unpacked);
    return 0;
}

/* ---- vocab ----------------------------------------------------------------------------------- */

/* Any bytes as tokenizer.json; with a NUL, as vocab.json before it and merges.txt after it. */
int fuzz_vocab(const uint8_t *data, size_t size)
{
    const ry_json_limits limits = {1 << 20, 100000, 0};
    const char *text = (const char *)data, *nul = size ? memchr(text, 0, size) : NULL;
    const size_t n = nul ? (size_t)(nul - text) : size;
    json_t *root;
    ry_bpe *b;
    renyi_error err = {0};
    renyi_status st = ry_json_parse(&root, text, n, "fuzz", &limits, &err);
    if (st) return 0;
    if (nul)
        st = ry_bpe_read_vocab(&b, root, "fuzz", nul + 1, size - n - 1, "merges", NULL, &err);
    else
        st = ry_bpe_read_tokenizer(&b, root, "fuzz", NULL, &err);
    use_bpe(st, b, &err);
    json_decref(root);
    return 0;
}

/* The same for SentencePiece vocabularies, with streamed text. */
/* One more id; what it adds must be whole characters and leave space for a NUL. */
static void put_id(const ry_spm *s, renyi_lm_stream *stream, int32_t id)
{
    char text[RENYI_LM_STREAM_ROOM];
    int is_bad;
    const size_t n = ry_spm_put(s, stream, id, text, &is_bad);
    if (is_bad != !s->bpe->symbols[id].at) abort();
    if (n >= sizeof text || ry_utf8_valid(text, n) != n) abort();
}

static void encode_text(const ry_spm *s, const char *text, size_t size, uint32_t flags)
{
    int32_t ids[512];
    ry_id_sink sink = {ids, 512, 0};
    renyi_lm_stream stream = {.flags = flags};
    renyi_error err = {0};
    if (ry_spm_encode(s, text, size, flags, 0, &sink, &err)) { /* not UTF-8, or it grows too much */
        if (!err.message[0]) abort();
        return;
    }
    for (size_t i = 0; i < sink.n && i < 512; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->bpe->n_ids) abort();
        put_id(s, &stream, ids[i]);
    }
}

static void use_spm(renyi_status st, ry_spm *s, const renyi_error *err)
{
    static const char *const texts[] = {"", "The  cat, that's 42. ", " aaaaaaaaaaaaaaaaaaaaaaab ",
                                        "<s> <image>\n</s> <unk> <0x41>",
                                        "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80\xe2\x96\x81x"};
    if ((st != RENYI_OK) != (s == NULL) || (st && !err->message[0])) abort();
    if (!s) return;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t n = strlen(texts[i]);
        s->clean = (ry_clean)(i % 4);
        encode_text(s, texts[i], n, 0);
        encode_text(s, texts[i], n, RENYI_LM_PLAIN | RENYI_LM_SPECIAL);
    }
    renyi_lm_stream stream = {0};
    for (uint32_t id = 0; id < s->bpe->n_ids && id < 2048; id++) put_id(s, &stream, (int32_t)id);
    ry_spm_free(s);
}

/* ---- spm ------------------------------------------------------------------------------------- */

/* Any bytes as a SentencePiece model. */
int fuzz_spm(const uint8_t *data, size_t size)
{
    ry_spm *s;
    renyi_error err = {0};
    const renyi_status st = ry_spm_read_model(&s, data, size, "fuzz", NULL, NULL, &err);
    use_spm(st, s, &err);
    return 0;
}

/* ---- lm_tokenizer_json ----------------------------------------------------------------------- */

/* Any bytes as tokenizer.json of a language model, or as pieces.json. */
int fuzz_lm_tokenizer_json(const uint8_t *data, size_t size)
{
    const ry_json_limits limits = {1 << 20, 100000, 0};
    json_t *root;
    ry_spm *s;
    renyi_error err = {0};
    if (ry_json_parse(&root, (const char *)data, size, "fuzz", &limits, &err)) return 0;
    const renyi_status st = json_is_array(root) ? ry_spm_read_pieces(&s, root, "fuzz", NULL, &err)
                                                : ry_spm_read_json(&s, root, "fuzz", NULL, &err);
    use_spm(st, s, &err);
    json_decref(root);
    return 0;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* A unigram model; its pieces are letters and a few words. */
static ry_spm *small_unigram(void)
{
    static const char text[] =
        "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\\u2581\"}, "
        "\"added_tokens\": [{\"id\": 1, \"content\": \"</s>\", \"special\": true}], \"model\": "
        "{\"type\": \"Unigram\", \"unk_id\": 2, \"vocab\": [[\"<pad>\", 0], [\"</s>\", 0], "
        "[\"<unk>\", 0], [\"\\u2581\", -2], [\"a\", -3], [\"b\", -3], [\"ab\", -4], "
        "[\"\\u2581the\", -3], [\"\\u65e5\\u672c\", -5]]}}";
    json_t *root;
    ry_spm *s;
    renyi_error err = {0};
    if (ry_json_parse(&root, text, sizeof text - 1, "small", NULL, &err)) abort();
    if (ry_spm_read_json(&s, root, "small", NULL, &err)) abort();
    json_decref(root);
    return s;
}

/* Any bytes as a text for the tokenizers, cleaned in every way. */
int fuzz_tokens(const uint8_t *data, size_t size)
{
    static const char merges[] =
        "t h\nth e</w>\na a\naa aa\naaaa a</w>\na n\nan d</w>\ne r\ni n\n. .\n";
    ry_bpe *b;
    renyi_error err = {0};
    if (ry_bpe_read_merges(&b, merges, sizeof merges - 1, "merges", NULL, &err)) abort();
    encode_bpe(b, (const char *)data, size);
    ry_bpe_free(b);
    ry_spm *s = small_unigram();
    for (int clean = RY_CLEAN_NONE; clean <= RY_CLEAN_OPEN_CLIP; clean++) {
        s->clean = (ry_clean)clean;
        encode_text(s, (const char *)data, size, 0);
    }
    ry_spm_free(s);
    return 0;
}
