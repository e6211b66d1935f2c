/* progress.c - progress bars and lines on stderr, and signals that end a run early.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/progress.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- signals ------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* SIGHUP: the terminal was closed. nohup ignores it, and that stays. */
void catch_interrupt(void)
{
    struct sigaction action, before;

    memset(&action, 0, sizeof action);
    action.sa_handler = note_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

int was_interrupted(void) { return interrupted; }

/* ---- the bar ------------------------------------------------------------------------------- */

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

static void draw_bar(const progress_bar *bar, uint64_t done, double now)
{
    const double share = bar->total ? (double)done / (double)bar->total : 0.0;
    const int filled = share >= 1.0 ? BAR_WIDTH : (int)(share * (double)BAR_WIDTH);
    const double seconds = (now - bar->start_ms) * 1e-3;
    const double speed = seconds > 0 ? (double)(done - bar->started_at) / seconds : 0.0;

    fputs("\r\033[K", stderr);
    cli_put_clean(stderr, bar->title);
    fputs(" [", stderr);
    for (int i = 0; i < BAR_WIDTH; i++) putc(i < filled ? '=' : ' ', stderr);
    if (bar->is_bytes)
        fprintf(stderr, "] %.1f of %.1f MB, %.1f MB/s", (double)done * 1e-6,
                (double)bar->total * 1e-6, speed * 1e-6);
    else
        fprintf(stderr, "] %llu of %llu", (unsigned long long)done, (unsigned long long)bar->total);
    cli_put_clean(stderr, bar->text);
    fflush(stderr);
}

int progress_is_due(const progress_bar *bar)
{
    return bar->is_on && cli_now_ms() - bar->shown_ms >= 100.0;
}

void progress_text(progress_bar *bar, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(bar->text, sizeof bar->text, fmt, args);
    va_end(args);
}

void progress_update(progress_bar *bar, uint64_t done)
{
    const double now = cli_now_ms();

    if (!progress_is_due(bar)) return;
    bar->shown_ms = now;
    draw_bar(bar, done, now);
}

void progress_end(progress_bar *bar)
{
    if (bar->is_on && bar->shown_ms > 0) fputs("\r\033[K", stderr);
    bar->is_on = 0;
}

/* ---- work over many images or texts -------------------------------------------------------- */

int work_on_progress(void *user, uint64_t done, uint64_t total)
{
    work_progress *p = user;

    if (!p->is_started) progress_start(&p->bar, p->title, total, 1);
    p->is_started = 1;
    progress_update(&p->bar, done);
    return interrupted;
}

void work_on_failure(void *user, const char *file, const char *message)
{
    work_progress *p = user;

    work_progress_end(p); /* the message gets its own line; the bar comes back below it */
    cli_error("%s: %s", file, message);
    cli_strings_add(&p->failed, cli_copy(file));
    cli_strings_add(&p->reasons, cli_copy(message));
}

void work_progress_end(work_progress *p)
{
    if (p->is_started) progress_end(&p->bar);
    p->is_started = 0;
}

void work_progress_free(work_progress *p)
{
    work_progress_end(p);
    cli_strings_free(&p->failed);
    cli_strings_free(&p->reasons);
}

/* ---- evaluations --------------------------------------------------------------------------- */

void eval_progress_init(eval_progress *p, const char *verb, uint32_t n_policies, uint64_t log_freq)
{
    *p = (eval_progress){.verb = verb, .log_freq = log_freq, .n_policies = n_policies};
    p->n_top1 = cli_alloc(n_policies, sizeof *p->n_top1);
    p->n_top5 = cli_alloc(n_policies, sizeof *p->n_top5);
    p->loss = cli_alloc(n_policies, sizeof *p->loss);
}

void eval_progress_resume(eval_progress *p, const renyi_eval *e)
{
    for (uint32_t i = 0; i < p->n_policies; i++) {
        renyi_eval_result r;
        renyi_eval_get_result(e, i, &r);
        p->n_top1[i] = r.n_top1;
        p->n_top5[i] = r.n_top5;
        p->loss[i] = r.images && !isnan(r.loss) ? r.loss * (double)r.images : 0.0;
        if (i == 0) p->n_images = r.images;
        if (i == 0 || r.images < p->started_at) p->started_at = r.images;
    }
    p->start_ms = cli_now_ms();
    p->next_line = p->started_at + p->log_freq;
}

void eval_progress_free(eval_progress *p)
{
    progress_end(&p->bar);
    free(p->n_top1);
    free(p->n_top5);
    free(p->loss);
}

void eval_on_sample(void *user, const renyi_eval_sample *s)
{
    eval_progress *p = user;

    p->n_images += s->policy == 0;
    p->n_top1[s->policy] += s->is_top1;
    p->n_top5[s->policy] += s->is_top5;
    if (!isnan(s->loss)) p->loss[s->policy] += s->loss;
}

void eval_on_failure(void *user, const char *file, const char *message)
{
    eval_progress *p = user;

    progress_end(&p->bar); /* the message gets its own line; the bar comes back below it */
    cli_error("%s: %s", file, message);
    p->is_started = 0;
}

static double images_per_second(const eval_progress *p, uint64_t done)
{
    const double seconds = (cli_now_ms() - p->start_ms) * 1e-3;
    return seconds > 0 ? (double)(done - p->started_at) / seconds : 0.0;
}

/* Adds "top-1 74.2 | 70.1 %" of the first policies to the bar. */
static void show_bar(eval_progress *p, uint64_t done, uint64_t total)
{
    enum { SHOWN = 4 };
    const double per_second = images_per_second(p, done);
    const double left = per_second > 0 ? (double)(total - done) / per_second : 0.0;
    char right[SHOWN * 12] = "";

    for (uint32_t i = 0; p->n_images && i < p->n_policies && i < SHOWN; i++)
        snprintf(right + strlen(right), sizeof right - strlen(right), "%s%.1f", i ? " | " : "",
                 100.0 * (double)p->n_top1[i] / (double)p->n_images);
    progress_text(&p->bar, ", %.1f/s, top-1 %s %%, %.0f:%02.0f left", per_second, right,
                  floor(left / 60.0), floor(fmod(left, 60.0)));
    progress_update(&p->bar, done);
}

/* As timm prints it: a line for each of the first policies. */
static void show_line(const eval_progress *p, uint64_t done, uint64_t total)
{
    enum { SHOWN = 8 };
    const double n = p->n_images ? (double)p->n_images : NAN;

    for (uint32_t i = 0; i < p->n_policies && i < SHOWN; i++) {
        char which[32] = "";
        if (p->n_policies > 1) snprintf(which, sizeof which, "  policy %u:", i + 1);
        cli_note("Test: [%*llu/%llu]%s  Time: %.1fs (%.1f/s)  Loss: %.4f  Acc@1: %.3f  Acc@5: %.3f",
                 (int)snprintf(NULL, 0, "%llu", (unsigned long long)total),
                 (unsigned long long)done, (unsigned long long)total, which,
                 (cli_now_ms() - p->start_ms) * 1e-3, images_per_second(p, done), p->loss[i] / n,
                 100.0 * (double)p->n_top1[i] / n, 100.0 * (double)p->n_top5[i] / n);
    }
}

int eval_on_progress(void *user, uint64_t done, uint64_t total)
{
    eval_progress *p = user;

    if (!p->is_started) progress_start(&p->bar, p->verb, total, 1);
    p->is_started = 1;
    if (progress_is_due(&p->bar)) show_bar(p, done, total);
    if (!p->bar.is_on && done >= p->next_line) {
        show_line(p, done, total);
        while (p->next_line <= done) p->next_line += p->log_freq;
    }
    return interrupted;
}
