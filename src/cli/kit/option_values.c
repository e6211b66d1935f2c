/* option_values.c - see option_values.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/option_values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Digits only, up to `stop` or the end; -1 on anything else, overflow or out of range. */
static int parse_count(const option *o, const char *text, size_t length, uint64_t *out)
{
    uint64_t value = 0;

    if (length == 0) return -1;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i])) return -1;
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) return -1;
        value = value * 10 + digit;
    }
    if (value < o->min || (o->max && value > o->max)) return -1;
    *out = value;
    return 0;
}

static int bad_count(const char *verb, const option *o, const char *text)
{
    if (o->max)
        options_usage_error(verb, "option '--%s': '%s' is not a whole number from %llu to %llu",
                            o->name, text, (unsigned long long)o->min, (unsigned long long)o->max);
    else
        options_usage_error(verb, "option '--%s': '%s' is not a whole number of at least %llu",
                            o->name, text, (unsigned long long)o->min);
    return -1;
}

static int store_counts(const char *verb, const option *o, const char *text)
{
    option_counts *list = o->value;

    list->count = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        if (list->count == OPTION_MAX_COUNTS) {
            options_usage_error(verb, "option '--%s': more than %d values", o->name,
                                OPTION_MAX_COUNTS);
            return -1;
        }
        if (parse_count(o, at, length, &list->values[list->count])) return bad_count(verb, o, text);
        list->count++;
        at += length;
        if (!*at) return 0;
    }
}

static int store_reals(const char *verb, const option *o, const char *text)
{
    const int wanted = o->kind == OPTION_REALS3 ? 3 : 1;
    option_reals *reals = o->value;
    const char *at = text;

    for (int i = 0; i < wanted; i++) {
        char *end;
        reals->values[i] = strtod(at, &end);
        const int is_last = i == wanted - 1;
        if (end == at || !isfinite(reals->values[i]) || *end != (is_last ? '\0' : ',')) {
            options_usage_error(verb, "option '--%s': '%s' is not %s", o->name, text,
                                wanted == 3 ? "three numbers" : "a number");
            return -1;
        }
        at = end + 1;
    }
    reals->given = 1;
    return 0;
}

static int store_choice(const char *verb, const option *o, const char *text)
{
    const size_t length = strlen(text);

    for (const char *at = o->argument;; at++) {
        const size_t n = strcspn(at, "|");
        if (n == length && memcmp(at, text, n) == 0) {
            *(const char **)o->value = text;
            return 0;
        }
        at += n;
        if (!*at) break;
    }
    options_usage_error(verb, "option '--%s': '%s' is not one of %s", o->name, text, o->argument);
    return -1;
}

int option_store(const char *verb, const option *o, const char *text)
{
    switch (o->kind) {
    case OPTION_STRING: *(const char **)o->value = text; return 0;
    case OPTION_STRINGS: cli_strings_add(o->value, cli_copy(text)); return 0;
    case OPTION_COUNT:
        if (parse_count(o, text, strlen(text), o->value)) return bad_count(verb, o, text);
        return 0;
    case OPTION_COUNTS: return store_counts(verb, o, text);
    case OPTION_REAL:
    case OPTION_REALS3: return store_reals(verb, o, text);
    case OPTION_CHOICE: return store_choice(verb, o, text);
    case OPTION_FLAG:
    case OPTION_HEADING: break;
    }
    return 0;
}
