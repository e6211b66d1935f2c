/* terminal.c - see terminal.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/terminal.h"

#include "cli/kit/cli.h"

#include <stdarg.h>
#include <unistd.h>

enum { BAR_WIDTH = 24 };

void progress_start(progress_bar *bar, const char *title, uint64_t total, int wanted)
{
    *bar = (progress_bar){.title = title, .total = total, .start_ms = cli_now_ms()};
    bar->is_on = wanted && !cli_is_quiet() && isatty(STDERR_FILENO);
}

void progress_start_bytes(progress_bar *bar, const char *title, uint64_t total, uint64_t done)
{
    progress_start(bar, title, total, 1);
    bar->started_at = done;
    bar->is_bytes = 1;
}

static void draw(const progress_bar *bar, uint64_t done, double now)
{
    const double share = bar->total ? (double)done / (double)bar->total : 0.0;
    const int filled = share >= 1.0 ? BAR_WIDTH : (int)(share * BAR_WIDTH);
    const double seconds = (now - bar->start_ms) * 1e-3;
    const double speed = seconds > 0 ? (double)(done - bar->started_at) / seconds : 0.0;

    fprintf(stderr, "\r\033[K%s [", bar->title);
    for (int i = 0; i < BAR_WIDTH; i++) putc(i < filled ? '=' : ' ', stderr);
    if (bar->is_bytes)
        fprintf(stderr, "] %.1f of %.1f MB, %.1f MB/s", (double)done * 1e-6,
                (double)bar->total * 1e-6, speed * 1e-6);
    else
        fprintf(stderr, "] %llu of %llu", (unsigned long long)done, (unsigned long long)bar->total);
    fputs(bar->words, stderr);
    fflush(stderr);
}

int progress_is_due(const progress_bar *bar)
{
    return bar->is_on && cli_now_ms() - bar->shown_ms >= 100.0;
}

void progress_words(progress_bar *bar, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(bar->words, sizeof bar->words, fmt, args);
    va_end(args);
}

void progress_update(progress_bar *bar, uint64_t done)
{
    const double now = cli_now_ms();

    if (!progress_is_due(bar)) return;
    bar->shown_ms = now;
    draw(bar, done, now);
}

void progress_end(progress_bar *bar)
{
    if (bar->is_on && bar->shown_ms > 0) fputs("\r\033[K", stderr);
    bar->is_on = 0;
}
