/* bpe_split.c - see bpe_split.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/bpe_split.h"

#include "text/bpe.h"
#include "text/unicode.h"

#include <string.h>

/* Length of `word` if text [n] begins with it, else 0. */
static size_t begins_with(const uint32_t *text, size_t n, const char *word)
{
    const size_t length = strlen(word);
    if (n < length) return 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != (unsigned char)word[i]) return 0;
    return length;
}

static size_t shortened(const uint32_t *text, size_t n)
{
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (begins_with(text, n, endings[i])) return strlen(endings[i]);
    return 0;
}

ry_word_kind ry_bpe_next_word(const uint32_t *text, size_t n, size_t *at, size_t *end)
{
    enum { KINDS = RY_LETTER | RY_NUMBER | RY_SPACE };
    size_t i = *at, length;
    while (i < n && ry_unicode_class(text[i]) & RY_SPACE) i++;
    *at = *end = i;
    if (i == n) return RY_WORD_NONE;
    if ((length = begins_with(text + i, n - i, RY_BPE_SOT))) return *end = i + length, RY_WORD_SOT;
    if ((length = begins_with(text + i, n - i, RY_BPE_EOT))) return *end = i + length, RY_WORD_EOT;
    if ((length = shortened(text + i, n - i))) return *end = i + length, RY_WORD_TEXT;
    const uint32_t kind = ry_unicode_class(text[i]) & KINDS;
    i++;
    while (kind != RY_NUMBER && i < n && (ry_unicode_class(text[i]) & KINDS) == kind) i++;
    *end = i;
    return RY_WORD_TEXT;
}
