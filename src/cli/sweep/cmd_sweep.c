/* cmd_sweep.c - renyi sweep: the command line, and the grid that it means.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/models.h"
#include "cli/sweep/sweep_report.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the grid
 * ------------------------------------------------------------------------------------ */

/* Splits every "a,b"; the name of an existing file is not split. */
static void split_values(cli_strings *out, const cli_strings *values, int may_be_file)
{
    struct stat st;

    for (size_t i = 0; i < values->count; i++) {
        if (may_be_file && stat(values->items[i], &st) == 0) {
            cli_strings_add(out, cli_copy(values->items[i]));
            continue;
        }
        for (const char *at = values->items[i];; at++) {
            const size_t n = strcspn(at, ",");
            if (n) cli_strings_add(out, cli_format("%.*s", (int)n, at));
            at += n;
            if (!*at) break;
        }
    }
}

/* Adds the spec line "name v|w x" of all values of an option. With `commas`, commas separate, too.
 */
static void add_line(cli_strings *lines, const char *name, const cli_strings *values, int commas)
{
    if (!values->count) return;
    char *line = cli_copy(name);
    for (size_t i = 0; i < values->count; i++) {
        char *longer = cli_format("%s %s", line, values->items[i]);
        free(line);
        line = longer;
    }
    for (char *c = line; commas && *c; c++)
        if (*c == ',') *c = '|';
    cli_strings_add(lines, line);
}

static void make_lines(cli_strings *lines, const sweep_arguments *a)
{
    cli_strings sizes = {0};

    split_values(&sizes, &a->sizes, 0);
    add_line(lines, "sizes", &sizes, 0);
    cli_strings_free(&sizes);
    add_line(lines, "frameworks", &a->frameworks, 1);
    add_line(lines, "metrics", &a->metrics, 1);
    add_line(lines, "n", &a->n, 1);
    add_line(lines, "c", &a->c, 1);
    /* In these a comma separates the values of one policy's cuts. */
    add_line(lines, "keep", &a->keep, 0);
    add_line(lines, "tokens", &a->tokens, 0);
    add_line(lines, "p", &a->p, 0);
    add_line(lines, "r", &a->r, 0);
    add_line(lines, "layers", &a->layers, 0);
}

/* The grid that spec file and options mean; NULL and *code after reporting. */
static renyi_grid *make_grid(const sweep_arguments *a, int *code)
{
    cli_strings models = {0}, lines = {0};
    renyi_error err = {0};
    renyi_grid *grid;

    split_values(&models, &a->models, 1);
    make_lines(&lines, a);
    const renyi_grid_options o = {.struct_size = sizeof o,
                                  .file = a->spec,
                                  .n_models = (uint32_t)models.count,
                                  .models = (const char *const *)models.items,
                                  .n_policies = (uint32_t)a->policies.count,
                                  .policies = (const char *const *)a->policies.items,
                                  .n_lines = (uint32_t)lines.count,
                                  .lines = (const char *const *)lines.items,
                                  .n_dtypes = a->e.dtype ? (uint32_t)a->e.dtypes.n : 0,
                                  .dtypes = a->e.dtypes.items};
    *code = CLI_OK;
    if (renyi_grid_new(&grid, &o, &err) != RENYI_OK) {
        if (err.code == RENYI_ERR_FORMAT) err.code = RENYI_ERR_ARG; /* a mistake in the spec */
        *code = eval_error("sweep", &err);
    }
    cli_strings_free(&models);
    cli_strings_free(&lines);
    return grid;
}

/* ---- the command line
 * ---------------------------------------------------------------------------- */

static int check_arguments(sweep_arguments *a, const cli_strings *arguments)
{
    if (arguments->count > 1)
        return options_usage_error("sweep", "unexpected '%s': one spec file at a time",
                                   arguments->items[1]);
    if (arguments->count) a->spec = arguments->items[0];
    if (!a->e.data) return options_usage_error("sweep", "--data-dir DIR is missing");
    if (a->e.resume && !a->output)
        return options_usage_error("sweep", "--resume needs -o DIR to resume from");
    if (a->z.templates.count || a->z.collection || a->z.class_names) {
        const int code = zeroshot_check("sweep", &a->z);
        if (code != CLI_OK) return code;
        a->e.zeroshot = &a->z;
    }
    if (!a->spec && !a->models.count) cli_strings_add(&a->models, cli_copy(model_or_builtin(NULL)));
    if (a->output) a->e.log_samples = cli_format("%s/samples.jsonl", a->output);
    return eval_check_arguments("sweep", &a->e) ? CLI_USAGE : CLI_OK;
}

