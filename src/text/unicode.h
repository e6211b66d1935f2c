/* unicode.h - characters as text knows them: classes, lower case, canonical composition. From
 * tables of our own, so that a text means the same on every machine, whatever its locale and
 * libraries.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_UNICODE_H
#define RY_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum {
    RY_LETTER = 1,  /* general category L* */
    RY_NUMBER = 2,  /* N* */
    RY_SPACE = 4,   /* White_Space */
    RY_CASED = 8,   /* has case, and is not ignored */
    RY_IGNORED = 16 /* is looked through when a sigma asks whether a word goes on */
};
uint32_t ry_unicode_class(uint32_t c);

/* Lower case of text [n] into out [2 * n], as Unicode's full mapping without a language has it (a
 * sigma at the end of a word is the final one). Returns its characters. */
size_t ry_unicode_lower(const uint32_t *text, size_t n, uint32_t *out);

/* unicode_compose.c: text [n] in normalization form C, in place. Both arrays have room for
 * RY_COMPOSE_GROWTH * n. Returns the characters, at most 3 n. */
enum { RY_COMPOSE_GROWTH = 4 };
size_t ry_unicode_compose(uint32_t *text, size_t n, uint32_t *spare);

#endif
