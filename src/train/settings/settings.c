/* settings.c - reads settings from text and prints them; the public functions about settings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/settings/settings.h"

#include "base/decimal.h"
#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

enum { MOST_DIGITS = 60, FEWEST = 6, MOST = 17 }; /* 17 digits identify any double */

int ry_number_read(const char *text, size_t length, double *out)
{
    char json[MOST_DIGITS + 4] = "";
    json_error_t unused;
    const int negative = length && text[0] == '-';
    text += negative;
    length -= (size_t)negative;
    if (!length || length > MOST_DIGITS || !strchr(".0123456789", text[0])) return 0;
    /* JSON has neither ".5" nor "007" */
    const int bare = text[0] == '.';
    while (length > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') text++, length--;
    snprintf(json, sizeof json, "%s%.*s", bare ? "0" : "", (int)length, text);
    json_t *number = json_loads(json, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &unused);
    const int ok = json_is_real(number) && isfinite(json_real_value(number));
    if (ok) *out = negative ? -json_real_value(number) : json_real_value(number);
    json_decref(number);
    return ok;
}

static size_t print_digits(char out[RY_NUMBER_TEXT], double x, size_t digits)
{
    json_t *number = json_real(x);
    const size_t n = number ? json_dumpb(number, out, RY_NUMBER_TEXT - 1,
                                         JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits))
                            : 0;
    json_decref(number);
    out[n < RY_NUMBER_TEXT ? n : 0] = '\0';
    return n;
}

const char *ry_number_print(char out[RY_NUMBER_TEXT], double x)
{
    double back = 0;
    if (!isfinite(x)) {
        snprintf(out, RY_NUMBER_TEXT, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return out;
    }
    for (size_t digits = FEWEST; digits <= MOST; digits++) {
        const size_t n = print_digits(out, x, digits);
        if (n > 2 && n < RY_NUMBER_TEXT && strcmp(out + n - 2, ".0") == 0) out[n - 2] = '\0';
        if (ry_number_read(out, strlen(out), &back) && back == x) break;
    }
    return out;
}

static void *field_of(const ry_setting *s, renyi_train_options *opt)
{
    return (char *)opt + s->offset;
}

static const void *value_of(const ry_setting *s, const renyi_train_options *opt)
{
    return (const char *)opt + s->offset;
}

/* ---- reading --------------------------------------------------------------------------------- */

static renyi_status read_count(const ry_setting *s, void *field, const char *text, renyi_error *err)
{
    const uint64_t most = s->high > 0 ? (uint64_t)s->high : UINT64_MAX;
    uint64_t value;
    if (!ry_read_whole(text, strlen(text), most, &value) || (double)value < s->low) {
        if (s->high > 0)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "%s: '%.60s' is not a whole number from %g to %g%s", s->name, text,
                           s->low, s->high, s->flags & RY_SETTING_AUTO ? ", or auto" : "");
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s: '%.60s' is not a whole number%s", s->name, text,
                       s->flags & RY_SETTING_AUTO ? ", or auto" : "");
    }
    memcpy(field, &value, sizeof value);
    return RENYI_OK;
}

static renyi_status read_reals(const ry_setting *s, void *field, const char *text, renyi_error *err)
{
    static const char *const how_many[] = {"a number", "two numbers, separated by a comma",
                                           "three numbers, separated by commas"};
    double values[3];
    const char *at = text;
    for (uint32_t i = 0; i < s->n; i++) {
        const size_t length = strcspn(at, ",");
        const int is_last = i + 1 == s->n;
        if (!ry_number_read(at, length, &values[i]) || values[i] < s->low || values[i] > s->high ||
            (at[length] == '\0') != is_last)
            return ry_fail(err, RENYI_ERR_ARG, -1, "%s: '%.60s' is not %s from %g to %g", s->name,
                           text, how_many[s->n - 1], s->low, s->high);
        at += length + !is_last;
    }
    memcpy(field, values, s->n * sizeof *values);
    return RENYI_OK;
}

/* Index of `text` among choices separated by '|', or -1. */
static int find_choice(const char *choices, const char *text)
{
    const size_t length = strlen(text);
    for (int i = 0;; i++) {
        const size_t n = strcspn(choices, "|");
        if (n == length && memcmp(choices, text, n) == 0) return i;
        if (!choices[n]) return -1;
        choices += n + 1;
    }
}

static renyi_status read_choice(const ry_setting *s, void *field, const char *text,
                                renyi_error *err)
{
    const int is_flag = s->kind == RENYI_SETTING_FLAG;
    const int found = find_choice(is_flag ? "off|on" : s->argument, text);
    if (found < 0)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s: '%.60s' is not one of %s", s->name, text,
                       is_flag ? "on, off" : s->argument);
    const uint32_t value = (uint32_t)found;
    memcpy(field, &value, sizeof value);
    return RENYI_OK;
}

