/* options.c - see options.h. Values in option_values.c, the help page in option_help.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/options.h"

#include "cli/kit/cli_ranks.h"
#include "cli/kit/option_values.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A walk over argv. */
typedef struct cursor {
    const verb_syntax *syntax;
    char **argv;
    int argc, at;
    int quiet, verbose, help;
} cursor;

int options_usage_error(const char *verb, const char *fmt, ...)
{
    char what[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    ranks_let_first_speak();
    cli_error("%s: %s; see 'renyi %s --help'", verb, what, verb);
    return CLI_USAGE;
}

static int unknown_option(const cursor *c, const char *name)
{
    enum { MAX_NAMES = 128 };
    const char *names[MAX_NAMES] = {"help", "quiet", "verbose"};
    size_t count = 3;

    for (size_t i = 0; i < c->syntax->n_options && count < MAX_NAMES; i++)
        if (c->syntax->options[i].kind != OPTION_HEADING)
            names[count++] = c->syntax->options[i].name;
    const char *nearest = nearest_word(name, names, count);
    if (nearest)
        options_usage_error(c->syntax->name, "unknown option '--%s' (did you mean '--%s'?)", name,
                            nearest);
    else
        options_usage_error(c->syntax->name, "unknown option '--%s'", name);
    return -1;
}

static const option *find_long(const verb_syntax *syntax, const char *name, size_t length)
{
    for (size_t i = 0; i < syntax->n_options; i++) {
        const option *o = &syntax->options[i];
        if (o->kind == OPTION_HEADING) continue;
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0) return o;
    }
    return NULL;
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

/* The value of `o`: glued to the option, or the next words. */
static int take_value(cursor *c, const option *o, const char *glued)
{
    if (!glued && c->at >= c->argc) {
        options_usage_error(c->syntax->name, "option '--%s' needs a value %s", o->name,
                            o->argument);
        return -1;
    }
    const char *first = glued ? glued : c->argv[c->at++];
    if (o->kind == OPTION_REALS3 && !strchr(first, ',')) {
        if (c->argc - c->at < 2) {
            options_usage_error(c->syntax->name, "option '--%s' needs three numbers", o->name);
            return -1;
        }
        char *joined = cli_format("%s,%s,%s", first, c->argv[c->at], c->argv[c->at + 1]);
        c->at += 2;
        const int rc = option_store(c->syntax->name, o, joined);
        free(joined);
        return rc;
    }
    return option_store(c->syntax->name, o, first);
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

option_outcome options_parse(const verb_syntax *syntax, int argc, char **argv, cli_strings *words)
{
    cursor c = {.syntax = syntax, .argv = argv, .argc = argc, .at = 1};
    int only_words = 0;

    while (c.at < argc) {
        const char *word = argv[c.at++];
        int rc = 0;
        if (only_words || word[0] != '-' || !word[1])
            cli_strings_add(words, cli_copy(word));
        else if (strcmp(word, "--") == 0)
            only_words = 1;
        else
            rc = word[1] == '-' ? take_long(&c, word + 2) : take_letters(&c, word + 1);
        if (rc) return OPTIONS_BAD;
        if (c.help) {
            options_help(syntax);
            return OPTIONS_HELP;
        }
    }
    cli_set_verbosity(c.quiet ? -1 : c.verbose);
    return OPTIONS_GO;
}
