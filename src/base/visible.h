/* visible.h - which characters of a text from outside may be shown, in a terminal, a page or a
 * figure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VISIBLE_H
#define RY_VISIBLE_H

#include <stddef.h>
#include <stdint.h>

/* Characters that are invisible and change what a reader sees or what a terminal does: controls
 * (C0, DEL, C1), marks of the writing direction, zero-width spaces, line and paragraph separators,
 * byte order marks, tags, surrogates and values that are no characters. Joiners (U+200C, U+200D)
 * are not among them: Persian, Indic scripts and emoji need them, and they change only the shape of
 * their neighbours. */
int ry_is_hidden(uint32_t c);

/* The next character of NUL-terminated UTF-8 text as it is shown: its code point, and its length in
 * *n. Invalid bytes and hidden characters give U+FFFD, line ends and tabs give a space. `at` must
 * not be at the terminating NUL. */
uint32_t ry_visible_next(const char *at, size_t *n);

/* Copies text as it is shown to out [size >= 1], cut after a whole character. */
void ry_visible_copy(char *out, size_t size, const char *text);

#endif
