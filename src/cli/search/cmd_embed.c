/* cmd_embed.c - renyi embed: writes the embeddings of images and texts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/files.h"
#include "cli/kit/output.h"
#include "cli/search/embed_job.h"
#include "cli/shared/models.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

typedef struct embed_options {
    embed_arguments a;
    text_arguments text;
    cli_strings texts; /* --text, then the lines of --text-file */
    const char *text_file, *list, *output;
    int recursive, json;
} embed_options;

/* What was computed. */
typedef struct embed_result {
    char *architecture; /* of the image tower; NULL if it was not needed */
    renyi_cpu cpu;
    renyi_dtype dtype;
    uint32_t dim;
    char policy[RENYI_POLICY_MAX]; /* in full */
    image_inputs inputs;           /* failures among them */
    float *images;                 /* [inputs.paths.count, dim]; the computed rows come first */
    cli_strings files;             /* [n] of those rows */
    float *texts;                  /* [texts->count, dim] */
    const cli_strings *names;      /* the texts themselves */
} embed_result;

/* ---- output -------------------------------------------------------------------------------- */

static renyi_embeddings embeddings_of(const embed_options *o, const embed_result *r)
{
    return (renyi_embeddings){.struct_size = sizeof(renyi_embeddings),
                              .dim = r->dim,
                              .n_images = r->files.count,
                              .n_texts = r->names->count,
                              .images = r->images,
                              .texts = r->texts,
                              .files = (const char *const *)r->files.items,
                              .words = (const char *const *)r->names->items,
                              .model = o->a.model,
                              .policy = r->policy};
}

static const char *const endings[] = {".safetensors", ".npy", ".jsonl"};

/* Index of the ending; -1 = none of them. */
static int format_of(const char *path)
{
    const size_t n = strlen(path);

    for (int i = 0; i < 3; i++) {
        const size_t m = strlen(endings[i]);
        if (n > m && strcmp(path + n - m, endings[i]) == 0) return i;
    }
    return -1;
}

static int write_rows(const embed_options *o, const embed_result *r)
{
    const renyi_embeddings e = embeddings_of(o, r);
    renyi_error err = {0};

    if (renyi_embeddings_write(o->output, (renyi_rows_format)format_of(o->output), &e, &err) !=
        RENYI_OK)
        return cli_fail(&err);
    cli_note("%s: %zu image%s, %zu text%s, %u numbers each", o->output, r->files.count,
             r->files.count == 1 ? "" : "s", r->names->count, r->names->count == 1 ? "" : "s",
             r->dim);
    return CLI_OK;
}

static json_t *row_json(const float *row, uint32_t dim)
{
    json_t *list = json_array();

    for (uint32_t k = 0; k < dim; k++) json_array_append_new(list, json_number((double)row[k]));
    return list;
}

