/* cmd_plot.c - renyi plot: loss and accuracy curves of training runs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/options.h"
#include "cli/kit/output.h"
#include "cli/train/plot_view.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

static int has_known_ending(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && (strcmp(dot, ".svg") == 0 || strcmp(dot, ".html") == 0);
}

static int plot(const plot_arguments *a, const cli_strings *paths)
{
    plot_view *v = cli_alloc(1, sizeof *v);
    int code = plot_view_make(v, a, paths);

    if (!code && a->output && plot_draw(v)) code = CLI_FAILED;
    if (!code && a->json) json_print(plot_json(v));
    if (!code && !a->json) plot_table(v);
    plot_view_free(v);
    free(v);
    return code;
}

static option_outcome parse(plot_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"output", 'o', OPTION_STRING, &a->output, "FILE",
         "draw to FILE.svg, or to the page FILE.html", 0, 0},
        {"what", 0, OPTION_STRING, &a->what, "LIST",
         "charts: loss, epoch_loss, val_loss, top1, top5, ema_top1, lr, keep,\n"
         "                              speed (loss,top1)",
         0, 0},
        {"x", 0, OPTION_CHOICE, &a->axis, "epoch|step|seconds", "what runs to the right (epoch)", 0,
         0},
        {"smooth", 0, OPTION_COUNT, &a->smooth, "N",
         "steps in a mean, 1 = none (a hundredth of the longest run)", 1, 1000000},
        {"names", 0, OPTION_STRING, &a->names, "A,B,...", "of the runs (their folders')", 0, 0},
        {"title", 0, OPTION_STRING, &a->title, "TEXT", "above the charts", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "numbers and curves as one JSON document on stdout",
         0, 0},
    };
    const verb_syntax syntax = {
        "plot", "RUN... [-o FILE.svg|FILE.html] [options]",
        "Draws loss and accuracy of training runs over time, each run a line with a name, a colour and\n"
        "dashes of its own, and prints their last numbers. RUN is a folder of 'renyi train' or a log.jsonl,\n"
        "also of a run that was interrupted or still goes on; A+B is one run in two stages. The page shows\n"
        "values where the pointer is and needs nothing but itself.",
        "  renyi plot runs/cls runs/col -o loss.svg\n"
        "  renyi plot runs/* -o runs.html --what loss,val_loss,top1 --smooth 50\n"
        "  renyi plot runs/low+runs/high runs/base --x seconds -o time.html\n"
        "  renyi plot runs/cls --json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_plot(int argc, char **argv)
{
    plot_arguments a = {.what = "loss,top1", .axis = "epoch"};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    a.command = cli_command_line(argc, argv);
    if (outcome == OPTIONS_GO && !words.count)
        options_usage_error("plot", "no run: a folder of 'renyi train' or a log.jsonl is missing");
    else if (outcome == OPTIONS_GO && a.output && !has_known_ending(a.output))
        options_usage_error("plot", "-o: '%s' ends neither in .svg nor in .html", a.output);
    else if (outcome == OPTIONS_GO)
        code = plot(&a, &words);
    free(a.command);
    cli_strings_free(&words);
    return code;
}
