/* cmd_viz.c - renyi viz: the command line; runs the model on every image and shows the results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"
#include "cli/viz/viz_arguments.h"

#include "renyi/viz.h"
#include <stdlib.h>
#include <string.h>

/* Counts forward passes of all images; how many an image takes is known when the first is done. */
typedef struct runs_bar {
    progress_bar bar;
    size_t image, n_images;
} runs_bar;

static int show_runs(void *user, uint64_t done, uint64_t total)
{
    runs_bar *b = user;

    if (!b->bar.title) progress_start(&b->bar, "runs", total * b->n_images, 1);
    progress_update(&b->bar, b->image * total + done);
    return 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (strcmp(path, "-") == 0) return "(stdin)";
    return slash && slash[1] ? slash + 1 : path;
}

/* Runs one image and adds the result to the view. An image that fails is reported, and the others
 * go on. -1: out of memory, so the other images would fail, too. */
static int run_image(viz_view *v, renyi_viz *viz, const char *path, image_inputs *inputs)
{
    const renyi_image_options opt = {.struct_size = sizeof opt, .apply_exif = v->a->exif != 0};
    renyi_viz_result *result = NULL;
    renyi_error err = {0};
    renyi_image image;
    char *why;

    if (image_decode(&image, path, v->a->exif, &why)) {
        image_inputs_fail(inputs, path, why);
        free(why);
        return 0;
    }
    const renyi_status st = renyi_viz_run(viz, &image, last_part(path), &result, &err);
    renyi_image_free(&image, &opt);
    if (st == RENYI_OK)
        v->images[v->n++] = result;
    else if (st != RENYI_ERR_NOMEM)
        image_inputs_fail(inputs, path, err.message);
    else
        cli_error("%s", err.message);
    return st == RENYI_ERR_NOMEM ? -1 : 0;
}

int viz_show(const viz_view *v)
{
    if (v->n && viz_draw(v)) return CLI_FAILED;
    if (v->a->json) json_print(viz_json(v));
    if (!v->n) return CLI_FAILED;
    if (!v->a->json && !v->a->term && !v->a->svg) viz_table(v);
    return v->inputs->n_failed ? CLI_PARTIAL : CLI_OK;
}

static int run_images(const viz_arguments *a, renyi_viz *viz, image_inputs *inputs, runs_bar *bar)
{
    viz_view v = {.a = a, .inputs = inputs};
    int bad = 0;

    v.images = cli_alloc(inputs->paths.count, sizeof *v.images);
    bar->n_images = inputs->paths.count;
    for (; !bad && bar->image < bar->n_images; bar->image++)
        bad = run_image(&v, viz, inputs->paths.items[bar->image], inputs);
    progress_end(&bar->bar);
    const int code = bad ? CLI_FAILED : viz_show(&v);
    for (size_t i = 0; i < v.n; i++)
        renyi_viz_result_free((renyi_viz_result *)(uintptr_t)v.images[i]);
    free(v.images);
    return code;
}

static int run_model(const viz_arguments *a, const renyi_model *model, image_inputs *inputs)
{
    viz_lists lists = {0};
    renyi_viz_options opt;
    renyi_error err = {0};
    renyi_viz *viz = NULL;
    runs_bar bar = {0};
    int code = CLI_USAGE;

    if (viz_options_make(&opt, &lists, a, model) == 0) {
        opt.progress = show_runs;
        opt.progress_user = &bar;
        if (renyi_viz_new(&viz, model, &opt, &err) == RENYI_OK)
            code = run_images(a, viz, inputs, &bar);
        else if (err.code == RENYI_ERR_ARG)
            options_usage_error("viz", "%s", err.message);
        else
            cli_error("%s", err.message), code = CLI_FAILED;
    }
    renyi_viz_free(viz);
    viz_lists_free(&lists, model);
    return code;
}

/* A vision model. */
static int open_and_run(const viz_arguments *a, image_inputs *inputs)
{
    const renyi_options opt = model_options(a->cpu, a->dtype, a->image_size);
    const char *extra = a->question     ? "question"
                        : a->text_tower ? "text-tower"
                        : a->tokenizer  ? "tokenizer"
                                        : NULL;

    if (extra) return options_usage_error("viz", "--%s is for a LLaVA; give one as -m", extra);
    renyi_model *model = model_open_reported(a->model, &opt, NULL);
    const int code = model ? run_model(a, model, inputs) : CLI_FAILED;
    renyi_model_free(model);
    return code;
}

/* More images would not fit into a figure or into memory. */
static int check_count(const viz_arguments *a, size_t n)
{
    size_t most = RENYI_VIZ_MAX_PHOTOS;

    for (size_t i = 0; i < a->outputs.count; i++)
        if (strcmp(viz_format(a->outputs.items[i]), "html") != 0) most = RENYI_FIGURE_MAX_RESULTS;
    if (a->term || a->svg) most = RENYI_FIGURE_MAX_RESULTS;
    if (n > most) options_usage_error("viz", "%zu images; at most %zu at a time", n, most);
    return n <= most;
}

