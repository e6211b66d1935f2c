/* cmd_tune.c - renyi tune: the command line; the work is in tune_execute.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/models.h"
#include "cli/sweep/tune_arguments.h"
#include "cli/verbs.h"

/* Exactly one of the three goals. */
static int take_goal(tune_arguments *a)
{
    const struct {
        const option_reals *value;
        renyi_tune_goal goal;
    } goals[] = {{&a->max_drop, RENYI_TUNE_MAX_DROP},
                 {&a->target_ms, RENYI_TUNE_TARGET_MS},
                 {&a->target_gmacs, RENYI_TUNE_TARGET_GMACS}};
    int given = 0;

    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++) {
        if (!goals[i].value->given) continue;
        a->goal = goals[i].goal;
        a->bound = goals[i].value->values[0];
        given++;
    }
    if (given == 1) return CLI_OK;
    return options_usage_error("tune", "%s",
                               given ? "--max-drop, --target-ms and --target-gmacs "
                                       "are goals of their own: give one"
                                     : "a goal is missing: --max-drop POINTS, "
                                       "--target-ms MS or --target-gmacs N");
}

static int check(tune_arguments *a, const cli_strings *words)
{
    eval_arguments *e = &a->e;

    if (words->count && !e->data) e->data = words->items[0];
    if (!e->model) return options_usage_error("tune", "-m MODEL is missing");
    if (!e->data) return options_usage_error("tune", "--data-dir DIR is missing");
    if (words->count > 1 || (words->count && e->data != words->items[0]))
        return options_usage_error("tune", "unexpected '%s': one folder or list at a time",
                                   words->items[words->count - 1]);
    if (a->unlabelled && (e->ground_truth || e->class_map || e->real_labels || e->valid_labels))
        return options_usage_error("tune", "--unlabelled takes no files of labels");
    if (a->search.given && !(a->search.values[0] > 0 && a->search.values[0] < 1))
        return options_usage_error("tune", "option '--search': %g is not above 0 and below 1",
                                   a->search.values[0]);
    e->shuffle = 1; /* --limit must not take the first classes */
    if (eval_arguments_check("tune", e)) return CLI_USAGE;
    return take_goal(a);
}

/* clang-format off */
#define GOAL_OPTION_ROWS(a) \
    {"max-drop", 0, OPTION_REAL, &(a)->max_drop, "POINTS", "fastest that loses at most so many points of top-1", 0, 0}, \
    {"target-ms", 0, OPTION_REAL, &(a)->target_ms, "MS", "most accurate that takes at most so many ms per photo", 0, 0}, \
    {"target-gmacs", 0, OPTION_REAL, &(a)->target_gmacs, "N", "most accurate with at most so many GMACs per photo", 0, 0}

#define SPACE_OPTION_ROWS(a) \
    {"space", 0, OPTION_STRING, &(a)->space, "SPEC", "candidates from a file as 'renyi sweep' takes", 0, 0}, \
    {"prune", 0, OPTION_STRINGS, &(a)->policies, "POLICY", "candidates instead of the usual; values may be a|b|c; again for more", 0, 0}, \
    {"img-size", 0, OPTION_COUNTS, &(a)->sizes, "N,...", "input sides to try (the model's, 6/7, 5/7 and 4/7 of it)", 1, 16384}

#define SPLIT_OPTION_ROWS(a) \
    {"limit", 0, OPTION_COUNT, &(a)->e.limit, "N", "at most N photos, drawn at random", 1, 0}, \
    {"seed", 0, OPTION_COUNT, &(a)->e.seed, "N", "of what is drawn and of the split (0)", 0, 0}, \
    {"search", 0, OPTION_REAL, &(a)->search, "X", "share of the photos to search with; the rest confirms (0.5)", 0, 0}, \
    {"unlabelled", 0, OPTION_FLAG, &(a)->unlabelled, "", "photos without classes: the dense model's answers count as right", 0, 0}

#define TIMING_OPTION_ROWS(a) \
    {"batch-size", 'b', OPTION_COUNT, &(a)->batch, "N", "photos run together when times are measured (1)", 1, 1024}, \
    {"threads", 't', OPTION_COUNT, &(a)->threads, "N", "threads of the model (physical cores)", 1, 1024}, \
    {"workers", 'j', OPTION_COUNT, &(a)->workers, "N", "threads that decode beside the model (cores that -t leaves free)", 1, 1024}, \
    ENGINE_OPTION_ROWS(a), \
    {"json", 0, OPTION_FLAG, &(a)->json, "", "one JSON document on stdout", 0, 0}
/* clang-format on */

static option_outcome parse(tune_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->e.model, "MODEL",
         "file, directory, or Hugging Face name in the cache", 0, 0},
        GOAL_OPTION_ROWS(a),
        LABEL_OPTION_ROWS(&a->e),
        SPLIT_OPTION_ROWS(a),
        SPACE_OPTION_ROWS(a),
        TIMING_OPTION_ROWS(&a->e),
        LOG_OPTION_ROWS(&a->e),
        FIT_OPTION_ROWS(&a->e),
    };
    const verb_syntax syntax = {
        "tune", "-m MODEL --data-dir DIR --max-drop POINTS | --target-ms MS | --target-gmacs N",
        "Finds the policy and input size to use: the fastest within a loss of accuracy, or the most accurate\n"
        "within a time, on your photos and this machine. Half of the photos search, by successive halving;\n"
        "the other half, never seen by the search, confirms. Losses are in points of top-1 below the dense\n"
        "model at its own size. The last line on stdout is what to add to 'classify', 'eval' or 'bench'. The\n"
        "exit code is 1 when nothing meets the target, 3 when photos could not be read.",
        "  renyi tune -m model.safetensors --data-dir photos --max-drop 1\n"
        "  renyi tune -m model.safetensors --data-dir photos --target-ms 10 -t 1\n"
        "  renyi tune -m model.safetensors --data-dir photos --max-drop 2 --prune 'mosaic keep=0.6|0.7|0.8 layers=3,6,9'\n"
        "  renyi tune -m model.safetensors --data-dir any/photos --unlabelled --max-drop 5\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_tune(int argc, char **argv)
{
    tune_arguments a = {.e = {.log_freq = 100}};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check(&a, &words)) == CLI_OK) code = tune_execute(&a);
    cli_strings_free(&a.policies);
    cli_strings_free(&words);
    return code;
}
