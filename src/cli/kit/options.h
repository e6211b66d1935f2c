/* options.h - parses the command line of a verb by a table of options, which also makes --help.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Accepted: --name value, --name=value, -n value, -nvalue, grouped flags (-qv), "--" ends options.
 * Options and arguments may be mixed. Numbers are checked against the range in the table.
 */
#ifndef RENYI_OPTIONS_H
#define RENYI_OPTIONS_H

#include "cli/kit/cli.h"

typedef enum option_kind {
    OPTION_FLAG,    /* int: 1 when given */
    OPTION_STRING,  /* const char *: the last one given */
    OPTION_STRINGS, /* cli_strings: all given, in order */
    OPTION_COUNT,   /* uint64_t within [min, max] */
    OPTION_COUNTS,  /* option_counts: "1,8" */
    OPTION_REAL,    /* option_reals with one value */
    OPTION_REALS3,  /* option_reals with three: "a b c" or "a,b,c" */
    OPTION_CHOICE,  /* const char *: one of the choices in `argument` */
    OPTION_HEADING  /* no option: `help` is a heading of the help page */
} option_kind;

enum { OPTION_MAX_COUNTS = 16 };

typedef struct option_counts {
    uint64_t values[OPTION_MAX_COUNTS];
    size_t count;
} option_counts;

typedef struct option_reals {
    double values[3];
    int given;
} option_reals;

typedef struct option {
    const char *name; /* without "--" */
    char letter;      /* 0 = none */
    option_kind kind;
    void *value;          /* of the type that `kind` gives */
    const char *argument; /* its name in the help; for OPTION_CHOICE the choices: "md|csv|json" */
    const char *help;
    uint64_t min, max; /* OPTION_COUNT(S); max 0 = no limit */
} option;

typedef struct verb_syntax {
    const char *name;     /* "classify" */
    const char *usage;    /* after the name: "-m MODEL [IMAGES...]" */
    const char *summary;  /* a sentence or two */
    const char *examples; /* lines, each ending in '\n' */
    const option *options;
    size_t n_options;
} verb_syntax;

typedef enum option_outcome { OPTIONS_GO, OPTIONS_HELP, OPTIONS_BAD } option_outcome;

/* Fills the values of the table and collects the other arguments. Every verb has -h, -q and -v.
 * OPTIONS_HELP: the help was printed. OPTIONS_BAD: the error was reported. */
option_outcome options_parse(const verb_syntax *syntax, int argc, char **argv,
                             cli_strings *arguments);
/* Reports wrong usage; returns CLI_USAGE. */
int options_usage_error(const char *verb, const char *fmt, ...) CLI_PRINTF(2, 3);

/* The candidate that is a few typing errors away from `name`, or NULL. */
const char *nearest_name(const char *name, const char *const *candidates, size_t count);

#define OPTIONS_OF(table) (table), sizeof(table) / sizeof *(table)

#endif
