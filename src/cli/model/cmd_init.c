/* cmd_init.c - renyi init: writes a model with random weights, for benchmarks and tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/files.h"
#include "cli/kit/options.h"
#include "cli/kit/progress.h"
#include "cli/verbs.h"

#include "renyi/llava.h"
#include <stdlib.h>
#include <string.h>

typedef struct init_arguments {
    const char *arch;
    uint64_t seed, classes, dim, blocks, heads, mlp;
    int force;
} init_arguments;

static int init_llava(const init_arguments *a, const char *folder)
{
    work_progress p = {.title = "write"};
    const renyi_lvlm_init_options opt = {.struct_size = sizeof opt,
                                         .seed = a->seed,
                                         .dim = (uint32_t)a->dim,
                                         .n_layers = (uint32_t)a->blocks,
                                         .n_heads = (uint32_t)a->heads,
                                         .mlp_dim = (uint32_t)a->mlp,
                                         .progress = work_on_progress,
                                         .progress_user = &p};
    renyi_error err = {0};
    char *config = cli_format("%s/config.json", folder);
    const int is_taken = check_absent(config, a->force);

    free(config);
    if (is_taken) return CLI_FAILED;
    catch_interrupt();
    const renyi_status st = renyi_lvlm_init(folder, a->arch, &opt, &err);
    work_progress_free(&p);
    if (st != RENYI_OK) return cli_fail(&err);
    cli_note("wrote %s/: %s with random weights, seed %llu", folder, a->arch,
             (unsigned long long)a->seed);
    return CLI_OK;
}

static int init_model(const init_arguments *a, const char *path)
{
    const renyi_init_options opt = {.struct_size = sizeof opt,
                                    .seed = a->seed,
                                    .n_classes = (uint32_t)a->classes,
                                    .dim = (uint32_t)a->dim,
                                    .n_blocks = (uint32_t)a->blocks,
                                    .n_heads = (uint32_t)a->heads,
                                    .mlp_dim = (uint32_t)a->mlp};
    renyi_error err = {0};

    if (check_absent(path, a->force)) return CLI_FAILED;
    if (renyi_model_init_file(path, a->arch, &opt, &err) != RENYI_OK) return cli_fail(&err);
    cli_note("wrote %s: %s with random weights, seed %llu", path, a->arch,
             (unsigned long long)a->seed);
    return CLI_OK;
}

int cmd_init(int argc, char **argv)
{
    init_arguments a = {.seed = 42};
    cli_strings arguments = {0};
    const option table[] = {
        {"arch", 'a', OPTION_STRING, &a.arch, "NAME", "architecture, e.g. vit_small_patch16_224", 0,
         0},
        {"seed", 's', OPTION_COUNT, &a.seed, "N", "the same seed gives the same file (42)", 0, 0},
        {"classes", 0, OPTION_COUNT, &a.classes, "N", "number of classes (1000)", 1, 1000000},
        {"dim", 0, OPTION_COUNT, &a.dim, "N", "width (by the name)", 1, 65536},
        {"blocks", 0, OPTION_COUNT, &a.blocks, "N", "number of blocks (by the name)", 1, 1024},
        {"heads", 0, OPTION_COUNT, &a.heads, "N", "attention heads (by the name)", 1, 1024},
        {"mlp-dim", 0, OPTION_COUNT, &a.mlp, "N", "hidden width (four times the width)", 1, 262144},
        {"force", 'f', OPTION_FLAG, &a.force, "", "replace OUT if it exists", 0, 0},
    };
    const verb_syntax syntax = {
        "init", "--arch NAME [options] OUT",
        "Writes a model with random weights (truncated normal, 0.02) under timm's tensor names.\n"
        "Names are vit_SIZE_patchP_S, with sizes tiny to huge, patches of 8, 14, 16 or 32 and an input side S;\n"
        "deit_, deit_..._distilled_ and deit3_ likewise; _gap_ before S: no class token, the head reads the mean\n"
        "of the patches; _reg4_gap_: that with registers; vit_..._siglip_S and vit_..._clip_S: image towers;\n"
        "vit_..._patch14_dinov2, vit_..._patch14_reg4_dinov2; vit_..._patch16_dinov3, also with _plus and _qkvb.\n"
        "clip_vit_... and siglip_... have a text tower too, under Hugging Face's names; the sizes below apply to\n"
        "both towers. llava-1.5-7b, llava-1.6-7b and their -13b are folders with llava-hf's names (F16, 14 and\n"
        "27 GB); the sizes below are those of the language model, and also of the image tower where they are\n"
        "smaller than its own.",
        "  renyi init --arch vit_small_patch16_224 --seed 1 small.safetensors\n"
        "  renyi init --arch vit_tiny_patch16_224 --classes 10 --dim 64 --heads 2 --blocks 2 toy.safetensors\n"
        "  renyi init --arch clip_vit_base_patch16_224 clip.safetensors\n"
        "  renyi init --arch llava-1.5-7b --blocks 2 llava-2-of-32-layers/\n",
        OPTIONS_OF(table)};
    const option_outcome outcome = options_parse(&syntax, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        if (!a.arch)
            options_usage_error("init", "--arch NAME is missing");
        else if (arguments.count != 1)
            options_usage_error("init", "one output file or folder is needed, %zu given",
                                arguments.count);
        else
            code = strncmp(a.arch, "llava", 5) == 0 ? init_llava(&a, arguments.items[0])
                                                    : init_model(&a, arguments.items[0]);
    }
    cli_strings_free(&arguments);
    return code;
}
