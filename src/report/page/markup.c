/* markup.c - see text.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/markup.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static int make_room(ry_sink *s, size_t n)
{
    size_t need, grown;
    if (s->failed) return 0;
    if (!ry_add_size(s->size, n, &need)) need = SIZE_MAX;
    if (need <= s->capacity) return 1;
    if (!ry_mul_size(need, 2, &grown)) grown = need;
    if (grown < 4096) grown = 4096;
    char *bytes = ry_alloc(s->al, grown, 1);
    if (!bytes) {
        s->failed = 1;
        s->wanted = grown;
        return 0;
    }
    if (s->size) memcpy(bytes, s->bytes, s->size);
    ry_free(s->al, s->bytes);
    s->bytes = bytes;
    s->capacity = grown;
    return 1;
}

void ry_put_bytes(ry_sink *s, const char *bytes, size_t n)
{
    if (!n || !make_room(s, n)) return;
    memcpy(s->bytes + s->size, bytes, n);
    s->size += n;
}

void ry_put(ry_sink *s, const char *text) { ry_put_bytes(s, text, strlen(text)); }

static void put_unsigned(ry_sink *s, unsigned long long v)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    ry_put_bytes(s, digits + at, sizeof digits - at);
}

static void put_number(ry_sink *s, double v, int decimals)
{
    char number[RY_NUMBER_MAX];
    ry_put_bytes(s, number, ry_number(number, v, decimals));
}

void ry_put_signed(ry_sink *s, double v, int decimals)
{
    char number[RY_NUMBER_MAX];
    const size_t n = ry_number(number, v, decimals);
    if (number[0] == '-') {
        ry_put(s, "\xe2\x88\x92");
        ry_put_bytes(s, number + 1, n - 1);
        return;
    }
    if (v > 0 && isfinite(v) && strspn(number, "0.") < n) ry_put(s, "+");
    ry_put_bytes(s, number, n);
}

void ry_put_p_value(ry_sink *s, double p)
{
    if (p < 0.0001)
        ry_put(s, "&lt; 0.0001");
    else
        put_number(s, p, 4);
}

/* One verb behind its '%'; returns what follows it. */
static const char *put_verb(ry_sink *s, const char *f, va_list *ap)
{
    switch (*f) {
    case '%': ry_put(s, "%"); return f + 1;
    case 's': ry_put_escaped(s, va_arg(*ap, const char *)); return f + 1;
    case 'u': put_unsigned(s, va_arg(*ap, unsigned)); return f + 1;
    case 'z': put_unsigned(s, va_arg(*ap, size_t)); return f + 2;
    case 'l': put_unsigned(s, va_arg(*ap, unsigned long long)); return f + 3;
    case '.': put_number(s, va_arg(*ap, double), f[1] - '0'); return f + 3;
    default: assert(!"a verb that ry_putf does not know"); return f + 1;
    }
}

void ry_putf(ry_sink *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    for (const char *f = format; *f;) {
        const size_t plain = strcspn(f, "%");
        ry_put_bytes(s, f, plain);
        f += plain;
        if (*f) f = put_verb(s, f + 1, &ap);
    }
    va_end(ap);
}
