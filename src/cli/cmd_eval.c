/* cmd_eval.c - renyi eval: the command line; the work is in eval_execute.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "eval_arguments.h"
#include "model_path.h"

#include <stdlib.h>
#include <string.h>

/* "2/3" -> the second of three. */
static int take_shard(eval_arguments *a)
{
    char *end = NULL;
    const unsigned long i = a->shard ? strtoul(a->shard, &end, 10) : 0;
    const unsigned long n = end && *end == '/' ? strtoul(end + 1, &end, 10) : 0;

    if (!a->shard) return 0;
    if (i < 1 || i > n || n > 1000000 || *end ||
        strspn(a->shard, "0123456789/") != strlen(a->shard)) {
        options_usage_error("eval", "option '--shard': '%s' is not I/N, such as 1/4", a->shard);
        return -1;
    }
    a->shard_index = (uint32_t)(i - 1);
    a->n_shards = (uint32_t)n;
    return 0;
}

/* The policies of the command line, judged before anything is opened. */
static int take_policies(eval_arguments *a)
{
    char full[RENYI_POLICY_MAX];

    if (prune_texts("eval", &a->prune, &a->policies)) return CLI_USAGE;
    for (size_t i = 0; i < a->policies.count; i++) {
        const int code = prune_check("eval", a->policies.items[i], NULL, full);
        if (code != CLI_OK) return code;
    }
    return CLI_OK;
}

static int check(eval_arguments *a, const cli_strings *words)
{
    if (words->count && !a->data) a->data = words->items[0];
    if (!a->model) return options_usage_error("eval", "-m MODEL is missing");
    if (!a->data) return options_usage_error("eval", "--data-dir DIR is missing");
    if (words->count > 1 || (words->count && a->data != words->items[0]))
        return options_usage_error("eval", "unexpected '%s': one folder or list at a time",
                                   words->items[words->count - 1]);
    if (a->resume && !a->log_samples)
        return options_usage_error("eval", "--resume needs --log-samples FILE, to resume from");
    if (a->shuffle == 0 && a->seed != 0)
        return options_usage_error("eval", "--seed is for --shuffle");
    if (take_shard(a)) return CLI_USAGE;
    return take_policies(a);
}

/* clang-format off */
#define DATA_OPTION_ROWS(a) \
    {"data-dir", 0, OPTION_STRING, &(a)->data, "DIR", "folder DIR/class/*.jpg, or a list (.csv .jsonl .txt)", 0, 0}, \
    {"ground-truth", 0, OPTION_STRING, &(a)->ground_truth, "FILE", "classes of a flat folder, one a line or 'name class'", 0, 0}, \
    {"class-map", 0, OPTION_STRING, &(a)->class_map, "FILE", "class names: one a line, 'name index', or JSON", 0, 0}, \
    {"real-labels", 0, OPTION_STRING, &(a)->real_labels, "FILE", "ImageNet-ReaL's JSON: any label of a photo's set is right", 0, 0}, \
    {"valid-labels", 0, OPTION_STRING, &(a)->valid_labels, "FILE", "classes that can be predicted, one a line (ImageNet-A, -R)", 0, 0}, \
    {"limit", 0, OPTION_COUNT, &(a)->limit, "N", "at most N photos", 1, 0}, \
    {"shuffle", 0, OPTION_FLAG, &(a)->shuffle, "", "in random order, before --limit", 0, 0}, \
    {"seed", 0, OPTION_COUNT, &(a)->seed, "N", "of --shuffle (0)", 0, 0}, \
    {"shard", 0, OPTION_STRING, &(a)->shard, "I/N", "part I of N of the photos: 1/4, 2/4, ...", 0, 0}

