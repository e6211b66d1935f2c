/* cmd_table.c - renyi table: the command line and its spec file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"
#include "cli/table/lvlm_table.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

/* ---- the spec file --------------------------------------------------------------------------- */

/* "192,128" or "192 128" into the budgets. */
static int take_tokens(option_counts *out, const char *text)
{
    char *end;

    out->count = 0;
    for (;; text = end) {
        text += strspn(text, ", \t");
        if (!*text) return out->count > 0;
        const unsigned long long n = strtoull(text, &end, 10);
        if (end == text || !n || n > 1u << 20 || out->count == OPTION_MAX_COUNTS) return 0;
        out->values[out->count++] = n;
    }
}

/* What an option of the command line says, the file does not change. */
typedef struct spec_parts {
    int tasks, methods, against, tokens;
} spec_parts;

static int take_line(table_arguments *a, const spec_parts *open, char *line, size_t number)
{
    char *word = line + strspn(line, " \t"), *rest = word + strcspn(word, " \t");

    if (!*word || *word == '#') return CLI_OK;
    if (*rest) *rest++ = '\0';
    rest += strspn(rest, " \t");
    if (strcmp(word, "task") == 0) {
        if (open->tasks) cli_strings_add(&a->tasks, cli_copy(rest));
    } else if (strcmp(word, "prune") == 0) {
        if (open->methods) cli_strings_add(&a->methods, cli_copy(rest));
    } else if (strcmp(word, "against") == 0) {
        if (open->against) cli_strings_add(&a->against, cli_copy(rest));
    } else if (strcmp(word, "tokens") == 0) {
        option_counts counts;
        if (!take_tokens(&counts, rest))
            return options_usage_error("table",
                                       "%s:%zu: '%s': tokens are 1 to %d whole numbers from 1 "
                                       "to 1048576, separated by commas",
                                       a->spec, number, rest, OPTION_MAX_COUNTS);
        if (open->tokens) a->tokens = counts;
    } else {
        return options_usage_error("table", "%s:%zu: '%s' is none of task, prune, tokens, against",
                                   a->spec, number, word);
    }
    return CLI_OK;
}

int table_read_spec(table_arguments *a)
{
    const spec_parts open = {!a->tasks.count, !a->methods.count, !a->against.count,
                             !a->tokens.count};
    cli_strings lines = {0};
    char *why = NULL;
    int code = CLI_OK;

    if (!a->spec) return CLI_OK;
    if (read_lines(a->spec, 1 << 20, &lines, &why)) {
        cli_error("%s: %s", a->spec, why);
        code = CLI_FAILED;
    }
    for (size_t i = 0; code == CLI_OK && i < lines.count; i++)
        code = take_line(a, &open, lines.items[i], i + 1);
    free(why);
    cli_strings_free(&lines);
    return code;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int check_arguments(table_arguments *a, const cli_strings *arguments)
{
    if (arguments->count > 1)
        return options_usage_error("table", "unexpected '%s': one spec file at a time",
                                   arguments->items[1]);
    if (arguments->count) a->spec = arguments->items[0];
    const int code = table_read_spec(a);
    if (code != CLI_OK) return code;
    if (!a->llava.model && !a->dry_run) return options_usage_error("table", "-m LLAVA is missing");
    if (a->resume && !a->output)
        return options_usage_error("table", "--resume needs -o DIR to resume from");
    if (a->json && a->markdown)
        return options_usage_error("table", "--json and --markdown exclude each other");
    return llava_check_sampling("table", &a->sampling);
}

static option_outcome parse_options(table_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"task", 0, OPTION_STRINGS, &a->tasks, "TASK",
         "a benchmark: 'NAME questions=PATH images=DIR annotations=PATH'; may be repeated", 0, 0},
        {"prune", 0, OPTION_STRINGS, &a->methods, "POLICY",
         "a method without its budget; may be repeated (all presets lvlm:*)", 0, 0},
        {"tokens", 0, OPTION_COUNTS, &a->tokens, "N,...",
         "budgets: visual tokens kept (192,128,64; LLaVA-NeXT 640,320,160)", 1, 1u << 20},
        {"against", 0, OPTION_STRINGS, &a->against, "METHOD",
         "baseline of the paired tests; twice at most (random and pool)", 0, 0},
        {"output", 'o', OPTION_STRING, &a->output, "DIR",
         "keep the answers: DIR/benchmark/policy.jsonl", 0, 0},
        {"resume", 0, OPTION_FLAG, &a->resume, "", "ask only what has no answer in -o DIR", 0, 0},
        {"limit", 0, OPTION_COUNT, &a->limit, "N", "the first N questions of each benchmark", 1, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document on stdout", 0, 0},
        {"markdown", 0, OPTION_FLAG, &a->markdown, "", "tables in Markdown", 0, 0},
        {"dry-run", 0, OPTION_FLAG, &a->dry_run, "", "check everything and list the policies", 0,
         0},
        {"allow-outside", 0, OPTION_FLAG, &a->allow_outside, "",
         "questions may name images outside their folder (refused)", 0, 0},
        {"log-freq", 0, OPTION_COUNT, &a->log_freq, "N",
         "without a terminal, a line every N questions (100)", 1, 0},
        {"", 0, OPTION_HEADING, NULL, "", "The model", 0, 0},
        LLAVA_WEIGHT_ROWS(&a->llava),
        LLAVA_LANGUAGE_ROWS(&a->llava),
        SAMPLING_ROWS(&a->sampling, "as the benchmark says"),
    };
    const verb_syntax syntax = {
        "table", "[SPEC] -m LLAVA --task 'NAME questions=PATH images=DIR' ... [options]",
        "Asks a LLaVA the questions of several benchmarks with several pruning methods. The table has methods\n"
        "and budgets in rows and benchmarks in columns; for each row also the mean percent of the full model,\n"
        "paired tests against baselines of the same budget, and costs. SPEC is a file with the lines 'task ...',\n"
        "'prune POLICY', 'tokens N,...' and 'against METHOD'; an option replaces the lines of its name.",
        "  renyi table -m llava-1.5-7b-hf --task 'pope questions=coco images=val2014' -o out\n"
        "  renyi table -m llava-1.5-7b-hf --task 'pope questions=coco images=val2014' --limit 200 \\\n"
        "      --prune 'prumerge metric=cls' --prune 'prumerge metric=col' --against 'prumerge metric=cls'\n"
        "  renyi table lvlm.txt -m llava-1.5-7b-hf -o out --resume --markdown\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

static int run_table(const table_arguments *a)
{
    lvlm_table t;
    int code = lvlm_table_plan(&t, a);

    if (code == CLI_OK && a->dry_run) {
        lvlm_table_dry_run(&t);
    } else if (code == CLI_OK) {
        code = lvlm_table_run(&t);
        const int has_results = code == CLI_OK || t.is_interrupted;
        if (has_results && a->json)
            lvlm_table_json(&t);
        else if (has_results)
            lvlm_table_text(&t);
    }
    if (code == CLI_OK && t.failed.count) code = CLI_PARTIAL;
    lvlm_table_free(&t);
    return code;
}

int cmd_table(int argc, char **argv)
{
    table_arguments a = {.log_freq = 100, .sampling = SAMPLING_DEFAULTS};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&a, &arguments)) == CLI_OK)
        code = run_table(&a);
    llava_arguments_free(&a.llava);
    cli_strings_free(&a.tasks);
    cli_strings_free(&a.methods);
    cli_strings_free(&a.against);
    cli_strings_free(&arguments);
    return code;
}
