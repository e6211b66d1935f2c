/* cmd_encode_image.c - renyi encode-image: visual tokens in a file, for other engines.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/output.h"
#include "cli/kit/progress.h"
#include "cli/llava/llava_options.h"
#include "cli/shared/images.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

typedef struct encode_options {
    lvlm_arguments lvlm;
    const char *list, *output;
    int recursive, json;
} encode_options;

/* What came of the photos; rows and names are kept until the file is written. */
typedef struct encode_result {
    image_inputs inputs;
    renyi_visual_info info;
    const char *policy;        /* in full */
    renyi_visual_rows *photos; /* [inputs.paths.count], the first n of them are there; own what
                                  they point to */
    size_t n;
} encode_result;

/* ---- photos -------------------------------------------------------------------------------- */

static void keep_rows(encode_result *r, const char *path, const renyi_visual_tokens *t)
{
    const size_t bytes = (size_t)t->n * t->lm_dim * sizeof *t->rows;
    float *rows = cli_alloc(bytes, 1);
    uint32_t *kept = cli_alloc(t->n, sizeof *kept);

    memcpy(rows, t->rows, bytes);
    memcpy(kept, t->kept, t->n * sizeof *kept);
    r->photos[r->n++] = (renyi_visual_rows){path, t->n, rows, kept};
}

static void free_result(encode_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free((void *)(uintptr_t)r->photos[i].rows);
        free((void *)(uintptr_t)r->photos[i].kept);
    }
    free(r->photos);
    image_inputs_free(&r->inputs);
}

/* -1 after reporting an error that is not the photo's. */
static int encode_photo(encode_result *r, renyi_visual_session *session, const char *path)
{
    unsigned char *bytes = NULL;
    size_t size;
    char *why = NULL;
    renyi_visual_tokens tokens;
    renyi_error err = {0};
    renyi_status st = RENYI_ERR_IO;

    if (lvlm_read_photo(path, &bytes, &size, &why) == 0) {
        st = renyi_visual_run_bytes(session, bytes, size, &tokens, &err);
        if (st != RENYI_OK)
            why = cli_copy(err.message[0] ? err.message : renyi_status_name(err.code));
    }
    free(bytes);
    if (st == RENYI_OK) keep_rows(r, path, &tokens);
    if (st != RENYI_OK && lvlm_is_photo_error(st))
        image_inputs_fail(&r->inputs, path, why);
    else if (st != RENYI_OK)
        cli_error("%s: %s", path, why);
    free(why);
    return st == RENYI_OK || lvlm_is_photo_error(st) ? 0 : -1;
}

