/* escape.c - text from outside in XML, HTML and JSON: any bytes come out as valid, plain text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/markup.h"

#include <string.h>

enum { REPLACEMENT = 0xfffd };

/* Length that a first byte promises and its payload; 0 for a byte that starts nothing. */
static size_t promise(unsigned char first, uint32_t *bits)
{
    if (first < 0x80) return *bits = first, 1;
    if (first >= 0xc2 && first < 0xe0) return *bits = first & 0x1fu, 2;
    if (first >= 0xe0 && first < 0xf0) return *bits = first & 0x0fu, 3;
    if (first >= 0xf0 && first < 0xf5) return *bits = first & 0x07u, 4;
    return 0;
}

static int is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0)            /* controls */
           || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff /* no characters */
           || (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef) ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069); /* writing direction */
}

uint32_t ry_utf8_next(const char *at, size_t *n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c;
    const size_t length = promise((unsigned char)*at, &c);
    *n = 1;
    if (!length) return REPLACEMENT;
    if (length == 1 && (c == '\t' || c == '\n' || c == '\r')) return ' ';
    for (size_t i = 1; i < length; i++) { /* a NUL is no continuation: never read past it */
        const unsigned char next = (unsigned char)at[i];
        if ((next & 0xc0) != 0x80) return REPLACEMENT;
        c = c << 6 | (next & 0x3fu);
    }
    if (c < least[length]) return REPLACEMENT;
    *n = length;
    return is_hidden(c) ? REPLACEMENT : c;
}

static const char *entity(uint32_t c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case REPLACEMENT: return "\xef\xbf\xbd";
    case ' ': return " "; /* a blank of any kind */
    default: return NULL;
    }
}

/* Everything that could end the string, the script or a comment in it. */
static const char *json_escape(uint32_t c)
{
    switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '&': return "\\u0026";
    case '<': return "\\u003c";
    case '>': return "\\u003e";
    case 0x2028: return "\\u2028";
    case 0x2029: return "\\u2029";
    default: return c == '\'' ? NULL : entity(c);
    }
}

static void put_text(ry_sink *s, const char *text, size_t size, const char *(*escape)(uint32_t))
{
    for (size_t i = 0, n; i < size; i += n) {
        const char *other = escape(ry_utf8_next(text + i, &n));
        if (other)
            ry_put(s, other);
        else
            ry_put_bytes(s, text + i, n);
    }
}

void ry_put_escaped(ry_sink *s, const char *text) { put_text(s, text, strlen(text), entity); }

void ry_put_escaped_part(ry_sink *s, const char *text, size_t size)
{
    put_text(s, text, size, entity);
}

void ry_put_json(ry_sink *s, const char *text) { put_text(s, text, strlen(text), json_escape); }

double ry_text_width(const char *text, double most, const char **cut)
{
    double width = 0;
    for (size_t n; *text; text += n) {
        const uint32_t c = ry_utf8_next(text, &n);
        const int is_narrow = c < 0x80 && strchr("ijlt.,:;|!'()[]- f", (int)c) != NULL;
        const double more = c >= 0x1100            ? 1.05
                            : is_narrow            ? 0.38
                            : c == 'm' || c == 'w' ? 0.9
                                                   : 0.62;
        if (width + more > most) break;
        width += more;
    }
    if (cut) *cut = text;
    return width;
}
