/* vqa_results.c - the results of renyi vqa for machines.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/output.h"
#include "cli/llava/vqa_report.h"

#include <math.h>

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

static json_t *run_json(const vqa_report *r, const vqa_scored *s)
{
    const int is_own = isfinite(s->score.score);
    const uint64_t missing = r->found.n_questions - s->info.n_answered;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
        "answers", json_text(s->title), "model", json_text(s->info.model), "policy",
        json_text(s->info.policy), "score", json_number(is_own ? s->score.score : s->reported),
        "score_from",
        is_own                  ? "here"
        : isfinite(s->reported) ? "reported"
                                : "nobody",
        "score_range", range_json(&s->score.range), "accuracy", json_number(s->score.accuracy),
        "scored", (json_int_t)s->score.n_scored, "right", (json_int_t)s->score.n_right, "answered",
        (json_int_t)s->info.n_answered, "unanswered", (json_int_t)missing, "foreign",
        (json_int_t)s->info.n_foreign, "repeated", (json_int_t)s->info.n_repeated, "visual_tokens",
        json_number(s->info.visual_tokens), "tokens", json_number(s->info.tokens), "ms",
        json_number(s->info.ms), "parts", parts_json(s));
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
    json_print(json_pack(
        "{s:s, s:s, s:s, s:f, s:o, s:o, s:I, s:I, s:I, s:b, s:o, s:o, s:o}", "task",
        r->a->info.name, "title", r->a->info.title, "score_is", r->a->info.score, "full_marks",
        r->a->info.full_marks, "questions_file", json_text(r->a->questions), "annotations",
        json_text(r->a->annotations), "questions", (json_int_t)r->found.n_questions, "found",
        (json_int_t)r->found.n_found, "known", (json_int_t)r->found.n_known, "interrupted",
        r->is_interrupted, "results", runs, "pairs", pairs, "failed", failed));
}
