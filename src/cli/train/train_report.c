/* train_report.c - what renyi train says before and after.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/output.h"
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

void train_put_settings(const renyi_train *t, const char *folder, int is_resumed)
{
    const renyi_train_options *opt = renyi_train_settings(t);
    const char *group = "";
    renyi_train_info info;

    if (cli_is_quiet()) return;
    renyi_train_get_info(t, &info);
    cli_note("%s: %s, %u px, %u tokens, %u classes, %.2f M parameters, %.2f M of them trained",
             folder, info.architecture, info.image_size, info.n_tokens, info.n_classes,
             (double)info.n_params * 1e-6, (double)info.n_trained * 1e-6);
    cli_note("%llu photos, %llu to evaluate on; %llu updates an epoch, %llu in all%s",
             (unsigned long long)info.n_photos, (unsigned long long)info.n_val,
             (unsigned long long)info.steps_per_epoch, (unsigned long long)info.total_steps,
             info.n_val ? "" : " (no accuracy without --val-dir)");
    cli_note("forward %.3f GMACs an image, policy %s; activations %.0f MB, in all about %.0f MB",
             info.macs_forward * 1e-9, info.policy, (double)info.bytes_activations * 1e-6,
             (double)info.bytes_total * 1e-6);
    if (is_resumed) cli_note("resumed after update %llu", (unsigned long long)info.first_step);
    cli_note("settings:");
    for (size_t i = 0; i < renyi_train_setting_count(); i++) {
        renyi_train_setting s;
        renyi_train_get_setting(i, &s);
        if (strcmp(s.group, group) != 0) put_group(opt, group = s.group);
    }
}

/* ---- the outcome --------------------------------------------------------------------------- */

static json_t *score_json(const renyi_train_score *s)
{
    if (isnan(s->top1)) return json_null();
    return json_pack("{s:o, s:o, s:o}", "loss", json_number(s->loss), "top1", json_number(s->top1),
                     "top5", json_number(s->top5));
}

static void put_json(const train_arguments *a, const renyi_train_info *info,
                     const renyi_train_result *r, int is_interrupted)
{
    json_print(json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "output",
        json_text(a->out), "architecture", json_text(info->architecture), "params",
        (json_int_t)info->n_params, "epochs", (json_int_t)r->epochs, "steps", (json_int_t)r->steps,
        "train_loss", json_number(r->train_loss), "val", score_json(&r->val), "ema",
        score_json(&r->ema), "best_top1", json_number(r->best_top1), "best_epoch",
        isnan(r->best_top1) ? json_null() : json_integer((json_int_t)r->best_epoch), "seconds",
        json_number(r->seconds), "complete", r->is_complete != 0, "interrupted", is_interrupted));
}

void train_put_result(const train_arguments *a, const renyi_train *t, int is_interrupted)
{
    renyi_train_info info;
    renyi_train_result r;

    renyi_train_get_info(t, &info);
    renyi_train_get_result(t, &r);
    if (a->json) {
        put_json(a, &info, &r, is_interrupted);
        return;
    }
    cli_put_clean(stdout, a->out);
    printf(": %s, %llu epochs, %llu updates, %.0f s\n", info.architecture,
           (unsigned long long)r.epochs, (unsigned long long)r.steps, r.seconds);
    if (!isnan(r.train_loss)) printf("  training loss  %.4f in the last epoch\n", r.train_loss);
    if (!isnan(r.val.top1))
        printf("  weights        top-1 %.2f %%, top-5 %.2f %%, loss %.4f\n", r.val.top1, r.val.top5,
               r.val.loss);
    if (!isnan(r.ema.top1))
        printf("  running mean   top-1 %.2f %%, top-5 %.2f %%, loss %.4f\n", r.ema.top1, r.ema.top5,
               r.ema.loss);
    if (!isnan(r.best_top1))
        printf("  best           top-1 %.2f %% after epoch %llu (best.safetensors)\n", r.best_top1,
               (unsigned long long)r.best_epoch);
}
