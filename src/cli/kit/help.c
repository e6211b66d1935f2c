/* help.c - what a verb's table of options says: --help, a manual page, lines for shells.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/help.h"

#include <ctype.h>
#include <string.h>

static struct {
    help_form form;
    const char *summary;
} chosen;

void help_choose(help_form form, const char *summary)
{
    chosen.form = form;
    chosen.summary = summary;
}

/* Every verb has these. */
static const option common[] = {
    {"quiet", 'q', OPTION_FLAG, NULL, "", "results and errors only", 0, 0},
    {"verbose", 'v', OPTION_FLAG, NULL, "", "more messages on stderr", 0, 0},
    {"help", 'h', OPTION_FLAG, NULL, "", "this page", 0, 0},
};

static const char *argument_of(const option *o)
{
    return o->kind == OPTION_FLAG ? "" : o->argument;
}

/* Calls `put` for every option that is shown, and for headings. */
static void each_option(const verb_syntax *syntax, void (*put)(const option *o))
{
    for (size_t i = 0; i < syntax->n_options; i++) put(&syntax->options[i]);
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) put(&common[i]);
}

/* ---- the page of --help -------------------------------------------------------------------- */

enum { HELP_COLUMN = 30, HELP_WIDTH = 110 };

/* From the help column on, in lines that end at blanks. */
static void put_wrapped(const char *text)
{
    enum { SPACE = HELP_WIDTH - HELP_COLUMN };

    while (strlen(text) > SPACE) {
        size_t end = SPACE;
        while (end && text[end] != ' ') end--;
        if (!end) break;
        printf("%.*s\n%*s", (int)end, text, HELP_COLUMN, "");
        text += end + 1;
    }
    puts(text);
}

static void put_option(const option *o)
{
    char left[80];

    if (o->kind == OPTION_HEADING) {
        printf("\n%s:\n", o->help);
        return;
    }
    if (o->letter)
        snprintf(left, sizeof left, "  -%c, --%s %s", o->letter, o->name, argument_of(o));
    else
        snprintf(left, sizeof left, "      --%s %s", o->name, argument_of(o));
    if (strlen(left) < HELP_COLUMN - 1)
        printf("%-*s", HELP_COLUMN, left);
    else
        printf("%s\n%*s", left, HELP_COLUMN, "");
    put_wrapped(o->help);
}

static void put_page(const verb_syntax *syntax)
{
    const int has_headings = syntax->n_options && syntax->options[0].kind == OPTION_HEADING;
    printf("Usage: renyi %s %s\n\n%s\n%s", syntax->name, syntax->usage, syntax->summary,
           has_headings ? "" : "\nOptions:\n");
    each_option(syntax, put_option);
    printf("\nExamples:\n%s", syntax->examples);
}

/* ---- a manual page ------------------------------------------------------------------------- */

/* Text for roff: a dot or quote at the start of a line is no request, a minus is a minus. */
static void put_roff(const char *text)
{
    int at_start = 1;

    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        at_start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void put_man_option(const option *o)
{
    if (o->kind == OPTION_HEADING) {
        fputs(".SS ", stdout);
        put_roff(o->help);
        putchar('\n');
        return;
    }
    fputs(".TP\n", stdout);
    if (o->letter) printf("\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", stdout);
    put_roff(o->name);
    fputs("\\fR", stdout);
    if (*argument_of(o)) {
        fputs(" \\fI", stdout);
        put_roff(argument_of(o));
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put_roff(o->help);
    putchar('\n');
}

static void put_man(const verb_syntax *syntax)
{
    fputs(".TH \"RENYI\\-", stdout);
    for (const char *c = syntax->name; *c; c++)
        *c == '-' ? fputs("\\-", stdout) : putchar(toupper((unsigned char)*c));
    printf("\" 1 \"\" \"renyi %s\" \"User Commands\"\n.SH NAME\nrenyi\\-", renyi_version());
    put_roff(syntax->name);
    fputs(" \\- ", stdout);
    put_roff(chosen.summary);
    fputs("\n.SH SYNOPSIS\n.nh\n.ad l\n\\fBrenyi ", stdout);
    put_roff(syntax->name);
    fputs("\\fR ", stdout);
    put_roff(syntax->usage);
    fputs("\n.ad b\n.hy\n.SH DESCRIPTION\n", stdout);
    put_roff(syntax->summary);
    fputs("\n.SH OPTIONS\n", stdout);
    each_option(syntax, put_man_option);
    fputs(".SH EXAMPLES\n.nf\n", stdout);
    put_roff(syntax->examples);
    fputs(".fi\n.SH SEE ALSO\n.BR renyi (1)\n", stdout);
}

/* ---- lines for shells ---------------------------------------------------------------------- */

static void put_option_line(const option *o)
{
    if (o->kind == OPTION_HEADING) return;
    printf("--%s\t", o->name);
    if (o->letter) printf("-%c", o->letter);
    printf("\t%s\t%s\n", argument_of(o), o->help);
}

void help_put(const verb_syntax *syntax)
{
    if (chosen.form == HELP_MAN)
        put_man(syntax);
    else if (chosen.form == HELP_OPTIONS)
        each_option(syntax, put_option_line);
    else
        put_page(syntax);
}
