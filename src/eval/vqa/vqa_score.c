/* vqa_score.c - computes the score of a benchmark, its parts and intervals, and compares two runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <math.h>
#include <string.h>

/* The questions that count: those with a known worth in both runs, of one category or of all. */
typedef struct choice {
    const renyi_vqa_answers *a, *other; /* other may be NULL */
    uint32_t category;                  /* RY_VQA_NONE = all */
    int without_uncounted;              /* 1 = only categories that count */
} choice;

static int is_counted(const renyi_vqa *v, uint32_t category)
{
    return category == RY_VQA_NONE || ry_vqa_is_counted(v->info.task, v->categories[category]);
}

static int is_chosen(const choice *c, size_t i)
{
    if (isnan(c->a->items[i].worth) || (c->other && isnan(c->other->items[i].worth))) return 0;
    const uint32_t category = c->a->v->questions[i].category;
    if (c->without_uncounted && !is_counted(c->a->v, category)) return 0;
    return c->category == RY_VQA_NONE || category == c->category;
}

/* ---- counting ------------------------------------------------------------------------------- */

static ry_moments mean_of(const choice *c, uint64_t *n_right)
{
    ry_moments m = {0};
    *n_right = 0;
    for (size_t i = 0; i < c->a->v->count; i++) {
        if (!is_chosen(c, i)) continue;
        ry_moments_add(&m, c->a->items[i].worth);
        *n_right += c->a->items[i].worth >= 1;
    }
    return m;
}

/* Counts groups of which all questions are chosen, and those with only right answers. */
static void count_groups(const choice *c, uint64_t *n, uint64_t *n_right)
{
    const renyi_vqa *v = c->a->v;
    *n = *n_right = 0;
    for (size_t i = 0; i < v->count; i++) {
        int is_whole = 1, is_right = 1;
        if (!v->questions[i].is_first) continue;
        for (uint32_t k = (uint32_t)i; k != RY_VQA_NONE; k = v->questions[k].next) {
            is_whole = is_whole && is_chosen(c, k);
            is_right = is_right && c->a->items[k].worth >= 1;
        }
        *n += (uint64_t)is_whole;
        *n_right += (uint64_t)(is_whole && is_right);
    }
}

typedef struct table {
    double tp, fp, tn, fn;
} table;

static table count_yes(const choice *c)
{
    table t = {0};
    for (size_t i = 0; i < c->a->v->count; i++) {
        if (!is_chosen(c, i)) continue;
        const int is_no = ry_vqa_is_no(c->a->v->questions[i].right[0]);
        const int no = c->a->items[i].worth >= 1 ? is_no : !is_no; /* says_no == is_no is right */
        *(no ? (is_no ? &t.tn : &t.fn) : (is_no ? &t.fp : &t.tp)) += 1;
    }
    return t;
}

static double percent(double part, double all) { return all > 0 ? 100 * part / all : 0; }
static double f1(const table *t) { return percent(2 * t->tp, 2 * t->tp + t->fp + t->fn); }

/* Standard error of F1 = 2 TP / (2 TP + E) by the delta method: TP and E = FP + FN are counts of a
 * multinomial over n questions. */
static double f1_error(const table *t)
{
    const double n = t->tp + t->fp + t->tn + t->fn, e = t->fp + t->fn, d = 2 * t->tp + e;
    if (n <= 0 || d <= 0) return 0;
    const double by_tp = 2 * e / (d * d), by_e = -2 * t->tp / (d * d), p = t->tp / n, q = e / n;
    const double variance =
        n * (by_tp * by_tp * p * (1 - p) + by_e * by_e * q * (1 - q) - 2 * by_tp * by_e * p * q);
    return 100 * sqrt(fmax(0, variance));
}

static renyi_interval wilson(uint64_t k, uint64_t n)
{
    const renyi_interval r = renyi_stats_interval(k, n);
    return (renyi_interval){100 * r.low, 100 * r.high};
}

static renyi_interval within(double middle, double half)
{
    return (renyi_interval){fmax(0, middle - half), fmin(100, middle + half)};
}

