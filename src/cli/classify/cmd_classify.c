/* cmd_classify.c - renyi classify: name what photos show.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/classify/classify_batches.h"
#include "cli/shared/model_path.h"
#include "cli/shared/prune_options.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

typedef struct classify_arguments {
    const char *model, *labels, *list, *cpu, *dtype, *trace;
    uint64_t top_k, batch, threads, image_size;
    int json, exif, recursive;
    photo_overrides over;
    prune_options prune;
    char *policy; /* what they mean, as typed; owned */
} classify_arguments;

enum {
    DEFAULT_BATCH = 8
}; /* beyond this a batch hardly gets faster, but the first answer comes later */

static int exit_code(int64_t n_classified, const image_inputs *inputs)
{
    if (n_classified <= 0) return CLI_FAILED;
    return inputs->n_failed ? CLI_PARTIAL : CLI_OK;
}

static renyi_session *open_session(const classify_arguments *a, const renyi_model *model,
                                   size_t n_images, uint32_t *max_batch)
{
    const uint64_t wanted = a->batch ? a->batch : DEFAULT_BATCH;
    renyi_session *session = NULL;
    renyi_error err = {0};

    *max_batch = (uint32_t)(wanted < n_images ? wanted : n_images);
    const renyi_session_options opt = {.struct_size = sizeof opt,
                                       .max_batch = *max_batch,
                                       .n_threads = (uint32_t)a->threads,
                                       .policy = a->policy,
                                       .trace = a->trace != NULL};
    if (renyi_session_new(&session, model, &opt, &err) == RENYI_OK) return session;
    cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
    return NULL;
}

/* All images through the session that `job` has. */
static int classify_all(const classify_arguments *a, const renyi_model_info *info,
                        class_names *names, batch_job *job, image_inputs *inputs)
{
    classify_report report = {names, a->json ? json_array() : NULL};
    trace_file trace = {0};
    int64_t n_classified = -1;

    job->n_classes = info->n_classes;
    job->top_k = a->top_k < info->n_classes ? (uint32_t)a->top_k : info->n_classes;
    job->trace = a->trace ? &trace : NULL;
    if (!a->trace || trace_open(&trace, a->trace, info) == 0)
        n_classified = classify_batches(job, inputs, &report);
    if (trace_close(&trace)) n_classified = -1;
    const classify_header header = {a->model, info, job->spec, renyi_session_policy(job->session)};
    if (n_classified >= 0) report_end(&report, &header, inputs);
    json_decref(report.results);
    return exit_code(n_classified, inputs);
}

static int classify_with(const classify_arguments *a, const renyi_model *model,
                         image_inputs *inputs)
{
    renyi_model_info info;
    photo_spec spec;
    class_names names;
    batch_job job = {.spec = &spec};
    char policy[RENYI_POLICY_MAX];

    renyi_model_get_info(model, &info);
    if (model_no_classifier(&info)) return CLI_FAILED;
    int code = prune_check("classify", a->policy, model, policy);
    if (code != CLI_OK) return code;
    if (photo_spec_make(&spec, "classify", &info, &a->over)) return CLI_USAGE;
    spec.apply_exif = a->exif;
    photo_spec_note(&spec);
    if (strcmp(policy, "none") != 0) cli_note("policy: %s", policy);
    code = CLI_FAILED;
    if (class_names_open(&names, model, a->labels) == 0)
        job.session = open_session(a, model, inputs->paths.count, &job.max_batch);
    if (job.session) code = classify_all(a, &info, &names, &job, inputs);
    renyi_session_free(job.session);
    class_names_free(&names);
    return code;
}

static int run(const classify_arguments *a, const cli_strings *words)
{
    image_inputs inputs;
    int code = CLI_FAILED;

    image_inputs_collect(&inputs, words, a->list, a->recursive);
    if (inputs.paths.count) {
        const renyi_options opt = {.struct_size = sizeof opt,
                                   .cpu = cpu_from_name(a->cpu),
                                   .image_size = (uint32_t)a->image_size,
                                   .dtype = dtype_from_name(a->dtype)};
        renyi_model *model = model_open_reported(a->model, &opt);
        if (model) code = classify_with(a, model, &inputs);
        renyi_model_free(model);
    } else if (!inputs.n_failed) {
        cli_error("%s: the list names no images", a->list);
    }
    image_inputs_free(&inputs);
    return code;
}