static int execute(const viz_arguments *a, const cli_strings *arguments)
{
    image_inputs inputs;
    int code = CLI_FAILED;

    image_inputs_collect(&inputs, arguments, a->list, a->recursive);
    if (!check_count(a, inputs.paths.count)) {
        code = CLI_USAGE;
    } else if (inputs.paths.count && viz_is_llava(a->model)) {
        code = viz_llava(a, &inputs);
    } else if (inputs.paths.count) {
        code = open_and_run(a, &inputs);
    } else if (!inputs.n_failed) {
        cli_error("%s: the list contains no images", a->list);
    }
    image_inputs_free(&inputs);
    return code;
}

/* ---- the command line
 * ---------------------------------------------------------------------------- */

static int check_outputs(const viz_arguments *a)
{
    for (size_t i = 0; i < a->outputs.count; i++)
        if (!viz_format(a->outputs.items[i]))
            return options_usage_error("viz", "-o: '%s' must end in .html, .png or .svg",
                                       a->outputs.items[i]),
                   -1;
    if (a->json + a->term + a->svg > 1)
        return options_usage_error(
                   "viz", "--json, --term and --svg all write to stdout: give one of them"),
               -1;
    return 0;
}

/* What can be checked before a model is open. 0, or -1 after reporting. */
static int check_options(const viz_arguments *a)
{
    if ((a->query || a->token) && !a->attention)
        return options_usage_error("viz", "--%s needs --attention HEAD",
                                   a->query ? "query" : "token"),
               -1;
    if (a->graphics && !a->term) return options_usage_error("viz", "--graphics needs --term"), -1;
    if (strcmp(a->figure, "attention") == 0 && !a->attention)
        return options_usage_error("viz", "--figure attention needs --attention HEAD"), -1;
    return check_outputs(a);
}

