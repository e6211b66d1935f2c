/* memory.c - allocation that ends the program with a message instead of returning NULL.
 * The library never does this; a command-line program has nothing better to do.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
