/* lvlm_table_report.c - the table of renyi table: text, Markdown, JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/lvlm_table.h"

#include "cli/kit/output.h"
#include "cli/llava/vqa_report.h"

#include <math.h>

static void put_method(text_table *t, const table_row *row)
{
    if (row->tokens)
        text_table_cell(t, "%s %llu", lvlm_table_title(row), (unsigned long long)row->tokens);
    else
        text_table_cell(t, "%s", lvlm_table_title(row));
}

/* ---- scores ---------------------------------------------------------------------------------- */

static void put_pair(text_table *out, const lvlm_table *t, size_t row, const char *against)
{
    const size_t base = lvlm_table_find(t, against, t->rows[row].tokens);
    table_pair p = {.difference = NAN};

    if (row && base < t->n_rows && base != row) lvlm_table_compare(t, base, row, &p);
    if (isfinite(p.difference))
        text_table_cell(out, p.p_value < 1e-4 ? "%+.2f p=%.0e%s" : "%+.2f p=%.4f%s", p.difference,
                        p.p_value, p.is_noise ? " ~" : "");
    else
        text_table_cell(out, "-");
}

static void put_scores(const lvlm_table *t)
{
    text_table out = {0};

    text_table_column(&out, TEXT_LEFT, "method");
    for (size_t i = 0; i < t->n_tasks; i++)
        text_table_column(&out, TEXT_RIGHT, "%s", t->tasks[i].info.title);
    text_table_column(&out, TEXT_RIGHT, "mean %% of full");
    for (size_t i = 0; i < t->against.count; i++)
        text_table_column(&out, TEXT_LEFT, "against %s", t->against.items[i]);
    for (size_t row = 0; row < t->n_rows; row++) {
        put_method(&out, &t->rows[row]);
        for (size_t i = 0; i < t->n_tasks; i++) {
            const int digits = t->tasks[i].info.full_marks > 100 ? 0 : 1;
            text_table_real(&out, digits, lvlm_table_cell(t, row, i)->value);
        }
        text_table_real(&out, 1, lvlm_table_mean_percent(t, row));
        for (size_t i = 0; i < t->against.count; i++) put_pair(&out, t, row, t->against.items[i]);
    }
    text_table_put(&out, t->a->markdown, 2);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static void put_costs(const lvlm_table *t)
{
    text_table out = {0};

    text_table_column(&out, TEXT_LEFT, "method");
    vqa_cost_columns(&out);
    for (size_t row = 0; row < t->n_rows; row++) {
        table_cost c;
        lvlm_table_costs(t, row, &c);
        put_method(&out, &t->rows[row]);
        vqa_cost_cells(&out, c.visual_tokens, &c.cost);
    }
    puts("");
    text_table_put(&out, t->a->markdown, 2);
}

static uint64_t least_answered(const lvlm_table *t, size_t task)
{
    uint64_t least = UINT64_MAX;

    for (size_t row = 0; row < t->n_rows; row++) {
        const uint64_t n = lvlm_table_cell(t, row, task)->info.n_answered;
        if (n < least) least = n;
    }
    return least;
}

static void put_legend(const lvlm_table *t)
{
    const size_t width = 100;

    puts("");
    for (size_t i = 0; i < t->n_tasks; i++) {
        renyi_vqa_info found;
        const table_task *task = &t->tasks[i];
        renyi_vqa_get_info(task->data, &found);
        cli_print(
            "%s: %s; %llu questions, %llu with a known answer, at least %llu answered by each "
            "method\n",
            task->info.title,
            task->task == RENYI_VQA_MME ? "perception + cognition, points of 2800"
                                        : task->info.score,
            (unsigned long long)found.n_questions, (unsigned long long)found.n_known,
            (unsigned long long)least_answered(t, i));
    }
    text_put_wrapped(
        "", "mean % of full: the mean of the scores in percent of those with all tokens.", width);
    if (t->against.count)
        text_put_wrapped(
            "",
            "against: points of accuracy over the questions of all benchmarks, method minus "
            "baseline at the same budget, and the exact sign test question by question; ~: p of "
            "0.05 or more, within the noise.",
            width);
}

void lvlm_table_text(const lvlm_table *t)
{
    cli_print("%s%s%s\n\n", cli_bold(stdout), t->model ? t->model : "", cli_plain(stdout));
    put_scores(t);
    put_costs(t);
    put_legend(t);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *tasks_json(const lvlm_table *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->n_tasks; i++) {
        renyi_vqa_info found;
        renyi_vqa_get_info(t->tasks[i].data, &found);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:I, s:I}", "task", t->tasks[i].info.name, "title",
                            t->tasks[i].info.title, "questions_file",
                            json_text(t->tasks[i].questions), "questions",
                            (json_int_t)found.n_questions, "known", (json_int_t)found.n_known));
    }
    return list;
}

