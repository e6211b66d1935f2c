/* cmd_encode_image.c - renyi encode-image: writes the visual tokens of images to a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/llava/llava_options.h"
#include "cli/shared/images.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

typedef struct encode_options {
    llava_arguments llava;
    const char *list, *output, *question;
    int recursive, json;
} encode_options;

/* The visual tokens of all images, kept until the file is written. */
typedef struct encode_result {
    image_inputs inputs;
    renyi_visual_info info;
    const char *policy;        /* in full */
    renyi_visual_rows *images; /* [n], capacity inputs.paths.count; own their rows and kept */
    size_t n;
} encode_result;

/* ---- images -------------------------------------------------------------------------------- */

static void keep_rows(encode_result *r, const char *path, const renyi_visual_tokens *t)
{
    const size_t bytes = (size_t)t->n * t->lm_dim * sizeof *t->rows;
    float *rows = cli_alloc(bytes, 1);
    uint32_t *kept = cli_alloc(t->n, sizeof *kept);

    memcpy(rows, t->rows, bytes);
    memcpy(kept, t->kept, t->n * sizeof *kept);
    r->images[r->n++] = (renyi_visual_rows){path, t->n, rows, kept};
}

static void free_result(encode_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free((void *)(uintptr_t)r->images[i].rows);
        free((void *)(uintptr_t)r->images[i].kept);
    }
    free(r->images);
    image_inputs_free(&r->inputs);
}

/* What an image is encoded with. */
typedef struct image_job {
    encode_result *result;
    renyi_visual_session *session;
    const char *path;
} image_job;

static renyi_status encode_bytes(void *user, const unsigned char *bytes, size_t size,
                                 renyi_error *err)
{
    const image_job *job = user;
    renyi_visual_tokens tokens;
    const renyi_status st = renyi_visual_run_bytes(job->session, bytes, size, &tokens, err);

    if (st == RENYI_OK) keep_rows(job->result, job->path, &tokens);
    return st;
}