renyi_status ry_setting_read(const ry_setting *s, renyi_train_options *opt, const char *text,
                             renyi_error *err)
{
    void *field = field_of(s, opt);
    if (strlen(text) >= RENYI_SETTING_MAX)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: %zu bytes; fewer than %d accepted", s->name,
                       strlen(text), RENYI_SETTING_MAX);
    if ((s->flags & RY_SETTING_AUTO) && strcmp(text, "auto") == 0) {
        memset(field, 0, s->kind == RENYI_SETTING_REAL ? s->n * sizeof(double) : sizeof(uint64_t));
        return RENYI_OK;
    }
    switch (s->kind) {
    case RENYI_SETTING_COUNT: return read_count(s, field, text, err);
    case RENYI_SETTING_REAL: return read_reals(s, field, text, err);
    case RENYI_SETTING_FLAG:
    case RENYI_SETTING_CHOICE: return read_choice(s, field, text, err);
    case RENYI_SETTING_TEXT: break;
    }
    const char *value = *text ? text : NULL;
    memcpy(field, &value, sizeof value);
    return RENYI_OK;
}

/* ---- printing -------------------------------------------------------------------------------- */

static int is_zero(const ry_setting *s, const void *value)
{
    static const char zeros[3 * sizeof(double)] = {0};
    return !memcmp(value, zeros,
                   s->kind == RENYI_SETTING_REAL ? s->n * sizeof(double) : sizeof(uint64_t));
}

static void print_reals(const ry_setting *s, const void *value, char *out, size_t size)
{
    char text[3][RY_NUMBER_TEXT] = {"", "", ""};
    double x;
    for (uint32_t i = 0; i < s->n; i++) {
        memcpy(&x, (const char *)value + i * sizeof x, sizeof x);
        ry_number_print(text[i], x);
    }
    snprintf(out, size, "%s%s%s%s%s", text[0], s->n > 1 ? "," : "", text[1], s->n > 2 ? "," : "",
             text[2]);
}

static void print_choice(const char *choices, uint32_t index, char *out, size_t size)
{
    for (; index && *choices; index--) choices += strcspn(choices, "|") + 1;
    snprintf(out, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

void ry_setting_print(const ry_setting *s, const renyi_train_options *opt, char *out, size_t size)
{
    const void *value = value_of(s, opt);
    uint64_t count;
    uint32_t choice;
    const char *text;

    if ((s->flags & RY_SETTING_AUTO) && is_zero(s, value)) {
        snprintf(out, size, "auto");
        return;
    }
    switch (s->kind) {
    case RENYI_SETTING_COUNT:
        memcpy(&count, value, sizeof count);
        snprintf(out, size, "%" PRIu64, count);
        break;
    case RENYI_SETTING_REAL: print_reals(s, value, out, size); break;
    case RENYI_SETTING_FLAG:
    case RENYI_SETTING_CHOICE:
        memcpy(&choice, value, sizeof choice);
        print_choice(s->kind == RENYI_SETTING_FLAG ? "off|on" : s->argument, choice, out, size);
        break;
    case RENYI_SETTING_TEXT:
        memcpy(&text, value, sizeof text);
        snprintf(out, size, "%s", text ? text : "");
        break;
    }
}

/* ---- public functions ------------------------------------------------------------------------ */

void renyi_train_defaults(renyi_train_options *opt)
{
    size_t n;
    const ry_setting *list = ry_settings(&n);
    *opt = (renyi_train_options){.struct_size = sizeof *opt};
    for (size_t i = 0; i < n; i++) /* cannot fail: test_train_settings.c reads every default */
        if (ry_setting_read(&list[i], opt, list[i].fallback, NULL) != RENYI_OK) return;
}

size_t renyi_train_setting_count(void)
{
    size_t n;
    (void)ry_settings(&n);
    return n;
}

void renyi_train_get_setting(size_t i, renyi_train_setting *out)
{
    size_t n;
    const ry_setting *s = ry_settings(&n) + i;
    *out = (renyi_train_setting){.name = s->name,
                                 .group = s->group,
                                 .kind = s->kind,
                                 .n = s->n,
                                 .argument = s->argument,
                                 .help = s->help,
                                 .fallback = s->fallback,
                                 .may_change = (s->flags & RY_SETTING_CHANGES) != 0};
}

renyi_status renyi_train_set(renyi_train_options *opt, const char *name, const char *text,
                             renyi_error *err)
{
    size_t i;
    if (!opt || !name || !text)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_train_set: NULL argument");
    const ry_setting *s = ry_setting_find(name, &i);
    if (!s) return ry_fail(err, RENYI_ERR_ARG, -1, "there is no setting '%.60s'", name);
    if (strcmp(name, "recipe") == 0) RY_TRY(renyi_train_recipe(opt, text, err));
    RY_TRY(ry_setting_read(s, opt, text, err));
    opt->given[i / 64] |= (uint64_t)1 << i % 64;
    return RENYI_OK;
}

void renyi_train_show(const renyi_train_options *opt, size_t i, char *out, size_t size)
{
    size_t n;
    ry_setting_print(ry_settings(&n) + i, opt, out, size);
}
