/* markup.h - a text that grows, and numbers and names in it. Nothing here asks the locale.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MARKUP_H
#define RY_MARKUP_H

#include "renyi/renyi.h"

#include <stddef.h>

/* Once memory is short the text stays as it is and `failed` is set: callers ask once, at the end.
 */
typedef struct ry_sink {
    const renyi_allocator *al;
    char *bytes; /* [capacity] */
    size_t size, capacity;
    size_t wanted; /* the size that could not be had */
    int failed;
} ry_sink;

void ry_put_bytes(ry_sink *s, const char *bytes, size_t n);
void ry_put(ry_sink *s, const char *text); /* as it is */

/* Text from outside, for XML and HTML, between tags or in quotes: markup becomes entities, blanks
 * become spaces, and what cannot be printed or is not UTF-8 becomes U+FFFD. */
void ry_put_escaped(ry_sink *s, const char *text);
void ry_put_escaped_part(ry_sink *s, const char *text, size_t size); /* its first bytes */
/* The same for a string of JSON inside a <script>, without the quotes. */
void ry_put_json(ry_sink *s, const char *text);

/* A template. Verbs are a subset of printf's, so that the compiler checks the arguments, but %s is
 * escaped as by ry_put_escaped: %s, %u, %zu, %llu, %.Nf (a dash when not finite), %%. */
void ry_putf(ry_sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

void ry_put_signed(ry_sink *s, double v, int decimals); /* "+1.20", "−0.40" with a true minus */
void ry_put_p_value(ry_sink *s, double p);              /* "0.0414", "&lt; 0.0001" */

/* v with that many decimals, "." before them whatever the locale; an en dash when not finite.
 * Returns the length. */
enum { RY_NUMBER_MAX = 336 };
size_t ry_number(char out[RY_NUMBER_MAX], double v, int decimals);

/* The next character of UTF-8 text: its code point, and its length in *n (1 for a wrong byte,
 * which gives U+FFFD). `at` must not be at the terminating NUL. Characters that must not be shown
 * (controls, marks that turn the direction of writing) give U+FFFD too; blanks give a space. */
uint32_t ry_utf8_next(const char *at, size_t *n);

/* Width of `text` in ems of a common sans serif, generously; ends before *cut where it would
 * exceed `most` (cut may be NULL). */
double ry_text_width(const char *text, double most, const char **cut);

#endif