/* ---- parts ---------------------------------------------------------------------------------- */

static void get_part(const choice *c, renyi_vqa_part *out)
{
    const renyi_vqa *v = c->a->v;
    uint64_t n_right, n_groups;
    const ry_moments m = mean_of(c, &n_right);
    *out = (renyi_vqa_part){.n = m.n,
                            .accuracy = m.n ? 100 * m.mean : NAN,
                            .precision = NAN,
                            .recall = NAN,
                            .yes = NAN,
                            .accuracy_plus = NAN};
    out->score = out->accuracy;
    if (c->category != RY_VQA_NONE) {
        out->name = v->categories[c->category];
        out->is_counted = is_counted(v, c->category);
    }
    if (v->info.task == RENYI_VQA_POPE && m.n) {
        const table t = count_yes(c);
        out->score = f1(&t);
        out->precision = percent(t.tp, t.tp + t.fp);
        out->recall = percent(t.tp, t.tp + t.fn);
        out->yes = percent(t.tp + t.fp, (double)m.n);
    } else if (v->info.task == RENYI_VQA_MME && m.n) {
        count_groups(c, &n_groups, &n_right);
        out->accuracy_plus = percent((double)n_right, (double)n_groups);
        out->score = out->accuracy + out->accuracy_plus;
    } else if (ry_vqa_is_mmbench(v->info.task) && m.n) {
        count_groups(c, &n_groups, &n_right);
        out->score = n_groups ? percent((double)n_right, (double)n_groups) : NAN;
    }
}

/* ---- scores --------------------------------------------------------------------------------- */

/* The mean over the categories that have answers. Categories share images and even questions, so
 * their errors are added as if fully correlated: the interval is rather too wide. */
static void score_pope(choice c, renyi_vqa_score *out)
{
    double sum = 0, error = 0, n = 0;
    const size_t n_parts = c.a->v->n_categories ? c.a->v->n_categories : 1;
    for (size_t i = 0; i < n_parts; i++) {
        c.category = c.a->v->n_categories ? (uint32_t)i : RY_VQA_NONE;
        const table t = count_yes(&c);
        if (t.tp + t.fp + t.tn + t.fn == 0) continue;
        sum += f1(&t);
        error += f1_error(&t);
        n++;
    }
    out->score = sum / n;
    out->range = within(out->score, 1.959963984540054 * error / n);
}

static void score_mme(choice c, renyi_vqa_score *out)
{
    out->score = out->cognition = 0;
    for (size_t i = 0; i < c.a->v->n_categories; i++) {
        renyi_vqa_part p;
        c.category = (uint32_t)i;
        get_part(&c, &p);
        if (p.n) *(p.is_counted ? &out->score : &out->cognition) += p.score;
    }
    out->total = out->score + out->cognition;
}

/* The share of right questions or groups. */
static void score_share(const choice *c, int by_group, renyi_vqa_score *out)
{
    uint64_t n, n_right;
    if (by_group)
        count_groups(c, &n, &n_right);
    else
        n = mean_of(c, &n_right).n;
    if (!n) return;
    out->score = percent((double)n_right, (double)n);
    out->range = wilson(n_right, n);
}

/* The categories that count; all questions if none does (sqa without any image). */
static void score_counted(choice c, renyi_vqa_score *out)
{
    c.without_uncounted = 1;
    score_share(&c, 0, out);
    c.without_uncounted = 0;
    if (isnan(out->score)) score_share(&c, 0, out);
}

/* Points of 1000: equal to the number of right answers if all 1000 questions were asked. */
static void score_ocrbench(const choice *c, renyi_vqa_score *out)
{
    score_share(c, 0, out);
    out->score *= 10;
    out->range = (renyi_interval){10 * out->range.low, 10 * out->range.high};
}

