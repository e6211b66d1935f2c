/* options.c - reads the command line of a verb by its option table.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#include "cli/kit/options.h"

#include "cli/kit/cli_ranks.h"
#include "cli/kit/help.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int options_usage_error(const char *verb, const char *fmt, ...)
{
    char what[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    ranks_let_first_report();
    cli_error("%s: %s; see 'renyi %s --help'", verb, what, verb);
    return CLI_USAGE;
}

/* ---- old names ------------------------------------------------------------------------------- */

/* Names that options had before, and the names that other programs of the field use. They work in
 * every verb that has the option, but no help page shows them. */
static const struct {
    const char *old_name, *name;
} old_names[] = {
    {"keep-rate", "keep"},
    {"keep-tokens", "tokens"},
    {"drop-loc", "layers"},
    {"norm", "n"},
    {"rescue", "c"},
    {"fuse-token", "fuse"},
    {"img-size", "image-size"},
    {"depth", "blocks"},
    {"colours", "colors"},
    {"unlabelled", "unlabeled"},
    {"calib-photos", "calib-limit"},
    {"question-file", "questions"},
    {"image-folder", "images"},
    {"answers-file", "answers"},
    {"output", "format"},
};

/* ---- "did you mean ...?" ------------------------------------------------------------------- */

enum { MAX_NAME = 40 };

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Levenshtein distance with one row; names longer than MAX_NAME count as far away. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1];
    const size_t n_a = strlen(a), n_b = strlen(b);

    if (n_a > MAX_NAME || n_b > MAX_NAME) return MAX_NAME;
    for (size_t j = 0; j <= n_b; j++) row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min_size(change, min_size(row[j], row[j - 1]) + 1);
        }
    }
    return row[n_b];
}

const char *nearest_name(const char *name, const char *const *candidates, size_t count)
{
    const size_t length = strlen(name);
    const char *best = NULL;
    size_t best_distance = length / 3 + 2; /* farther away is no typing error */

    for (size_t i = 0; i < count; i++) {
        const size_t distance = edit_distance(name, candidates[i]);
        const int is_beginning = length >= 3 && strncmp(candidates[i], name, length) == 0;
        if (distance < best_distance || (is_beginning && !best)) {
            best = candidates[i];
            if (distance < best_distance) best_distance = distance;
        }
    }
    return best;
}

/* ---- values -------------------------------------------------------------------------------- */

/* `length` digits; -1 for anything else, overflow or a number out of range. */
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

/* 0, or -1 after reporting wrong usage. Flags have no value. */
static int store_value(const char *verb, const option *o, const char *text)
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

/* ---- the command line ---------------------------------------------------------------------- */

/* The position in argv. */
typedef struct cursor {
    const verb_syntax *syntax;
    char **argv;
    int argc, at;
    int quiet, verbose, help;
    unsigned long threads; /* the largest number given with --threads */
} cursor;

static int unknown_option(const cursor *c, const char *name)
{
    enum { MAX_NAMES = 128 };
    const char *names[MAX_NAMES] = {"help", "quiet", "verbose"};
    size_t count = 3;

    for (size_t i = 0; i < c->syntax->n_options && count < MAX_NAMES; i++)
        if (c->syntax->options[i].kind != OPTION_HEADING)
            names[count++] = c->syntax->options[i].name;
    const char *nearest = nearest_name(name, names, count);
    if (nearest)
        options_usage_error(c->syntax->name, "unknown option '--%s' (did you mean '--%s'?)", name,
                            nearest);
    else
        options_usage_error(c->syntax->name, "unknown option '--%s'", name);
    return -1;
}

static const option *find_name(const verb_syntax *syntax, const char *name, size_t length)
{
    for (size_t i = 0; i < syntax->n_options; i++) {
        const option *o = &syntax->options[i];
        if (o->kind == OPTION_HEADING) continue;
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0) return o;
    }
    return NULL;
}

static const option *find_long(const verb_syntax *syntax, const char *name, size_t length)
{
    const option *found = find_name(syntax, name, length);

    for (size_t i = 0; !found && i < sizeof old_names / sizeof *old_names; i++)
        if (strlen(old_names[i].old_name) == length &&
            memcmp(old_names[i].old_name, name, length) == 0)
            found = find_name(syntax, old_names[i].name, strlen(old_names[i].name));
    return found;
}

static const option *find_letter(const verb_syntax *syntax, char letter)
{
    for (size_t i = 0; i < syntax->n_options; i++)
        if (letter && syntax->options[i].letter == letter) return &syntax->options[i];
    return NULL;
}

/* -h, -q, -v belong to every verb; returns 1 if it was one of them. */
static int take_common(cursor *c, const char *name, size_t length)
{
    static const char *const names[] = {"help", "quiet", "verbose"};
    int *flags[] = {&c->help, &c->quiet, &c->verbose};

    for (size_t i = 0; i < 3; i++) {
        const int is_letter = length == 1 && name[0] == names[i][0];
        if (is_letter || (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)) {
            *flags[i] = 1;
            return 1;
        }
    }
    return 0;
}

