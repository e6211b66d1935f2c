/* cmd_classify.c - renyi classify: names what images show.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/classify/classify.h"
#include "cli/shared/prune_options.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

typedef struct classify_arguments {
    const char *model, *labels, *list, *cpu, *dtype, *trace, *csv;
    uint64_t top_k, batch, threads, streams, image_size;
    int json, jsonl, exif, recursive;
    image_overrides over;
    prune_options prune;
    zeroshot_arguments zeroshot; /* class names, for a model without a classifier */
    char *policy;                /* the policy that `prune` means, as typed; owned */
} classify_arguments;

/* A larger batch is hardly faster, but its first answer comes later. */
enum { DEFAULT_BATCH = 8 };

static int is_stdout(const char *path) { return path && strcmp(path, "-") == 0; }

static int open_session(classify_job *job, const classify_arguments *a, const renyi_model *model,
                        size_t n_images)
{
    const uint64_t streams = a->streams ? a->streams : 1;
    const uint64_t wanted = (a->batch ? a->batch : DEFAULT_BATCH) * streams;
    char policy[RENYI_POLICY_MAX];
    renyi_error err = {0};

    const int code = prune_check("classify", a->policy, model, policy);
    if (code != CLI_OK) return code;
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch =
                                           (uint32_t)(wanted < n_images ? wanted : n_images),
                                       .n_threads = (uint32_t)a->threads,
                                       .policy = policy,
                                       .trace = a->trace != NULL,
                                       .n_streams = (uint32_t)streams};
    if (renyi_session_new(&job->session, model, &opt, &err) == RENYI_OK) return CLI_OK;
    if (err.code != RENYI_ERR_ARG) return cli_fail(&err);
    return options_usage_error("classify", "%s", cli_reason(&err)); /* streams, a cascade's trace */
}

static int classify_all(const classify_arguments *a, classify_job *job, image_inputs *inputs)
{
    trace_file trace = {0};
    int64_t n_classified = -1;

    job->trace = a->trace ? &trace : NULL;
    if (!a->trace || trace_open(&trace, a->trace, job->info) == 0)
        n_classified = classify_images(job, inputs);
    if (trace_close(&trace, n_classified >= 0)) n_classified = -1;
    if (n_classified <= 0) return CLI_FAILED;
    return inputs->n_failed ? CLI_PARTIAL : CLI_OK;
}

static int classify_with(const classify_arguments *a, const renyi_model *model,
                         const renyi_model_info *info, image_inputs *inputs)
{
    image_spec spec;
    class_names names;
    const int is_csv = is_stdout(a->csv);
    classify_job job = {.model = a->model,
                        .info = info,
                        .spec = &spec,
                        .names = &names,
                        .form = a->json    ? CLASSIFY_JSON
                                : a->jsonl ? CLASSIFY_JSONL
                                : is_csv   ? CLASSIFY_CSV
                                           : CLASSIFY_TEXT,
                        .csv = is_csv ? NULL : a->csv};

    if (model_no_classifier(info)) return CLI_FAILED;
    if (image_spec_make(&spec, "classify", info, &a->over)) return CLI_USAGE;
    int code = open_session(&job, a, model, inputs->paths.count);
    if (code != CLI_OK) return code;
    spec.apply_exif = a->exif;
    image_spec_note(&spec);
    if (strcmp(renyi_session_policy(job.session), "none") != 0)
        cli_note("policy: %s", renyi_session_policy(job.session));
    job.top_k = a->top_k < info->n_classes ? (uint32_t)a->top_k : info->n_classes;
    code = class_names_open(&names, model, info, a->labels) ? CLI_FAILED
                                                            : classify_all(a, &job, inputs);
    renyi_session_free(job.session);
    class_names_free(&names);
    return code;
}

/* The model with class names as its head; NULL after reporting. */
static renyi_model *give_names(const classify_arguments *a, renyi_model *tower,
                               const renyi_options *opt, renyi_model_info *info)
{
    renyi_model *model = NULL;

    if (info->n_classes)
        cli_error("%s has a classifier: --class-names is for CLIP and SigLIP; --labels renames "
                  "classes",
                  info->architecture);
    else
        model = classify_by_names(a->model, tower, &a->zeroshot, opt, a->threads);
    if (model)
        renyi_model_get_info(model, info);
    else
        renyi_model_free(tower);
    return model;
}

