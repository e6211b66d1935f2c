/* html_entities.h - replaces HTML character references such as &amp; &#233; &eacute; by characters.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_HTML_ENTITIES_H
#define RY_HTML_ENTITIES_H

#include <stddef.h>
#include <stdint.h>

/* Replaces the references in text [n] in place, once: "&amp;lt;" becomes "&lt;". Returns the new
 * length. The rules are HTML 5, section 13.2.5.72, as in Python's html.unescape: some names need no
 * semicolon and may be followed by letters; numbers that are not characters are removed or become
 * U+FFFD; 128 to 159 are read as Windows-1252. */
size_t ry_html_unescape(uint32_t *text, size_t n);

typedef struct ry_html_entity {
    const char *name;
    int is_bare;   /* valid without a semicolon */
    uint32_t c[2]; /* its characters; second 0 = only one */
} ry_html_entity;
extern const ry_html_entity ry_html_entities[]; /* by name; html_entities_tables.c */
extern const size_t ry_html_entities_n;

#endif