static int encode_images(encode_result *r, renyi_visual_session *session)
{
    const size_t n = r->inputs.paths.count;
    progress_bar bar;
    int code = 0; /* 1: an image failed; -1: all others would, too */

    r->images = cli_alloc(n, sizeof *r->images);
    progress_start(&bar, "images", n, n > 1);
    for (size_t i = 0; code >= 0 && i < n; i++) {
        image_job job = {r, session, r->inputs.paths.items[i]};
        code = llava_take_image(&r->inputs, job.path, encode_bytes, &job);
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    return code < 0 ? -1 : 0;
}

/* ---- output -------------------------------------------------------------------------------- */

static json_t *result_json(const encode_options *o, const encode_result *r)
{
    json_t *images = json_array();

    for (size_t i = 0; i < r->n; i++) {
        json_t *kept = llava_kept_json(r->images[i].kept, r->images[i].n);
        json_array_append_new(images,
                              json_pack("{s:o, s:i, s:o}", "file", json_text(r->images[i].name),
                                        "visual_tokens", (int)r->images[i].n, "kept", kept));
    }
    return json_pack("{s:o, s:s, s:s, s:o, s:i, s:o, s:o, s:o}", "model", json_text(o->llava.model),
                     "cpu_level", renyi_cpu_name(r->info.cpu), "dtype",
                     renyi_dtype_name(r->info.dtype), "policy", json_text(r->policy), "dim",
                     (int)r->info.lm_dim, "output", json_text(o->output), "images", images,
                     "failed", json_failures(&r->inputs.failed, &r->inputs.reasons));
}

static int write_tokens(const encode_options *o, const encode_result *r)
{
    const renyi_visual_file file = {.struct_size = sizeof file,
                                    .lm_dim = r->info.lm_dim,
                                    .pictures = r->images,
                                    .n_pictures = r->n,
                                    .model = o->llava.model,
                                    .policy = r->policy,
                                    .image_size = r->info.image_size,
                                    .patch_size = r->info.patch_size};
    renyi_error err = {0};

    if (r->n && renyi_visual_write(o->output, &file, &err) != RENYI_OK) return cli_fail(&err);
    if (r->n)
        cli_note("%s: %zu image%s, rows of %u values", o->output, r->n, r->n == 1 ? "" : "s",
                 r->info.lm_dim);
    if (o->json) json_print(result_json(o, r));
    if (!r->n) return CLI_FAILED;
    return r->inputs.n_failed ? CLI_PARTIAL : CLI_OK;
}

/* ---- run ----------------------------------------------------------------------------------- */

static int run_model(const encode_options *o, encode_result *r, const renyi_visual *v,
                     const renyi_relevance *relevance)
{
    const renyi_visual_session_options opt = {.struct_size = sizeof opt,
                                              .n_threads = (uint32_t)o->llava.threads,
                                              .policy = o->llava.policy,
                                              .relevance = relevance};
    renyi_visual_session *session = NULL;
    renyi_error err = {0};

    renyi_visual_get_info(v, &r->info);
    if (renyi_visual_session_new(&session, v, &opt, &err) != RENYI_OK)
        return prune_error("encode-image", o->llava.policy, &err);
    if (o->question && renyi_visual_session_question(session, o->question, &err) != RENYI_OK) {
        renyi_visual_session_free(session);
        return cli_fail(&err);
    }
    r->policy = renyi_visual_session_policy(session);
    if (strcmp(r->policy, "none") != 0) cli_note("policy: %s", r->policy);
    int code = encode_images(r, session) ? CLI_FAILED : CLI_OK;
    if (code == CLI_OK) code = write_tokens(o, r);
    renyi_visual_session_free(session);
    return code;
}

static int run_encode(const encode_options *o, const cli_strings *arguments)
{
    encode_result r = {0};
    int code = CLI_FAILED;

    image_inputs_collect(&r.inputs, arguments, o->list, o->recursive);
    if (r.inputs.paths.count) {
        renyi_visual *v = visual_open_reported(&o->llava);
        renyi_relevance *relevance = NULL;
        if (v && !relevance_open_reported(&relevance, &o->llava))
            code = run_model(o, &r, v, relevance);
        renyi_relevance_free(relevance);
        renyi_visual_free(v);
    } else if (!r.inputs.n_failed) {
        cli_error("%s: the list contains no images", o->list);
    }
    free_result(&r);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

static int check_arguments(encode_options *o, const cli_strings *arguments)
{
    static const char ending[] = ".safetensors";
    const size_t n = o->output ? strlen(o->output) : 0, m = sizeof ending - 1;

    if (!arguments->count && !o->list)
        return options_usage_error("encode-image", "no images given");
    if (!o->output) return options_usage_error("encode-image", "-o FILE.safetensors is missing");
    if (n <= m || strcmp(o->output + n - m, ending) != 0)
        return options_usage_error("encode-image", "-o %s: the name must end in .safetensors",
                                   o->output);
    return llava_check_arguments("encode-image", &o->llava);
}

static option_outcome parse_options(encode_options *o, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"output", 'o', OPTION_STRING, &o->output, "FILE", "FILE.safetensors to write", 0, 0},
        LLAVA_MODEL_ROWS(&o->llava),
        {"dtype", 0, OPTION_CHOICE, &o->llava.tower_dtype, DTYPE_CHOICES,
         "the same as --tower-dtype", 0, 0},
        {"question", 0, OPTION_STRING, &o->question, "TEXT",
         "the question by which cdpruner chooses", 0, 0},
        {"list", 0, OPTION_STRING, &o->list, "FILE", "also the images named in FILE, one per line",
         0, 0},
        {"recursive", 'r', OPTION_FLAG, &o->recursive, "", "also the images below directories", 0,
         0},
        {"json", 0, OPTION_FLAG, &o->json, "", "one JSON document on stdout", 0, 0},
    };
    const verb_syntax syntax = {
        "encode-image", "-m LLAVA IMAGES... -o FILE.safetensors [options]",
        "Writes what the language model of a LLaVA model gets for images, for other engines: the visual\n"
        "tokens after the projector, pruned. For image i, from 0, 'tokens.i' is [n, width] and 'positions.i'\n"
        "the patch of each row, in raster order, or -1 for a row made from several; the metadata has files,\n"
        "model and policy. The language model is not read. How llama.cpp and transformers use the rows:\n"
        "examples/python/llava_handoff.py. Images that cannot be read are reported; the exit code is 3.",
        "  renyi encode-image -m llava image.jpg --prune 'prumerge tokens=192 metric=col' -o tokens.safetensors\n"
        "  renyi encode-image -m llava -r images/ --prune 'vispruner tokens=64' -o tokens.safetensors --json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_encode_image(int argc, char **argv)
{
    encode_options o = {0};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&o, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&o, &arguments)) == CLI_OK)
        code = run_encode(&o, &arguments);
    llava_arguments_free(&o.llava);
    cli_strings_free(&arguments);
    return code;
}