/* Every verb has the option under this name: a number, or a list of numbers. */
static void note_threads(cursor *c, const option *o, const char *text)
{
    if (strcmp(o->name, "threads") != 0) return;
    for (const char *at = text; at; at = strchr(at, ','), at = at ? at + 1 : at) {
        const unsigned long n = strtoul(at, NULL, 10);
        if (n > c->threads) c->threads = n;
    }
}

/* Processors that this process may use; 0 = not known. */
static long allowed_processors(void)
{
#ifdef __linux__
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    return sched_getaffinity(0, sizeof allowed, &allowed) ? 0 : CPU_COUNT(&allowed);
#else
    return sysconf(_SC_NPROCESSORS_ONLN);
#endif
}

static void warn_threads(const cursor *c)
{
    if (c->threads < 2 || cli_is_quiet()) return;
    const long n = allowed_processors();
    if (n > 0 && c->threads > (unsigned long)n)
        cli_warn("--threads %lu, but this process may use only %ld processor%s; more threads wait "
                 "for each other",
                 c->threads, n, n > 1 ? "s" : "");
}

/* The value of `o`: attached to the option, or the next arguments. */
static int take_value(cursor *c, const option *o, const char *attached)
{
    if (!attached && c->at >= c->argc) {
        options_usage_error(c->syntax->name, "option '--%s' needs a value %s", o->name,
                            o->argument);
        return -1;
    }
    const char *first = attached ? attached : c->argv[c->at++];
    if (o->kind == OPTION_REALS3 && !strchr(first, ',')) {
        if (c->argc - c->at < 2) {
            options_usage_error(c->syntax->name, "option '--%s' needs three numbers", o->name);
            return -1;
        }
        char *joined = cli_format("%s,%s,%s", first, c->argv[c->at], c->argv[c->at + 1]);
        c->at += 2;
        const int rc = store_value(c->syntax->name, o, joined);
        free(joined);
        return rc;
    }
    note_threads(c, o, first);
    return store_value(c->syntax->name, o, first);
}

static int take_long(cursor *c, const char *text)
{
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : strlen(text);
    const option *o = find_long(c->syntax, text, length);

    if (!o && length > 1 && !equals && take_common(c, text, length)) return 0;
    if (!o) {
        char *name = cli_format("%.*s", (int)length, text);
        unknown_option(c, name);
        free(name);
        return -1;
    }
    if (o->kind != OPTION_FLAG) return take_value(c, o, equals ? equals + 1 : NULL);
    if (equals) {
        options_usage_error(c->syntax->name, "option '--%s' takes no value", o->name);
        return -1;
    }
    *(int *)o->value = 1;
    return 0;
}

static int take_letters(cursor *c, const char *text)
{
    for (; *text; text++) {
        const option *o = find_letter(c->syntax, *text);
        if (!o && take_common(c, text, 1)) continue;
        if (!o) {
            options_usage_error(c->syntax->name, "unknown option '-%c'", *text);
            return -1;
        }
        if (o->kind != OPTION_FLAG) return take_value(c, o, text[1] ? text + 1 : NULL);
        *(int *)o->value = 1;
    }
    return 0;
}

/* "keep=0.3": part of a policy that the shell has split. */
static int is_unquoted(const char *word)
{
    const size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
    return key && word[key] == '=' && !strchr(word, ' ') && access(word, F_OK) != 0;
}

/* `--prune evit keep=0.3 a.png` would run evit's defaults on the images "keep=0.3" and "a.png". */
static int check_unquoted(const verb_syntax *syntax, const cli_strings *arguments)
{
    const option *prune = find_name(syntax, "prune", 5);
    const cli_strings *policies = prune && prune->kind == OPTION_STRINGS ? prune->value : NULL;
    const char *first = NULL;

    if (!policies || !policies->count) return 0;
    char *whole = cli_copy(policies->items[policies->count - 1]);
    for (size_t i = 0; i < arguments->count; i++) {
        if (!is_unquoted(arguments->items[i])) continue;
        if (!first) first = arguments->items[i];
        char *longer = cli_format("%s %s", whole, arguments->items[i]);
        free(whole);
        whole = longer;
    }
    if (first)
        options_usage_error(syntax->name, "'%s' is not a file; quote the policy: --prune '%s'",
                            first, whole);
    free(whole);
    return first ? -1 : 0;
}

option_outcome options_parse(const verb_syntax *syntax, int argc, char **argv,
                             cli_strings *arguments)
{
    cursor c = {.syntax = syntax, .argv = argv, .argc = argc, .at = 1};
    int options_ended = 0;

    while (c.at < argc) {
        const char *text = argv[c.at++];
        int rc = 0;
        if (options_ended || text[0] != '-' || !text[1])
            cli_strings_add(arguments, cli_copy(text));
        else if (strcmp(text, "--") == 0)
            options_ended = 1;
        else
            rc = text[1] == '-' ? take_long(&c, text + 2) : take_letters(&c, text + 1);
        if (rc) return OPTIONS_BAD;
        if (c.help) {
            help_put(syntax);
            return OPTIONS_HELP;
        }
    }
    cli_set_verbosity(c.quiet ? -1 : c.verbose);
    if (check_unquoted(syntax, arguments)) return OPTIONS_BAD;
    warn_threads(&c);
    return OPTIONS_GO;
}
