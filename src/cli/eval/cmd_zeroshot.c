/* cmd_zeroshot.c - renyi zeroshot: a CLIP judged on labelled photos, classes put in words. The run
 * and its report are those of renyi eval.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_job.h"
#include "cli/eval/eval_report.h"
#include "cli/kit/cli_ranks.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

#include <string.h>

typedef struct zeroshot_options {
    eval_arguments e;
    zeroshot_arguments z;
    adapt_arguments adapt;
} zeroshot_options;

/* ---- run ----------------------------------------------------------------------------------- */

/* Only a tower of embeddings that has words to compare with. */
static int is_clip(const char *word, const renyi_model_info *info)
{
    if (strcmp(info->family, "clip") == 0) return 1;
    cli_error("%s: a %s, not a CLIP: it knows no words; 'renyi eval' measures classifiers", word,
              info->family);
    return 0;
}

static void note_words(const zeroshot_words *w)
{
    static const char *const from[] = {"the model",    "the folders",    "--class-names",
                                       "the data set", "classnames.txt", "ImageNet"};

    cli_note("classes: %u, names from %s%s%s; templates: %s (%zu)", w->n_classes,
             from[w->data.names_from], w->data.collection ? "; data set " : "",
             w->data.collection ? w->data.collection : "", w->title, w->sentences.count);
}

static int run_with(const zeroshot_options *o, const renyi_options *opt, const renyi_model *tower,
                    const renyi_dataset *data, const zeroshot_words *w)
{
    renyi_model *model = NULL;
    adaptation adapt = {0};
    int code = CLI_FAILED;

    note_words(w);
    renyi_classifier *c = zeroshot_classifier(o->e.model, &o->z, w, opt, o->e.threads);
    if (c) code = zeroshot_model(&model, tower, c, w);
    for (size_t i = 0; code == CLI_OK && i < o->e.policies.count; i++)
        code = prune_check("zeroshot", o->e.policies.items[i], model, NULL);
    if (code == CLI_OK)
        code = adapt_open(&adapt, "zeroshot", &o->adapt, w->data.collection, model, &o->e.policies);
    const eval_subject subject = {"zeroshot", &o->e, model, data, w, &adapt};
    if (code == CLI_OK) code = eval_evaluate(&subject);
    adapt_free(&adapt);
    renyi_model_free(model);
    renyi_classifier_free(c);
    return code;
}

static int run(const zeroshot_options *o)
{
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = cpu_from_name(o->e.cpu),
                               .image_size = (uint32_t)o->e.image_size,
                               .dtype = dtype_from_name(o->e.dtype)};
    renyi_dataset *data = NULL;
    zeroshot_words words = {0};
    renyi_model_info info;
    int code = CLI_FAILED;

    if (eval_results_check(&o->e)) return CLI_FAILED;
    renyi_model *tower = model_open_reported(o->e.model, &opt, &info);
    if (tower && is_clip(o->e.model, &info)) code = eval_open_data("zeroshot", &o->e, NULL, &data);
    if (code == CLI_OK) code = zeroshot_words_make(&words, "zeroshot", &o->z, data);
    if (code == CLI_OK) code = run_with(o, &opt, tower, data, &words);
    zeroshot_words_free(&words);
    renyi_dataset_free(data);
    renyi_model_free(tower);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

/* What adapts goes through all photos, one after the other, in an order of its own. */
static int take_adapt(zeroshot_options *o)
{
    eval_arguments *e = &o->e;
    const int code = adapt_check("zeroshot", &o->adapt);

    if (code != CLI_OK || !adapt_is_on(&o->adapt)) return code;
    if (e->resume || e->shard)
        return options_usage_error("zeroshot", "--adapt learns from all photos in order: %s",
                                   e->resume ? "such a run cannot be resumed"
                                             : "there are no shards of it");
    if (ranks_get())
        return options_usage_error("zeroshot", "--adapt is not shared over ranks; run it alone");
    if (!o->adapt.in_order && !e->shuffle) {
        e->shuffle = 1;
        if (!e->seed) e->seed = 1;
    }
    if (!e->prune.policies.count) cli_strings_add(&e->prune.policies, cli_copy("tca"));
    return CLI_OK;
}

