/* messages.c - lines on stderr, care for stdout, colours.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/cli.h"
#include "cli/kit/cli_ranks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int verbosity;
static char speaker[32];

void cli_set_verbosity(int level) { verbosity = level; }

int cli_is_quiet(void) { return verbosity < 0 || speaker[0]; }

void cli_set_speaker(const char *words) { snprintf(speaker, sizeof speaker, "%s", words); }

static char clean(char c) { return (unsigned char)c < 0x20 || c == 0x7f ? '?' : c; }

void cli_put_clean(FILE *stream, const char *text)
{
    for (; *text; text++) putc(clean(*text), stream);
}

/* In one write: lines of other ranks and threads come before or after, never in between. */
static void put_line(const char *prefix, const char *fmt, va_list args)
{
    char line[4096 + 64];
    const int head = snprintf(line, 64, "%s%s", prefix, speaker);
    char *const text = line + head;

    vsnprintf(text, sizeof line - (size_t)head - 1, fmt, args);
    for (char *c = text; *c; c++) *c = clean(*c);
    const size_t n = strlen(line);
    line[n] = '\n';
    fwrite(line, 1, n + 1, stderr);
}

void cli_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put_line("renyi: ", fmt, args);
    va_end(args);
}

void cli_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put_line("renyi: warning: ", fmt, args);
    va_end(args);
}

void cli_note(const char *fmt, ...)
{
    va_list args;
    if (cli_is_quiet()) return;
    va_start(args, fmt);
    put_line("", fmt, args);
    va_end(args);
}

void cli_detail(const char *fmt, ...)
{
    va_list args;
    if (verbosity < 1 || speaker[0]) return;
    va_start(args, fmt);
    put_line("", fmt, args);
    va_end(args);
}

int cli_finish_output(int code)
{
    const int failed_before = ferror(stdout);

    errno = 0;
    if (fflush(stdout) == 0 && !failed_before) return code;
    if (errno)
        cli_error("cannot write the results: %s", strerror(errno));
    else
        cli_error("cannot write the results to standard output");
    return CLI_FAILED;
}

static int has_colour(FILE *stream)
{
    if (ranks_get()) return 0; /* mpirun hands out terminals and writes to files */
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (no_color && *no_color) return 0;
    if (term && strcmp(term, "dumb") == 0) return 0;
    return isatty(fileno(stream));
}

const char *cli_bold(FILE *stream) { return has_colour(stream) ? "\033[1m" : ""; }
const char *cli_green(FILE *stream) { return has_colour(stream) ? "\033[32m" : ""; }
const char *cli_plain(FILE *stream) { return has_colour(stream) ? "\033[0m" : ""; }