static int classify(const classify_arguments *a, const cli_strings *arguments)
{
    image_inputs inputs;
    int code = CLI_FAILED;

    image_inputs_collect(&inputs, arguments, a->list, a->recursive);
    if (inputs.paths.count) {
        const renyi_options opt = model_options(a->cpu, a->dtype, a->image_size);
        renyi_model_info info;
        renyi_model *model = model_open_reported(a->model, &opt, &info);
        if (model && a->zeroshot.class_names) model = give_names(a, model, &opt, &info);
        if (model) code = classify_with(a, model, &info, &inputs);
        renyi_model_free(model);
    } else if (!inputs.n_failed) {
        cli_error("%s: the list names no images", a->list);
    }
    image_inputs_free(&inputs);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

static option_outcome parse_options(classify_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL", MODEL_HELP_BUILTIN, 0, 0},
        {"topk", 'k', OPTION_COUNT, &a->top_k, "N", "classes to name for each image (5)", 1,
         1000000},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document at the end", 0, 0},
        {"jsonl", 0, OPTION_FLAG, &a->jsonl, "", "a line of JSON per image, as it is done", 0, 0},
        {"csv", 0, OPTION_STRING, &a->csv, "FILE",
         "write CSV at the end, one row per class; '-': on stdout, as images are done", 0, 0},
        {"batch-size", 'b', OPTION_COUNT, &a->batch, "N", "images run together (8)", 1, 1024},
        {"threads", 't', OPTION_COUNT, &a->threads, "N", "threads (physical cores)", 1, 1024},
        STREAMS_OPTION_ROW(a),
        {"list", 0, OPTION_STRING, &a->list, "FILE", "also the images named in FILE, one per line",
         0, 0},
        {"recursive", 'r', OPTION_FLAG, &a->recursive, "", "also the images below directories", 0,
         0},
        {"labels", 0, OPTION_STRING, &a->labels, "FILE", "class names, one per line", 0, 0},
        {"class-names", 0, OPTION_STRING, &a->zeroshot.class_names, "FILE",
         "CLIP, SigLIP: the classes, one name per line", 0, 0},
        {"templates", 0, OPTION_STRINGS, &a->zeroshot.templates, "NAME|FILE|TEXT",
         "and sentences with {} for them ('a photo of a {}.'); may be repeated", 0, 0},
        {"cache", 0, OPTION_STRING, &a->zeroshot.cache, "FILE|DIR|none",
         "where their embeddings are kept (the user's cache folder)", 0, 0},
        TEXT_OPTION_ROWS(&a->zeroshot.text),
        IMAGE_OPTION_ROWS(a),
        ENGINE_OPTION_ROWS(a),
        PRUNE_OPTION_ROWS(&a->prune),
        {"trace", 0, OPTION_STRING, &a->trace, "FILE.jsonl",
         "write what each cut kept and removed, one line per image", 0, 0},
    };
    const verb_syntax syntax = {
        "classify", "[-m MODEL] [options] IMAGES...",
        "Names what images show. IMAGES are files (JPEG, PNG, WebP, PPM), directories, or '-' for an image\n"
        "on stdin. CLIP and SigLIP need --class-names: their probabilities are a softmax over these classes\n"
        "(CLIP) or a sigmoid for each by itself (SigLIP). The preprocessing comes from the model unless\n"
        "changed here; what was used is printed on stderr. Files that cannot be read are reported and skipped;\n"
        "the exit code is then 3. The rates of a pruning policy are shares of tokens KEPT; p and r are numbers\n"
        "of tokens REMOVED.",
        "  renyi classify -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k cat.jpg dog.png\n"
        "  renyi classify -m google/siglip-base-patch16-224 --class-names names.txt images/\n"
        "  renyi classify -m model.safetensors -k 1 --json images/ > answers.json\n"
        "  renyi classify -m model.safetensors -r --jsonl images/ > answers.jsonl\n"
        "  renyi classify -m model.safetensors --prune 'mosaic keep=0.7 layers=0,3,6' images/\n"
        "  renyi classify -m model.safetensors --keep 0.7 --layers 3,6,9 --trace cuts.jsonl cat.jpg\n"
        "  curl -s https://example.org/cat.jpg | renyi classify -m model.safetensors -\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

static int check_arguments(const classify_arguments *a, const cli_strings *arguments)
{
    if (!arguments->count && !a->list) return options_usage_error("classify", "no images given");
    if (!a->zeroshot.class_names && a->zeroshot.templates.count)
        return options_usage_error("classify", "--templates needs --class-names");
    if (zeroshot_check("classify", &a->zeroshot)) return CLI_USAGE;
    if (is_stdout(a->trace))
        return options_usage_error("classify", "--trace needs a file: stdout has the results");
    if (a->json + a->jsonl + is_stdout(a->csv) > 1)
        return options_usage_error("classify",
                                   "--json, --jsonl and '--csv -' exclude each other: all write to "
                                   "stdout");
    return CLI_OK;
}

int cmd_classify(int argc, char **argv)
{
    classify_arguments a = {.top_k = 5};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        code = check_arguments(&a, &arguments);
        if (code == CLI_OK) code = prune_policy("classify", &a.prune, &a.policy);
        a.model = model_or_builtin(a.model);
        if (code == CLI_OK) code = classify(&a, &arguments);
    }
    free(a.policy);
    prune_options_free(&a.prune);
    zeroshot_arguments_free(&a.zeroshot);
    cli_strings_free(&arguments);
    return code;
}