/* The one policy of the command line into a->policy, before anything is opened. */
static int take_policy(classify_arguments *a)
{
    char full[RENYI_POLICY_MAX];
    cli_strings texts = {0};
    int code = CLI_USAGE;

    if (a->prune.policies.count > 1)
        return options_usage_error("classify", "one --prune POLICY at a time, %zu given",
                                   a->prune.policies.count);
    if (prune_texts("classify", &a->prune, &texts) == 0) {
        a->policy = cli_copy(texts.items[0]);
        code = prune_check("classify", a->policy, NULL, full);
    }
    cli_strings_free(&texts);
    return code;
}

static option_outcome parse(classify_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL",
         "file, directory, or Hugging Face name in the cache (the small one inside)", 0, 0},
        {"topk", 'k', OPTION_COUNT, &a->top_k, "N", "classes to name for each image (5)", 1,
         1000000},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document", 0, 0},
        {"batch-size", 'b', OPTION_COUNT, &a->batch, "N", "images run together (8)", 1, 1024},
        {"threads", 't', OPTION_COUNT, &a->threads, "N", "threads (physical cores)", 1, 1024},
        {"list", 0, OPTION_STRING, &a->list, "FILE", "also the images named in FILE, one a line", 0,
         0},
        {"recursive", 'r', OPTION_FLAG, &a->recursive, "", "look for images below directories too",
         0, 0},
        {"labels", 0, OPTION_STRING, &a->labels, "FILE", "class names, one a line", 0, 0},
        {"image-size", 0, OPTION_COUNT, &a->image_size, "N", "input side in pixels (the model's)",
         1, 16384},
        {"img-size", 0, OPTION_COUNT, &a->image_size, "N", "the same", 1, 16384},
        {"crop-pct", 0, OPTION_REAL, &a->over.crop_pct, "X",
         "share of the resized image that is kept", 0, 0},
        {"crop-mode", 0, OPTION_CHOICE, &a->over.crop_mode, "center|squash|border",
         "how it is cut out", 0, 0},
        {"interpolation", 0, OPTION_CHOICE, &a->over.interpolation, "bicubic|bilinear|lanczos",
         "how it is resized", 0, 0},
        {"mean", 0, OPTION_REALS3, &a->over.mean, "R G B", "subtracted from pixel / 255", 0, 0},
        {"std", 0, OPTION_REALS3, &a->over.std, "R G B", "what that is divided by", 0, 0},
        {"exif", 0, OPTION_FLAG, &a->exif, "", "turn photos as their EXIF orientation says", 0, 0},
        ENGINE_OPTION_ROWS(a),
        PRUNE_OPTION_ROWS(&a->prune),
        {"trace", 0, OPTION_STRING, &a->trace, "FILE.jsonl",
         "write what every cut kept and removed, a line for each image", 0, 0},
    };
    const verb_syntax syntax = {
        "classify", "[-m MODEL] [options] IMAGES...",
        "Names what photos show. IMAGES are files (JPEG, PNG, WebP, PPM), directories, or '-' for an image\n"
        "on stdin. The preprocessing comes from the model unless changed here; what was used is printed on\n"
        "stderr. Files that cannot be read are named, the others go on, and the exit code is 3. Rates of a\n"
        "pruning policy are always what is KEPT; p and r are what each cut REMOVES.",
        "  renyi classify -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k cat.jpg dog.png\n"
        "  renyi classify -m model.safetensors -k 1 --json photos/ > answers.json\n"
        "  renyi classify -m model.safetensors --prune 'mosaic keep=0.7 layers=0,3,6' photos/\n"
        "  renyi classify -m model.safetensors --keep-rate 0.7 --drop-loc 3,6,9 --trace cuts.jsonl cat.jpg\n"
        "  curl -s https://example.org/cat.jpg | renyi classify -m model.safetensors -\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_classify(int argc, char **argv)
{
    classify_arguments a = {.top_k = 5};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        if (!words.count && !a.list)
            options_usage_error("classify", "no images given");
        else if (a.trace && strcmp(a.trace, "-") == 0)
            options_usage_error("classify", "--trace needs a file: stdout has the results");
        else if ((code = take_policy(&a)) == CLI_OK) {
            a.model = model_or_builtin(a.model);
            code = run(&a, &words);
        }
    }
    free(a.policy);
    prune_options_free(&a.prune);
    cli_strings_free(&words);
    return code;
}
