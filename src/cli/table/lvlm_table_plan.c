/* lvlm_table_plan.c - the plan of renyi table: which benchmarks, and which policies from methods
 * and budgets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/lvlm_table.h"

#include "cli/eval/eval_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char preset_prefix[] = "lvlm:";

/* ---- benchmarks ------------------------------------------------------------------------------ */

/* The next word of *at, in place and without its quotes; NULL = none. */
static char *next_word(char **at)
{
    char *from = *at + strspn(*at, " \t"), *to = from, *word = from, quote = 0;

    if (!*from) return NULL;
    for (; *from && (quote || (*from != ' ' && *from != '\t')); from++) {
        if (quote ? *from == quote : *from == '"' || *from == '\'')
            quote = quote ? 0 : *from;
        else
            *to++ = *from;
    }
    *at = *from ? from + 1 : from;
    *to = '\0';
    return word;
}

static int take_key(table_task *t, const char *word)
{
    const struct {
        const char *key;
        const char **value;
    } keys[] = {
        {"questions=", &t->questions}, {"images=", &t->images}, {"annotations=", &t->annotations}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const size_t n = strlen(keys[i].key);
        if (strncmp(word, keys[i].key, n) != 0) continue;
        *keys[i].value = word + n;
        return CLI_OK;
    }
    return options_usage_error(
        "table", "option '--task': '%s' is none of questions=PATH, images=DIR, annotations=PATH",
        word);
}

static int parse_task(table_task *t, const char *text)
{
    char *at = t->text = cli_copy(text), *name = next_word(&at);
    renyi_error err = {0};
    int code = CLI_OK;

    if (renyi_vqa_find_task(name ? name : "", &t->task, &err) != RENYI_OK)
        return options_usage_error("table", "option '--task': %s", err.message);
    renyi_vqa_get_task(t->task, &t->info);
    for (char *word; code == CLI_OK && (word = next_word(&at));) code = take_key(t, word);
    if (code != CLI_OK) return code;
    if (!t->questions)
        return options_usage_error("table", "option '--task': %s needs questions=PATH: %s",
                                   t->info.name, t->info.questions);
    const int has_own = t->task == RENYI_VQA_MMBENCH || t->task == RENYI_VQA_MMBENCH_CN;
    if (!t->images && !has_own)
        return options_usage_error("table", "option '--task': %s needs images=DIR", t->info.name);
    return CLI_OK;
}

static int open_task(lvlm_table *table, table_task *t)
{
    const renyi_vqa_options o = {
        .struct_size = sizeof o, .limit = table->a->limit, .annotations = t->annotations};
    renyi_vqa_info found;
    renyi_error err = {0};

    if (!vqa_has_images(t->images)) return CLI_FAILED;
    if (renyi_vqa_open(&t->data, t->task, t->questions, &o, &err) != RENYI_OK)
        return eval_error("table", &err);
    renyi_vqa_get_info(t->data, &found);
    for (uint64_t i = 0; i < found.n_faults; i++) {
        const char *fault = renyi_vqa_get_fault(t->data, (size_t)i);
        cli_error("%s", fault);
        cli_strings_add(&table->failed, cli_copy(fault));
    }
    cli_note("%s: %llu questions, %llu with known answers", t->info.title,
             (unsigned long long)found.n_questions, (unsigned long long)found.n_known);
    return CLI_OK;
}

