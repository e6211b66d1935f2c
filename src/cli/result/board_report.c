/* board_report.c - the page and the JSON of renyi board.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/result/board.h"

#include "cli/kit/files.h"
#include "cli/kit/output.h"
#include "cli/llava/vqa_report.h"
#include "renyi/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables of cells ------------------------------------------------------------------------- */

/* A table in the making: cells are owned texts, row by row. */
typedef struct cell_table {
    const renyi_report_column *heading;
    size_t n_columns;
    cli_strings cells;
    char *title, *about;
    renyi_report_column *columns; /* [n_columns] for the report, with their cells */
} cell_table;

static void add_text(cell_table *t, const char *text)
{
    cli_strings_add(&t->cells, cli_copy(text ? text : "–"));
}

static void add_real(cell_table *t, int digits, double value)
{
    cli_strings_add(&t->cells, isfinite(value) ? cli_format("%.*f", digits, value) : cli_copy("–"));
}

static void add_count(cell_table *t, uint64_t value)
{
    cli_strings_add(&t->cells, cli_format("%llu", (unsigned long long)value));
}

/* Columns of cells, as the report wants them. */
static renyi_report_table report_table(cell_table *t)
{
    const size_t n_rows = t->cells.count / t->n_columns;

    t->columns = cli_alloc(t->n_columns, sizeof *t->columns);
    for (size_t k = 0; k < t->n_columns; k++) {
        const char **cells = cli_alloc(n_rows + 1, sizeof *cells);
        for (size_t row = 0; row < n_rows; row++)
            cells[row] = t->cells.items[row * t->n_columns + k];
        t->columns[k] = t->heading[k];
        t->columns[k].cells = cells;
    }
    return (renyi_report_table){.title = t->title,
                                .about = t->about,
                                .n_rows = (uint32_t)n_rows,
                                .n_columns = (uint32_t)t->n_columns,
                                .columns = t->columns};
}

