/* spm_fixture.h - small SentencePiece models made in memory: <unk>, <s>, </s>, bytes if wanted,
 * then pieces of a list with falling scores. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_SPM_FIXTURE_H
#define RENYI_TESTS_SPM_FIXTURE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLANK "\xe2\x96\x81"

typedef struct proto {
    uint8_t at[16384];
    size_t n;
} proto;

static inline void proto_varint(proto *p, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) p->at[p->n++] = (uint8_t)(value | 0x80);
    p->at[p->n++] = (uint8_t)value;
}

static inline void proto_number(proto *p, uint32_t field, uint64_t value)
{
    proto_varint(p, (uint64_t)field << 3);
    proto_varint(p, value);
}

static inline void proto_bytes(proto *p, uint32_t field, const void *bytes, size_t n)
{
    proto_varint(p, (uint64_t)field << 3 | 2);
    proto_varint(p, n);
    memcpy(p->at + p->n, bytes, n);
    p->n += n;
}

static inline void proto_float(proto *p, uint32_t field, float value)
{
    proto_varint(p, (uint64_t)field << 3 | 5);
    memcpy(p->at + p->n, &value, 4); /* tests run on little-endian machines */
    p->n += 4;
}

/* type: 1 text, 2 unknown, 3 control, 4 whole, 6 byte */
static inline void put_piece(proto *p, const char *text, float score, uint32_t type)
{
    proto one = {.n = 0};
    proto_bytes(&one, 1, text, strlen(text));
    proto_float(&one, 2, score);
    if (type != 1) proto_number(&one, 3, type);
    proto_bytes(p, 1, one.at, one.n);
}

static inline void put_settings(proto *p, int has_bytes, int has_prefix, int is_squeezed)
{
    proto trainer = {.n = 0}, normalizer = {.n = 0};
    proto_number(&trainer, 3, 2);
    proto_number(&trainer, 35, (uint64_t)has_bytes);
    proto_number(&trainer, 43, (uint64_t)(int64_t)-1); /* no padding */
    proto_bytes(p, 2, trainer.at, trainer.n);
    proto_bytes(&normalizer, 1, "identity", 8);
    proto_number(&normalizer, 3, (uint64_t)has_prefix);
    proto_number(&normalizer, 4, (uint64_t)is_squeezed);
    proto_bytes(p, 3, normalizer.at, normalizer.n);
}

static inline void put_specials(proto *p, int has_bytes)
{
    put_piece(p, "<unk>", 0, 2);
    put_piece(p, "<s>", 0, 3);
    put_piece(p, "</s>", 0, 3);
    for (unsigned byte = 0; has_bytes && byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte);
        put_piece(p, name, 0, 6);
    }
}

/* Ids of small_pieces begin here where there are bytes, else at 3. */
enum { FIRST_PIECE = 259 };
static const char *const small_pieces[] = {BLANK "t", "he", BLANK "the", "at", "aa",
                                           "aaaa",    "ab", BLANK,       "t",  "h",
                                           "e",       "a",  "b",         "c",  NULL};

static inline void put_small(proto *p, int has_bytes)
{
    p->n = 0;
    put_specials(p, has_bytes);
    for (int i = 0; small_pieces[i]; i++) put_piece(p, small_pieces[i], -(float)i, 1);
    put_settings(p, has_bytes, 1, 0);
}

#endif
