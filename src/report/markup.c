/* markup.c - builds text for SVG, HTML and JSON: escaping, decimal numbers without the locale,
 * base64.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/markup.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "base/visible.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- escaped text ---- */

/* What is written instead of a character; NULL = the character itself. */
static const char *clean_escape(uint32_t c)
{
    return c == RY_REPLACEMENT ? "\xef\xbf\xbd" : c == ' ' ? " " : NULL;
}

static const char *xml_escape(uint32_t c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return clean_escape(c);
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
    default: return clean_escape(c);
    }
}

static void put_text(ry_buffer *s, const char *text, size_t size, const char *(*escape)(uint32_t))
{
    for (size_t i = 0, n; i < size; i += n) {
        const char *other = escape(ry_visible_next(text + i, &n));
        if (other)
            ry_buffer_text(s, other);
        else
            ry_buffer_put(s, text + i, n);
    }
}

void ry_put_escaped(ry_buffer *s, const char *text) { put_text(s, text, strlen(text), xml_escape); }

void ry_put_escaped_part(ry_buffer *s, const char *text, size_t size)
{
    put_text(s, text, size, xml_escape);
}

void ry_put_json(ry_buffer *s, const char *text) { put_text(s, text, strlen(text), json_escape); }

void ry_put_clean(ry_buffer *s, const char *text) { put_text(s, text, strlen(text), clean_escape); }

double ry_text_width(const char *text, double most, const char **cut)
{
    double width = 0;
    for (size_t n; *text; text += n) {
        const uint32_t c = ry_visible_next(text, &n);
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

/* ---- numbers ---- */

static size_t digits_of(char *out, uint64_t v, int at_least)
{
    char reversed[24];
    size_t n = 0;
    while (v || (int)n < at_least) {
        reversed[n++] = (char)('0' + v % 10);
        v /= 10;
    }
    for (size_t i = 0; i < n; i++) out[i] = reversed[n - 1 - i];
    return n;
}

size_t ry_number(char out[RY_NUMBER_MAX], double v, int decimals)
{
    static const double tens[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    static const uint64_t whole_tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    size_t n = 0;
    assert(decimals >= 0 && decimals <= 6);
    if (!isfinite(v)) {
        memcpy(out, "\xe2\x80\x93", 3);
        return 3;
    }
    const double scaled = fabs(v) * tens[decimals];
    if (!(scaled < 9e15)) /* beyond the digits of a double; "%.0f" prints no separator */
        return (size_t)snprintf(out, RY_NUMBER_MAX, "%.0f", v);
    const uint64_t units = (uint64_t)rint(scaled);
    if (v < 0 && units) out[n++] = '-';
    n += digits_of(out + n, units / whole_tens[decimals], 1);
    if (decimals) {
        out[n++] = '.';
        n += digits_of(out + n, units % whole_tens[decimals], decimals);
    }
    return n;
}

void ry_put_number(ry_buffer *s, double v, int decimals)
{
    char number[RY_NUMBER_MAX];
    ry_buffer_put(s, number, ry_number(number, v, decimals));
}

void ry_put_signed(ry_buffer *s, double v, int decimals)
{
    char number[RY_NUMBER_MAX];
    const size_t n = ry_number(number, v, decimals);
    if (number[0] == '-') {
        ry_buffer_text(s, "\xe2\x88\x92");
        ry_buffer_put(s, number + 1, n - 1);
        return;
    }
    if (v > 0 && isfinite(v) && strspn(number, "0.") < n) ry_buffer_text(s, "+");
    ry_buffer_put(s, number, n);
}

void ry_put_p_value(ry_buffer *s, double p)
{
    if (p < 0.0001)
        ry_buffer_text(s, "&lt; 0.0001");
    else
        ry_put_number(s, p, 4);
}

/* ---- printf ---- */

static void put_unsigned(ry_buffer *s, uint64_t v)
{
    char digits[24];
    ry_buffer_put(s, digits, digits_of(digits, v, 1));
}

/* One verb, after its '%'; returns what follows it. */
static const char *put_verb(ry_buffer *s, const char *f, va_list *ap)
{
    switch (*f) {
    case '%': ry_buffer_text(s, "%"); return f + 1;
    case 's': ry_put_escaped(s, va_arg(*ap, const char *)); return f + 1;
    case 'u': put_unsigned(s, va_arg(*ap, unsigned)); return f + 1;
    case 'z': put_unsigned(s, va_arg(*ap, size_t)); return f + 2;
    case 'l': put_unsigned(s, va_arg(*ap, unsigned long long)); return f + 3;
    case '.': ry_put_number(s, va_arg(*ap, double), f[1] - '0'); return f + 3;
    default: assert(0 && "unknown verb in ry_putf"); return f + 1;
    }
}

void ry_vputf(ry_buffer *s, const char *format, va_list ap)
{
    va_list rest;
    va_copy(rest, ap); /* a va_list parameter cannot be passed on by address */
    for (const char *f = format; *f;) {
        const size_t plain = strcspn(f, "%");
        ry_buffer_put(s, f, plain);
        f += plain;
        if (*f) f = put_verb(s, f + 1, &rest);
    }
    va_end(rest);
}

void ry_putf(ry_buffer *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    ry_vputf(s, format, ap);
    va_end(ap);
}

/* ---- base64 ---- */

void ry_put_base64(ry_buffer *s, const void *bytes, size_t size)
{
    static const char digits[65] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *b = bytes;
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t v = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) |
                           (left > 2 ? b[i + 2] : 0);
        char quad[4] = {digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63], digits[v & 63]};
        if (left < 2) quad[2] = '=';
        if (left < 3) quad[3] = '=';
        ry_buffer_put(s, quad, 4);
    }
}

void ry_pack_u16(ry_pack *p, uint16_t v)
{
    const char bytes[2] = {(char)(v & 255), (char)(v >> 8)};
    ry_buffer_put(&p->bytes, bytes, sizeof bytes);
}

void ry_pack_f32(ry_pack *p, float v)
{
    uint32_t bits = 0x7fc00000; /* NaN */
    if (!isnan(v)) memcpy(&bits, &v, sizeof bits);
    ry_pack_u16(p, (uint16_t)(bits & 0xffff));
    ry_pack_u16(p, (uint16_t)(bits >> 16));
}

void ry_pack_end(ry_pack *p)
{
    if (p->bytes.failed && !p->s->failed) {
        p->s->failed = 1;
        p->s->wanted = p->bytes.wanted;
    }
    ry_put_base64(p->s, p->bytes.bytes, p->bytes.size);
    ry_free(p->s->al, p->bytes.bytes);
    p->bytes = (ry_buffer){.al = p->s->al};
}
