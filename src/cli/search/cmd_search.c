/* cmd_search.c - renyi search: the command line; the work is in search_execute.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/search/search_arguments.h"
#include "cli/verbs.h"

static int check(search_arguments *a, const cli_strings *words)
{
    if (!a->e.model) return options_usage_error("search", "-m MODEL is missing");
    if (!words->count) return options_usage_error("search", "FOLDER is missing");
    a->folder = words->items[0];
    for (size_t i = 1; i < words->count; i++) cli_strings_add(&a->texts, cli_copy(words->items[i]));
    if (a->no_update && !a->texts.count && !a->images.count)
        return options_usage_error("search", "--no-update without a question leaves nothing to do");
    return embed_arguments_check("search", &a->e);
}

static option_outcome parse(search_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        {"model", 'm', OPTION_STRING, &a->e.model, "MODEL",
         "file, directory, or Hugging Face name in the cache", 0, 0},
        {"text", 0, OPTION_STRINGS, &a->texts, "TEXT", "what to look for; as a word behind FOLDER",
         0, 0},
        {"image", 'i', OPTION_STRINGS, &a->images, "PHOTO", "a photo to find others like; '-' too",
         0, 0},
        {"topk", 'k', OPTION_COUNT, &a->top_k, "N", "photos to name for each question (10)", 1,
         1000000},
        {"index", 0, OPTION_STRING, &a->index, "FILE|none",
         "where rows of the photos are kept (a file in the user's cache folder)", 0, 0},
        {"no-update", 0, OPTION_FLAG, &a->no_update, "",
         "take the index as it is; do not look at the folder", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document on stdout", 0, 0},
        {"paths", 0, OPTION_FLAG, &a->paths, "", "paths alone, one a line, for other programs", 0,
         0},
        TEXT_OPTION_ROWS(&a->text),
        EMBED_OPTION_ROWS(&a->e),
    };
    const verb_syntax syntax = {
        "search", "-m MODEL FOLDER [TEXT...] [--image PHOTO]... [options]",
        "The photos at and below FOLDER that are nearest to a text (with a CLIP) or to a photo (with any\n"
        "model), best first, with the cosine of each. Every photo is embedded once: its row is kept in an\n"
        "index, and later runs embed only what is new or has changed. Without a question the index is just\n"
        "brought up to date. Ctrl-C keeps what is done. Photos that cannot be read are named, and the exit\n"
        "code is 3.",
        "  renyi search -m openai/clip-vit-base-patch16 ~/Pictures 'two dogs on a beach'\n"
        "  renyi search -m clip ~/Pictures --image cat.jpg -k 20 --json\n"
        "  renyi search -m clip ~/Pictures 'birthday cake' --paths | xargs -d '\\n' feh\n"
        "  renyi search -m vit.safetensors photos --image cat.jpg --index photos.safetensors\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_search(int argc, char **argv)
{
    search_arguments a = {.top_k = 10};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check(&a, &words)) == CLI_OK) code = search_execute(&a);
    embed_arguments_free(&a.e);
    cli_strings_free(&a.texts);
    cli_strings_free(&a.images);
    cli_strings_free(&words);
    return code;
}
