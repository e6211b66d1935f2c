/* cmd_paper.c - renyi paper: the paper's tables, printed and recomputed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_report.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"
#include "cli/kit/output.h"
#include "cli/paper/paper_given.h"
#include "cli/paper/paper_report.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Adds the numbers of "9" or "1,2,9" to the lists; -1 after reporting. */
static int take_tables(paper_arguments *a, const char *text)
{
    renyi_error err = {0};
    size_t place;
    char *end;

    for (const char *at = text;; at = end + 1) {
        const unsigned long number = strtoul(at, &end, 10);
        if (at[0] < '0' || at[0] > '9' || (*end && *end != ',') || number > 999) {
            options_usage_error("paper", "option '--table': '%s' is not the number of a table",
                                text);
            return -1;
        }
        const int is_given = paper_is_given((uint32_t)number);
        if (!is_given && renyi_paper_find_table((uint32_t)number, &place, &err) != RENYI_OK) {
            options_usage_error("paper", "option '--table': %s", err.message);
            return -1;
        }
        if (a->n_tables + a->n_given == PAPER_MAX_TABLES) {
            options_usage_error("paper", "option '--table': more than %d", PAPER_MAX_TABLES);
            return -1;
        }
        if (is_given)
            a->given[a->n_given++] = (uint32_t)number;
        else
            a->tables[a->n_tables++] = (uint32_t)number;
        if (!*end) return 0;
    }
}

static int check_arguments(paper_arguments *a, const cli_strings *arguments)
{
    if (arguments->count)
        return options_usage_error("paper", "unexpected '%s' (give images with --data-dir)",
                                   arguments->items[0]);
    for (size_t i = 0; i < a->table_lists.count; i++)
        if (take_tables(a, a->table_lists.items[i])) return CLI_USAGE;
    if (a->run.json && a->markdown)
        return options_usage_error("paper", "--json and --markdown exclude each other");
    if (a->n_given && !a->n_tables && (a->models.count || a->run.data))
        return options_usage_error("paper",
                                   "tables 4 and 5 are run by renyi zeroshot --json, 6 and 12 by "
                                   "renyi vqa --json, 13 by renyi train; give their output with "
                                   "--results FILE or RUN_DIR");
    if (!a->run.data && a->run.log_samples)
        return options_usage_error("paper", "--log-samples needs --data-dir DIR");
    if (eval_check_arguments("paper", &a->run)) return CLI_USAGE;
    return CLI_OK;
}

