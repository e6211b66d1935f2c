/* sweep_grid.c - the options of renyi sweep as a grid of the library.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/sweep/sweep_arguments.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The parts of "a,b" of every word; a file whose name has a comma is one. */
static void split(cli_strings *out, const cli_strings *words, int may_be_file)
{
    struct stat st;

    for (size_t i = 0; i < words->count; i++) {
        if (may_be_file && stat(words->items[i], &st) == 0) {
            cli_strings_add(out, cli_copy(words->items[i]));
            continue;
        }
        for (const char *at = words->items[i];; at++) {
            const size_t n = strcspn(at, ",");
            if (n) cli_strings_add(out, cli_format("%.*s", (int)n, at));
            at += n;
            if (!*at) break;
        }
    }
}

/* "name v|w x" of all values that an option was given. With `commas` these separate too. */
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

    split(&sizes, &a->sizes, 0);
    add_line(lines, "sizes", &sizes, 0);
    cli_strings_free(&sizes);
    add_line(lines, "frameworks", &a->frameworks, 1);
    add_line(lines, "metrics", &a->metrics, 1);
    add_line(lines, "n", &a->n, 1);
    add_line(lines, "c", &a->c, 1);
    /* A comma in these says something for each cut. */
    add_line(lines, "keep", &a->keep, 0);
    add_line(lines, "tokens", &a->tokens, 0);
    add_line(lines, "p", &a->p, 0);
    add_line(lines, "r", &a->r, 0);
    add_line(lines, "layers", &a->layers, 0);
}

renyi_grid *sweep_grid(const sweep_arguments *a, int *code)
{
    cli_strings models = {0}, lines = {0};
    renyi_error err = {0};
    renyi_grid *grid;

    split(&models, &a->models, 1);
    make_lines(&lines, a);
    const renyi_grid_options o = {.struct_size = sizeof o,
                                  .file = a->spec,
                                  .n_models = (uint32_t)models.count,
                                  .models = (const char *const *)models.items,
                                  .n_policies = (uint32_t)a->policies.count,
                                  .policies = (const char *const *)a->policies.items,
                                  .n_lines = (uint32_t)lines.count,
                                  .lines = (const char *const *)lines.items};
    *code = CLI_OK;
    if (renyi_grid_new(&grid, &o, &err) != RENYI_OK) {
        if (err.code == RENYI_ERR_FORMAT)
            err.code = RENYI_ERR_ARG; /* what was asked for is wrong */
        *code = eval_error("sweep", &err);
    }
    cli_strings_free(&models);
    cli_strings_free(&lines);
    return grid;
}
