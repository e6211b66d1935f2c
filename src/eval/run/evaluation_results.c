/* evaluation_results.c - totals, pairs and samples of an evaluation. Everything is added up in
 * dataset order from what each photo got, so an interrupted run ends with the same totals.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/run/evaluation.h"
#include "eval/run/merge.h"

#include <math.h>
#include <string.h>

uint32_t renyi_eval_policy_count(const renyi_eval *e) { return e->o.n_policies; }

int renyi_eval_get_sample(const renyi_eval *e, uint32_t policy, size_t i, renyi_eval_sample *out)
{
    if (policy >= e->o.n_policies || i >= e->n_images) return 0;
    const ry_answer *a = ry_eval_answer(e, policy, i);
    if (a->state != RY_ANSWER_GIVEN) return 0;
    renyi_dataset_image photo = {0};
    if (e->merged)
        ry_merged_get_photo(e->merged, i, &photo);
    else
        renyi_dataset_get_image(e->data, i, &photo);
    *out = (renyi_eval_sample){.file = photo.file,
                               .index = photo.index,
                               .policy = policy,
                               .label = photo.label,
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

/* What a policy's answers add up to. */
typedef struct sums {
    uint64_t n_nan, n_loss, n_ms, n_warm, n_rest;
    double loss, ms, warm_ms, rest_ms;
} sums;

static void add_up(const renyi_eval *e, uint32_t policy, renyi_eval_result *out, sums *s)
{
    for (size_t i = 0; i < e->n_images; i++) {
        const ry_answer *a = ry_eval_answer(e, policy, i);
        s->n_nan += a->state == RY_ANSWER_NAN;
        if (a->state != RY_ANSWER_GIVEN) continue;
        out->images++;
        out->n_top1 += a->right == 1;
        out->n_top5 += a->right > 0;
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

/* Of photos that an earlier run did only what is possible is known: the same but for ats. */
static double executed_macs(const ry_eval_policy *p)
{
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

/* Milliseconds per photo that are not the model's: of this run, or as the logs say. */
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
        .policy = p->text, .gmacs = p->gmacs, .gmacs_executed = executed_macs(p) * 1e-9};
    add_up(e, policy, out, &s);
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

/* One pass over the photos; `classes` [n_classes] holds zeros. */
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

void ry_pair_add(renyi_eval_pair *out, uint32_t a_right, uint32_t b_right, int is_same)
{
    out->both += a_right && b_right;
    out->only_a += a_right && !b_right;
    out->only_b += !a_right && b_right;
    out->none += !a_right && !b_right;
    out->same += is_same != 0;
}

void ry_pair_finish(renyi_eval_pair *out)
{
    const uint64_t n = out->both + out->only_a + out->only_b + out->none;
    out->difference = n ? 100.0 * ((double)out->only_b - (double)out->only_a) / (double)n : NAN;
    out->p_value = renyi_stats_mcnemar(out->only_a, out->only_b);
    out->is_noise = !(out->p_value < 0.05);
}

size_t renyi_eval_failure_count(const renyi_eval *e) { return e->n_failures; }

void renyi_eval_get_failure(const renyi_eval *e, size_t i, renyi_eval_failure *out)
{
    *out = e->failures[i].shown;
}

void renyi_eval_get_times(const renyi_eval *e, renyi_eval_times *out) { *out = e->times; }
