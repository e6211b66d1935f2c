/* cli.c - messages on stderr, checks of stdout, memory, strings and the clock of all verbs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/cli.h"

#include "cli/kit/cli_ranks.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif
#include <time.h>
#include <unistd.h>

/* ---- text from outside --------------------------------------------------------------------- */

/* Copies text [size] to out [3 * size] without what it hides; characters of `kept` stay, other line
 * ends and tabs become spaces. Returns the length. */
static size_t clean_text(char *out, const char *text, size_t size, const char *kept)
{
    size_t length = 0;

    for (size_t i = 0, n; i < size; i += n) {
        uint32_t code;
        int is_hidden;
        n = renyi_text_next(text + i, size - i, &code, &is_hidden);
        const char *shown = text + i;
        size_t n_shown = n;
        if (is_hidden && !(code && code < 0x80 && strchr(kept, (int)code))) {
            const int is_space = code == '\t' || code == '\n' || code == '\r';
            shown = is_space ? " " : "\xef\xbf\xbd";
            n_shown = is_space ? 1 : 3;
        }
        memcpy(out + length, shown, n_shown);
        length += n_shown;
    }
    return length;
}

/* In pieces, because there may be no memory. A piece may end inside a character only if the text
 * itself does: whole characters are taken. */
static void put_clean(FILE *stream, const char *text, size_t size, const char *kept)
{
    enum { PIECE = 256 };
    char out[3 * PIECE];

    while (size) {
        size_t n = size;
        if (n > PIECE)
            for (n = PIECE; n > PIECE - 4 && ((unsigned char)text[n] & 0xc0) == 0x80;) n--;
        fwrite(out, 1, clean_text(out, text, n, kept), stream);
        text += n;
        size -= n;
    }
}

void cli_put_clean(FILE *stream, const char *text) { put_clean(stream, text, strlen(text), ""); }

void cli_put_clean_lines(FILE *stream, const char *text, size_t size)
{
    put_clean(stream, text, size, "\n\t");
}

void cli_put_data(FILE *stream, const char *text)
{
    if (isatty(fileno(stream)))
        cli_put_clean(stream, text);
    else
        fputs(text, stream);
}

char *cli_clean(const char *text)
{
    const size_t size = strlen(text);
    char *out = cli_alloc(3 * size + 1, 1);

    clean_text(out, text, size, "");
    return out;
}

/* ---- messages ------------------------------------------------------------------------------ */

static int verbosity;
static char sender[32]; /* "rank 2: "; empty for the first rank */

void cli_set_verbosity(int level) { verbosity = level; }

int cli_is_quiet(void) { return verbosity < 0 || sender[0]; }

void cli_set_sender(const char *prefix) { snprintf(sender, sizeof sender, "%s", prefix); }

/* One write, so that lines of several ranks or threads do not mix. No heap: it may be exhausted. */
static void put_line(const char *prefix, const char *fmt, va_list args)
{
    enum { LONGEST = 4096 };
    char text[LONGEST], line[64 + 3 * LONGEST + 1]; /* U+FFFD has three bytes */
    size_t n = (size_t)snprintf(line, 64, "%s%s", prefix, sender);

    vsnprintf(text, sizeof text, fmt, args);
    n += clean_text(line + n, text, strlen(text), "");
    line[n++] = '\n';
    fwrite(line, 1, n, stderr);
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

/* Is stdout a pipe that nobody reads any more? errno is not enough: the write that failed may have
 * been long ago. */
static int is_reader_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

int cli_finish_output(int code)
{
    const int failed_before = ferror(stdout);

    errno = 0;
    if (fflush(stdout) == 0 && !failed_before) return code;
    const int reason = errno;
    if (is_reader_gone()) return CLI_NO_READER;
    errno = reason;
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

uint32_t cli_columns(uint32_t least, uint32_t most)
{
    const char *text = getenv("COLUMNS");
    struct winsize size = {0};
    long columns = text ? strtol(text, NULL, 10) : 0;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) columns = size.ws_col;
    if (columns <= 0) columns = 80;
    return columns < (long)least ? least : columns > (long)most ? most : (uint32_t)columns;
}

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

static char *format_text(const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, fmt, args);
    if (length < 0) out_of_memory();
    char *text = cli_alloc((size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    return text;
}

char *cli_format(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = format_text(fmt, args);
    va_end(args);
    return text;
}

void cli_print(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = format_text(fmt, args);
    va_end(args);
    cli_put_clean_lines(stdout, text, strlen(text));
    free(text);
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
#ifdef __APPLE__
    return (double)usage.ru_maxrss;
#else
    return (double)usage.ru_maxrss * 1024.0; /* Linux counts in KiB */
#endif
}

#ifndef __APPLE__
/* What follows the colon in the first line of /proc/cpuinfo that begins with `start`; NULL = none.
 */
static char *cpu_line(const char *start)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512], *found = NULL;

    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, start, strlen(start)) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        found = cli_copy(colon + 1 + strspn(colon + 1, " "));
    }
    if (file) fclose(file);
    return found;
}
#endif

char *cli_cpu_name(void)
{
#ifdef __APPLE__
    char brand[128];
    size_t size = sizeof brand;
    return cli_copy(sysctlbyname("machdep.cpu.brand_string", brand, &size, NULL, 0) ? "unknown"
                                                                                    : brand);
#else
    char *name = cpu_line("model name");
    if (name) return name;
    char *maker = cpu_line("CPU implementer"), *part = cpu_line("CPU part"); /* ARM has no names */
    if (maker && part) name = cli_format("ARM implementer %s part %s", maker, part);
    free(maker);
    free(part);
    return name ? name : cli_copy("unknown");
#endif
}
