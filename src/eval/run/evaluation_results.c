/* evaluation_results.c - from logits to answers, and from answers to totals and pairs.
 *
 * Totals are added up in dataset order from the answers, so a run that was interrupted and resumed
 * ends with the same totals.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/evaluation.h"
#include "eval/run/merge.h"
#include "eval/run/stats.h"

#include <math.h>
#include <string.h>

/* ---- answers ------------------------------------------------------------------------------- */

static uint32_t class_at(const ry_choice *c, uint32_t i) { return c->valid ? c->valid[i] : i; }

static void insert_class(ry_answer *a, const float *logits, uint32_t class)
{
    uint32_t at = a->n_top;
    while (at > 0 && logits[class] > logits[a->top[at - 1]]) at--;
    if (at == RY_TOP) return;
    if (a->n_top < RY_TOP) a->n_top++;
    for (uint32_t i = a->n_top - 1u; i > at; i--) a->top[i] = a->top[i - 1];
    a->top[at] = class;
}

void ry_answer_read(ry_answer *out, const float *logits, const ry_choice *choice, uint32_t label)
{
    const uint32_t n = choice->valid ? choice->n_valid : choice->n;
    int has_label = 0, is_number = n > 0;
    double sum = 0.0;
    out->n_top = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t class = class_at(choice, i);
        is_number &= !isnan(logits[class]);
        has_label |= class == label;
        insert_class(out, logits, class);
    }
    is_number = is_number && isfinite(logits[out->top[0]]);
    out->state = is_number ? RY_ANSWER_GIVEN : RY_ANSWER_NAN;
    if (!is_number) return;
    const double best = logits[out->top[0]];
    for (uint32_t i = 0; i < n; i++) sum += exp(logits[class_at(choice, i)] - best);
    out->loss = has_label ? log(sum) + best - logits[label] : NAN;
    out->margin = out->n_top > 1 ? logits[out->top[0]] - logits[out->top[1]] : NAN;
}

void ry_answer_judge(ry_answer *a, const renyi_dataset_image *image)
{
    a->right = 0;
    for (uint8_t i = 0; i < a->n_top && !a->right; i++)
        for (uint32_t j = 0; j < image->n_right; j++)
            if (a->top[i] == image->right[j]) a->right = (uint8_t)(i + 1);
}

/* ---- samples and totals -------------------------------------------------------------------- */

uint32_t renyi_eval_policy_count(const renyi_eval *e) { return e->o.n_policies; }

int renyi_eval_get_sample(const renyi_eval *e, uint32_t policy, size_t i, renyi_eval_sample *out)
{
    if (policy >= e->o.n_policies || i >= e->n_images) return 0;
    const ry_answer *a = ry_eval_answer(e, policy, i);
    if (a->state != RY_ANSWER_GIVEN) return 0;
    renyi_dataset_image image = {0};
    if (e->merged)
        ry_merged_get_image(e->merged, i, &image);
    else
        renyi_dataset_get_image(e->data, i, &image);
    *out = (renyi_eval_sample){.file = image.file,
                               .index = image.index,
                               .policy = policy,
                               .label = image.label,
                               .prediction = a->top[0],
                               .n_top = a->n_top,
                               .is_top1 = a->right == 1,
                               .is_top5 = a->right > 0,
                               .margin = (double)a->margin,
                               .loss = a->loss,
                               .ms = (double)a->ms};
    for (uint32_t k = 0; k < a->n_top; k++) out->top[k] = a->top[k];
    return 1;
}

typedef struct sums {
    uint64_t n_nan, n_loss, n_ms, n_warm, n_rest, n_second;
    double loss, ms, warm_ms, rest_ms;
} sums;

static void add_answers(const renyi_eval *e, uint32_t policy, renyi_eval_result *out, sums *s)
{
    for (size_t i = 0; i < e->n_images; i++) {
        const ry_answer *a = ry_eval_answer(e, policy, i);
        s->n_nan += a->state == RY_ANSWER_NAN;
        if (a->state != RY_ANSWER_GIVEN) continue;
        out->images++;
        out->n_top1 += a->right == 1;
        out->n_top5 += a->right > 0;
        s->n_second += a->passes == 2;
        if (!isnan(a->ms_rest)) s->n_rest++, s->rest_ms += (double)a->ms_rest;
        if (!isnan(a->loss)) s->n_loss++, s->loss += a->loss;
        if (isnan(a->ms)) continue;
        s->n_ms++, s->ms += (double)a->ms;
        if (!a->is_cold) s->n_warm++, s->warm_ms += (double)a->ms;
    }
}

static double per_cent(uint64_t k, uint64_t n) { return n ? 100.0 * (double)k / (double)n : NAN; }

static renyi_interval per_cent_range(uint64_t k, uint64_t n)
{
    const renyi_interval r = renyi_stats_interval(k, n);
    return (renyi_interval){100.0 * r.low, 100.0 * r.high};
}

