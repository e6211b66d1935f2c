/* cmd_sweep.c - renyi sweep: the command line; the work is in sweep_execute.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/models.h"
#include "cli/sweep/sweep_arguments.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

static int check(sweep_arguments *a, const cli_strings *words)
{
    if (words->count > 1)
        return options_usage_error("sweep", "unexpected '%s': one spec file at a time",
                                   words->items[1]);
    if (words->count) a->spec = words->items[0];
    if (!a->e.data) return options_usage_error("sweep", "--data-dir DIR is missing");
    if (!a->spec && !a->models.count)
        return options_usage_error("sweep", "-m MODEL or a spec file is missing");
    if (a->e.resume && !a->output)
        return options_usage_error("sweep", "--resume needs -o DIR, to resume from");
    if (a->z.templates.count || a->z.collection || a->z.class_names) {
        const int code = zeroshot_check("sweep", &a->z);
        if (code != CLI_OK) return code;
        a->e.zeroshot = &a->z;
    }
    if (a->output) a->e.log_samples = cli_format("%s/samples.jsonl", a->output);
    return eval_arguments_check("sweep", &a->e) ? CLI_USAGE : CLI_OK;
}

/* clang-format off */
#define GRID_OPTION_ROWS(a) \
    {"model", 'm', OPTION_STRINGS, &(a)->models, "MODEL", "file, directory, or Hugging Face name in the cache; again, or a,b", 0, 0}, \
    {"img-size", 0, OPTION_STRINGS, &(a)->sizes, "N,...", "input sides in pixels, or 'model' (its own)", 0, 0}, \
    {"prune", 0, OPTION_STRINGS, &(a)->policies, "POLICY", "a policy, complete; its values may be a|b|c; again for more", 0, 0}, \
    {"framework", 0, OPTION_STRINGS, &(a)->frameworks, "RULE|...", "rules or presets to cross with the values below", 0, 0}, \
    {"metric", 0, OPTION_STRINGS, &(a)->metrics, "M|...", "what tokens are ranked by: cls, col, correct, ...", 0, 0}, \
    {"n", 'n', OPTION_STRINGS, &(a)->n, "N|...", "orders of the column norm; --norm too", 0, 0}, \
    {"norm", 0, OPTION_STRINGS, &(a)->n, "N|...", "the same", 0, 0}, \
    {"c", 'c', OPTION_STRINGS, &(a)->c, "C|...", "shares of the kept that the column norm chooses; --rescue too", 0, 0}, \
    {"rescue", 0, OPTION_STRINGS, &(a)->c, "C|...", "the same", 0, 0}, \
    {"keep", 0, OPTION_STRINGS, &(a)->keep, "R|...", "shares of the patch tokens KEPT by each cut; --keep-rate too", 0, 0}, \
    {"keep-rate", 0, OPTION_STRINGS, &(a)->keep, "R|...", "the same", 0, 0}, \
    {"keep-tokens", 0, OPTION_STRINGS, &(a)->tokens, "N|...", "patch tokens KEPT by each cut, as numbers", 0, 0}, \
    {"p", 'p', OPTION_STRINGS, &(a)->p, "N|...", "patch tokens REMOVED by each cut", 0, 0}, \
    {"r", 0, OPTION_STRINGS, &(a)->r, "N|...", "tokens REMOVED by merging in each block (tome)", 0, 0}, \
    {"layers", 0, OPTION_STRINGS, &(a)->layers, "L,...|...", "blocks that cut, from 0: '0,3,6|3,6,9'; --drop-loc too", 0, 0}, \
    {"drop-loc", 0, OPTION_STRINGS, &(a)->layers, "L,...|...", "the same", 0, 0}

#define OUTPUT_OPTION_ROWS(a) \
    {"output", 'o', OPTION_STRING, &(a)->output, "DIR", "write results.csv, results.json, samples.jsonl, report.html and charts", 0, 0}, \
    {"resume", 0, OPTION_FLAG, &(a)->e.resume, "", "go on from what DIR/samples.jsonl holds", 0, 0}, \
    {"json", 0, OPTION_FLAG, &(a)->e.json, "", "one JSON document on stdout", 0, 0}, \
    {"dry-run", 0, OPTION_FLAG, &(a)->dry_run, "", "check everything and list what would be run", 0, 0}, \
    {"memory", 0, OPTION_COUNT, &(a)->memory_mb, "MB", "of the policies that run together (1024); more passes beyond", 1, 1u << 30}
/* clang-format on */

static option_outcome parse(sweep_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        GRID_OPTION_ROWS(a),
        OUTPUT_OPTION_ROWS(a),
        DATA_OPTION_ROWS(&a->e),
        SPEED_OPTION_ROWS(&a->e),
        FIT_OPTION_ROWS(&a->e),
        {"", 0, OPTION_HEADING, NULL, "",
         "CLIPs, as 'renyi zeroshot' does; --templates, --collection or --class-names says so:", 0,
         0},
        ZEROSHOT_OPTION_ROWS(&a->z),
    };
    const verb_syntax syntax = {
        "sweep", "[SPEC] -m MODEL... --data-dir DIR [-o DIR] [options]",
        "Every model at every size under every policy on the same photos: what pruning costs and buys\n"
        "beside what a smaller picture does. A table of all points with the Pareto fronts marked, and with\n"
        "-o also CSV, JSON, charts and a page that needs nothing else. SPEC is a file of lines 'models ...',\n"
        "'sizes ...', 'policy ...', 'frameworks ...', 'keep ...' (docs/EVAL.md); options replace its lines.\n"
        "Without policies a default set is tried. Alternatives stand between '|'.",
        "  renyi sweep -m vit.safetensors --data-dir photos --img-size 160,192,224 -o out\n"
        "  renyi sweep -m vit.safetensors --data-dir photos --prune none --prune 'mosaic keep=0.5|0.7|0.9' -o out\n"
        "  renyi sweep -m a.safetensors -m b.safetensors --data-dir photos --framework 'evit|naive' --metric 'cls|col' \\\n"
        "    --keep '0.5|0.7' --p '8|16' --limit 200 --shuffle -o out\n"
        "  renyi sweep grid.txt --data-dir photos -o out --resume\n"
        "  renyi sweep -m openai/clip-vit-base-patch16 --data-dir oxford_pets --templates pets -o out\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

static void arguments_free(sweep_arguments *a)
{
    cli_strings *lists[] = {&a->models,  &a->sizes, &a->policies, &a->frameworks,
                            &a->metrics, &a->n,     &a->c,        &a->keep,
                            &a->p,       &a->r,     &a->tokens,   &a->layers};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) cli_strings_free(lists[i]);
    zeroshot_arguments_free(&a->z);
    free((char *)a->e.log_samples);
    free(a->command);
}

int cmd_sweep(int argc, char **argv)
{
    sweep_arguments a = {.e = {.log_freq = 100}, .command = cli_command_line(argc, argv)};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check(&a, &words)) == CLI_OK) code = sweep_execute(&a);
    arguments_free(&a);
    cli_strings_free(&words);
    return code;
}