/* clang-format off */
static option_outcome parse_options(viz_arguments *a, int argc, char **argv, cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL", MODEL_HELP_BUILTIN, 0, 0},
        {"output", 'o', OPTION_STRINGS, &a->outputs, "FILE", "write FILE.html (interactive), FILE.png or FILE.svg; may be repeated", 0, 0},
        {"", 0, OPTION_HEADING, NULL, "", "What is computed", 0, 0},
        {"metrics", 0, OPTION_STRING, &a->metrics, "LIST", "scores to show: cls, col, 'col n=2', random, ... (cls,col n=4,random)", 0, 0},
        {"layers", 0, OPTION_STRING, &a->layers, "LIST", "blocks to show: 0-5, 0,3,6, all (the first six and every cut)", 0, 0},
        {"rule", 0, OPTION_STRING, &a->rule, "POLICY", "how each metric prunes, without metric= (naive, half the patches in the end); '' = none", 0, 0},
        {"prune", 0, OPTION_STRINGS, &a->policies, "POLICY", "a policy as a further row; may be repeated ('renyi policies')", 0, 0},
        {"orders", 0, OPTION_STRING, &a->orders, "LIST", "orders n of Col-Ln (1,2,3,4,inf)", 0, 0},
        {"keep", 0, OPTION_STRING, &a->keeps, "LIST", "keep rates of the page's slider (0.3,0.4,...,0.9)", 0, 0},
        {"sweep", 0, OPTION_CHOICE, &a->sweep, "none|metrics|all", "runs at every keep rate: of metrics, or of metrics and orders (all for a page, else none)", 0, 0},
        {"attention", 0, OPTION_STRING, &a->attention, "HEAD", "also attention rows and columns of a head, or of 'all'", 0, 0},
        {"query", 0, OPTION_STRING, &a->query, "ROW,COL", "patch whose attention row is shown (the class token)", 0, 0},
        {"token", 0, OPTION_STRING, &a->token, "ROW,COL", "patch whose attention column is shown (the best by Col-L4)", 0, 0},
        {"topk", 'k', OPTION_COUNT, &a->top_k, "N", "classes of each prediction (5)", 1, RENYI_VIZ_MAX_TOP},
        {"time", 0, OPTION_FLAG, &a->time, "", "measure milliseconds of each policy; files then differ from run to run", 0, 0},
        {"", 0, OPTION_HEADING, NULL, "", "With a LLaVA", 0, 0},
        {"question", 0, OPTION_STRING, &a->question, "TEXT", "for policies that need it: cdpruner, and those inside the language model", 0, 0},
        {"text-tower", 0, OPTION_STRING, &a->text_tower, "DIR", "the CLIP that compares patches with the question, for cdpruner", 0, 0},
        {"tokenizer", 0, OPTION_STRING, &a->tokenizer, "PATH", "tokenizer.model or tokenizer.json, or its folder (the model's)", 0, 0},
        {"", 0, OPTION_HEADING, NULL, "", "How it is drawn", 0, 0},
        {"figure", 0, OPTION_CHOICE, &a->figure, "all|overlay|heat|mosaic|norms|predictions|attention", "what a PNG, SVG or terminal shows (all)", 0, 0},
        {"colors", 0, OPTION_CHOICE, &a->colours, "even|red-blue", "colors of scores (even)", 0, 0},
        {"dark", 0, OPTION_FLAG, &a->dark, "", "light text on a dark background", 0, 0},
        {"cell", 0, OPTION_COUNT, &a->cell, "N", "side of a small image in units (150)", 48, 1024},
        {"scale", 0, OPTION_REAL, &a->scale, "X", "pixels of a PNG per unit (2)", 0, 0},
        {"opacity", 0, OPTION_REAL, &a->opacity, "X", "opacity of colors over the image, up to 1 (0.7)", 0, 0},
        {"title", 0, OPTION_STRING, &a->title, "TEXT", "title (model and image)", 0, 0},
        {"term", 0, OPTION_FLAG, &a->term, "", "draw in this terminal", 0, 0},
        {"graphics", 0, OPTION_CHOICE, &a->graphics, "auto|blocks|kitty|iterm2", "how to draw in it (detected)", 0, 0},
        {"svg", 0, OPTION_FLAG, &a->svg, "", "vector figure on stdout", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "all numbers as one JSON document on stdout", 0, 0},
        {"", 0, OPTION_HEADING, NULL, "", "Images and model", 0, 0},
        {"list", 0, OPTION_STRING, &a->list, "FILE", "also the images named in FILE, one per line", 0, 0},
        {"recursive", 'r', OPTION_FLAG, &a->recursive, "", "also the images below directories", 0, 0},
        {"exif", 0, OPTION_FLAG, &a->exif, "", "turn images by their EXIF orientation", 0, 0},
        {"labels", 0, OPTION_STRING, &a->labels, "FILE", "class names, one per line", 0, 0},
        {"image-size", 0, OPTION_COUNT, &a->image_size, "N", "input side in pixels (the model's)", 1, 16384},
        {"threads", 't', OPTION_COUNT, &a->threads, "N", "threads (physical cores)", 1, 1024},
        ENGINE_OPTION_ROWS(a),
    };
    const verb_syntax syntax = {
        "viz", "[-m MODEL] IMAGES... [-o FILE.html|FILE.png|FILE.svg] [options]",
        "Shows what a model looks at in an image and what pruning drops: the patches that each metric drops\n"
        "layer by layer, heat maps of the scores on the unpruned model, what a merging policy merges, the\n"
        "order n of Col-Ln, predictions dense and pruned, attention of single heads. A page is one\n"
        "self-contained file with sliders for layers, orders and keep rates. The same image and options\n"
        "give the same bytes. With a LLaVA: which patches each --prune keeps for the language model, or inside\n"
        "it after the last cut; with a LLaVA-NeXT of the base and of the tiles, side by side.",
        "  renyi viz -m model.safetensors image.jpg -o image.html\n"
        "  renyi viz -m model.safetensors image.jpg -o figure1.png --figure overlay --metrics cls,col,random\n"
        "  renyi viz -m model.safetensors image.jpg -o mosaic.svg --figure mosaic --rule '' \\\n"
        "      --prune 'mosaic keep=0.7 layers=0,3,6' --prune 'tome r=13' --layers 0,3,6\n"
        "  renyi viz -m model.safetensors image.jpg --attention 2 --query 6,7 -o head2.png --figure attention\n"
        "  renyi viz -m model.safetensors image.jpg --term --figure heat\n"
        "  renyi viz -m model.safetensors images/ --json > scores.json\n"
        "  renyi viz -m llava-1.5-7b-hf image.jpg -o kept.png --prune 'prumerge tokens=192' --prune 'random tokens=192'\n"
        "  renyi viz -m llava-1.5-7b-hf image.jpg -o kept.png --question 'What is on the plate?' \\\n"
        "      --prune 'fastv tokens=64' --prune 'fastv tokens=64 metric=col'\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}
/* clang-format on */

int cmd_viz(int argc, char **argv)
{
    viz_arguments a = {.figure = "all"};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    a.command = cli_command_line(argc, argv);
    if (outcome == OPTIONS_GO) {
        if (!arguments.count && !a.list)
            options_usage_error("viz", "no images given");
        else if (check_options(&a) == 0) {
            a.model = model_or_builtin(a.model);
            code = execute(&a, &arguments);
        }
    }
    free(a.command);
    cli_strings_free(&a.outputs);
    cli_strings_free(&a.policies);
    cli_strings_free(&arguments);
    return code;
}
