/* vqa_report.c - the results of renyi vqa for people: figures, categories, pairs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/llava/vqa_report.h"

#include "cli/kit/output.h"

#include <math.h>
#include <string.h>

static void put_real(text_table *t, int digits, double value)
{
    if (isfinite(value))
        text_table_cell(t, "%.*f", digits, value);
    else
        text_table_cell(t, "-");
}

static void put_range(text_table *t, const renyi_interval *r)
{
    if (isfinite(r->low))
        text_table_cell(t, "%.2f to %.2f", r->low, r->high);
    else
        text_table_cell(t, "-");
}

/* ---- figures ------------------------------------------------------------------------------- */

static void put_runs(const vqa_report *r)
{
    text_table t = {0};

    text_table_column(&t, TEXT_RIGHT, "#");
    text_table_column(&t, TEXT_RIGHT, "score");
    text_table_column(&t, TEXT_RIGHT, "95 %% range");
    text_table_column(&t, TEXT_RIGHT, "accuracy %%");
    text_table_column(&t, TEXT_RIGHT, "scored");
    text_table_column(&t, TEXT_RIGHT, "unanswered");
    text_table_column(&t, TEXT_LEFT, "run");
    text_table_column(&t, TEXT_LEFT, "policy");
    for (size_t i = 0; i < r->count; i++) {
        const vqa_scored *s = &r->runs[i];
        text_table_cell(&t, "%zu", i + 1);
        put_real(&t, 2, isfinite(s->score.score) ? s->score.score : s->reported);
        put_range(&t, &s->score.range);
        put_real(&t, 2, s->score.accuracy);
        text_table_cell(&t, "%llu", (unsigned long long)s->score.n_scored);
        text_table_cell(&t, "%llu",
                        (unsigned long long)(r->found.n_questions - s->info.n_answered));
        text_table_cell(&t, "%s", s->title);
        text_table_cell(&t, "%s", s->info.policy ? s->info.policy : "-");
    }
    printf("%s%s%s: %s\n", cli_bold(stdout), r->a->info.title, cli_plain(stdout), r->a->info.score);
    text_table_put(&t, 0, 2);
}

/* ---- categories ---------------------------------------------------------------------------- */

static void put_part(text_table *t, const vqa_report *r, const vqa_scored *s, uint32_t i)
{
    const renyi_vqa_task task = r->a->task;
    renyi_vqa_part p;

    renyi_vqa_get_part(s->answers, i, &p);
    if (!p.n) return;
    text_table_cell(t, "%s%s", p.name, p.is_counted ? "" : " (not counted)");
    text_table_cell(t, "%llu", (unsigned long long)p.n);
    put_real(t, 2, p.score);
    put_real(t, 2, p.accuracy);
    if (task == RENYI_VQA_POPE) {
        put_real(t, 2, p.precision);
        put_real(t, 2, p.recall);
        put_real(t, 2, p.yes);
    }
    if (task == RENYI_VQA_MME) put_real(t, 2, p.accuracy_plus);
}

static void put_parts(const vqa_report *r, size_t run)
{
    const vqa_scored *s = &r->runs[run];
    text_table t = {0};

    if (s->score.n_parts < 2 || !s->score.n_scored) return;
    text_table_column(&t, TEXT_LEFT, "%s%s", r->count > 1 ? "run " : "category",
                      r->count > 1 ? s->title : "");
    text_table_column(&t, TEXT_RIGHT, "scored");
    text_table_column(&t, TEXT_RIGHT, "%s", r->a->task == RENYI_VQA_POPE ? "F1" : "score");
    text_table_column(&t, TEXT_RIGHT, "accuracy %%");
    if (r->a->task == RENYI_VQA_POPE) {
        text_table_column(&t, TEXT_RIGHT, "precision %%");
        text_table_column(&t, TEXT_RIGHT, "recall %%");
        text_table_column(&t, TEXT_RIGHT, "yes %%");
    }
    if (r->a->task == RENYI_VQA_MME) text_table_column(&t, TEXT_RIGHT, "accuracy+ %%");
    for (uint32_t i = 0; i < s->score.n_parts; i++) put_part(&t, r, s, i);
    puts("");
    text_table_put(&t, 0, 2);
}

/* ---- pairs --------------------------------------------------------------------------------- */

static void put_pair(text_table *t, const vqa_report *r, size_t a, size_t b)
{
    renyi_vqa_pair p;

    renyi_vqa_compare(r->runs[a].answers, r->runs[b].answers, &p);
    text_table_cell(t, "%zu -> %zu", a + 1, b + 1);
    text_table_cell(t, "%llu", (unsigned long long)p.n);
    put_real(t, 2, p.score_b - p.score_a);
    if (p.n)
        text_table_cell(t, "%+.2f", p.difference);
    else
        text_table_cell(t, "-");
    put_range(t, &p.range);
    text_table_cell(t, "%llu", (unsigned long long)p.better_a);
    text_table_cell(t, "%llu", (unsigned long long)p.better_b);
    text_table_cell(t, "%llu", (unsigned long long)p.same);
    text_table_cell(t, p.p_value < 1e-4 ? "%.1e%s" : "%.4f%s", p.p_value,
                    p.is_noise ? " noise" : "");
}

static void put_pairs(const vqa_report *r)
{
    text_table t = {0};

    if (r->count < 2) return;
    text_table_column(&t, TEXT_RIGHT, "question by question");
    text_table_column(&t, TEXT_RIGHT, "both judged");
    text_table_column(&t, TEXT_RIGHT, "score");
    text_table_column(&t, TEXT_RIGHT, "accuracy");
    text_table_column(&t, TEXT_RIGHT, "95 %% range");
    text_table_column(&t, TEXT_RIGHT, "first better");
    text_table_column(&t, TEXT_RIGHT, "second better");
    text_table_column(&t, TEXT_RIGHT, "same text");
    text_table_column(&t, TEXT_LEFT, "p");
    for (size_t a = 0; a < r->count; a++)
        for (size_t b = a + 1; b < r->count; b++) put_pair(&t, r, a, b);
    puts("");
    text_table_put(&t, 0, 2);
}

void vqa_report_table(const vqa_report *r)
{
    put_runs(r);
    for (size_t i = 0; i < r->count; i++) put_parts(r, i);
    put_pairs(r);
}
