/* faults.c - see faults.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/common/faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ITEM = 288 }; /* a name and two shapes */

void ry_faults_add(ry_faults *l, const char *kind, const char *fmt, ...)
{
    char item[ITEM], joined[ITEM + 32];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(item, sizeof item, fmt, ap);
    va_end(ap);
    const char *joint = !l->used ? "" : l->kind == kind ? ", " : "; ";
    const int n =
        snprintf(joined, sizeof joined, "%s%s%s", joint, l->kind == kind ? "" : kind, item);
    l->count++;
    if (l->left_out || n < 0 || l->used + (size_t)n >= sizeof l->text) {
        l->left_out++;
        return;
    }
    memcpy(l->text + l->used, joined, (size_t)n + 1);
    l->used += (size_t)n;
    l->kind = kind;
}

const char *ry_faults_text(const ry_faults *l, char out[RY_FAULTS_TEXT])
{
    snprintf(out, RY_FAULTS_TEXT, "%s", l->text);
    if (l->left_out) snprintf(out, RY_FAULTS_TEXT, "%s and %u more", l->text, l->left_out);
    return out;
}
