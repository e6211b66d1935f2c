/* progress.c - see progress.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/progress.h"

#include "cli/kit/cli.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t is_interrupted;

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    is_interrupted = 1;
}

void eval_catch_interrupt(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = note_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int eval_is_interrupted(void) { return is_interrupted; }

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

    progress_end(&p->bar); /* the message gets a line of its own; the bar comes back below it */
    cli_error("%s: %s", file, message);
    p->is_started = 0;
}

static double speed(const eval_progress *p, uint64_t done)
{
    const double seconds = (cli_now_ms() - p->start_ms) * 1e-3;
    return seconds > 0 ? (double)(done - p->started_at) / seconds : 0.0;
}

/* "74.2 | 70.1 % right" of the first policies */
static void show_bar(eval_progress *p, uint64_t done, uint64_t total)
{
    enum { SHOWN = 4 };
    const double per_second = speed(p, done);
    const double left = per_second > 0 ? (double)(total - done) / per_second : 0.0;
    char right[SHOWN * 12] = "";

    for (uint32_t i = 0; p->n_images && i < p->n_policies && i < SHOWN; i++)
        snprintf(right + strlen(right), sizeof right - strlen(right), "%s%.1f", i ? " | " : "",
                 100.0 * (double)p->n_top1[i] / (double)p->n_images);
    progress_words(&p->bar, ", %.1f/s, top-1 %s %%, %.0f:%02.0f left", per_second, right,
                   floor(left / 60.0), floor(fmod(left, 60.0)));
    progress_update(&p->bar, done);
}

/* timm's words, a line for each of the first policies. */
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
                 (cli_now_ms() - p->start_ms) * 1e-3, speed(p, done), p->loss[i] / n,
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
    return is_interrupted;
}
