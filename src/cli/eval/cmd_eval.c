/* cmd_eval.c - renyi eval: the command line; the work is in eval_execute.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_job.h"
#include "cli/eval/eval_masks.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

static int check(eval_arguments *a, const cli_strings *words)
{
    if (words->count && !a->data) a->data = words->items[0];
    if (!a->data) return options_usage_error("eval", "--data-dir DIR is missing");
    if (words->count > 1 || (words->count && a->data != words->items[0]))
        return options_usage_error("eval", "unexpected '%s': one folder or list at a time",
                                   words->items[words->count - 1]);
    if (eval_masks_check(a) || eval_arguments_check("eval", a)) return CLI_USAGE;
    return eval_take_policies("eval", a);
}

static option_outcome parse(eval_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL",
         "file, directory, or Hugging Face name in the cache (the small one inside)", 0, 0},
        DATA_OPTION_ROWS(a),
        PRUNE_OPTION_ROWS(&a->prune),
        RESULT_OPTION_ROWS(a),
        MASK_OPTION_ROWS(a),
        RUN_OPTION_ROWS(a),
        IMAGE_OPTION_ROWS(a),
    };
    const verb_syntax syntax = {
        "eval", "[-m MODEL] --data-dir DIR [--prune POLICY]... [options]",
        "Accuracy with its 95 % interval, loss, MACs and milliseconds of one or more pruning policies on\n"
        "labelled photos. Policies share one decoding of each photo and are compared photo by photo; a\n"
        "difference that these photos cannot tell from chance is marked as noise. A class folder is named by\n"
        "class index, WordNet id or class name. Photos that cannot be read are named and skipped, and the\n"
        "exit code is 3. With --masks photos need no labels: the question is then how well metrics rank the\n"
        "patches of the object above those of the background, and what each policy does to both.",
        "  renyi eval -m model.safetensors --data-dir imagenet/val\n"
        "  renyi eval -m model.safetensors --data-dir photos --prune none --prune 'mosaic keep=0.7 layers=0,3,6'\n"
        "  renyi eval -m model.safetensors --data-dir val --limit 1000 --shuffle --log-samples run.jsonl --resume\n"
        "  renyi eval -m model.safetensors --data-dir ILSVRC2012_val --ground-truth val.txt --csv results.csv\n"
        "  renyi eval -m model.safetensors --data-dir pets/images --masks pets/trimaps --metrics 'cls,col n=4'\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_eval(int argc, char **argv)
{
    eval_arguments a = {.log_freq = 100, .results_format = "csv"};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check(&a, &words)) == CLI_OK) {
        a.model = model_or_builtin(a.model);
        code = eval_execute(&a);
    }
    prune_options_free(&a.prune);
    cli_strings_free(&a.policies);
    cli_strings_free(&words);
    return code;
}
