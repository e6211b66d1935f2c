/* train_execute.c - renyi train: runs the training with progress; prints settings and result.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/cli_ranks.h"
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/train/train_arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 100, INDENT = 18 };

/* ---- settings ------------------------------------------------------------------------------ */

/* One group as "name value, name value, ..." on lines of WIDTH columns. */
static void put_group(const renyi_train_options *opt, const char *group)
{
    size_t column = 0;

    for (size_t i = 0; i < renyi_train_setting_count(); i++) {
        renyi_train_setting s;
        char text[RENYI_SETTING_MAX];
        renyi_train_get_setting(i, &s);
        if (strcmp(s.group, group) != 0) continue;
        renyi_train_show(opt, i, text, sizeof text);
        const size_t size = strlen(s.name) + strlen(text) + 3;
        if (!column)
            column = (size_t)fprintf(stderr, "  %-*s", INDENT - 2, group);
        else if (column + size > WIDTH)
            column = (size_t)fprintf(stderr, ",\n%*s", INDENT, "") - 2;
        else
            column += (size_t)fprintf(stderr, ", ");
        fprintf(stderr, "%s ", s.name);
        cli_put_clean(stderr, *text ? text : "-");
        column += size - 2;
    }
    putc('\n', stderr);
}

/* All settings on stderr, by group. */
static void put_settings(const renyi_train *t, const char *folder)
{
    const renyi_train_options *opt = renyi_train_settings(t);
    const char *group = "";
    renyi_train_info info;

    if (cli_is_quiet()) return;
    renyi_train_get_info(t, &info);
    cli_note("%s: %s, %u px, %u tokens, %u classes, %.2f M parameters, %.2f M of them trained",
             folder, info.architecture, info.image_size, info.n_tokens, info.n_classes,
             (double)info.n_params * 1e-6, (double)info.n_trained * 1e-6);
    cli_note("%llu images, %llu to evaluate on; %llu updates per epoch, %llu in all%s",
             (unsigned long long)info.n_photos, (unsigned long long)info.n_val,
             (unsigned long long)info.steps_per_epoch, (unsigned long long)info.total_steps,
             info.n_val ? "" : " (no accuracy without --val-dir)");
    cli_note("forward %.3f GMACs per image, policy %s; activations %.0f MB, in all about %.0f MB",
             info.macs_forward * 1e-9, info.policy, (double)info.bytes_activations * 1e-6,
             (double)info.bytes_total * 1e-6);
    if (opt->resume) cli_note("resumed after update %llu", (unsigned long long)info.first_step);
    cli_note("settings:");
    for (size_t i = 0; i < renyi_train_setting_count(); i++) {
        renyi_train_setting s;
        renyi_train_get_setting(i, &s);
        if (strcmp(s.group, group) != 0) put_group(opt, group = s.group);
    }
}

/* ---- the result ---------------------------------------------------------------------------- */

static json_t *score_json(const renyi_train_score *s)
{
    if (isnan(s->top1)) return json_null();
    return json_pack("{s:o, s:o, s:o}", "loss", json_number(s->loss), "top1", json_number(s->top1),
                     "top5", json_number(s->top5));
}

/* People count epochs from 1: best_epoch is the number of the epoch that the best is from. The
 * library and the log count from 0; before the first update this is 0. */
static void put_json(const train_arguments *a, const renyi_train_info *info,
                     const renyi_train_result *r, int is_interrupted)
{
    json_print(json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "output",
        json_text(a->out), "architecture", json_text(info->architecture), "params",
        (json_int_t)info->n_params, "epochs", (json_int_t)r->epochs, "steps", (json_int_t)r->steps,
        "train_loss", json_number(r->train_loss), "val", score_json(&r->val), "ema",
        score_json(&r->ema), "best_top1", json_number(r->best_top1), "best_epoch",
        isnan(r->best_top1) ? json_null() : json_integer((json_int_t)(r->best_epoch + 1)),
        "seconds", json_number(r->seconds), "complete", r->is_complete != 0, "interrupted",
        is_interrupted));
}

/* With the part of the epoch that the run stopped in, as renyi plot counts them. */
static double epochs_done(const renyi_train_info *info, const renyi_train_result *r)
{
    const double each = (double)info->steps_per_epoch, whole = (double)r->epochs;
    const double part = ((double)r->steps - whole * each) / each;

    return whole + fmin(fmax(part, 0), 1);
}

static void put_result(const train_arguments *a, const renyi_train *t, int is_interrupted)
{
    renyi_train_info info;
    renyi_train_result r;

    renyi_train_get_info(t, &info);
    renyi_train_get_result(t, &r);
    if (a->json) {
        put_json(a, &info, &r, is_interrupted);
        return;
    }
    const double epochs = epochs_done(&info, &r);
    cli_print("%s: %s, %.4g epoch%s, %llu update%s, %.0f s\n", a->out, info.architecture, epochs,
              epochs == 1 ? "" : "s", (unsigned long long)r.steps, r.steps == 1 ? "" : "s",
              r.seconds);
    if (!isnan(r.train_loss)) printf("  training loss  %.4f in the last epoch\n", r.train_loss);
    if (!isnan(r.val.top1))
        printf("  weights        top-1 %.2f %%, top-5 %.2f %%, loss %.4f\n", r.val.top1, r.val.top5,
               r.val.loss);
    if (!isnan(r.ema.top1))
        printf("  running mean   top-1 %.2f %%, top-5 %.2f %%, loss %.4f\n", r.ema.top1, r.ema.top5,
               r.ema.loss);
    if (!isnan(r.best_top1))
        printf("  best           top-1 %.2f %% in epoch %llu (best.safetensors)\n", r.best_top1,
               (unsigned long long)(r.best_epoch + 1));
}

