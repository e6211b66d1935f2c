/* cmd_paper.c - renyi paper: the tables of the paper, printed and recomputed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json_out.h"
#include "model_path.h"
#include "paper_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "9" or "1,2,9" into the list of numbers; -1 after reporting. */
static int take_tables(paper_arguments *a, const char *word)
{
    renyi_error err = {0};
    size_t place;
    char *end;

    for (const char *at = word;; at = end + 1) {
        const unsigned long number = strtoul(at, &end, 10);
        if (at[0] < '0' || at[0] > '9' || (*end && *end != ',') || number > 999) {
            options_usage_error("paper", "option '--table': '%s' is not the number of a table",
                                word);
            return -1;
        }
        if (renyi_paper_find_table((uint32_t)number, &place, &err) != RENYI_OK) {
            options_usage_error("paper", "option '--table': %s", err.message);
            return -1;
        }
        if (a->n_tables == PAPER_MAX_TABLES) {
            options_usage_error("paper", "option '--table': more than %d", PAPER_MAX_TABLES);
            return -1;
        }
        a->tables[a->n_tables++] = (uint32_t)number;
        if (!*end) return 0;
    }
}

static int check(paper_arguments *a, const cli_strings *words)
{
    if (words->count)
        return options_usage_error("paper", "unexpected '%s' (photos are given with --data-dir)",
                                   words->items[0]);
    if (a->run.json && a->markdown)
        return options_usage_error("paper", "--json and --markdown exclude each other");
    if (!a->run.data && a->run.log_samples)
        return options_usage_error("paper", "--log-samples needs --data-dir DIR");
    if (eval_arguments_check("paper", &a->run)) return CLI_USAGE;
    for (size_t i = 0; i < a->table_words.count; i++)
        if (take_tables(a, a->table_words.items[i])) return CLI_USAGE;
    return CLI_OK;
}

static option_outcome parse(paper_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"table", 0, OPTION_STRINGS, &a->table_words, "N", "this table; may be given again (all)",
         0, 0},
        {"model", 'm', OPTION_STRINGS, &a->models, "MODEL",
         "file, directory, or Hugging Face name in the cache; may be given again", 0, 0},
        DATA_OPTION_ROWS(&a->run),
        {"no-mosaic", 0, OPTION_FLAG, &a->no_mosaic, "", "only the columns of the paper", 0, 0},
        {"json", 0, OPTION_FLAG, &a->run.json, "", "one JSON document on stdout", 0, 0},
        {"markdown", 0, OPTION_FLAG, &a->markdown, "", "tables in Markdown", 0, 0},
        {"csv", 0, OPTION_STRING, &a->run.results_file, "FILE", "also write every cell to FILE", 0,
         0},
        RUN_OPTION_ROWS(&a->run),
        PHOTO_OPTION_ROWS(&a->run),
    };
    const verb_syntax syntax = {
        "paper", "[--table N]... [-m MODEL]... [--data-dir DIR] [options]",
        "The paper's ViT and DeiT tables (1, 2, 3, 7, 8, 9, 10, 11, 14, 15) with its figures beside what this\n"
        "machine computes: GFLOPs of every row from the token counts, and with photos the accuracies, with\n"
        "their 95 % interval and paired tests, of the models that are given or, without -m, of those of the\n"
        "paper's that are in the Hugging Face cache. For another model the same tables are made beside the\n"
        "paper's. What could not be run is marked. All policies share one decoding of each photo.",
        "  renyi paper\n"
        "  renyi paper --table 9 --table 11 --markdown\n"
        "  renyi paper --table 1,9 -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k --data-dir imagenet/val --limit 2000 --shuffle\n"
        "  renyi paper -m vit_tiny -m deit_tiny --data-dir val --log-samples run.jsonl --resume --csv tables.csv\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

static int fail_csv(const paper_arguments *a)
{
    cli_error("%s: %s", a->run.results_file, strerror(errno));
    return CLI_FAILED;
}

/* Before hours of work: can the file be written? */
static int check_csv(const paper_arguments *a)
{
    FILE *f = a->run.results_file ? fopen(a->run.results_file, "a") : NULL;

    if (!a->run.results_file) return CLI_OK;
    return f && fclose(f) == 0 ? CLI_OK : fail_csv(a);
}

static int write_csv(const paper_arguments *a, const paper_block *blocks, size_t count)
{
    if (!a->run.results_file) return CLI_OK;
    FILE *f = fopen(a->run.results_file, "w");
    if (!f) return fail_csv(a);
    paper_report_csv(f, blocks, count);
    const int is_bad = ferror(f);
    return fclose(f) || is_bad ? fail_csv(a) : CLI_OK;
}

static int report(const paper_arguments *a, const paper_subjects *list)
{
    size_t count;
    paper_block *blocks = paper_blocks(list, &count);

    if (a->run.json)
        json_print(paper_report_json(list, blocks, count));
    else
        paper_report_text(blocks, count, a->markdown);
    const int code = write_csv(a, blocks, count);
    free(blocks);
    if (list->is_interrupted)
        cli_error("interrupted; %s", a->run.log_samples
                                         ? "the same command with --resume goes on from here"
                                         : "with --log-samples FILE a run can be resumed");
    else if (!list->n_started)
        cli_note("Accuracies: renyi paper -m MODEL --data-dir DIR; weights: renyi pull %s",
                 "timm/vit_small_patch16_224.augreg_in21k_ft_in1k");
    return code == CLI_OK ? paper_subjects_exit_code(list) : code;
}

int cmd_paper(int argc, char **argv)
{
    paper_arguments a = {.run = {.log_freq = 100}};
    cli_strings words = {0};
    paper_subjects list = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        code = check(&a, &words);
        if (code == CLI_OK) code = check_csv(&a);
        if (code == CLI_OK) code = paper_subjects_make(&list, &a);
        if (code == CLI_OK) code = report(&a, &list);
    }
    paper_subjects_free(&list);
    cli_strings_free(&a.models);
    cli_strings_free(&a.table_words);
    cli_strings_free(&words);
    return code;
}
