/* terminal.h - a progress bar on stderr, only when that is a terminal and --quiet was not given.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_TERMINAL_H
#define RENYI_TERMINAL_H

#include <stdint.h>

typedef struct progress_bar {
    const char *title; /* borrowed */
    uint64_t total, started_at;
    double start_ms, shown_ms;
    int is_on, is_bytes;
    char words[120];
} progress_bar;

/* `wanted` = 0 keeps it off whatever the terminal is. */
void progress_start(progress_bar *bar, const char *title, uint64_t total, int wanted);
/* The same for a transfer: sizes and speed; `done` bytes were there before. */
void progress_start_bytes(progress_bar *bar, const char *title, uint64_t total, uint64_t done);
void progress_update(progress_bar *bar, uint64_t done); /* draws ten times a second at most */
/* Words behind the bar, kept until the next call; 1 if the next update will show them. */
int progress_is_due(const progress_bar *bar);
void progress_words(progress_bar *bar, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_end(progress_bar *bar); /* wipes the line */

#endif
