/* cascade.c - reads, prints and checks cascades: "cascade(POLICY -> POLICY if margin < M)".
 * SPDX-License-Identifier: Apache-2.0 */
#include "prune/policy/cascade.h"

#include "base/decimal.h"
#include "base/status.h"
#include "prune/policy/policy_keys.h"
#include "prune/policy/policy_reader.h"

#include <stdio.h>
#include <string.h>

#define FORM "cascade(POLICY -> POLICY if margin < M)"

static const ry_name combine_names[] = {
    {"second", RY_COMBINE_SECOND}, {"mean", RY_COMBINE_MEAN}, {NULL, 0}};

/* ---- parts of the text ----------------------------------------------------------------------- */

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static ry_slice trim(ry_slice s)
{
    while (s.len && is_blank(s.at[0])) s.at++, s.len--, s.offset++;
    while (s.len && is_blank(s.at[s.len - 1])) s.len--;
    return s;
}

static ry_slice tail(ry_slice s, size_t from)
{
    return (ry_slice){s.at + from, s.len - from, s.offset + (int64_t)from};
}

/* Removes `word` from the front of *s, with blanks before it. A word of letters must end there. */
static int take(ry_slice *s, const char *word)
{
    const ry_slice t = trim(*s);
    const size_t n = strlen(word);
    const int is_word = word[n - 1] >= 'a' && word[n - 1] <= 'z';
    if (t.len < n || memcmp(t.at, word, n) != 0) return 0;
    if (is_word && t.len > n && !is_blank(t.at[n]) && !strchr("(<", t.at[n])) return 0;
    *s = tail(t, n);
    return 1;
}

static ry_slice whole(const char *text) { return (ry_slice){text, strlen(text), 0}; }

/* The preset that the text begins with, if it is a cascade; *rest is what follows its name. */
static const char *preset_text(ry_slice text, ry_slice *rest)
{
    size_t count, n = 0;
    const ry_preset *presets = ry_presets(&count);
    text = trim(text);
    while (n < text.len && !is_blank(text.at[n])) n++;
    for (size_t i = 0; i < count; i++) {
        ry_slice body = whole(presets[i].text);
        if (strlen(presets[i].name) != n || memcmp(presets[i].name, text.at, n) != 0) continue;
        *rest = tail(text, n);
        return take(&body, "cascade") ? presets[i].text : NULL;
    }
    return NULL;
}

int ry_is_cascade(const char *text)
{
    ry_slice s = whole(text), rest;
    return take(&s, "cascade") || preset_text(s, &rest) != NULL;
}

/* Where `mark` is in s, outside parentheses; s.len = nowhere. A mark of letters stands between
 * blanks. */
static size_t find_mark(ry_slice s, const char *mark)
{
    const size_t n = strlen(mark);
    int depth = 0;
    for (size_t i = 0; i + n <= s.len; i++) {
        depth += (s.at[i] == '(') - (s.at[i] == ')');
        if (depth || memcmp(s.at + i, mark, n) != 0) continue;
        if (mark[0] == '-') return i;
        if (i && is_blank(s.at[i - 1]) && (i + n == s.len || is_blank(s.at[i + n]))) return i;
    }
    return s.len;
}

/* *inside = what is between the parentheses at the front of *s, which moves past them. */
static renyi_status take_parentheses(ry_slice *s, ry_slice *inside, renyi_error *err)
{
    const ry_slice t = trim(*s);
    int depth = 0;
    for (size_t i = 0; i < t.len && (i || t.at[0] == '('); i++) {
        depth += (t.at[i] == '(') - (t.at[i] == ')');
        if (depth) continue;
        *inside = tail((ry_slice){t.at, i, t.offset}, 1);
        *s = tail(t, i + 1);
        return RENYI_OK;
    }
    if (!t.len || t.at[0] != '(')
        return ry_fail(err, RENYI_ERR_ARG, t.offset, "a cascade is written " FORM);
    return ry_fail(err, RENYI_ERR_ARG, t.offset, "a '(' without its ')'; a cascade is " FORM);
}

/* ---- text to cascade ------------------------------------------------------------------------- */

static renyi_status read_part(ry_policy *out, ry_slice part, const char *which,
                              const ry_own_rules *own, renyi_error *err)
{
    char text[RY_MAX_POLICY_TEXT]; /* the whole cascade is shorter */
    part = trim(part);
    if (!part.len)
        return ry_fail(err, RENYI_ERR_ARG, part.offset, "the %s policy is missing: " FORM, which);
    memcpy(text, part.at, part.len);
    text[part.len] = 0;
    if (ry_is_cascade(text))
        return ry_fail(err, RENYI_ERR_ARG, part.offset,
                       "a cascade inside a cascade; each of the two is a policy of one pass");
    const renyi_status st = ry_policy_parse_own(out, text, own, err);
    if (st && err && err->offset >= 0) err->offset += part.offset;
    return st;
}

/* "margin < M" */
static renyi_status read_condition(ry_cascade *c, ry_slice text, renyi_error *err)
{
    ry_slice s = text;
    if (!take(&s, "margin") || !take(&s, "<"))
        return ry_fail(err, RENYI_ERR_ARG, trim(text).offset,
                       "'%.*s': the condition is 'margin < M', such as margin < 2", RY_SHOW(&text));
    s = trim(s);
    if (!s.len || s.at[0] == '-' || !ry_read_decimal(s.at, s.len, &c->margin))
        return ry_fail(
            err, RENYI_ERR_ARG, s.offset,
            "margin < %.*s: a difference of logits, a number of at least 0 in plain digits, "
            "such as 2.5",
            RY_SHOW(&s));
    return RENYI_OK;
}