static int plan_tasks(lvlm_table *table)
{
    const cli_strings *given = &table->a->tasks;

    if (!given->count)
        return options_usage_error("table", "--task 'NAME questions=...' is missing");
    table->tasks = cli_alloc(given->count, sizeof *table->tasks);
    for (size_t i = 0; i < given->count; i++) {
        table->n_tasks++;
        const int code = parse_task(&table->tasks[i], given->items[i]);
        if (code != CLI_OK) return code;
        for (size_t k = 0; k < i; k++)
            if (table->tasks[k].task == table->tasks[i].task)
                return options_usage_error("table", "option '--task': %s is given twice",
                                           table->tasks[i].info.name);
    }
    for (size_t i = 0; i < table->n_tasks; i++) {
        const int code = open_task(table, &table->tasks[i]);
        if (code != CLI_OK) return code;
    }
    return CLI_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Has the text a budget of its own? */
static int has_budget(const char *policy)
{
    return strstr(policy, " tokens=") || strstr(policy, " keep=") || strstr(policy, " p=") ||
           strstr(policy, " r=") || strstr(policy, "(");
}

/* The text that is run. Owned; NULL after a note = the method has no such budget. */
static char *policy_text(const lvlm_table *t, const char *method, uint64_t tokens)
{
    const int over_image = t->has_tiles && !strstr(method, "budget=");
    char *text = cli_format("%s tokens=%llu%s", method, (unsigned long long)tokens,
                            over_image ? " budget=image" : "");
    renyi_error err = {0};

    if (!over_image || renyi_policy_check(text, NULL, NULL, 0, &err) == RENYI_OK) return text;
    cli_note("left out: '%s': %s", text, err.message);
    free(text);
    return NULL;
}

static int add_row(lvlm_table *t, const char *method, uint64_t tokens)
{
    char full[RENYI_POLICY_MAX];
    char *policy = !method  ? cli_copy("none")
                   : tokens ? policy_text(t, method, tokens)
                            : cli_copy(method);

    if (!policy) return CLI_OK;
    t->rows = cli_grow(t->rows, t->n_rows + 1, sizeof *t->rows);
    t->rows[t->n_rows++] = (table_row){policy, method, tokens};
    const int code = prune_check("table", policy, NULL, full);
    if (code != CLI_OK) return code;
    for (size_t i = 0; i + 1 < t->n_rows; i++)
        if (strcmp(t->rows[i].policy, full) == 0)
            return options_usage_error("table", "option '--prune': '%s' is given twice", policy);
    free(policy);
    t->rows[t->n_rows - 1].policy = cli_copy(full);
    return CLI_OK;
}

/* Without --prune: every preset for the visual tokens of a LLaVA, and cdpruner if the CLIP that it
 * needs is given. */
static void default_methods(cli_strings *out, const char *clip)
{
    for (size_t i = 0; i < renyi_preset_count(); i++) {
        renyi_preset preset;
        renyi_preset_get(i, &preset);
        if (strncmp(preset.name, preset_prefix, sizeof preset_prefix - 1) == 0)
            cli_strings_add(out, cli_copy(preset.name));
    }
    if (clip) cli_strings_add(out, cli_copy("cdpruner"));
}

/* Budgets of the published tables, without and with tiles. */
static const option_counts usual_tokens[] = {{{192, 128, 64}, 3}, {{640, 320, 160}, 3}};

static int plan_rows(lvlm_table *t)
{
    const option_counts *tokens = t->a->tokens.count ? &t->a->tokens : &usual_tokens[t->has_tiles];

    for (size_t i = 0; i < t->a->methods.count; i++)
        cli_strings_add(&t->methods, cli_copy(t->a->methods.items[i]));
    if (!t->methods.count) default_methods(&t->methods, t->a->llava.text_tower);
    int code = add_row(t, NULL, 0);
    for (size_t b = 0; code == CLI_OK && b < tokens->count; b++)
        for (size_t i = 0; code == CLI_OK && i < t->methods.count; i++)
            if (!has_budget(t->methods.items[i]))
                code = add_row(t, t->methods.items[i], tokens->values[b]);
    for (size_t i = 0; code == CLI_OK && i < t->methods.count; i++)
        if (has_budget(t->methods.items[i])) code = add_row(t, t->methods.items[i], 0);
    return code;
}

const char *lvlm_table_title(const table_row *row)
{
    const size_t n = sizeof preset_prefix - 1;

    if (!row->method) return "all tokens";
    return strncmp(row->method, preset_prefix, n) == 0 ? row->method + n : row->method;
}

/* ---- against --------------------------------------------------------------------------------- */

static int is_method(const lvlm_table *t, const char *name)
{
    for (size_t i = 1; i < t->n_rows; i++)
        if (strcmp(lvlm_table_title(&t->rows[i]), name) == 0) return 1;
    return 0;
}

static int plan_against(lvlm_table *t)
{
    static const char *const baselines[] = {"random", "pool"};
    enum { MOST = 2 }; /* columns that fit in the table */
    const cli_strings *given = &t->a->against;

    if (given->count > MOST)
        return options_usage_error("table", "at most %d --against METHOD, %zu given", MOST,
                                   given->count);
    for (size_t i = 0; i < given->count; i++) {
        if (!is_method(t, given->items[i]))
            return options_usage_error("table", "option '--against': '%s' is none of the methods",
                                       given->items[i]);
        cli_strings_add(&t->against, cli_copy(given->items[i]));
    }
    for (size_t i = 0; !given->count && i < MOST; i++)
        if (is_method(t, baselines[i])) cli_strings_add(&t->against, cli_copy(baselines[i]));
    return CLI_OK;
}

/* ---- the model ------------------------------------------------------------------------------- */

static int find_tiles(lvlm_table *t)
{
    renyi_visual_info info;

    if (!t->a->llava.model) return CLI_OK;
    renyi_visual *visual = visual_open_reported(&t->a->llava);
    if (!visual) return CLI_FAILED;
    renyi_visual_get_info(visual, &info);
    t->has_tiles = info.most_squares > 1;
    renyi_visual_free(visual);
    return CLI_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

int lvlm_table_plan(lvlm_table *t, const table_arguments *a)
{
    *t = (lvlm_table){.a = a};
    int code = find_tiles(t);
    if (code == CLI_OK) code = plan_rows(t);
    if (code == CLI_OK) code = plan_against(t);
    if (code == CLI_OK) code = plan_tasks(t);
    if (code != CLI_OK) return code;
    t->cells = cli_alloc(t->n_rows * t->n_tasks, sizeof *t->cells);
    for (size_t i = 0; i < t->n_rows * t->n_tasks; i++) t->cells[i].value = NAN;
    return CLI_OK;
}

void lvlm_table_free(lvlm_table *t)
{
    for (size_t i = 0; t->cells && i < t->n_rows * t->n_tasks; i++)
        renyi_vqa_answers_free(t->cells[i].answers);
    for (size_t i = 0; i < t->n_tasks; i++) {
        renyi_vqa_free(t->tasks[i].data);
        free(t->tasks[i].text);
    }
    for (size_t i = 0; i < t->n_rows; i++) free(t->rows[i].policy);
    free(t->cells);
    free(t->tasks);
    free(t->rows);
    free(t->model);
    cli_strings_free(&t->methods);
    cli_strings_free(&t->against);
    cli_strings_free(&t->failed);
}