static void free_table(cell_table *t)
{
    for (size_t k = 0; t->columns && k < t->n_columns; k++)
        free((void *)(uintptr_t)t->columns[k].cells);
    free(t->columns);
    cli_strings_free(&t->cells);
    free(t->title);
    free(t->about);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static const renyi_report_column run_heading[] = {{"#", NULL, 0},
                                                  {"policy", NULL, 1},
                                                  {"model", NULL, 1},
                                                  {"score", NULL, 0},
                                                  {"95 % range", NULL, 0},
                                                  {"answers", NULL, 0},
                                                  {"visual tokens", NULL, 0},
                                                  {"mean of layers", NULL, 0},
                                                  {"TFLOPs", NULL, 0},
                                                  {"cache MB", NULL, 0},
                                                  {"first token ms", NULL, 0},
                                                  {"choice ms", NULL, 0},
                                                  {"machine", NULL, 1},
                                                  {"renyi", NULL, 1},
                                                  {"hash of answers", NULL, 1},
                                                  {"file", NULL, 1}};

/* MME is perception + cognition where both were asked. */
static double score_of(const renyi_manifest_info *i)
{
    return i->cognition > 0 ? i->total : i->score;
}

static void put_run(cell_table *t, const board *b, size_t run, size_t number)
{
    const board_run *r = &b->runs[run];
    const renyi_manifest_info *i = &r->info;
    const renyi_vqa_cost *c = &i->cost;
    const size_t folder = strlen(b->folder);

    add_count(t, number);
    add_text(t, i->policy);
    cli_strings_add(&t->cells, cli_format("%s %s", i->model, i->dtype ? i->dtype : ""));
    add_real(t, 2, score_of(i));
    cli_strings_add(&t->cells,
                    isfinite(i->low) ? cli_format("%.2f to %.2f", i->low, i->high) : cli_copy("–"));
    add_count(t, i->n_samples);
    add_real(t, 1, i->visual_tokens);
    add_real(t, 1, c->layer_tokens);
    add_real(t, 4, c->tower_tflops + c->projector_tflops + c->lm_tflops);
    add_real(t, 2, c->cache_bytes / 1e6);
    add_real(t, 1, c->first_token_ms);
    add_real(t, 2, c->choice_ms);
    cli_strings_add(&t->cells,
                    cli_format("%s %s", i->cpu ? i->cpu : "", i->cpu_level ? i->cpu_level : ""));
    add_text(t, i->version);
    cli_strings_add(
        &t->cells,
        cli_format("%016llx", (unsigned long long)renyi_manifest_answers_hash(r->manifest)));
    add_text(t, strncmp(r->file, b->folder, folder) == 0 && r->file[folder] == '/'
                    ? r->file + folder + 1
                    : r->file);
}

static void make_runs(cell_table *t, const board *b, const board_group *g)
{
    const renyi_manifest_info *first = &b->runs[g->first].info;
    renyi_vqa_task_info task = {0};
    renyi_vqa_task which;

    if (renyi_vqa_find_task(first->task, &which, NULL) == RENYI_OK)
        renyi_vqa_get_task(which, &task);
    *t = (cell_table){
        .heading = run_heading,
        .n_columns = sizeof run_heading / sizeof *run_heading,
        .title = cli_format("%s, %zu questions", task.title, first->n_samples),
        .about = cli_format(
            "Score: %s. The same questions and images for all runs of this table (data hash "
            "%016llx).",
            which == RENYI_VQA_MME ? "perception + cognition, points of 2800" : task.score,
            (unsigned long long)renyi_manifest_data_hash(b->runs[g->first].manifest))};
    for (size_t i = 0; i < g->count; i++) put_run(t, b, g->first + i, i + 1);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static const renyi_report_column pair_heading[] = {
    {"pair", NULL, 0},         {"first", NULL, 1},
    {"second", NULL, 1},       {"questions", NULL, 0},
    {"difference", NULL, 0},   {"95 % range", NULL, 0},
    {"first better", NULL, 0}, {"second better", NULL, 0},
    {"same answer", NULL, 0},  {"p", NULL, 0},
    {"verdict", NULL, 1}};

static void put_pair(cell_table *t, const board *b, const board_group *g, const board_pair *p)
{
    const renyi_vqa_pair *q = &p->pair;

    cli_strings_add(&t->cells, cli_format("%zu, %zu", p->a - g->first + 1, p->b - g->first + 1));
    add_text(t, b->runs[p->a].info.policy);
    add_text(t, b->runs[p->b].info.policy);
    add_count(t, q->n);
    cli_strings_add(&t->cells, q->n ? cli_format("%+.2f", q->difference) : cli_copy("–"));
    cli_strings_add(&t->cells, q->n > 1 ? cli_format("%.2f to %.2f", q->range.low, q->range.high)
                                        : cli_copy("–"));
    add_count(t, q->better_a);
    add_count(t, q->better_b);
    add_count(t, q->same);
    cli_strings_add(&t->cells, cli_format(q->p_value < 1e-4 ? "%.1e" : "%.4f", q->p_value));
    add_text(t, q->is_noise ? "within the noise" : q->difference > 0 ? "second" : "first");
}

static void make_pairs(cell_table *t, const board *b, const board_group *g, const char *title)
{
    *t = (cell_table){
        .heading = pair_heading,
        .n_columns = sizeof pair_heading / sizeof *pair_heading,
        .title = cli_format("%s: question by question", title),
        .about = cli_format("Points of accuracy, second minus first, and the exact sign test.%s",
                            g->is_partial
                                ? " So many runs: only pairs with one of the first 32 that are "
                                  "unpruned, random or pool are here."
                                : "")};
    for (size_t i = 0; i < g->n_pairs; i++) put_pair(t, b, g, &g->pairs[i]);
}

/* ---- the page -------------------------------------------------------------------------------- */

int board_write(const board *b, const char *path)
{
    cell_table *cells = cli_alloc(2 * b->n_groups + 1, sizeof *cells);
    renyi_report_table *tables = cli_alloc(2 * b->n_groups + 1, sizeof *tables);
    uint32_t n = 0;

    for (size_t i = 0; i < b->n_groups; i++) {
        const board_group *g = &b->groups[i];
        make_runs(&cells[n], b, g);
        tables[n] = report_table(&cells[n]);
        n++;
        if (!g->n_pairs) continue;
        make_pairs(&cells[n], b, g, cells[n - 1].title);
        tables[n] = report_table(&cells[n]);
        n++;
    }
    const renyi_report_tables page = {
        .struct_size = sizeof page,
        .n_tables = n,
        .tables = tables,
        .title = "Results",
        .note = "Each run has a manifest; renyi verify runs a part of it again. Runs are in one "
                "table only if they answered the same questions about the same images."};
    renyi_report_text text;
    renyi_error err = {0};
    int code = CLI_OK;
    if (renyi_report_tables_html(&text, &page, &err) != RENYI_OK)
        code = cli_fail(&err);
    else if (write_whole_file(path, text.bytes, text.size))
        code = CLI_FAILED;
    if (code == CLI_OK) cli_note("%s: %zu run%s", path, b->count, b->count == 1 ? "" : "s");
    renyi_report_text_free(&text);
    for (uint32_t i = 0; i < n; i++) free_table(&cells[i]);
    free(cells);
    free(tables);
    return code;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *hash_json(uint64_t hash)
{
    char text[17];

    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_text(text);
}

static json_t *run_json(const board_run *r)
{
    const renyi_manifest_info *i = &r->info;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:[o, o], s:I, s:o, s:o, s:o, s:o}", "file", json_text(r->file),
        "model", json_text(i->model), "dtype", json_text(i->dtype), "policy", json_text(i->policy),
        "score", json_number(score_of(i)), "score_range", json_number(i->low), json_number(i->high),
        "answers", (json_int_t)i->n_samples, "answers_hash",
        hash_json(renyi_manifest_answers_hash(r->manifest)), "visual_tokens",
        json_number(i->visual_tokens), "cost", vqa_cost_json(&i->cost), "cpu", json_text(i->cpu));
}

static json_t *pair_json(const board_group *g, const board_pair *p)
{
    const renyi_vqa_pair *q = &p->pair;

    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:b}", "a",
                     (json_int_t)(p->a - g->first), "b", (json_int_t)(p->b - g->first), "questions",
                     (json_int_t)q->n, "better_a", (json_int_t)q->better_a, "better_b",
                     (json_int_t)q->better_b, "same", (json_int_t)q->same, "difference",
                     json_number(q->n ? q->difference : NAN), "p_value", json_number(q->p_value),
                     "noise", q->is_noise);
}

void board_json(const board *b)
{
    json_t *groups = json_array();

    for (size_t i = 0; i < b->n_groups; i++) {
        const board_group *g = &b->groups[i];
        json_t *runs = json_array(), *pairs = json_array();
        for (size_t k = 0; k < g->count; k++)
            json_array_append_new(runs, run_json(&b->runs[g->first + k]));
        for (size_t k = 0; k < g->n_pairs; k++)
            json_array_append_new(pairs, pair_json(g, &g->pairs[k]));
        json_array_append_new(
            groups,
            json_pack("{s:o, s:o, s:o, s:o}", "task", json_text(b->runs[g->first].info.task),
                      "data_hash", hash_json(renyi_manifest_data_hash(b->runs[g->first].manifest)),
                      "results", runs, "pairs", pairs));
    }
    json_print(json_pack("{s:o, s:o, s:I}", "folder", json_text(b->folder), "groups", groups,
                         "failed", (json_int_t)b->n_failed));
}
