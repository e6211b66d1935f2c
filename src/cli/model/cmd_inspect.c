/* cmd_inspect.c - renyi inspect: describes a checkpoint without running it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/model/inspect.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ------------------------------------------------------------------------------- */

int tensor_list_add(void *user, const renyi_tensor_info *t)
{
    tensor_list *list = user;

    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->items = cli_grow(list->items, list->capacity, sizeof *list->items);
    }
    list->items[list->count] = *t;
    list->items[list->count++].name = cli_copy(t->name);
    return 0;
}

void tensor_list_free(tensor_list *list)
{
    for (size_t i = 0; i < list->count; i++) free((void *)(uintptr_t)list->items[i].name);
    free(list->items);
    *list = (tensor_list){0};
}

/* "12 x 197 x 64"; "scalar" without dimensions. */
static void shape_text(const renyi_tensor_info *t, char *out, size_t size)
{
    size_t at = 0;

    snprintf(out, size, "scalar");
    for (uint32_t i = 0; i < t->n_dims && i < 8 && at < size; i++) {
        const int n = snprintf(out + at, size - at, "%s%" PRIu64, i ? " x " : "", t->shape[i]);
        at += n > 0 ? (size_t)n : 0;
    }
}

/* The longest name, but not more than 80: some names are very long. */
static size_t name_width(const tensor_list *list)
{
    size_t width = 44;

    for (size_t i = 0; i < list->count; i++) {
        const size_t length = strlen(list->items[i].name);
        if (length > width && length <= 80) width = length;
    }
    return width;
}

void tensor_list_put(const tensor_list *list)
{
    const size_t width = name_width(list);
    char shape[200];

    printf("\n%-*s %-6s %-22s %12s\n", (int)width, "tensor", "dtype", "shape", "bytes");
    for (size_t i = 0; i < list->count; i++) {
        const renyi_tensor_info *t = &list->items[i];
        const size_t length = strlen(t->name);
        shape_text(t, shape, sizeof shape);
        cli_put_clean(stdout, t->name);
        printf("%*s %-6s %-22s %12" PRIu64 "\n", length < width ? (int)(width - length) : 0, "",
               t->dtype, shape, t->bytes);
    }
}

void tensor_list_put_dtypes(const tensor_list *list)
{
    enum { MAX_KINDS = 16 };
    const char *kinds[MAX_KINDS];
    size_t counts[MAX_KINDS] = {0}, n_kinds = 0;

    for (size_t i = 0; i < list->count; i++) {
        size_t k = 0;
        while (k < n_kinds && strcmp(kinds[k], list->items[i].dtype) != 0) k++;
        if (k == MAX_KINDS) continue;
        if (k == n_kinds) kinds[n_kinds++] = list->items[i].dtype;
        counts[k]++;
    }
    printf("tensors         ");
    for (size_t k = 0; k < n_kinds; k++) printf("%s%zu x %s", k ? ", " : "", counts[k], kinds[k]);
    putchar('\n');
}

json_t *tensor_list_json(const tensor_list *list)
{
    json_t *all = json_array();

    for (size_t i = 0; i < list->count; i++) {
        const renyi_tensor_info *t = &list->items[i];
        json_t *shape = json_array();
        for (uint32_t d = 0; d < t->n_dims && d < 8; d++)
            json_array_append_new(shape, json_integer((json_int_t)t->shape[d]));
        json_array_append_new(all,
                              json_pack("{s:o, s:s, s:o, s:I}", "name", json_text(t->name), "dtype",
                                        t->dtype, "shape", shape, "bytes", (json_int_t)t->bytes));
    }
    return all;
}

/* ---- vision models ------------------------------------------------------------------------- */

typedef struct inspect_arguments {
    int json, tensors;
    uint64_t image_size;
    const char *dtype;
} inspect_arguments;

static void list_tensors(tensor_list *list, const renyi_model *model)
{
    for (size_t i = 0; i < renyi_model_tensor_count(model); i++) {
        renyi_tensor_info t;
        renyi_model_tensor(model, i, &t);
        tensor_list_add(list, &t);
    }
}

