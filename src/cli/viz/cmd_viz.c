/* cmd_viz.c - renyi viz: what a model looks at in a photo, and what pruning drops of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/models.h"
#include "cli/verbs.h"
#include "cli/viz/viz_arguments.h"

#include <stdlib.h>
#include <string.h>

static int check_outputs(const viz_arguments *a)
{
    for (size_t i = 0; i < a->outputs.count; i++)
        if (!viz_format(a->outputs.items[i]))
            return options_usage_error("viz", "-o: '%s' ends neither in .html, .png nor .svg",
                                       a->outputs.items[i]),
                   -1;
    if (a->json + a->term + a->svg > 1)
        return options_usage_error("viz",
                                   "--json, --term and --svg all write to stdout: one of them"),
               -1;
    return 0;
}

int viz_check(const viz_arguments *a)
{
    if ((a->query || a->token) && !a->attention)
        return options_usage_error("viz", "--%s is for --attention HEAD",
                                   a->query ? "query" : "token"),
               -1;
    if (a->graphics && !a->term) return options_usage_error("viz", "--graphics is for --term"), -1;
    if (strcmp(a->figure, "attention") == 0 && !a->attention)
        return options_usage_error("viz", "--figure attention needs --attention HEAD"), -1;
    return check_outputs(a);
}

/* clang-format off */
static option_outcome parse(viz_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL", "file, directory, or Hugging Face name in the cache (the small one inside)", 0, 0},
        {"output", 'o', OPTION_STRINGS, &a->outputs, "FILE", "write FILE.html (to play with), FILE.png or FILE.svg; any number", 0, 0},
        {"", 0, OPTION_HEADING, NULL, "", "What is seen", 0, 0},
        {"metrics", 0, OPTION_STRING, &a->metrics, "LIST", "scores to show: cls, col, 'col n=2', random, ... (cls,col n=4,random)", 0, 0},
        {"layers", 0, OPTION_STRING, &a->layers, "LIST", "blocks to show: 0-5, 0,3,6, all (0-5)", 0, 0},
        {"rule", 0, OPTION_STRING, &a->rule, "POLICY", "how each metric prunes, without metric= (naive, half the patches\n                              in the end); '' = no such rows", 0, 0},
        {"prune", 0, OPTION_STRINGS, &a->policies, "POLICY", "a policy as a further row; any number ('renyi policies')", 0, 0},
        {"orders", 0, OPTION_STRING, &a->orders, "LIST", "orders n of Col-Ln (1,2,3,4,inf)", 0, 0},
        {"keep", 0, OPTION_STRING, &a->keeps, "LIST", "keep rates of the page's slider (0.3,0.4,...,0.9)", 0, 0},
        {"sweep", 0, OPTION_CHOICE, &a->sweep, "none|metrics|all", "runs at every keep rate: of metrics, and of all orders too\n                              (all for a page, else none)", 0, 0},
        {"attention", 0, OPTION_STRING, &a->attention, "HEAD", "also attention rows and columns of a head, or of 'all'", 0, 0},
        {"query", 0, OPTION_STRING, &a->query, "ROW,COL", "patch whose attention row is shown (the class token)", 0, 0},
        {"token", 0, OPTION_STRING, &a->token, "ROW,COL", "patch whose received column is shown (the best by Col-L4)", 0, 0},
        {"topk", 'k', OPTION_COUNT, &a->top_k, "N", "classes of each prediction (5)", 1, RENYI_VIZ_MAX_TOP},
        {"time", 0, OPTION_FLAG, &a->time, "", "measure milliseconds of each policy; files then differ from run to run", 0, 0},
        {"", 0, OPTION_HEADING, NULL, "", "How it is drawn", 0, 0},
        {"figure", 0, OPTION_CHOICE, &a->figure, "all|overlay|heat|mosaic|norms|predictions|attention", "what a PNG, SVG or terminal shows (all)", 0, 0},
        {"colours", 0, OPTION_CHOICE, &a->colours, "even|red-blue", "of scores (even)", 0, 0},
        {"dark", 0, OPTION_FLAG, &a->dark, "", "light text on a dark ground", 0, 0},
        {"cell", 0, OPTION_COUNT, &a->cell, "N", "side of a small picture in units (150)", 48, 1024},
        {"scale", 0, OPTION_REAL, &a->scale, "X", "pixels of a PNG per unit (2)", 0, 0},
        {"opacity", 0, OPTION_REAL, &a->opacity, "X", "of colours over the photo, up to 1 (0.7)", 0, 0},
        {"title", 0, OPTION_STRING, &a->title, "TEXT", "above it (model and photo)", 0, 0},
        {"term", 0, OPTION_FLAG, &a->term, "", "draw in this terminal", 0, 0},
        {"graphics", 0, OPTION_CHOICE, &a->graphics, "auto|blocks|kitty|iterm2", "how (what the terminal is known to understand)", 0, 0},
        {"svg", 0, OPTION_FLAG, &a->svg, "", "vector figure on stdout", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "all numbers as one JSON document on stdout", 0, 0},
        {"", 0, OPTION_HEADING, NULL, "", "Photos and model", 0, 0},
        {"list", 0, OPTION_STRING, &a->list, "FILE", "also the images named in FILE, one a line", 0, 0},
        {"recursive", 'r', OPTION_FLAG, &a->recursive, "", "look for images below directories too", 0, 0},
        {"exif", 0, OPTION_FLAG, &a->exif, "", "turn photos as their EXIF orientation says", 0, 0},
        {"labels", 0, OPTION_STRING, &a->labels, "FILE", "class names, one a line", 0, 0},
        {"image-size", 0, OPTION_COUNT, &a->image_size, "N", "input side in pixels (the model's)", 1, 16384},
        {"threads", 't', OPTION_COUNT, &a->threads, "N", "threads (physical cores)", 1, 1024},
        ENGINE_OPTION_ROWS(a),
    };
    const verb_syntax syntax = {
        "viz", "[-m MODEL] PHOTOS... [-o FILE.html|FILE.png|FILE.svg] [options]",
        "Shows what a model looks at in a photo and what pruning drops of it: the patches that each metric\n"
        "loses layer by layer, heat maps of the scores on the unpruned model, what a merging policy joins,\n"
        "the order n of Col-Ln, predictions dense and pruned, attention of single heads. A page has sliders\n"
        "over layers, orders and keep rates, and needs nothing but itself. The same photo and options give\n"
        "the same bytes.",
        "  renyi viz -m model.safetensors photo.jpg -o photo.html\n"
        "  renyi viz -m model.safetensors photo.jpg -o figure1.png --figure overlay --metrics cls,col,random\n"
        "  renyi viz -m model.safetensors photo.jpg -o mosaic.svg --figure mosaic --rule '' \\\n"
        "      --prune 'mosaic keep=0.7 layers=0,3,6' --prune 'tome r=13' --layers 0,3,6\n"
        "  renyi viz -m model.safetensors photo.jpg --attention 2 --query 6,7 -o head2.png --figure attention\n"
        "  renyi viz -m model.safetensors photo.jpg --term --figure heat\n"
        "  renyi viz -m model.safetensors photos/ --json > scores.json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}
/* clang-format on */

int cmd_viz(int argc, char **argv)
{
    viz_arguments a = {.figure = "all"};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    a.command = cli_command_line(argc, argv);
    if (outcome == OPTIONS_GO) {
        if (!words.count && !a.list)
            options_usage_error("viz", "no photos given");
        else if (viz_check(&a) == 0) {
            a.model = model_or_builtin(a.model);
            code = viz_execute(&a, &words);
        }
    }
    free(a.command);
    cli_strings_free(&a.outputs);
    cli_strings_free(&a.policies);
    cli_strings_free(&words);
    return code;
}
