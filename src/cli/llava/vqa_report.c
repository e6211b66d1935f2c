/* vqa_report.c - the results of renyi vqa: scores, categories and pairs as tables and JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/llava/vqa_report.h"

#include <math.h>
#include <string.h>

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
    const int is_mme = r->a->task == RENYI_VQA_MME;
    text_table t = {0};

    text_table_column(&t, TEXT_RIGHT, "#");
    text_table_column(&t, TEXT_RIGHT, is_mme ? "perception" : "score");
    if (is_mme) {
        text_table_column(&t, TEXT_RIGHT, "cognition");
        text_table_column(&t, TEXT_RIGHT, "total");
    }
    text_table_column(&t, TEXT_RIGHT, "95 %% range");
    text_table_column(&t, TEXT_RIGHT, "accuracy %%");
    text_table_column(&t, TEXT_RIGHT, "scored");
    text_table_column(&t, TEXT_RIGHT, "unanswered");
    text_table_column(&t, TEXT_LEFT, "run");
    text_table_column(&t, TEXT_LEFT, "policy");
    for (size_t i = 0; i < r->count; i++) {
        const vqa_scored *s = &r->runs[i];
        text_table_cell(&t, "%zu", i + 1);
        text_table_real(&t, 2, isfinite(s->score.score) ? s->score.score : s->reported);
        if (is_mme) {
            text_table_real(&t, 2, s->score.cognition);
            text_table_real(&t, 2, s->score.total);
        }
        put_range(&t, &s->score.range);
        text_table_real(&t, 2, s->score.accuracy);
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
    text_table_cell(t, "%s%s", p.name,
                    p.is_counted            ? ""
                    : task == RENYI_VQA_MME ? " (cognition)"
                                            : " (not counted)");
    text_table_cell(t, "%llu", (unsigned long long)p.n);
    text_table_real(t, 2, p.score);
    text_table_real(t, 2, p.accuracy);
    if (task == RENYI_VQA_POPE) {
        text_table_real(t, 2, p.precision);
        text_table_real(t, 2, p.recall);
        text_table_real(t, 2, p.yes);
    }
    if (task == RENYI_VQA_MME) text_table_real(t, 2, p.accuracy_plus);
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
    text_table_real(t, 2, p.score_b - p.score_a);
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

/* ---- costs --------------------------------------------------------------------------------- */

void vqa_cost_columns(text_table *t)
{
    text_table_column(t, TEXT_RIGHT, "visual tokens");
    text_table_column(t, TEXT_RIGHT, "mean of layers");
    text_table_column(t, TEXT_RIGHT, "TFLOPs: tower");
    text_table_column(t, TEXT_RIGHT, "projector");
    text_table_column(t, TEXT_RIGHT, "language model");
    text_table_column(t, TEXT_RIGHT, "cache MB");
    text_table_column(t, TEXT_RIGHT, "first token ms");
    text_table_column(t, TEXT_RIGHT, "choice ms");
}

/* Four digits, however small. */
static void put_small(text_table *t, double value)
{
    if (isfinite(value))
        text_table_cell(t, "%.4g", value);
    else
        text_table_cell(t, "-");
}

void vqa_cost_cells(text_table *t, double visual_tokens, const renyi_vqa_cost *c)
{
    text_table_real(t, 1, visual_tokens);
    text_table_real(t, 1, c->layer_tokens);
    put_small(t, c->tower_tflops);
    put_small(t, c->projector_tflops);
    put_small(t, c->lm_tflops);
    text_table_real(t, 2, c->cache_bytes / 1e6);
    text_table_real(t, 1, c->first_token_ms);
    text_table_real(t, 2, c->choice_ms);
}

static void put_costs(const vqa_report *r)
{
    text_table t = {0};
    size_t n_known = 0;

    for (size_t i = 0; i < r->count; i++) n_known += isfinite(r->runs[i].info.cost.layer_tokens);
    if (!n_known) return;
    text_table_column(&t, TEXT_RIGHT, "#");
    vqa_cost_columns(&t);
    for (size_t i = 0; i < r->count; i++) {
        const renyi_vqa_answers_info *info = &r->runs[i].info;
        text_table_cell(&t, "%zu", i + 1);
        vqa_cost_cells(&t, info->visual_tokens, &info->cost);
    }
    puts("");
    text_table_put(&t, 0, 2);
}

void vqa_report_table(const vqa_report *r)
{
    put_runs(r);
    put_costs(r);
    for (size_t i = 0; i < r->count; i++) put_parts(r, i);
    put_pairs(r);
}

