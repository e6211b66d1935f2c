/* cli.h - what all verbs share: exit codes, messages, stdout, memory.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Results go to stdout, everything else to stderr. Only src/cli may print, read the environment or
 * end the process.
 */
#ifndef RENYI_CLI_H
#define RENYI_CLI_H

#include "renyi/renyi.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_PARTIAL = 3,    /* some inputs failed, the others are done */
    CLI_NO_READER = 141 /* what a shell shows for a process that SIGPIPE ended */
};

/* ---- messages on stderr ("renyi: ..."), one line each, clean as below ------------ */

#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

void cli_error(const char *fmt, ...) CLI_PRINTF(1, 2);
void cli_warn(const char *fmt, ...) CLI_PRINTF(1, 2);
void cli_note(const char *fmt, ...) CLI_PRINTF(1, 2);   /* not with --quiet */
void cli_detail(const char *fmt, ...) CLI_PRINTF(1, 2); /* only with --verbose */
void cli_set_verbosity(int level);                      /* -1 quiet, 0, 1 verbose */
int cli_is_quiet(void);
/* Text before all errors and warnings ("rank 2: "); from now on notes are not shown. */
void cli_set_sender(const char *prefix);

/* The message of an error of the library, or the name of its code without one. */
const char *cli_reason(const renyi_error *err);
/* Reports it; returns CLI_FAILED. */
int cli_fail(const renyi_error *err);

/* ---- stdout -------------------------------------------------------------------------------- */

/* Text from files, models and users, on one line: what it hides (renyi_text_next) becomes U+FFFD,
 * so that it cannot change the terminal or what is read in it; line ends and tabs become spaces. */
void cli_put_clean(FILE *stream, const char *text);
char *cli_clean(const char *text); /* the same as a string; owned */
/* The same for text of several lines: line ends and tabs stay. */
void cli_put_clean_lines(FILE *stream, const char *text, size_t size);
/* printf to stdout with such text among the arguments. */
void cli_print(const char *fmt, ...) CLI_PRINTF(1, 2);
/* Text for other programs: unchanged, except on a terminal. */
void cli_put_data(FILE *stream, const char *text);
/* Flushes stdout; an error turns `code` into CLI_FAILED and is reported once. A pipe whose reader
 * has ended ("| head") turns it into CLI_NO_READER and is not reported. */
int cli_finish_output(int code);

/* Escape sequences, or "" if the stream is no terminal or NO_COLOR is set. */
const char *cli_bold(FILE *stream);
const char *cli_green(FILE *stream);
const char *cli_plain(FILE *stream);

/* Columns of the terminal that stdout is, else of $COLUMNS, else 80; within least and most. */
uint32_t cli_columns(uint32_t least, uint32_t most);

/* ---- memory: the program ends with a message if there is none ------------------------------ */

void *cli_alloc(size_t count, size_t size); /* zeroed */
void *cli_grow(void *ptr, size_t count, size_t size);
char *cli_copy(const char *text);
char *cli_format(const char *fmt, ...) CLI_PRINTF(1, 2);
char *cli_command_line(int argc, char **argv); /* "renyi sweep -m 'a b'", quoted for a shell */

/* A list of strings that owns them. */
typedef struct cli_strings {
    char **items;
    size_t count, capacity;
} cli_strings;
void cli_strings_add(cli_strings *list, char *owned);
void cli_strings_free(cli_strings *list);

/* Monotonic time in milliseconds. */
double cli_now_ms(void);

/* Most memory that this process has used, in bytes. */
double cli_peak_rss_bytes(void);

/* Model name of the CPU as the system reports it. Owned. */
char *cli_cpu_name(void);

#endif