/* "POLICY -> POLICY if margin < M" */
static renyi_status read_inside(ry_cascade *c, ry_slice s, const ry_own_rules *own,
                                renyi_error *err)
{
    const size_t arrow = find_mark(s, "->");
    if (arrow == s.len)
        return ry_fail(err, RENYI_ERR_ARG, s.offset, "no '->' between two policies: " FORM);
    const ry_slice first = {s.at, arrow, s.offset}, rest = tail(s, arrow + 2);
    const size_t more = find_mark(rest, "->"), condition = find_mark(rest, "if");
    if (more < rest.len)
        return ry_fail(err, RENYI_ERR_ARG, rest.offset + (int64_t)more,
                       "a second '->'; a cascade has two policies: " FORM);
    RY_TRY(read_part(&c->first, first, "first", own, err));
    RY_TRY(read_part(&c->second, (ry_slice){rest.at, condition, rest.offset}, "second", own, err));
    if (condition == rest.len)
        return ry_fail(err, RENYI_ERR_ARG, rest.offset + (int64_t)rest.len,
                       "no condition after the second policy: " FORM);
    return read_condition(c, tail(rest, condition + 2), err);
}

/* What follows the parentheses, or the name of a preset: combine=second|mean. */
static renyi_status read_words(ry_cascade *c, ry_slice s, renyi_error *err)
{
    for (int seen = 0; (s = trim(s)).len; seen = 1) {
        static const char key[] = "combine=";
        size_t n = 0;
        while (n < s.len && !is_blank(s.at[n])) n++;
        const ry_slice word = {s.at, n, s.offset};
        const ry_slice value = n > sizeof key - 1 ? tail(word, sizeof key - 1) : word;
        if (n < sizeof key - 1 || memcmp(s.at, key, sizeof key - 1) != 0)
            return ry_fail(err, RENYI_ERR_ARG, s.offset,
                           "unknown word '%.*s'; a cascade takes combine=second or combine=mean",
                           RY_SHOW(&word));
        const ry_name *name = ry_name_find(combine_names, value.at, value.len);
        if (!name)
            return ry_fail(err, RENYI_ERR_ARG, value.offset, "'%.*s': combine is second or mean",
                           RY_SHOW(&word));
        if (seen) return ry_fail(err, RENYI_ERR_ARG, s.offset, "combine is given twice");
        c->combine = (ry_combine)name->value;
        s = tail(s, n);
    }
    return RENYI_OK;
}

static renyi_status read_cascade(ry_cascade *c, const char *text, const ry_own_rules *own,
                                 renyi_error *err)
{
    ry_slice s = whole(text), user = {"", 0, 0}, inside = user;
    const char *preset = preset_text(s, &user);
    if (preset) s = whole(preset);
    c->is_cascade = take(&s, "cascade");
    RY_TRY(take_parentheses(&s, &inside, err));
    RY_TRY(read_inside(c, inside, own, err));
    RY_TRY(read_words(c, s, err));
    return read_words(c, user, err);
}

/* Writes at most `size` bytes; returns the bytes that the whole text has. */
static size_t print_cascade(char *out, size_t size, const ry_cascade *c)
{
    char first[RY_MAX_POLICY_TEXT], second[RY_MAX_POLICY_TEXT], margin[RY_DECIMAL_TEXT];
    ry_policy_print(first, &c->first);
    ry_policy_print(second, &c->second);
    const int n =
        snprintf(out, size, "cascade(%s -> %s if margin < %s) combine=%s", first, second,
                 ry_print_decimal(margin, c->margin), ry_name_of(combine_names, (int)c->combine));
    return n > 0 ? (size_t)n : 0;
}

static renyi_status check_length(const ry_cascade *c, int64_t offset, renyi_error *err)
{
    if (print_cascade(NULL, 0, c) < RY_MAX_POLICY_TEXT) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, offset,
                   "this cascade, written in full, is longer than %d bytes",
                   RY_MAX_POLICY_TEXT - 1);
}

renyi_status ry_cascade_parse(ry_cascade *out, const char *text, const ry_own_rules *own,
                              renyi_error *err)
{
    memset(out, 0, sizeof *out);
    if (!ry_is_cascade(text)) return ry_policy_parse_own(&out->first, text, own, err);
    if (strlen(text) >= RY_MAX_POLICY_TEXT)
        return ry_fail(err, RENYI_ERR_ARG, RY_MAX_POLICY_TEXT - 1,
                       "a policy has at most %d bytes; this one has %zu", RY_MAX_POLICY_TEXT - 1,
                       strlen(text));
    RY_TRY(read_cascade(out, text, own, err));
    return check_length(out, 0, err);
}

void ry_cascade_print(char out[RY_MAX_POLICY_TEXT], const ry_cascade *c)
{
    if (c->is_cascade)
        print_cascade(out, RY_MAX_POLICY_TEXT, c);
    else
        ry_policy_print(out, &c->first);
}

renyi_status ry_cascade_check(ry_cascade *c, const ry_policy_shape *shape, renyi_error *err)
{
    RY_TRY(ry_policy_check(&c->first, shape, err));
    if (!c->is_cascade) return RENYI_OK;
    RY_TRY(ry_policy_check(&c->second, shape, err));
    return check_length(c, -1, err); /* all layers may be listed now */
}