static void put_text(const renyi_model_info *info, const tensor_list *list, int tensors)
{
    const renyi_model_info i = *info;
    char formats[32];

    dtypes_here(formats);
    const renyi_preprocess *p = &i.preprocess;
    printf("architecture    ");
    cli_put_clean(stdout, i.architecture);
    printf("\nfamily          %s, names as in %s\n", i.family, i.layout);
    printf("input           %u x %u, patches of %u: %u tokens", i.image_size, i.image_size,
           i.patch_size, i.n_patches);
    if (i.n_prefix) printf(" + %u in front", i.n_prefix);
    if (i.n_registers) printf(" (%u registers)", i.n_registers);
    printf("%s\n", i.n_prefix > i.n_registers ? "" : ", no class token");
    printf("width           %u, %u heads, hidden %u (%s), %u blocks, eps %g\n", i.dim, i.n_heads,
           i.mlp_dim, i.activation, i.n_blocks, i.norm_eps);
    const char *from = strcmp(i.pool, "token") == 0       ? "the class token"
                       : strcmp(i.pool, "map") == 0       ? "attention pooling"
                       : strcmp(i.pool, "token+avg") == 0 ? "the class token and the mean of the "
                                                            "patches"
                                                          : "the mean of the patches";
    if (i.n_classes)
        printf("classes         %u, from %s\n", i.n_classes, from);
    else
        printf("classes         none; embeddings of %u values, from %s\n", i.embed_dim, from);
    if (!isnan(i.none_below))
        printf("none of these   if the largest logit is below %g\n", i.none_below);
    printf("parameters      %" PRIu64 " (%.2f M)\n", i.n_params, (double)i.n_params * 1e-6);
    printf("MACs per image  %.3f G\n", i.macs * 1e-9);
    tensor_list_put_dtypes(list);
    if (i.quantization) {
        printf("quantized       ");
        cli_put_clean(stdout, i.quantization);
        putchar('\n');
    }
    printf("products        in %s; this CPU has %s\n", renyi_dtype_name(i.dtype), formats);
    printf("preprocessing   crop %g (%s), %s, mean %g %g %g, std %g %g %g\n", p->crop_pct,
           crop_mode_name(p->crop_mode), interpolation_name(p->interpolation), p->mean[0],
           p->mean[1], p->mean[2], p->std[0], p->std[1], p->std[2]);
    printf("  taken from    %s\n", i.preprocess_source);
    if (tensors) tensor_list_put(list);
}

static void put_json(const renyi_model_info *info, const tensor_list *list, const char *name)
{
    const renyi_model_info i = *info;
    json_t *document = json_pack(
        "{s:o, s:o, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:I, s:f}", "model",
        json_text(name), "architecture", json_text(i.architecture), "family", i.family, "layout",
        i.layout, "image_size", (int)i.image_size, "patch_size", (int)i.patch_size, "n_patches",
        (int)i.n_patches, "n_prefix", (int)i.n_prefix, "dim", (int)i.dim, "n_blocks",
        (int)i.n_blocks, "n_heads", (int)i.n_heads, "mlp_dim", (int)i.mlp_dim, "n_classes",
        (int)i.n_classes, "norm_eps", i.norm_eps, "parameters", (json_int_t)i.n_params, "macs",
        i.macs);
    if (document) {
        json_object_set_new(document, "dtype", json_string(renyi_dtype_name(i.dtype)));
        json_object_set_new(document, "pool", json_string(i.pool));
        json_object_set_new(document, "n_registers", json_integer(i.n_registers));
        json_object_set_new(document, "embed_dim", json_integer(i.embed_dim));
        json_object_set_new(document, "activation", json_string(i.activation));
        json_object_set_new(document, "quantization", json_text(i.quantization));
        json_object_set_new(document, "none_below", json_number(i.none_below));
        json_object_set_new(document, "preprocessing",
                            json_preprocess(&i.preprocess, i.preprocess_source));
        json_object_set_new(document, "tensors", tensor_list_json(list));
    }
    json_print(document);
}

static int inspect_model(const inspect_arguments *a, const char *name)
{
    const renyi_options opt = model_options(NULL, a->dtype, a->image_size);
    renyi_model_info info;
    tensor_list list = {0};
    int code = CLI_OK;

    if (inspect_llava(name, &opt, a->json, a->tensors, &code)) return code;
    renyi_model *model = model_open_reported(name, &opt, &info);
    if (!model) return CLI_FAILED;
    list_tensors(&list, model);
    if (a->json)
        put_json(&info, &list, name);
    else
        put_text(&info, &list, a->tensors);
    tensor_list_free(&list);
    renyi_model_free(model);
    return CLI_OK;
}

/* ---- command line -------------------------------------------------------------------------- */

int cmd_inspect(int argc, char **argv)
{
    inspect_arguments a = {0};
    cli_strings arguments = {0};
    const char *model = NULL;
    const option table[] = {
        {"model", 'm', OPTION_STRING, &model, "MODEL", "the same as the argument MODEL", 0, 0},
        {"json", 0, OPTION_FLAG, &a.json, "", "one JSON document, tensors included", 0, 0},
        {"tensors", 0, OPTION_FLAG, &a.tensors, "", "list every tensor with dtype, shape and bytes",
         0, 0},
        SIZE_OPTION_ROWS(&a),
        DTYPE_OPTION_ROW(&a),
    };
    const verb_syntax syntax = {
        "inspect", "[MODEL] [options]",
        "Describes a checkpoint: family, sizes, parameters, multiply-accumulates, preprocessing and\n"
        "where it comes from, tensors. MODEL is a .safetensors or PyTorch file, a directory, or the\n"
        "name of a Hugging Face repository in the cache; without one, builtin. For a LLaVA or\n"
        "Llama model: image tower, language model with its memory in each dtype, tokenizer; the weights of\n"
        "the language model are not read.",
        "  renyi inspect model.safetensors --tensors\n"
        "  renyi inspect llava-1.5-7b-hf\n"
        "  renyi inspect timm/vit_small_patch16_224.augreg_in21k_ft_in1k --json\n",
        OPTIONS_OF(table)};
    const option_outcome outcome = options_parse(&syntax, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        const size_t given = arguments.count + (model != NULL);
        if (given <= 1)
            code =
                inspect_model(&a, model_or_builtin(arguments.count ? arguments.items[0] : model));
        else
            options_usage_error("inspect", "one MODEL at a time, %zu given", given);
    }
    cli_strings_free(&arguments);
    return code;
}
