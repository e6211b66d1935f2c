/* unicode.h - properties of characters, lower case, and canonical composition.
 *
 * The tables are our own, so that results do not depend on the machine's locale and libraries.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_UNICODE_H
#define RY_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum {
    RY_LETTER = 1,  /* general category L* */
    RY_NUMBER = 2,  /* N* */
    RY_SPACE = 4,   /* White_Space */
    RY_CASED = 8,   /* has case and is not ignored */
    RY_IGNORED = 16 /* skipped when looking for cased letters around a sigma */
};
uint32_t ry_unicode_class(uint32_t c);

/* Lower case of text [n] into out [2 * n]: Unicode's full mapping for no particular language. With
 * has_final_sigma a sigma at the end of a word becomes the final form. Returns the number of
 * characters. */
size_t ry_unicode_lower(const uint32_t *text, size_t n, uint32_t *out, int has_final_sigma);

/* Text [n] in normalization form C, in place. Both arrays have space for RY_COMPOSE_GROWTH * n
 * characters. Returns their number, at most 3 n. */
enum { RY_COMPOSE_GROWTH = 4 };
size_t ry_unicode_compose(uint32_t *text, size_t n, uint32_t *spare);

#endif