static int check(zeroshot_options *o, const cli_strings *words)
{
    eval_arguments *e = &o->e;

    if (words->count && !e->data) e->data = words->items[0];
    if (!e->model) return options_usage_error("zeroshot", "-m MODEL is missing");
    if (!e->data) return options_usage_error("zeroshot", "--data-dir DIR is missing");
    if (words->count > 1 || (words->count && e->data != words->items[0]))
        return options_usage_error("zeroshot", "unexpected '%s': one folder or list at a time",
                                   words->items[words->count - 1]);
    int code = take_adapt(o);
    if (code == CLI_OK && eval_arguments_check("zeroshot", e)) code = CLI_USAGE;
    if (code == CLI_OK) code = zeroshot_check("zeroshot", &o->z);
    if (code == CLI_OK) code = eval_take_policies("zeroshot", e);
    return code;
}

static option_outcome parse(zeroshot_options *o, int argc, char **argv, cli_strings *words)
{
    eval_arguments *e = &o->e;
    const option table[] = {
        {"model", 'm', OPTION_STRING, &e->model, "CLIP",
         "file, directory, or Hugging Face name in the cache", 0, 0},
        {"data-dir", 0, OPTION_STRING, &e->data, "DIR",
         "a data set by its layout, DIR/class/*.jpg, or a split or list", 0, 0},
        ZEROSHOT_OPTION_ROWS(&o->z),
        CHOICE_OPTION_ROWS(e),
        PRUNE_OPTION_ROWS(&e->prune),
        ADAPT_OPTION_ROWS(&o->adapt),
        RESULT_OPTION_ROWS(e),
        RUN_OPTION_ROWS(e),
        IMAGE_OPTION_ROWS(e),
    };
    const verb_syntax syntax = {
        "zeroshot", "-m CLIP --data-dir DIR [--templates T] [--prune POLICY]... [options]",
        "Accuracy of a CLIP that has never seen the classes: every class name goes into every template, the\n"
        "text tower makes one row a class of them, and a photo belongs to the row that is nearest. Names are\n"
        "those of the folders, of a list, or the data set's own. The fifteen data sets of docs/DATASETS.md\n"
        "are known by name, with their templates. Rows are computed once and kept in the user's cache.\n"
        "Policies, statistics, logs, shards and mpirun are as for 'renyi eval'. With --adapt tca every policy\n"
        "but 'none' learns from the photos it has seen; they come in a random order (--seed), one by one.",
        "  renyi zeroshot -m openai/clip-vit-base-patch16 --data-dir photos\n"
        "  renyi zeroshot -m clip --data-dir oxford_pets --prune none --prune 'evit keep=0.7 metric=col'\n"
        "  renyi zeroshot -m clip --data-dir oxford_pets --adapt tca --prune none --prune 'tca metric=col n=4'\n"
        "  renyi zeroshot -m clip --data-dir imagenet --templates imagenet80 --limit 1000 --shuffle --json\n"
        "  renyi zeroshot -m clip --data-dir photos --class-names names.txt --templates 'a drawing of a {}.'\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_zeroshot(int argc, char **argv)
{
    zeroshot_options o = {.e = {.log_freq = 100, .results_format = "csv"}};
    cli_strings words = {0};

    o.e.zeroshot = &o.z;
    const option_outcome outcome = parse(&o, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;
    if (outcome == OPTIONS_GO && (code = check(&o, &words)) == CLI_OK) code = run(&o);
    prune_options_free(&o.e.prune);
    zeroshot_arguments_free(&o.z);
    cli_strings_free(&o.e.policies);
    cli_strings_free(&words);
    return code;
}
