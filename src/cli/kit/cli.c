/* cli.c - messages on stderr, checks of stdout, memory, strings and the clock of all verbs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/cli.h"

#include "cli/kit/cli_ranks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- messages ------------------------------------------------------------------------------ */

static char clean(char c) { return (unsigned char)c < 0x20 || c == 0x7f ? '?' : c; }

static int verbosity;
static char sender[32]; /* "rank 2: "; empty for the first rank */

void cli_set_verbosity(int level) { verbosity = level; }

int cli_is_quiet(void) { return verbosity < 0 || sender[0]; }

void cli_set_sender(const char *prefix) { snprintf(sender, sizeof sender, "%s", prefix); }

/* One write, so that lines of several ranks or threads do not mix. */
static void put_line(const char *prefix, const char *fmt, va_list args)
{
    char line[4096 + 64];
    const int head = snprintf(line, 64, "%s%s", prefix, sender);
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
    if (verbosity < 1 || sender[0]) return;
    va_start(args, fmt);
    put_line("", fmt, args);
    va_end(args);
}

const char *cli_reason(const renyi_error *err)
{
    return err->message[0] ? err->message : renyi_status_name(err->code);
}

int cli_fail(const renyi_error *err)
{
    cli_error("%s", cli_reason(err));
    return CLI_FAILED;
}

/* ---- stdout -------------------------------------------------------------------------------- */

void cli_put_clean(FILE *stream, const char *text)
{
    for (; *text; text++) putc(clean(*text), stream);
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
    if (ranks_get()) return 0; /* mpirun gives its ranks a terminal even if it writes to a file */
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (no_color && *no_color) return 0;
    if (term && strcmp(term, "dumb") == 0) return 0;
    return isatty(fileno(stream));
}

const char *cli_bold(FILE *stream) { return has_colour(stream) ? "\033[1m" : ""; }
const char *cli_green(FILE *stream) { return has_colour(stream) ? "\033[32m" : ""; }
const char *cli_plain(FILE *stream) { return has_colour(stream) ? "\033[0m" : ""; }

/* ---- memory -------------------------------------------------------------------------------- */

static _Noreturn void out_of_memory(void)
{
    cli_error("out of memory");
    exit(CLI_FAILED);
}

void *cli_alloc(size_t count, size_t size)
{
    void *ptr = calloc(count ? count : 1, size ? size : 1);
    if (!ptr) out_of_memory();
    return ptr;
}

void *cli_grow(void *ptr, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) out_of_memory();
    const size_t bytes = count * size;
    void *grown = realloc(ptr, bytes ? bytes : 1);
    if (!grown) out_of_memory();
    return grown;
}

char *cli_copy(const char *text)
{
    const size_t size = strlen(text) + 1;
    return memcpy(cli_alloc(size, 1), text, size);
}

char *cli_format(const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (length < 0) out_of_memory();
    char *text = cli_alloc((size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    return text;
}

char *cli_command_line(int argc, char **argv)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=./,:+@%";
    char *text = cli_copy("renyi");

    for (int i = 0; i < argc; i++) {
        const char *quote = argv[i][strspn(argv[i], plain)] || !*argv[i] ? "'" : "";
        char *longer = cli_format("%s %s%s%s", text, quote, argv[i], quote);
        free(text);
        text = longer;
    }
    return text;
}

void cli_strings_add(cli_strings *list, char *owned)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        list->items = cli_grow(list->items, list->capacity, sizeof *list->items);
    }
    list->items[list->count++] = owned;
}

void cli_strings_free(cli_strings *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->items[i]);
    free(list->items);
    *list = (cli_strings){0};
}

double cli_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

double cli_peak_rss_bytes(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage)) return 0.0;
    return (double)usage.ru_maxrss * 1024.0; /* Linux counts in KiB */
}

char *cli_cpu_name(void)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512], *name = NULL;

    while (file && !name && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        name = cli_copy(colon + 1 + strspn(colon + 1, " "));
    }
    if (file) fclose(file);
    return name ? name : cli_copy("unknown");
}