/* Names in the order of the rows; with the rows unless they are in a file. */
static json_t *names_json(const char *key, const cli_strings *names, const float *rows,
                          uint32_t dim)
{
    json_t *list = json_array();

    for (size_t i = 0; i < names->count; i++) {
        json_t *item = json_pack("{s:o}", key, json_text(names->items[i]));
        if (rows) json_object_set_new(item, "embedding", row_json(rows + i * dim, dim));
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *result_json(const embed_options *o, const embed_result *r)
{
    const uint32_t dim = r->dim;
    const int is_file = o->output != NULL;

    return json_pack("{s:o, s:o, s:s, s:s, s:o, s:i, s:o, s:o, s:o, s:o}", "model",
                     json_text(o->a.model), "architecture", json_text(r->architecture), "cpu_level",
                     renyi_cpu_name(r->cpu), "dtype", renyi_dtype_name(r->dtype), "policy",
                     json_text(r->policy), "dim", (int)dim, "output", json_text(o->output),
                     "images", names_json("file", &r->files, is_file ? NULL : r->images, dim),
                     "texts", names_json("text", r->names, is_file ? NULL : r->texts, dim),
                     "failed", json_failures(&r->inputs.failed, &r->inputs.reasons));
}

/* JSON lines, as in a .jsonl file. */
static void put_lines(const char *key, const cli_strings *names, const float *rows, uint32_t dim)
{
    for (size_t i = 0; i < names->count; i++)
        json_print_line(json_pack("{s:o, s:o}", key, json_text(names->items[i]), "embedding",
                                  row_json(rows + i * dim, dim)));
}

static int put_result(const embed_options *o, const embed_result *r)
{
    const size_t n = r->files.count + r->names->count;
    const int code = o->output && n ? write_rows(o, r) : CLI_OK;

    if (code != CLI_OK) return code;
    if (o->json) {
        json_print(result_json(o, r));
    } else if (!o->output) {
        put_lines("file", &r->files, r->images, r->dim);
        put_lines("text", r->names, r->texts, r->dim);
    }
    if (!n) return CLI_FAILED;
    return r->inputs.n_failed ? CLI_PARTIAL : CLI_OK;
}

/* ---- run ----------------------------------------------------------------------------------- */

static int embed_texts(const embed_options *o, embed_result *r, const renyi_options *opt)
{
    text_tower tower;
    int code = text_tower_open(&tower, o->a.model, &o->text, opt, r->dim);

    if (!code) {
        r->dim = tower.info.embed_dim;
        r->cpu = tower.info.cpu;
        r->dtype = tower.info.dtype;
        r->texts = cli_alloc(o->texts.count, r->dim * sizeof *r->texts);
        code =
            text_tower_embed(&tower, &o->texts, o->text.truncate, (uint32_t)o->a.threads, r->texts);
    }
    text_tower_free(&tower);
    return code ? CLI_FAILED : CLI_OK;
}

/* Texts before images, so that their errors show at once. */
static int embed_both(const embed_options *o, embed_result *r, const renyi_model *model,
                      const renyi_model_info *info, const renyi_options *opt)
{
    embed_job job;

    r->architecture = cli_copy(info->architecture);
    r->cpu = info->cpu;
    r->dtype = info->dtype;
    int code = embed_job_open(&job, "embed", &o->a, model, info);
    r->dim = job.dim;
    if (code == CLI_OK && o->texts.count) code = embed_texts(o, r, opt);
    if (code == CLI_OK) code = embed_job_images(&job, &r->inputs, &r->images, &r->files);
    memcpy(r->policy, job.policy, sizeof r->policy);
    return code;
}

/* For texts alone the image tower is not opened. */
static int embed_inputs(const embed_options *o, embed_result *r)
{
    const renyi_options opt = model_options(o->a.cpu, o->a.dtype, o->a.image_size);
    renyi_model_info info;

    if (!r->inputs.paths.count) return embed_texts(o, r, &opt);
    renyi_model *model = model_open_reported(o->a.model, &opt, &info);
    const int code = model ? embed_both(o, r, model, &info, &opt) : CLI_FAILED;
    renyi_model_free(model);
    return code;
}

static int embed_all(const embed_options *o, const cli_strings *arguments)
{
    embed_result r = {.names = &o->texts, .policy = "none"};
    int code = CLI_FAILED;

    image_inputs_collect(&r.inputs, arguments, o->list, o->recursive);
    if (r.inputs.paths.count || o->texts.count) {
        code = embed_inputs(o, &r);
        if (code == CLI_OK) code = put_result(o, &r);
    } else if (!r.inputs.n_failed) {
        cli_error("nothing to embed: the lists are empty");
    }
    image_inputs_free(&r.inputs);
    cli_strings_free(&r.files);
    free(r.architecture);
    free(r.images);
    free(r.texts);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

/* One text per line; empty lines are skipped. */
static int read_texts(embed_options *o)
{
    enum { MAX_TEXT_BYTES = 256 << 20 };
    cli_strings lines = {0};
    char *why = NULL;

    if (!o->text_file) return 0;
    if (read_lines(o->text_file, MAX_TEXT_BYTES, &lines, &why)) {
        cli_error("%s: %s", o->text_file, why);
        free(why);
        return -1;
    }
    for (size_t i = 0; i < lines.count; i++)
        if (*lines.items[i]) cli_strings_add(&o->texts, cli_copy(lines.items[i]));
    cli_strings_free(&lines);
    return 0;
}

static int check_arguments(embed_options *o, const cli_strings *arguments)
{
    if (!arguments->count && !o->list && !o->texts.count && !o->text_file)
        return options_usage_error("embed", "no images and no --text given");
    if (!o->a.model && (o->texts.count || o->text_file))
        return options_usage_error("embed", "texts need a CLIP or SigLIP: give it with -m MODEL");
    if (o->output && format_of(o->output) < 0)
        return options_usage_error("embed",
                                   "-o %s: the name must end in .safetensors, .npy or "
                                   ".jsonl",
                                   o->output);
    o->a.model = model_or_builtin(o->a.model);
    const int code = prune_policy("embed", &o->a.prune, &o->a.policy);
    if (code != CLI_OK) return code;
    return read_texts(o) ? CLI_FAILED : CLI_OK;
}

static option_outcome parse_options(embed_options *o, int argc, char **argv, cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &o->a.model, "MODEL", MODEL_HELP_BUILTIN, 0, 0},
        {"output", 'o', OPTION_STRING, &o->output, "FILE",
         "write to FILE.safetensors, .npy or .jsonl (JSON lines on stdout)", 0, 0},
        {"text", 0, OPTION_STRINGS, &o->texts, "TEXT", "a text; may be repeated (CLIP, SigLIP)", 0,
         0},
        {"text-file", 0, OPTION_STRING, &o->text_file, "FILE", "texts, one per line", 0, 0},
        TEXT_OPTION_ROWS(&o->text),
        {"list", 0, OPTION_STRING, &o->list, "FILE", "also the images named in FILE, one per line",
         0, 0},
        {"recursive", 'r', OPTION_FLAG, &o->recursive, "", "also the images below directories", 0,
         0},
        {"json", 0, OPTION_FLAG, &o->json, "", "one JSON document on stdout", 0, 0},
        EMBED_OPTION_ROWS(&o->a),
    };
    const verb_syntax syntax = {
        "embed", "[-m MODEL] [--text TEXT]... [--text-file FILE] [IMAGES...] [-o FILE] [options]",
        "Writes embeddings of images and texts: rows of numbers of length 1. The dot product of two rows is\n"
        "their similarity. A CLIP or SigLIP embeds images and texts in one space; for other models a row is the\n"
        "input of the head, or with --features that of the class token, the mean of the patches, or every\n"
        "patch (one after the other, each of length 1). A .safetensors file has the rows as tensors 'image' and\n"
        "'text' and their names as metadata 'files' and 'texts'; a .npy file has the images, then the texts,\n"
        "and no names. Images that cannot be read are reported and have no row; the exit code is then 3.",
        "  renyi embed -m openai/clip-vit-base-patch16 images/ -o images.safetensors\n"
        "  renyi embed -m clip --text 'a photo of a cat.' --text 'a photo of a dog.' cat.jpg -o rows.jsonl\n"
        "  renyi embed -m vit.safetensors --prune 'mosaic keep=0.7 layers=0,3,6' -r images/ -o rows.npy\n"
        "  renyi embed -m facebook/dinov2-small --features patches photo.jpg -o patches.npy\n"
        "  renyi embed -m clip --text-file captions.txt -o captions.safetensors\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_embed(int argc, char **argv)
{
    embed_options o = {0};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&o, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&o, &arguments)) == CLI_OK)
        code = embed_all(&o, &arguments);
    embed_arguments_free(&o.a);
    cli_strings_free(&o.texts);
    cli_strings_free(&arguments);
    return code;
}