#define PHOTO_OPTION_ROWS(a) \
    {"img-size", 0, OPTION_COUNT, &(a)->image_size, "N", "input side in pixels (the model's); --image-size too", 1, 16384}, \
    {"image-size", 0, OPTION_COUNT, &(a)->image_size, "N", "the same", 1, 16384}, \
    {"crop-pct", 0, OPTION_REAL, &(a)->over.crop_pct, "X", "share of the resized image that is kept", 0, 0}, \
    {"crop-mode", 0, OPTION_CHOICE, &(a)->over.crop_mode, "center|squash|border", "how it is cut out", 0, 0}, \
    {"interpolation", 0, OPTION_CHOICE, &(a)->over.interpolation, "bicubic|bilinear|lanczos", "how it is resized", 0, 0}, \
    {"mean", 0, OPTION_REALS3, &(a)->over.mean, "R G B", "subtracted from pixel / 255", 0, 0}, \
    {"std", 0, OPTION_REALS3, &(a)->over.std, "R G B", "what that is divided by", 0, 0}, \
    {"exif", 0, OPTION_FLAG, &(a)->exif, "", "turn photos as their EXIF orientation says", 0, 0}

#define RUN_OPTION_ROWS(a) \
    {"batch-size", 'b', OPTION_COUNT, &(a)->batch, "N", "photos run together (8)", 1, 1024}, \
    {"threads", 't', OPTION_COUNT, &(a)->threads, "N", "threads of the model (physical cores)", 1, 1024}, \
    {"workers", 'j', OPTION_COUNT, &(a)->workers, "N", "threads that decode beside the model (cores that -t leaves free)", 1, 1024}, \
    {"cpu", 0, OPTION_CHOICE, &(a)->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0}, \
    {"json", 0, OPTION_FLAG, &(a)->json, "", "one JSON document on stdout", 0, 0}, \
    {"results-file", 0, OPTION_STRING, &(a)->results_file, "FILE", "also write the results to FILE; --csv FILE is the same", 0, 0}, \
    {"csv", 0, OPTION_STRING, &(a)->results_file, "FILE", "the same", 0, 0}, \
    {"results-format", 0, OPTION_CHOICE, &(a)->results_format, "csv|json", "form of that file (csv)", 0, 0}, \
    {"log-samples", 0, OPTION_STRING, &(a)->log_samples, "FILE", "write a line of JSON for every photo and policy", 0, 0}, \
    {"resume", 0, OPTION_FLAG, &(a)->resume, "", "go on from what --log-samples FILE holds", 0, 0}, \
    {"log-freq", 0, OPTION_COUNT, &(a)->log_freq, "N", "without a terminal, a line every N photos (100)", 1, 0}
/* clang-format on */

static option_outcome parse(eval_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL",
         "file, directory, or Hugging Face name in the cache", 0, 0},
        DATA_OPTION_ROWS(a),
        PRUNE_OPTION_ROWS(&a->prune),
        RUN_OPTION_ROWS(a),
        PHOTO_OPTION_ROWS(a),
    };
    const verb_syntax syntax = {
        "eval", "-m MODEL --data-dir DIR [--prune POLICY]... [options]",
        "Accuracy with its 95 % interval, loss, MACs and milliseconds of one or more pruning policies on\n"
        "labelled photos. Policies share one decoding of each photo and are compared photo by photo; a\n"
        "difference that these photos cannot tell from chance is marked as noise. A class folder is named by\n"
        "class index, WordNet id or class name. Photos that cannot be read are named and skipped, and the\n"
        "exit code is 3.",
        "  renyi eval -m model.safetensors --data-dir imagenet/val\n"
        "  renyi eval -m model.safetensors --data-dir photos --prune none --prune 'mosaic keep=0.7 layers=0,3,6'\n"
        "  renyi eval -m model.safetensors --data-dir val --limit 1000 --shuffle --log-samples run.jsonl --resume\n"
        "  renyi eval -m model.safetensors --data-dir ILSVRC2012_val --ground-truth val.txt --csv results.csv\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_eval(int argc, char **argv)
{
    eval_arguments a = {.log_freq = 100, .results_format = "csv"};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check(&a, &words)) == CLI_OK) code = eval_execute(&a);
    prune_options_free(&a.prune);
    cli_strings_free(&a.policies);
    cli_strings_free(&words);
    return code;
}
