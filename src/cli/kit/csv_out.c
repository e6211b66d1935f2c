/* csv_out.c - see csv_out.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/csv_out.h"

#include <math.h>
#include <string.h>

void csv_cell(FILE *f, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, f);
        return;
    }
    putc('"', f);
    for (; *text; text++) {
        if (*text == '"') putc('"', f);
        putc(*text, f);
    }
    putc('"', f);
}

void csv_real(FILE *f, int digits, double value)
{
    putc(',', f);
    if (isfinite(value)) fprintf(f, "%.*f", digits, value);
}
