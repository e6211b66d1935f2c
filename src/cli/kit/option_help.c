/* option_help.c - the --help page of a verb, made from its table.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/options.h"

#include <string.h>

enum { HELP_COLUMN = 30 };

static void put_option(char letter, const char *name, const char *argument, const char *help)
{
    char left[80];

    if (letter)
        snprintf(left, sizeof left, "  -%c, --%s %s", letter, name, argument);
    else
        snprintf(left, sizeof left, "      --%s %s", name, argument);
    if (strlen(left) < HELP_COLUMN - 1)
        printf("%-*s%s\n", HELP_COLUMN, left, help);
    else
        printf("%s\n%*s%s\n", left, HELP_COLUMN, "", help);
}

void options_help(const verb_syntax *syntax)
{
    const int has_headings = syntax->n_options && syntax->options[0].kind == OPTION_HEADING;
    printf("Usage: renyi %s %s\n\n%s\n\n%s", syntax->name, syntax->usage, syntax->summary,
           has_headings ? "" : "Options:\n");
    for (size_t i = 0; i < syntax->n_options; i++) {
        const option *o = &syntax->options[i];
        if (o->kind == OPTION_HEADING)
            printf("%s%s:\n", i ? "\n" : "", o->help);
        else
            put_option(o->letter, o->name, o->kind == OPTION_FLAG ? "" : o->argument, o->help);
    }
    put_option('q', "quiet", "", "results and errors only");
    put_option('v', "verbose", "", "say more on stderr");
    put_option('h', "help", "", "this page");
    printf("\nExamples:\n%s", syntax->examples);
}
