/* train_execute.c - renyi train: opens and runs it, with progress on stderr.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/cli_ranks.h"
#include "cli/kit/progress.h"
#include "cli/train/train_arguments.h"

#include <math.h>

typedef struct train_progress {
    progress_bar bar;
    const char *title; /* of the bar that is shown; NULL = none */
    uint64_t log_freq;
    uint64_t begun; /* update that this process began with */
    double start_ms;
    double loss; /* smoothed, for eyes */
} train_progress;

static void show(train_progress *p, const char *title, uint64_t total)
{
    if (p->title == title) return;
    progress_end(&p->bar);
    p->title = title;
    progress_start(&p->bar, title, total, 1);
}

static void hide(train_progress *p)
{
    progress_end(&p->bar);
    p->title = NULL;
}

/* "1:02:03" */
static const char *duration(char out[32], double seconds)
{
    const double s = seconds > 0 && seconds < 1e9 ? floor(seconds) : 0;

    if (s >= 3600)
        snprintf(out, 32, "%.0f:%02.0f:%02.0f", floor(s / 3600), floor(fmod(s, 3600) / 60),
                 fmod(s, 60));
    else
        snprintf(out, 32, "%.0f:%02.0f", floor(s / 60), fmod(s, 60));
    return out;
}

static int on_step(void *user, const renyi_train_step *s)
{
    train_progress *p = user;
    const double each = (cli_now_ms() - p->start_ms) * 1e-3 / (double)(s->step - p->begun);
    char left[32];

    duration(left, each * (double)(s->total_steps - s->step));
    p->loss = s->step - p->begun <= 1 ? s->loss : 0.95 * p->loss + 0.05 * s->loss;
    show(p, "train", s->total_steps);
    if (progress_is_due(&p->bar)) {
        progress_text(&p->bar, ", epoch %llu, loss %.4f, lr %.3g, keep %.3g, %.1f/s, %s left",
                      (unsigned long long)s->epoch, p->loss, s->lr, s->keep, s->images_per_second,
                      left);
        progress_update(&p->bar, s->step);
    }
    if (!p->bar.is_on && (s->step % p->log_freq == 0 || s->step == 1))
        cli_note("Train: %llu [%llu/%llu]  Loss: %.4f  LR: %.3e  Keep: %.3f  %.1f/s  left: %s",
                 (unsigned long long)s->epoch, (unsigned long long)s->step_in_epoch,
                 (unsigned long long)s->n_steps, s->loss, s->lr, s->keep, s->images_per_second,
                 left);
    return was_interrupted();
}

static int on_eval(void *user, uint64_t done, uint64_t total)
{
    train_progress *p = user;

    show(p, "eval", total);
    if (done == total) {
        hide(p);
    } else if (progress_is_due(&p->bar)) {
        progress_update(&p->bar, done);
    }
    return was_interrupted();
}

static void on_epoch(void *user, const renyi_train_epoch *e)
{
    char score[160] = "", mean[64] = "", time[32];

    hide(user);
    if (!isnan(e->ema.top1)) snprintf(mean, sizeof mean, ", its mean's %.2f %%", e->ema.top1);
    if (!isnan(e->val.top1))
        snprintf(score, sizeof score, "; val loss %.4f, top-1 %.2f %%%s, top-5 %.2f %%%s",
                 e->val.loss, e->val.top1, mean, e->val.top5, e->is_best ? ", the best" : "");
    if (e->epoch == RENYI_TRAIN_START)
        cli_note("before the first update%s", score);
    else
        cli_note("epoch %llu: loss %.4f, lr %.3g%s; %s", (unsigned long long)e->epoch,
                 e->train_loss, e->lr, score, duration(time, e->seconds));
}

static void on_note(void *user, const char *text)
{
    hide(user);
    cli_note("%s", text);
}

/* Ranks fail together: the first speaks for all, and its message says whose fault it was. */
static int failure(const renyi_error *err)
{
    if (ranks_number() && err->code != RENYI_ERR_NOMEM) return CLI_FAILED;
    if (err->code == RENYI_ERR_ARG) return options_usage_error("train", "%s", err->message);
    cli_error("%s", err->message[0] ? err->message : renyi_status_name(err->code));
    return CLI_FAILED;
}

static int run(const train_arguments *a, renyi_train *t, train_progress *p)
{
    renyi_error err = {0};
    renyi_train_info info;

    renyi_train_get_info(t, &info);
    p->begun = info.first_step;
    p->start_ms = cli_now_ms();
    if (a->resume && info.first_step >= info.total_steps)
        cli_note("nothing is left to do: %llu updates are done; more with --epochs N or --steps N",
                 (unsigned long long)info.first_step);
    catch_interrupt();
    const renyi_status status = renyi_train_run(t, &err);
    hide(p);
    if (status != RENYI_OK && status != RENYI_ERR_ABORTED) return failure(&err);
    train_put_result(a, t, status == RENYI_ERR_ABORTED);
    if (status == RENYI_OK) return CLI_OK;
    if (!ranks_number())
        cli_error("interrupted; 'renyi train --resume -o %s' goes on from here", a->out);
    return CLI_FAILED;
}

static void put_plan(const train_arguments *a)
{
    for (size_t i = 0; i < renyi_train_setting_count(); i++) {
        renyi_train_setting s;
        char text[RENYI_SETTING_MAX];
        renyi_train_get_setting(i, &s);
        renyi_train_show(&a->opt, i, text, sizeof text);
        printf("%-24s", s.name);
        cli_put_clean(stdout, *text ? text : "-");
        putchar('\n');
    }
}

int train_execute(const train_arguments *a)
{
    train_progress p = {.log_freq = a->log_freq};
    renyi_train_options opt = a->opt;
    renyi_error err = {0};
    renyi_train *t = NULL;

    if (a->dry_run) {
        put_plan(a);
        return CLI_OK;
    }
    opt.user = &p;
    opt.on_step = on_step;
    opt.on_eval = on_eval;
    opt.on_epoch = on_epoch;
    opt.on_note = on_note;
    opt.ranks = ranks_get();
    const renyi_status status = renyi_train_new(&t, &opt, &err);
    if (status != RENYI_ERR_NOMEM) ranks_settle(); /* from here on all ranks fail together */
    if (status != RENYI_OK) return failure(&err);
    train_put_settings(t, a->out, a->resume);
    const int code = run(a, t, &p);
    renyi_train_free(t);
    return code;
}
