/* cmd_zeroshot.c - renyi zeroshot: accuracy of a CLIP model on classes given as text.
 * SPDX-License-Identifier: Apache-2.0 */
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

static int is_clip(const char *name, const renyi_model_info *info)
{
    if (strcmp(info->family, "clip") == 0 || strcmp(info->family, "siglip") == 0) return 1;
    cli_error(
        "%s: a %s, not a CLIP or SigLIP model: it has no text tower; use 'renyi eval' for classifiers",
        name, info->family);
    return 0;
}

static void note_classes(const zeroshot_classes *c)
{
    static const char *const from[] = {"the model",
                                       "the folders",
                                       "--class-names",
                                       "the dataset",
                                       "classnames.txt",
                                       "WordNet (ImageNet's first)",
                                       "CLIP's list for ImageNet"};

    cli_note("classes: %u, names from %s%s%s; templates: %s (%zu)", c->n_classes,
             from[c->data.names_from], c->data.collection ? "; dataset " : "",
             c->data.collection ? c->data.collection : "", c->title, c->sentences.count);
}

static int run_classes(const zeroshot_options *o, const renyi_options *opt,
                       const renyi_model *tower, const renyi_dataset *data,
                       zeroshot_classes *classes)
{
    renyi_model *model = NULL;
    adaptation adapt = {0};
    int code = CLI_FAILED;

    note_classes(classes);
    renyi_classifier *c = zeroshot_classifier(o->e.model, &o->z, classes, opt, o->e.threads);
    if (c) code = zeroshot_model(&model, tower, c, classes);
    for (size_t i = 0; code == CLI_OK && i < o->e.policies.count; i++)
        code = prune_check("zeroshot", o->e.policies.items[i], model, NULL);
    if (code == CLI_OK)
        code = adapt_open(&adapt, "zeroshot", &o->adapt, classes->data.collection, model,
                          &o->e.policies);
    const renyi_model *const models[] = {model};
    const eval_subject subject = {"zeroshot", &o->e, models, 1, data, classes, &adapt};
    if (code == CLI_OK) code = eval_evaluate(&subject);
    adapt_free(&adapt);
    renyi_model_free(model);
    renyi_classifier_free(c);
    return code;
}

static int run_zeroshot(const zeroshot_options *o)
{
    const renyi_options opt = model_options(o->e.cpu, o->e.dtype, o->e.image_size);
    renyi_dataset *data = NULL;
    zeroshot_classes classes = {0};
    renyi_model_info info;
    int code = CLI_FAILED;

    if (eval_results_check(&o->e)) return CLI_FAILED;
    renyi_model *tower = model_open_reported(o->e.model, &opt, &info);
    if (tower && is_clip(o->e.model, &info)) code = eval_open_data("zeroshot", &o->e, NULL, &data);
    if (code == CLI_OK) code = zeroshot_classes_make(&classes, "zeroshot", &o->z, data);
    if (code == CLI_OK) code = run_classes(o, &opt, tower, data, &classes);
    zeroshot_classes_free(&classes);
    renyi_dataset_free(data);
    renyi_model_free(tower);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

/* Adapting policies see all images one by one, in random order by default. */
static int take_adapt(zeroshot_options *o)
{
    eval_arguments *e = &o->e;
    const int code = adapt_check("zeroshot", &o->adapt);

    if (code != CLI_OK || !adapt_is_on(&o->adapt)) return code;
    if (e->resume || e->shard)
        return options_usage_error("zeroshot", "--adapt learns from all images in order: %s",
                                   e->resume ? "it cannot be resumed" : "it cannot run in shards");
    if (ranks_get()) return options_usage_error("zeroshot", "--adapt cannot run on several ranks");
    if (o->adapt.in_order) e->no_shuffle = 1;
    if (!e->no_shuffle && !e->shuffle) {
        e->shuffle = 1;
        if (!e->seed) e->seed = 1;
    }
    if (!e->prune.policies.count) cli_strings_add(&e->prune.policies, cli_copy("tca"));
    return CLI_OK;
}

static int check_arguments(zeroshot_options *o, const cli_strings *arguments)
{
    eval_arguments *e = &o->e;

    if (!e->model) return options_usage_error("zeroshot", "-m MODEL is missing");
    int code = eval_take_data("zeroshot", e, arguments);
    if (code == CLI_OK) code = take_adapt(o);
    if (code == CLI_OK && eval_check_arguments("zeroshot", e)) code = CLI_USAGE;
    if (code == CLI_OK) code = zeroshot_check("zeroshot", &o->z);
    if (code == CLI_OK) code = prune_policies("zeroshot", &e->prune, &e->policies);
    return code;
}

static option_outcome parse_options(zeroshot_options *o, int argc, char **argv,
                                    cli_strings *arguments)
{
    eval_arguments *e = &o->e;
    const option table[] = {
        {"model", 'm', OPTION_STRING, &e->model, "CLIP",
         "file, directory, or Hugging Face name in the cache", 0, 0},
        {"data-dir", 0, OPTION_STRING, &e->data, "DIR",
         "a dataset by its layout, DIR/class/*.jpg, or a split or list", 0, 0},
        ZEROSHOT_OPTION_ROWS(&o->z),
        CHOICE_OPTION_ROWS(e),
        PRUNE_OPTION_ROWS(&e->prune),
        ADAPT_OPTION_ROWS(&o->adapt),
        RESULT_OPTION_ROWS(e),
        RUN_OPTION_ROWS(e),
        STREAMS_OPTION_ROW(e),
        DTYPE_OPTION_ROW(e),
        IMAGE_OPTION_ROWS(e),
    };
    const verb_syntax syntax = {
        "zeroshot", "-m CLIP --data-dir DIR [--templates T] [--prune POLICY]... [options]",
        "Accuracy of a CLIP model that was not trained on the classes: every class name is put into every\n"
        "template, the text tower turns them into one embedding per class, and an image belongs to the\n"
        "nearest one. Names are those of the folders, of a list, or of the dataset. The fifteen datasets\n"
        "of docs/DATASETS.md are known by name, with their templates. Embeddings of classes are cached.\n"
        "Policies, statistics, logs, shards and mpirun work as in 'renyi eval'. With --adapt tca every policy\n"
        "except 'none' learns from the images it has seen; they come in random order (--seed), one by one.",
        "  renyi zeroshot -m openai/clip-vit-base-patch16 --data-dir images\n"
        "  renyi zeroshot -m clip --data-dir oxford_pets --prune none --prune 'evit keep=0.7 metric=col'\n"
        "  renyi zeroshot -m clip --data-dir oxford_pets --adapt tca --prune paper:tca --prune paper:tca-ours\n"
        "  renyi zeroshot -m clip --data-dir imagenet --templates imagenet80 --limit 1000 --json\n"
        "  renyi zeroshot -m clip --data-dir images --class-names names.txt --templates 'a drawing of a {}.'\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_zeroshot(int argc, char **argv)
{
    zeroshot_options o = {.e = {.log_freq = 100, .results_format = "csv"}};
    cli_strings arguments = {0};

    o.e.zeroshot = &o.z;
    const option_outcome outcome = parse_options(&o, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;
    if (outcome == OPTIONS_GO && (code = check_arguments(&o, &arguments)) == CLI_OK)
        code = run_zeroshot(&o);
    prune_options_free(&o.e.prune);
    zeroshot_arguments_free(&o.z);
    cli_strings_free(&o.e.policies);
    cli_strings_free(&arguments);
    return code;
}