/* The score over the questions that `other` (NULL = any) has a known worth for too. */
static void score_answers(const renyi_vqa_answers *a, const renyi_vqa_answers *other,
                          renyi_vqa_score *out)
{
    const choice all = {a, other, RY_VQA_NONE, 0};
    const ry_moments m = mean_of(&all, &out->n_right);
    out->n_scored = m.n;
    out->n_parts = (uint32_t)a->v->n_categories;
    out->accuracy = m.n ? 100 * m.mean : NAN;
    out->score = out->range.low = out->range.high = out->cognition = out->total = NAN;
    if (!m.n) return;
    switch (a->v->info.task) {
    case RENYI_VQA_POPE: score_pope(all, out); break;
    case RENYI_VQA_MME: score_mme(all, out); break;
    case RENYI_VQA_SQA:
    case RENYI_VQA_SEED: score_counted(all, out); break;
    case RENYI_VQA_OCRBENCH: score_ocrbench(&all, out); break;
    case RENYI_VQA_MMBENCH:
    case RENYI_VQA_MMBENCH_CN: score_share(&all, 1, out); break;
    case RENYI_VQA_GQA: score_share(&all, 0, out); break;
    default: {
        const renyi_interval r = ry_moments_estimate(&m).range;
        out->score = out->accuracy;
        if (m.n > 1) out->range = (renyi_interval){fmax(0, 100 * r.low), fmin(100, 100 * r.high)};
    }
    }
}

void renyi_vqa_get_score(const renyi_vqa_answers *a, renyi_vqa_score *out)
{
    score_answers(a, NULL, out);
}

void renyi_vqa_get_part(const renyi_vqa_answers *a, uint32_t i, renyi_vqa_part *out)
{
    const choice c = {a, NULL, i, 0};
    get_part(&c, out);
}

renyi_status renyi_manifest_score(const renyi_manifest *m, const renyi_vqa *v, const size_t *place,
                                  renyi_vqa_score *out, renyi_error *err)
{
    renyi_vqa_answers *a;
    renyi_manifest_info info;
    if (!m || !v || !place || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_manifest_score: NULL argument");
    renyi_manifest_get_info(m, &info);
    renyi_status st = ry_vqa_answers_new(&a, v, err);
    for (size_t i = 0; !st && i < info.n_samples; i++) {
        if (place[i] >= v->count)
            st = ry_fail(err, RENYI_ERR_ARG, -1,
                         "renyi_manifest_score: place[%zu] is %zu of %zu questions", i, place[i],
                         v->count);
        else if (v->questions[place[i]].n_right) /* else worth stays unknown */
            a->items[place[i]].worth = info.samples[i].worth;
    }
    if (!st) renyi_vqa_get_score(a, out);
    renyi_vqa_answers_free(a);
    return st;
}

double renyi_vqa_get_worth(const renyi_vqa_answers *a, size_t i) { return a->items[i].worth; }

/* ---- two runs ------------------------------------------------------------------------------- */

void ry_vqa_pair_finish(renyi_vqa_pair *out, const ry_moments *differences)
{
    const renyi_estimate e = ry_moments_estimate(differences);
    out->n = differences->n;
    out->difference = 100 * e.mean;
    out->range = (renyi_interval){fmax(-100, 100 * e.range.low), fmin(100, 100 * e.range.high)};
    out->p_value = renyi_stats_mcnemar(out->better_a, out->better_b);
    out->is_noise = out->p_value >= 0.05;
}

void renyi_vqa_compare(const renyi_vqa_answers *a, const renyi_vqa_answers *b, renyi_vqa_pair *out)
{
    const choice both = {a, b, RY_VQA_NONE, 0};
    renyi_vqa_score of_a, of_b;
    ry_moments m = {0};
    *out = (renyi_vqa_pair){0};
    for (size_t i = 0; i < a->v->count; i++) {
        if (!is_chosen(&both, i)) continue;
        const double d = b->items[i].worth - a->items[i].worth;
        ry_moments_add(&m, d);
        out->better_a += d < 0;
        out->better_b += d > 0;
        out->equal += d == 0;
        out->same += strcmp(a->items[i].text, b->items[i].text) == 0;
    }
    ry_vqa_pair_finish(out, &m);
    score_answers(a, b, &of_a);
    score_answers(b, a, &of_b);
    out->score_a = of_a.score;
    out->score_b = of_b.score;
}