static int encode_photos(encode_result *r, renyi_visual_session *session)
{
    const size_t n = r->inputs.paths.count;
    progress_bar bar;
    int code = 0;

    r->photos = cli_alloc(n, sizeof *r->photos);
    progress_start(&bar, "photos", n, n > 1);
    for (size_t i = 0; !code && i < n; i++) {
        code = encode_photo(r, session, r->inputs.paths.items[i]);
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    return code;
}

/* ---- output -------------------------------------------------------------------------------- */

static json_t *result_json(const encode_options *o, const encode_result *r)
{
    json_t *images = json_array(), *failed = json_array();

    for (size_t i = 0; i < r->n; i++) {
        json_t *kept = json_array();
        for (uint32_t k = 0; k < r->photos[i].n; k++)
            json_array_append_new(kept, r->photos[i].kept[k] == RENYI_NONE
                                            ? json_null()
                                            : json_integer(r->photos[i].kept[k]));
        json_array_append_new(images,
                              json_pack("{s:o, s:i, s:o}", "file", json_text(r->photos[i].name),
                                        "visual_tokens", (int)r->photos[i].n, "kept", kept));
    }
    for (size_t i = 0; i < r->inputs.failed.count; i++)
        json_array_append_new(failed,
                              json_pack("{s:o, s:o}", "file", json_text(r->inputs.failed.items[i]),
                                        "error", json_text(r->inputs.reasons.items[i])));
    return json_pack("{s:o, s:s, s:s, s:o, s:i, s:o, s:o, s:o}", "model", json_text(o->lvlm.model),
                     "cpu_level", renyi_cpu_name(r->info.cpu), "dtype",
                     renyi_dtype_name(r->info.dtype), "policy", json_text(r->policy), "dim",
                     (int)r->info.lm_dim, "output", json_text(o->output), "images", images,
                     "failed", failed);
}

static int write_tokens(const encode_options *o, const encode_result *r)
{
    const renyi_visual_file file = {.struct_size = sizeof file,
                                    .lm_dim = r->info.lm_dim,
                                    .pictures = r->photos,
                                    .n_pictures = r->n,
                                    .model = o->lvlm.model,
                                    .policy = r->policy,
                                    .image_size = r->info.image_size,
                                    .patch_size = r->info.patch_size};
    renyi_error err = {0};

    if (r->n && renyi_visual_write(o->output, &file, &err) != RENYI_OK) {
        cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
        return CLI_FAILED;
    }
    if (r->n)
        cli_note("%s: %zu photo%s, rows of %u numbers", o->output, r->n, r->n == 1 ? "" : "s",
                 r->info.lm_dim);
    if (o->json) json_print(result_json(o, r));
    if (!r->n) return CLI_FAILED;
    return r->inputs.n_failed ? CLI_PARTIAL : CLI_OK;
}

/* ---- run ----------------------------------------------------------------------------------- */

static int run_with(const encode_options *o, encode_result *r, const renyi_visual *v)
{
    const renyi_visual_session_options opt = {.struct_size = sizeof opt,
                                              .n_threads = (uint32_t)o->lvlm.threads,
                                              .policy = o->lvlm.policy};
    renyi_visual_session *session = NULL;
    renyi_error err = {0};

    renyi_visual_get_info(v, &r->info);
    if (renyi_visual_session_new(&session, v, &opt, &err) != RENYI_OK)
        return prune_error("encode-image", o->lvlm.policy, &err);
    r->policy = renyi_visual_session_policy(session);
    if (strcmp(r->policy, "none") != 0) cli_note("policy: %s", r->policy);
    int code = encode_photos(r, session) ? CLI_FAILED : CLI_OK;
    if (code == CLI_OK) code = write_tokens(o, r);
    renyi_visual_session_free(session);
    return code;
}

static int run(const encode_options *o, const cli_strings *words)
{
    encode_result r = {0};
    int code = CLI_FAILED;

    image_inputs_collect(&r.inputs, words, o->list, o->recursive);
    if (r.inputs.paths.count) {
        renyi_visual *v = visual_open_reported(&o->lvlm);
        if (v) code = run_with(o, &r, v);
        renyi_visual_free(v);
    } else if (!r.inputs.n_failed) {
        cli_error("%s: the list names no images", o->list);
    }
    free_result(&r);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

static int check(encode_options *o, const cli_strings *words)
{
    static const char ending[] = ".safetensors";
    const size_t n = o->output ? strlen(o->output) : 0, m = sizeof ending - 1;

    if (!words->count && !o->list) return options_usage_error("encode-image", "no images given");
    if (!o->output) return options_usage_error("encode-image", "-o FILE.safetensors is missing");
    if (n <= m || strcmp(o->output + n - m, ending) != 0)
        return options_usage_error("encode-image", "-o %s: the name must end in .safetensors",
                                   o->output);
    return lvlm_arguments_check("encode-image", &o->lvlm);
}

static option_outcome parse(encode_options *o, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"output", 'o', OPTION_STRING, &o->output, "FILE", "FILE.safetensors to write", 0, 0},
        LVLM_MODEL_ROWS(&o->lvlm),
        {"dtype", 0, OPTION_CHOICE, &o->lvlm.tower_dtype, DTYPE_CHOICES,
         "the same as --tower-dtype", 0, 0},
        {"list", 0, OPTION_STRING, &o->list, "FILE", "also the images named in FILE, one a line", 0,
         0},
        {"recursive", 'r', OPTION_FLAG, &o->recursive, "", "look for images below directories too",
         0, 0},
        {"json", 0, OPTION_FLAG, &o->json, "", "one JSON document on stdout", 0, 0},
    };
    const verb_syntax syntax = {
        "encode-image", "-m LLAVA PHOTOS... -o FILE.safetensors [options]",
        "What the language model of a LLaVA would see of photos, for engines that have one: the visual\n"
        "tokens behind the projector, pruned. Of photo i, from 0, 'tokens.i' is [n, width] and 'positions.i'\n"
        "the patch of each row, in raster order, or -1 for one made of several; the metadata has files,\n"
        "model and policy. The language model is not read. How llama.cpp and transformers take the rows:\n"
        "examples/python/llava_handoff.py. Photos that cannot be read are named and left out; exit code 3.",
        "  renyi encode-image -m llava photo.jpg --prune 'prumerge tokens=192 metric=col' -o tokens.safetensors\n"
        "  renyi encode-image -m llava -r photos/ --prune 'vispruner tokens=64' -o tokens.safetensors --json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_encode_image(int argc, char **argv)
{
    encode_options o = {0};
    cli_strings words = {0};
    const option_outcome outcome = parse(&o, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check(&o, &words)) == CLI_OK) code = run(&o, &words);
    lvlm_arguments_free(&o.lvlm);
    cli_strings_free(&words);
    return code;
}
