/* markup.h - puts text into a buffer: escaped names, numbers in any locale, base64.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MARKUP_H
#define RY_MARKUP_H

#include "base/buffer.h"

#include <stdarg.h>
#include <stddef.h>

/* ---- escaped text ---- */

/* Text from outside, for XML and HTML, between tags or in quotes. Special characters become
 * entities, white space becomes a space, and invalid UTF-8 and hidden characters (base/visible.h)
 * become U+FFFD. */
void ry_put_escaped(ry_buffer *s, const char *text);
void ry_put_escaped_part(ry_buffer *s, const char *text, size_t size); /* the first `size` bytes */
/* The same for a JSON string inside a <script>, without the quotes. */
void ry_put_json(ry_buffer *s, const char *text);
/* Only replaces what is invalid or hidden: for pango and terminals. */
void ry_put_clean(ry_buffer *s, const char *text);

/* Positions of the format and of its first argument, from 1. */
#define RY_FORMAT(text, first) __attribute__((format(printf, text, first)))

/* printf for markup. The verbs are a subset of printf's, so that the compiler checks the arguments:
 * %s (escaped as by ry_put_escaped), %u, %zu, %llu, %.Nf (a dash when not finite), %%. */
void ry_putf(ry_buffer *s, const char *format, ...) RY_FORMAT(2, 3);
void ry_vputf(ry_buffer *s, const char *format, va_list ap) RY_FORMAT(2, 0);

/* Estimated width of `text` in ems of a common sans serif, rather too large than too small. Stops
 * before the character that would exceed `most`; *cut (may be NULL) is where it stopped. */
double ry_text_width(const char *text, double most, const char **cut);

/* ---- numbers ---- */

/* v with that many decimals (0 to 6) and a point, whatever the locale; an en dash when not finite.
 * Returns the length; there is no NUL. */
enum { RY_NUMBER_MAX = 336 };
size_t ry_number(char out[RY_NUMBER_MAX], double v, int decimals);

void ry_put_number(ry_buffer *s, double v, int decimals);
void ry_put_signed(ry_buffer *s, double v, int decimals); /* "+1.20", "−0.40" with a true minus */
void ry_put_p_value(ry_buffer *s, double p);              /* "0.0414", "&lt; 0.0001" */

/* ---- base64 ---- */

void ry_put_base64(ry_buffer *s, const void *bytes, size_t size);

/* A long list of numbers as base64 of little-endian bytes. Start with ry_pack_to, add numbers, then
 * call ry_pack_end, which writes them to `s` without quotes and frees the list. A failed allocation
 * is reported in `s`. */
typedef struct ry_pack {
    ry_buffer *s;
    ry_buffer bytes;
} ry_pack;

static inline ry_pack ry_pack_to(ry_buffer *s) { return (ry_pack){s, {.al = s->al}}; }
void ry_pack_u16(ry_pack *p, uint16_t v);
void ry_pack_f32(ry_pack *p, float v); /* all NaNs have the same bits */
void ry_pack_end(ry_pack *p);

#endif