/* ---- progress
 * ------------------------------------------------------------------------------------ */

typedef struct train_progress {
    progress_bar bar;
    const char *title; /* of the bar that is shown; NULL = none */
    uint64_t log_freq;
    uint64_t begun; /* updates done before this process */
    uint64_t steps_per_epoch;
    double start_ms;
    double loss; /* smoothed, for the bar */
} train_progress;

static void show_bar(train_progress *p, const char *title, uint64_t total)
{
    if (p->title == title) return;
    progress_end(&p->bar);
    p->title = title;
    progress_start(&p->bar, title, total, 1);
}

static void hide_bar(train_progress *p)
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
    show_bar(p, "train", s->total_steps);
    if (progress_is_due(&p->bar)) {
        progress_text(&p->bar, ", epoch %llu, loss %.4f, lr %.3g, keep %.3g, %.1f/s, %s left",
                      (unsigned long long)s->epoch + 1, p->loss, s->lr, s->keep,
                      s->images_per_second, left);
        progress_update(&p->bar, s->step);
    }
    if (!p->bar.is_on && (s->step % p->log_freq == 0 || s->step == 1))
        cli_note("Train: %llu [%llu/%llu]  Loss: %.4f  LR: %.3e  Keep: %.3f  %.1f/s  left: %s",
                 (unsigned long long)s->epoch + 1, (unsigned long long)s->step_in_epoch,
                 (unsigned long long)s->n_steps, s->loss, s->lr, s->keep, s->images_per_second,
                 left);
    return was_interrupted();
}

static int on_eval(void *user, uint64_t done, uint64_t total)
{
    train_progress *p = user;

    show_bar(p, "eval", total);
    if (done == total) {
        hide_bar(p);
    } else if (progress_is_due(&p->bar)) {
        progress_update(&p->bar, done);
    }
    return was_interrupted();
}

static void on_epoch(void *user, const renyi_train_epoch *e)
{
    train_progress *p = user;
    char score[160] = "", mean[64] = "", time[32], up_to[64] = "";

    hide_bar(p);
    if (e->step < (e->epoch + 1) * p->steps_per_epoch)
        snprintf(up_to, sizeof up_to, ", up to update %llu", (unsigned long long)e->step);
    if (!isnan(e->ema.top1)) snprintf(mean, sizeof mean, ", averaged weights %.2f %%", e->ema.top1);
    if (!isnan(e->val.top1))
        snprintf(score, sizeof score, "; val loss %.4f, top-1 %.2f %%%s, top-5 %.2f %%%s",
                 e->val.loss, e->val.top1, mean, e->val.top5, e->is_best ? ", the best" : "");
    if (e->epoch == RENYI_TRAIN_START)
        cli_note("before the first update%s", score);
    else
        cli_note("epoch %llu%s: loss %.4f, lr %.3g%s; %s", (unsigned long long)e->epoch + 1, up_to,
                 e->train_loss, e->lr, score, duration(time, e->seconds));
}

static void on_note(void *user, const char *text)
{
    hide_bar(user);
    cli_note("%s", text);
}

/* All ranks fail together; only the first reports it, with the rank that caused it. */
static int report_failure(const renyi_error *err)
{
    if (ranks_number() && err->code != RENYI_ERR_NOMEM) return CLI_FAILED;
    if (err->code == RENYI_ERR_ARG) return options_usage_error("train", "%s", err->message);
    return cli_fail(err);
}

static int run_training(const train_arguments *a, renyi_train *t, train_progress *p)
{
    renyi_error err = {0};
    renyi_train_info info;

    renyi_train_get_info(t, &info);
    p->begun = info.first_step;
    p->steps_per_epoch = info.steps_per_epoch;
    p->start_ms = cli_now_ms();
    if (a->resume && info.first_step >= info.total_steps)
        cli_note("nothing to do: all %llu updates are done; give more with --epochs N or --steps N",
                 (unsigned long long)info.first_step);
    catch_interrupt();
    const renyi_status status = renyi_train_run(t, &err);
    hide_bar(p);
    if (status != RENYI_OK && status != RENYI_ERR_ABORTED) return report_failure(&err);
    put_result(a, t, status == RENYI_ERR_ABORTED);
    if (status == RENYI_OK) return CLI_OK;
    if (!ranks_number())
        cli_error("interrupted; 'renyi train --resume -o %s' continues from here", a->out);
    return CLI_FAILED;
}

/* --dry-run */
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
    if (status != RENYI_OK) return report_failure(&err);
    put_settings(t, a->out);
    const int code = run_training(a, t, &p);
    renyi_train_free(t);
    return code;
}