/* clang-format off */
#define GRID_OPTION_ROWS(a) \
    {"model", 'm', OPTION_STRINGS, &(a)->models, "MODEL", MODEL_HELP "; may be repeated (builtin)", 0, 0}, \
    {"image-size", 0, OPTION_STRINGS, &(a)->sizes, "N,...", "input sides in pixels, or 'model' (its own)", 0, 0}, \
    {"prune", 0, OPTION_STRINGS, &(a)->policies, "POLICY", "a whole policy; its values may be a|b|c; may be repeated", 0, 0}, \
    {"framework", 0, OPTION_STRINGS, &(a)->frameworks, "RULE|...", "rules or presets to combine with the values below", 0, 0}, \
    {"metric", 0, OPTION_STRINGS, &(a)->metrics, "M|...", "metrics that rank the tokens: cls, col, correct, ...", 0, 0}, \
    {"n", 'n', OPTION_STRINGS, &(a)->n, "N|...", "orders of the column norm", 0, 0}, \
    {"c", 'c', OPTION_STRINGS, &(a)->c, "C|...", "shares of the kept that the column norm chooses", 0, 0}, \
    {"keep", 0, OPTION_STRINGS, &(a)->keep, "R|...", "shares of the patch tokens KEPT by each cut", 0, 0}, \
    {"tokens", 0, OPTION_STRINGS, &(a)->tokens, "N|...", "patch tokens KEPT by each cut, as numbers", 0, 0}, \
    {"p", 'p', OPTION_STRINGS, &(a)->p, "N|...", "patch tokens REMOVED by each cut", 0, 0}, \
    {"r", 0, OPTION_STRINGS, &(a)->r, "N|...", "tokens REMOVED by merging in each block (tome)", 0, 0}, \
    {"layers", 0, OPTION_STRINGS, &(a)->layers, "L,...|...", "blocks that cut, from 0: '0,3,6|3,6,9'", 0, 0}

#define OUTPUT_OPTION_ROWS(a) \
    {"output", 'o', OPTION_STRING, &(a)->output, "DIR", "write results.csv, results.json, samples.jsonl, report.html and charts", 0, 0}, \
    {"resume", 0, OPTION_FLAG, &(a)->e.resume, "", "continue from the results in DIR/samples.jsonl", 0, 0}, \
    JSON_OPTION_ROW(&(a)->e), \
    {"dry-run", 0, OPTION_FLAG, &(a)->dry_run, "", "check everything and list the points, run nothing", 0, 0}, \
    {"memory", 0, OPTION_COUNT, &(a)->memory_mb, "MB", "memory of the policies that run together (1024); others run in further passes", 1, 1u << 30}
/* clang-format on */

static option_outcome parse_options(sweep_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        GRID_OPTION_ROWS(a),
        OUTPUT_OPTION_ROWS(a),
        DATA_OPTION_ROWS(&a->e),
        SPEED_OPTION_ROWS(&a->e),
        DTYPES_OPTION_ROW(&a->e),
        FIT_OPTION_ROWS(&a->e),
        {"", 0, OPTION_HEADING, NULL, "",
         "CLIP models, as in 'renyi zeroshot'; needs --templates, --collection or --class-names", 0,
         0},
        ZEROSHOT_OPTION_ROWS(&a->z),
    };
    const verb_syntax syntax = {
        "sweep", "[SPEC] [-m MODEL]... --data-dir DIR [-o DIR] [options]",
        "Runs every model at every size with every policy on the same images, to compare pruning with\n"
        "smaller inputs. Prints a table of all points with the Pareto fronts marked; with -o also writes CSV,\n"
        "JSON, charts and a self-contained page. SPEC is a file of lines 'models ...', 'sizes ...',\n"
        "'policy ...', 'frameworks ...', 'keep ...' (docs/EVAL.md); options replace its lines. Without\n"
        "policies a default set is used. Alternatives are separated by '|'.",
        "  renyi sweep -m vit.safetensors --data-dir images --image-size 160,192,224 -o out\n"
        "  renyi sweep -m vit.safetensors --data-dir images --prune none --prune 'mosaic keep=0.5|0.7|0.9' -o out\n"
        "  renyi sweep -m a.safetensors -m b.safetensors --data-dir images --framework 'evit|naive' \\\n"
        "    --metric 'cls|col' --keep '0.5|0.7' --p '8|16' --limit 200 -o out\n"
        "  renyi sweep grid.txt --data-dir images -o out --resume\n"
        "  renyi sweep -m openai/clip-vit-base-patch16 --data-dir oxford_pets --templates pets -o out\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

static void free_arguments(sweep_arguments *a)
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
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&a, &arguments)) == CLI_OK) {
        renyi_grid *grid = make_grid(&a, &code);
        if (grid) code = sweep_execute(&a, grid);
        renyi_grid_free(grid);
    }
    free_arguments(&a);
    cli_strings_free(&arguments);
    return code;
}