/* When all answers come from an earlier run: what the session executes at most, which is exact for
 * all rules except ats. Of a cascade that has run here: by the share of second passes, so that
 * answers from logs count. */
static double executed_macs(const ry_eval_policy *p, double second_share)
{
    if (p->session && p->gmacs_second > 0 && !isnan(second_share))
        return renyi_session_macs(p->session) - (1 - second_share) * p->macs_second;
    const uint64_t n = p->own.n_run + p->others.n_run;
    if (n) return (p->own.macs + p->others.macs) / (double)n;
    return p->session ? renyi_session_macs(p->session) : NAN;
}

static uint64_t count_unreadable(const renyi_eval *e)
{
    uint64_t n = 0;
    for (size_t i = 0; i < e->n_failures; i++) n += e->failures[i].policy == RY_ALL_POLICIES;
    return n;
}

/* Milliseconds per image outside the model: of this run, or from the merged logs. */
static double rest_ms(const renyi_eval *e, const sums *s)
{
    const renyi_eval_times *t = &e->times;
    if (e->merged) return s->n_rest ? s->rest_ms / (double)s->n_rest : NAN;
    if (!t->images) return NAN;
    return 1e3 * (t->n_ranks * t->seconds - t->seconds_model) / (double)t->images;
}

void renyi_eval_get_result(const renyi_eval *e, uint32_t policy, renyi_eval_result *out)
{
    const ry_eval_policy *p = &e->policies[policy];
    sums s = {0};
    *out = (renyi_eval_result){
        .policy = p->text, .dtype = p->dtype, .gmacs = p->gmacs, .is_cascade = p->gmacs_second > 0};
    add_answers(e, policy, out, &s);
    if (out->is_cascade)
        out->second_share = out->images ? (double)s.n_second / (double)out->images : NAN;
    out->gmacs_executed = executed_macs(p, out->second_share) * 1e-9;
    if (out->is_cascade && out->images) out->gmacs -= (1 - out->second_share) * p->gmacs_second;
    out->failed = count_unreadable(e) + s.n_nan;
    out->top1 = per_cent(out->n_top1, out->images);
    out->top5 = per_cent(out->n_top5, out->images);
    out->top1_range = per_cent_range(out->n_top1, out->images);
    out->top5_range = per_cent_range(out->n_top5, out->images);
    out->loss = s.n_loss ? s.loss / (double)s.n_loss : NAN;
    out->ms_model = s.n_warm ? s.warm_ms / (double)s.n_warm : s.n_ms ? s.ms / (double)s.n_ms : NAN;
    out->ms_total = out->ms_model + rest_ms(e, &s);
    out->images_per_second = (e->merged ? 1 : e->times.n_ranks) * 1e3 / out->ms_total;
}

/* ---- classes and pairs --------------------------------------------------------------------- */

/* classes: [n_classes], zeroed. */
static void count_classes(const renyi_eval *e, uint32_t policy, renyi_eval_class *classes,
                          uint32_t n_classes)
{
    for (size_t i = 0; i < e->n_images; i++) {
        renyi_eval_sample s;
        if (!renyi_eval_get_sample(e, policy, i, &s) || s.label >= n_classes) continue;
        renyi_eval_class *c = &classes[s.label];
        c->images++;
        c->n_top1 += s.is_top1;
        c->n_top5 += s.is_top5;
    }
}

void renyi_eval_get_classes(const renyi_eval *e, uint32_t policy, renyi_eval_class *classes,
                            uint32_t n_classes, double *mean)
{
    double sum = 0.0;
    uint32_t n = 0;
    memset(classes, 0, n_classes * sizeof *classes);
    count_classes(e, policy, classes, n_classes);
    for (uint32_t i = 0; i < n_classes; i++) {
        renyi_eval_class *c = &classes[i];
        c->top1 = per_cent(c->n_top1, c->images);
        c->top5 = per_cent(c->n_top5, c->images);
        c->top1_range = per_cent_range(c->n_top1, c->images);
        if (c->images) sum += c->top1, n++;
    }
    if (mean) *mean = n ? sum / n : NAN;
}

void renyi_eval_get_pair(const renyi_eval *e, uint32_t a, uint32_t b, renyi_eval_pair *out)
{
    *out = (renyi_eval_pair){0};
    for (size_t i = 0; i < e->n_images; i++) {
        renyi_eval_sample x, y;
        if (!renyi_eval_get_sample(e, a, i, &x) || !renyi_eval_get_sample(e, b, i, &y)) continue;
        ry_pair_add(out, x.is_top1, y.is_top1, x.prediction == y.prediction);
    }
    ry_pair_finish(out);
}

/* ---- failures and times -------------------------------------------------------------------- */

size_t renyi_eval_failure_count(const renyi_eval *e) { return e->n_failures; }

void renyi_eval_get_failure(const renyi_eval *e, size_t i, renyi_eval_failure *out)
{
    *out = e->failures[i].shown;
}

void renyi_eval_get_times(const renyi_eval *e, renyi_eval_times *out) { *out = e->times; }