static option_outcome parse_options(paper_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"table", 0, OPTION_STRINGS, &a->table_lists, "N", "this table; may be repeated (all)", 0,
         0},
        {"model", 'm', OPTION_STRINGS, &a->models, "MODEL", MODEL_HELP "; may be repeated", 0, 0},
        DATA_OPTION_ROWS(&a->run),
        {"results", 0, OPTION_STRINGS, &a->results, "PATH",
         "JSON of zeroshot (4, 5) or vqa (6, 12), run of train (13); may be repeated", 0, 0},
        {"no-mosaic", 0, OPTION_FLAG, &a->no_mosaic, "", "only the columns of the paper", 0, 0},
        JSON_OPTION_ROW(&a->run),
        {"markdown", 0, OPTION_FLAG, &a->markdown, "", "tables in Markdown", 0, 0},
        {"csv", 0, OPTION_STRING, &a->run.results_file, "FILE", "also write every cell to FILE", 0,
         0},
        RUN_OPTION_ROWS(&a->run),
        DTYPE_OPTION_ROW(&a->run),
        IMAGE_OPTION_ROWS(&a->run),
    };
    const verb_syntax syntax = {
        "paper", "[--table N]... [-m MODEL]... [--data-dir DIR] [options]",
        "Prints the paper's tables of ViT and DeiT (1, 2, 3, 7, 8, 9, 10, 11, 14, 15) with its figures beside\n"
        "those of this machine: GFLOPs of every row from the token counts, and with images the accuracies,\n"
        "with 95 % intervals and paired tests, of the models given with -m or, without -m, of the paper's\n"
        "models in the Hugging Face cache. For other models the same tables are made beside the paper's.\n"
        "What could not be run is marked. Each image is decoded once for all policies.\n"
        "Tables 4 and 5, CLIP and TCA on fifteen datasets: GFLOPs, and accuracies from --results files of\n"
        "renyi zeroshot, one per dataset. Tables 6 and 12, LLaVA on ten benchmarks: scores from --results\n"
        "files of renyi vqa. Table 13, fine-tuning: GFLOPs, and accuracies of runs of renyi train, whose\n"
        "folders are given with --results. Table 16: their recipe.",
        "  renyi paper\n"
        "  renyi paper --table 9 --table 11 --markdown\n"
        "  renyi paper --table 1,9 -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k --data-dir val --limit 2000\n"
        "  renyi paper -m vit_tiny -m deit_tiny --data-dir val --log-samples run.jsonl --resume --csv tables.csv\n"
        "  renyi paper --table 4,5 --results pets.json --results dtd.json\n"
        "  renyi paper --table 6 --results pope.json --results gqa.json\n"
        "  renyi paper --table 13,16 --results tuned/cls --results tuned/ours\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

/* Tables whose results are read from files. */
typedef struct given_tables {
    paper_surveys surveys;
    paper_panels panels;
    paper_tuned tuned;
} given_tables;

/* What the CSV file has. */
typedef struct csv_tables {
    const paper_block *blocks;
    size_t count;
    const given_tables *given;
} csv_tables;

static void put_csv(FILE *f, const void *user)
{
    const csv_tables *t = user;

    paper_report_csv(f, t->blocks, t->count);
    paper_survey_csv(f, &t->given->surveys);
    paper_panel_csv(f, &t->given->panels);
    paper_tuned_csv(f, &t->given->tuned);
}

/* Only the first rank writes. */
static int write_csv(const paper_arguments *a, const csv_tables *tables)
{
    if (!a->run.results_file || ranks_number()) return CLI_OK;
    return write_stream_file(a->run.results_file, put_csv, tables) ? CLI_FAILED : CLI_OK;
}

/* All tables on stdout, and their cells in the CSV file. */
static int put_tables(const paper_arguments *a, const paper_subjects *list,
                      const given_tables *given)
{
    const paper_surveys *surveys = &given->surveys;
    const paper_panels *panels = &given->panels;
    size_t count;
    paper_block *blocks = paper_blocks(list, &count);

    if (a->run.json) {
        json_t *document = paper_report_json(list, blocks, count);
        json_object_set_new(document, "surveys", paper_survey_json(surveys));
        json_object_set_new(document, "panels", paper_panel_json(panels));
        json_object_set_new(document, "tuned", paper_tuned_json(&given->tuned));
        json_object_set_new(document, "recipe", paper_hyper_json(a));
        json_print(document);
    } else {
        paper_report_text(blocks, count, a->markdown);
        paper_survey_text(surveys, a->markdown);
        paper_panel_text(panels, a->markdown);
        paper_tuned_text(&given->tuned, a->markdown);
        paper_hyper_text(a);
        if (count || surveys->count || given->tuned.is_wanted)
            paper_report_legend(paper_is_measured(blocks, count) ||
                                    paper_surveys_are_measured(surveys) || given->tuned.model,
                                a->markdown);
        paper_panel_legend(panels, a->markdown);
    }
    const int code = write_csv(a, &(csv_tables){blocks, count, given});
    free(blocks);
    return code;
}

/* How to get what is missing, for each kind of table that was asked for. */
static void put_hints(const paper_subjects *list, const given_tables *given)
{
    const paper_surveys *surveys = &given->surveys;
    const paper_panels *panels = &given->panels;

    if (list->count && !list->n_started)
        cli_note("accuracies: renyi paper -m MODEL --data-dir DIR; weights: renyi pull %s",
                 "timm/vit_small_patch16_224.augreg_in21k_ft_in1k");
    if (surveys->count && !paper_surveys_are_measured(surveys))
        cli_note(
            "accuracies of CLIP: renyi zeroshot --adapt tca --json >FILE, then --results FILE; "
            "weights: renyi pull %s",
            surveys->items[0].table.weights);
    if (panels->count && !paper_panels_are_measured(panels))
        cli_note(
            "scores of LLaVA: renyi vqa --json >FILE, then --results FILE; weights: renyi pull "
            "%s",
            panels->items[0].table.weights);
    if (given->tuned.is_wanted && !given->tuned.model)
        cli_note("fine-tuning: renyi train --recipe paper-evit-ours -o RUN_DIR, then --results "
                 "RUN_DIR");
}

static int report_tables(const paper_arguments *a, const paper_subjects *list,
                         const given_tables *given)
{
    const int code = put_tables(a, list, given);

    if (list->is_interrupted)
        eval_report_interrupt(a->run.log_samples != NULL, "--log-samples FILE");
    else
        put_hints(list, given);
    return code == CLI_OK ? paper_subjects_exit_code(list) : code;
}

/* A run of renyi train: its folder or its log. */
static int is_run(const char *path)
{
    const size_t n = strlen(path);
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return 1;
    return n > 6 && strcmp(path + n - 6, ".jsonl") == 0;
}

static int take_results(given_tables *given, const char *file)
{
    if (is_run(file)) return paper_tuned_take(&given->tuned, file);
    json_t *document = paper_results_load(file);
    if (!document) return CLI_FAILED;
    const int code = json_object_get(document, "task")
                         ? paper_panels_take(&given->panels, file, document)
                         : paper_surveys_take(&given->surveys, file, document);
    json_decref(document);
    return code;
}

static int read_given(given_tables *given, const paper_arguments *a)
{
    int code = CLI_OK;

    paper_surveys_make(&given->surveys, a);
    paper_panels_make(&given->panels, a);
    paper_tuned_make(&given->tuned, a);
    for (size_t i = 0; code == CLI_OK && i < a->results.count; i++)
        code = take_results(given, a->results.items[i]);
    return code;
}

int cmd_paper(int argc, char **argv)
{
    paper_arguments a = {.run = {.log_freq = 100}};
    cli_strings arguments = {0};
    paper_subjects list = {0};
    given_tables given = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        code = check_arguments(&a, &arguments);
        if (code == CLI_OK && eval_results_check(&a.run)) code = CLI_FAILED;
        if (code == CLI_OK)
            code = read_given(&given, &a); /* errors in them are reported before a long run */
        if (code == CLI_OK) code = paper_subjects_make(&list, &a);
        if (code == CLI_OK) code = report_tables(&a, &list, &given);
    }
    paper_surveys_free(&given.surveys);
    paper_panels_free(&given.panels);
    paper_tuned_free(&given.tuned);
    paper_subjects_free(&list);
    cli_strings_free(&a.models);
    cli_strings_free(&a.table_lists);
    cli_strings_free(&a.results);
    cli_strings_free(&arguments);
    return code;
}