/* ---- JSON
 * ---------------------------------------------------------------------------------------- */

static json_t *range_json(const renyi_interval *r)
{
    return json_pack("[o, o]", json_number(r->low), json_number(r->high));
}

static json_t *parts_json(const vqa_scored *s)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < s->score.n_parts; i++) {
        renyi_vqa_part p;
        renyi_vqa_get_part(s->answers, i, &p);
        json_array_append_new(
            list,
            json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "category",
                      json_text(p.name), "scored", (json_int_t)p.n, "score", json_number(p.score),
                      "accuracy", json_number(p.accuracy), "precision", json_number(p.precision),
                      "recall", json_number(p.recall), "yes", json_number(p.yes), "accuracy_plus",
                      json_number(p.accuracy_plus), "counted", p.is_counted));
    }
    return list;
}

json_t *vqa_cost_json(const renyi_vqa_cost *c)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "layer_tokens",
                     json_number(c->layer_tokens), "tower_tflops", json_number(c->tower_tflops),
                     "projector_tflops", json_number(c->projector_tflops), "lm_tflops",
                     json_number(c->lm_tflops), "cache_bytes", json_number(c->cache_bytes),
                     "first_token_ms", json_number(c->first_token_ms), "choice_ms",
                     json_number(c->choice_ms));
}

static json_t *run_json(const vqa_report *r, const vqa_scored *s)
{
    const int is_own = isfinite(s->score.score);
    const uint64_t missing = r->found.n_questions - s->info.n_answered;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, "
        "s:o, s:o}",
        "answers", json_text(s->title), "model", json_text(s->info.model), "policy",
        json_text(s->info.policy), "score", json_number(is_own ? s->score.score : s->reported),
        "score_from",
        is_own                  ? "here"
        : isfinite(s->reported) ? "reported"
                                : "nobody",
        "score_range", range_json(&s->score.range), "cognition", json_number(s->score.cognition),
        "total", json_number(s->score.total), "accuracy", json_number(s->score.accuracy), "scored",
        (json_int_t)s->score.n_scored, "right", (json_int_t)s->score.n_right, "answered",
        (json_int_t)s->info.n_answered, "unanswered", (json_int_t)missing, "foreign",
        (json_int_t)s->info.n_foreign, "repeated", (json_int_t)s->info.n_repeated, "visual_tokens",
        json_number(s->info.visual_tokens), "tokens", json_number(s->info.tokens), "ms",
        json_number(s->info.ms), "cost", vqa_cost_json(&s->info.cost), "parts", parts_json(s));
}

static json_t *pair_json(const vqa_report *r, size_t a, size_t b)
{
    renyi_vqa_pair p;

    renyi_vqa_compare(r->runs[a].answers, r->runs[b].answers, &p);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:f, s:b}", "a",
                     (json_int_t)a, "b", (json_int_t)b, "questions", (json_int_t)p.n, "better_a",
                     (json_int_t)p.better_a, "better_b", (json_int_t)p.better_b, "equal",
                     (json_int_t)p.equal, "same", (json_int_t)p.same, "difference",
                     json_number(p.difference), "difference_range", range_json(&p.range), "score_a",
                     json_number(p.score_a), "score_b", json_number(p.score_b), "p_value",
                     p.p_value, "noise", p.is_noise);
}

void vqa_report_json(const vqa_report *r)
{
    json_t *runs = json_array(), *pairs = json_array(), *failed = json_array();

    for (size_t i = 0; i < r->count; i++) json_array_append_new(runs, run_json(r, &r->runs[i]));
    for (size_t a = 0; a < r->count; a++)
        for (size_t b = a + 1; b < r->count; b++) json_array_append_new(pairs, pair_json(r, a, b));
    for (size_t i = 0; i < r->failed->count; i++)
        json_array_append_new(failed, json_text(r->failed->items[i]));
    json_print(json_pack("{s:s, s:s, s:s, s:s?, s:f, s:o, s:o, s:I, s:I, s:I, s:b, s:o, s:o, s:o}",
                         "task", r->a->info.name, "title", r->a->info.title, "score_is",
                         r->a->info.score, "scorer", r->a->scorer, "full_marks",
                         r->a->info.full_marks, "questions_file", json_text(r->a->questions),
                         "annotations", json_text(r->a->annotations), "questions",
                         (json_int_t)r->found.n_questions, "found", (json_int_t)r->found.n_found,
                         "known", (json_int_t)r->found.n_known, "interrupted", r->is_interrupted,
                         "results", runs, "pairs", pairs, "failed", failed));
}