static json_t *scores_json(const lvlm_table *t, size_t row)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->n_tasks; i++) {
        const table_cell *cell = lvlm_table_cell(t, row, i);
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:[o, o], s:o, s:I, s:I}", "task", t->tasks[i].info.name,
                            "score", json_number(cell->value), "score_range",
                            json_number(cell->score.range.low), json_number(cell->score.range.high),
                            "percent_of_full", json_number(lvlm_table_percent(t, row, i)), "scored",
                            (json_int_t)cell->score.n_scored, "answered",
                            (json_int_t)cell->info.n_answered));
    }
    return list;
}

static json_t *against_json(const lvlm_table *t, size_t row)
{
    json_t *list = json_array();

    for (size_t i = 0; row && i < t->against.count; i++) {
        const size_t base = lvlm_table_find(t, t->against.items[i], t->rows[row].tokens);
        table_pair p;
        if (base >= t->n_rows || base == row) continue;
        lvlm_table_compare(t, base, row, &p);
        json_array_append_new(list, json_pack("{s:o, s:I, s:I, s:I, s:o, s:o, s:b}", "method",
                                              json_text(t->against.items[i]), "questions",
                                              (json_int_t)p.n, "better", (json_int_t)p.better_b,
                                              "worse", (json_int_t)p.better_a, "difference",
                                              json_number(p.difference), "p_value",
                                              json_number(p.p_value), "noise", p.is_noise));
    }
    return list;
}

static json_t *tokens_json(const table_row *r)
{
    return r->tokens ? json_integer((json_int_t)r->tokens) : json_null();
}

static json_t *row_json(const lvlm_table *t, size_t row)
{
    const table_row *r = &t->rows[row];
    table_cost c;

    lvlm_table_costs(t, row, &c);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "method",
                     json_text(lvlm_table_title(r)), "tokens", tokens_json(r), "policy",
                     json_text(r->policy), "scores", scores_json(t, row), "mean_percent_of_full",
                     json_number(lvlm_table_mean_percent(t, row)), "against", against_json(t, row),
                     "visual_tokens", json_number(c.visual_tokens), "cost", vqa_cost_json(&c.cost));
}

static json_t *failed_json(const lvlm_table *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->failed.count; i++)
        json_array_append_new(list, json_text(t->failed.items[i]));
    return list;
}

void lvlm_table_json(const lvlm_table *t)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < t->n_rows; i++) json_array_append_new(rows, row_json(t, i));
    json_print(json_pack("{s:o, s:o, s:b, s:o, s:o}", "model", json_text(t->model), "tasks",
                         tasks_json(t), "interrupted", t->is_interrupted, "rows", rows, "failed",
                         failed_json(t)));
}

/* ---- without a run --------------------------------------------------------------------------- */

static void dry_run_json(const lvlm_table *t)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < t->n_rows; i++) {
        const table_row *r = &t->rows[i];
        json_array_append_new(rows,
                              json_pack("{s:o, s:o, s:o}", "method", json_text(lvlm_table_title(r)),
                                        "tokens", tokens_json(r), "policy", json_text(r->policy)));
    }
    json_print(json_pack("{s:o, s:o, s:o}", "tasks", tasks_json(t), "rows", rows, "failed",
                         failed_json(t)));
}

void lvlm_table_dry_run(const lvlm_table *t)
{
    text_table out = {0};

    if (t->a->json) {
        dry_run_json(t);
        return;
    }
    text_table_column(&out, TEXT_LEFT, "method");
    text_table_column(&out, TEXT_LEFT, "policy");
    for (size_t row = 0; row < t->n_rows; row++) {
        put_method(&out, &t->rows[row]);
        text_table_cell(&out, "%s", t->rows[row].policy);
    }
    text_table_put(&out, t->a->markdown, 2);
}
