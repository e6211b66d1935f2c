/* cmd_search.c - renyi search: the command line and the output; the work is in search_execute.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/search/search.h"
#include "cli/verbs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The path as other programs can open it: below the folder as it was given. Owned. */
static char *path_of(const search_result *r, const char *file)
{
    const char *folder = r->a->folder;
    const size_t n = strlen(folder);

    return cli_format("%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", file);
}

/* SigLIP: the probability that a text and an image belong together. */
static double probability(const search_result *r, double cosine)
{
    return 1.0 / (1.0 + exp(-(r->text.logit_scale * cosine + r->text.logit_bias)));
}

/* ---- for people ---------------------------------------------------------------------------- */

static void put_hits(const search_result *r, const search_answer *answer)
{
    for (size_t i = 0; i < answer->n; i++) {
        renyi_gallery_photo photo;
        renyi_gallery_get_photo(r->gallery, answer->hits[i].photo, &photo);
        char *path = path_of(r, photo.file);
        if (r->a->paths) {
            cli_put_data(stdout, path);
        } else {
            printf("  %7.4f  ", answer->hits[i].score);
            if (answer->text && r->text.is_sigmoid)
                printf("%6.2f %%  ", 100.0 * probability(r, answer->hits[i].score));
            cli_put_clean(stdout, path);
        }
        putchar('\n');
        free(path);
    }
}

void search_put_text(const search_result *r)
{
    for (size_t i = 0; i < r->n_answers; i++) {
        const search_answer *answer = &r->answers[i];
        if (!r->a->paths) {
            fputs(cli_bold(stdout), stdout);
            cli_put_clean(stdout, answer->text ? answer->text : answer->image);
            printf("%s\n", cli_plain(stdout));
        }
        put_hits(r, answer);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *answer_json(const search_result *r, const search_answer *answer)
{
    json_t *hits = json_array();

    for (size_t i = 0; i < answer->n; i++) {
        renyi_gallery_photo photo;
        renyi_gallery_get_photo(r->gallery, answer->hits[i].photo, &photo);
        char *path = path_of(r, photo.file);
        json_t *hit = json_pack("{s:o, s:o, s:f}", "file", json_text(photo.file), "path",
                                json_text(path), "score", answer->hits[i].score);
        if (hit && answer->text && r->text.is_sigmoid)
            json_object_set_new(hit, "sigmoid", json_real(probability(r, answer->hits[i].score)));
        json_array_append_new(hits, hit);
        free(path);
    }
    return json_pack("{s:o, s:o, s:o}", "text", json_text(answer->text), "image",
                     json_text(answer->image), "hits", hits);
}

void search_put_json(const search_result *r)
{
    const renyi_gallery_changes *c = &r->changes;
    json_t *queries = json_array();
    json_t *failed = json_failures(&r->progress->failed, &r->progress->reasons);
    json_t *bad = json_failures(&r->bad_images, &r->bad_reasons);
    renyi_gallery_info info;

    renyi_gallery_get_info(r->gallery, &info);
    for (size_t i = 0; i < r->n_answers; i++)
        json_array_append_new(queries, answer_json(r, &r->answers[i]));
    json_array_extend(failed, bad);
    json_decref(bad);
    json_print(json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:i, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "model",
        json_text(r->a->e.model), "architecture", json_text(r->model->architecture), "dtype",
        renyi_dtype_name(r->model->dtype), "policy", json_text(info.policy), "folder",
        json_text(r->a->folder), "index", json_text(r->index), "photos", (json_int_t)info.n_photos,
        "dim", (int)info.dim, "kept", (json_int_t)c->kept, "added", (json_int_t)c->added, "changed",
        (json_int_t)c->changed, "removed", (json_int_t)c->removed, "anew", c->is_anew, "queries",
        queries, "failed", failed));
}

/* ---- command line -------------------------------------------------------------------------- */

static int check_arguments(search_arguments *a, const cli_strings *arguments)
{
    if (!arguments->count) return options_usage_error("search", "FOLDER is missing");
    a->folder = arguments->items[0];
    for (size_t i = 1; i < arguments->count; i++)
        cli_strings_add(&a->texts, cli_copy(arguments->items[i]));
    if (a->no_update && !a->texts.count && !a->images.count)
        return options_usage_error("search", "--no-update without a query leaves nothing to do");
    if (!a->e.model && a->texts.count)
        return options_usage_error("search", "texts need a CLIP or SigLIP: give it with -m MODEL");
    a->e.model = model_or_builtin(a->e.model);
    return prune_policy("search", &a->e.prune, &a->e.policy);
}

static option_outcome parse_options(search_arguments *a, int argc, char **argv,
                                    cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->e.model, "MODEL", MODEL_HELP_BUILTIN, 0, 0},
        {"text", 0, OPTION_STRINGS, &a->texts, "TEXT",
         "text to search for; the same as TEXT after FOLDER", 0, 0},
        {"image", 'i', OPTION_STRINGS, &a->images, "IMAGE",
         "image to find similar ones to; '-' is stdin", 0, 0},
        {"topk", 'k', OPTION_COUNT, &a->top_k, "N", "images to list for each query (10)", 1,
         1000000},
        {"index", 0, OPTION_STRING, &a->index, "FILE|none",
         "file that stores the rows of the images (one in the user's cache folder)", 0, 0},
        {"no-update", 0, OPTION_FLAG, &a->no_update, "",
         "use the index as it is; do not read the folder", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document on stdout", 0, 0},
        {"paths", 0, OPTION_FLAG, &a->paths, "", "only paths, one per line, for other programs", 0,
         0},
        TEXT_OPTION_ROWS(&a->text),
        EMBED_OPTION_ROWS(&a->e),
    };
    const verb_syntax syntax = {
        "search", "[-m MODEL] FOLDER [TEXT...] [--image IMAGE]... [options]",
        "Finds the images in and below FOLDER that are nearest to a text (with CLIP or SigLIP) or to an image\n"
        "(with any model), best first, with their cosine. With SigLIP, a text and an image also have the\n"
        "probability that they belong together. Each image is embedded once: its row is stored in an index,\n"
        "and later runs embed only new and changed images. Without a query only the index is updated.\n"
        "Finished rows are saved every few seconds and after Ctrl-C. Images that cannot be read are\n"
        "reported; the exit code is then 3.",
        "  renyi search -m openai/clip-vit-base-patch16 ~/Pictures 'two dogs on a beach'\n"
        "  renyi search -m clip ~/Pictures --image cat.jpg -k 20 --json\n"
        "  renyi search -m clip ~/Pictures 'birthday cake' --paths | xargs -d '\\n' feh\n"
        "  renyi search -m vit.safetensors images --image cat.jpg --index images.safetensors\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_search(int argc, char **argv)
{
    search_arguments a = {.top_k = 10};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&a, &arguments)) == CLI_OK)
        code = search_execute(&a);
    embed_arguments_free(&a.e);
    cli_strings_free(&a.texts);
    cli_strings_free(&a.images);
    cli_strings_free(&arguments);
    return code;
}
