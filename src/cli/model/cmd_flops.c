/* cmd_flops.c - renyi flops: what a policy costs, before anything is run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/model/flops_report.h"
#include "cli/shared/model_path.h"
#include "cli/shared/prune_options.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

typedef struct flops_arguments {
    const char *model, *arch;
    uint64_t image_size;
    int json;
    prune_options prune;
} flops_arguments;

/* What is to be priced: an open model, or an architecture by its name. */
typedef struct flops_subject {
    renyi_model *model;
    char *name;
} flops_subject;

/* "vit_base_patch16_224" at 384 pixels is "vit_base_patch16_384". Owned. */
static char *arch_at(const char *arch, uint64_t image_size)
{
    const char *last = strrchr(arch, '_');

    if (!image_size || !last) return cli_copy(arch);
    return cli_format("%.*s_%llu", (int)(last - arch), arch, (unsigned long long)image_size);
}

static int open_subject(const flops_arguments *a, flops_subject *subject)
{
    renyi_model_info info;

    if (a->arch) {
        subject->name = arch_at(a->arch, a->image_size);
        return 0;
    }
    const renyi_options opt = {.struct_size = sizeof opt, .image_size = (uint32_t)a->image_size};
    subject->model = model_open_reported(a->model, &opt);
    if (!subject->model) return -1;
    renyi_model_get_info(subject->model, &info);
    subject->name = cli_copy(info.architecture);
    return 0;
}

/* The cost of one policy, its layers included; an error of the library goes to `err`. */
static renyi_status price(const flops_subject *s, const char *text, flops_result *out,
                          renyi_error *err)
{
    const char *arch = s->model ? NULL : s->name;
    renyi_status rc = renyi_policy_check(text, s->model, out->policy, sizeof out->policy, err);

    if (rc == RENYI_OK) rc = renyi_policy_cost(s->model, arch, text, &out->cost, NULL, 0, err);
    if (rc != RENYI_OK) return rc;
    out->layers = cli_alloc(out->cost.n_blocks, sizeof *out->layers);
    return renyi_policy_cost(s->model, arch, text, &out->cost, out->layers, out->cost.n_blocks,
                             err);
}

static int price_all(const flops_subject *s, const cli_strings *texts, flops_report *report)
{
    renyi_error err = {0};
    const renyi_status rc = price(s, "none", &report->dense, &err);

    if (rc == RENYI_ERR_ARG) return options_usage_error("flops", "%s", err.message);
    if (rc != RENYI_OK) return prune_error("flops", "none", &err);
    for (size_t i = 0; i < texts->count; i++) {
        report->count++;
        if (price(s, texts->items[i], &report->results[i], &err) != RENYI_OK)
            return prune_error("flops", texts->items[i], &err);
    }
    return CLI_OK;
}

static int run(const flops_arguments *a, const cli_strings *texts)
{
    flops_subject subject = {0};
    flops_report report = {0};
    int code = CLI_FAILED;

    if (open_subject(a, &subject) == 0) {
        report.architecture = subject.name;
        report.results = cli_alloc(texts->count, sizeof *report.results);
        code = price_all(&subject, texts, &report);
    }
    if (code == CLI_OK) (a->json ? flops_put_json : flops_put_text)(&report);
    for (size_t i = 0; i < report.count; i++) free(report.results[i].layers);
    free(report.results);
    free(report.dense.layers);
    free(subject.name);
    renyi_model_free(subject.model);
    return code;
}

static option_outcome parse(flops_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->model, "MODEL",
         "file, directory, or Hugging Face name in the cache (the small one inside)", 0, 0},
        {"arch", 'a', OPTION_STRING, &a->arch, "NAME",
         "an architecture by its name, e.g. vit_small_patch16_224", 0, 0},
        {"image-size", 0, OPTION_COUNT, &a->image_size, "N", "input side in pixels (the model's)",
         1, 16384},
        {"img-size", 0, OPTION_COUNT, &a->image_size, "N", "the same", 1, 16384},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document", 0, 0},
        PRUNE_OPTION_ROWS(&a->prune),
    };
    const verb_syntax syntax = {
        "flops", "[-m MODEL | --arch NAME] [--prune POLICY]... [options]",
        "Tokens, parameters and multiply-accumulates (MACs) of a policy, layer by layer and in sum; several\n"
        "policies are compared. Three columns: 'paper' counts as the papers' GFLOPs do (products, and 5 for\n"
        "each value a LayerNorm sees), 'plain' the products, 'executed' the products a run really does.",
        "  renyi flops --arch vit_small_patch16_224 --prune 'evit keep=0.7 layers=0,3,6 fuse'\n"
        "  renyi flops --arch vit_base_patch16_224 --prune mosaic --prune evit --keep-rate 0.7 --drop-loc 3,6,9\n"
        "  renyi flops -m model.safetensors -p 16 --drop-loc 0-5 --json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_flops(int argc, char **argv)
{
    flops_arguments a = {0};
    cli_strings words = {0}, texts = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        if (words.count)
            options_usage_error("flops", "unexpected '%s' (a model is given with -m)",
                                words.items[0]);
        else if (a.model && a.arch)
            options_usage_error("flops", "-m MODEL or --arch NAME, not both");
        else if (prune_texts("flops", &a.prune, &texts) == 0) {
            if (!a.arch) a.model = model_or_builtin(a.model);
            code = run(&a, &texts);
        }
    }
    prune_options_free(&a.prune);
    cli_strings_free(&texts);
    cli_strings_free(&words);
    return code;
}
