/* html_entities.h - character references of HTML 5: &amp; &#233; &eacute;
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_HTML_ENTITIES_H
#define RY_HTML_ENTITIES_H

#include <stddef.h>
#include <stdint.h>

/* Replaces the references in text [n] by what they stand for, in place, once: "&amp;lt;" becomes
 * "&lt;". Returns the characters that are left. Rules of HTML 5, section 13.2.5.72, as Python's
 * html.unescape has them: a name may go on behind one that needs no semicolon, numbers that are no
 * characters vanish or become U+FFFD, 128 to 159 are those of Windows-1252. */
size_t ry_html_unescape(uint32_t *text, size_t n);

typedef struct ry_html_entity {
    const char *name;
    int is_bare;   /* counts without a semicolon too */
    uint32_t c[2]; /* what it stands for; second 0 = one character */
} ry_html_entity;
extern const ry_html_entity ry_html_entities[]; /* by name; html_entities_tables.c */
extern const size_t ry_html_entities_n;

#endif
