/* zeroshot_head.c - see zeroshot_head.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/zeroshot_head.h"

#include "cli/eval/eval_job.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"
#include "cli/kit/progress.h"

#include <stdlib.h>
#include <string.h>

/* ---- words --------------------------------------------------------------------------------- */

void zeroshot_arguments_free(zeroshot_arguments *z) { cli_strings_free(&z->templates); }

/* The sentences that a word of --templates stands for, behind those that are there. */
static int add_templates(cli_strings *sentences, const char *verb, const char *word)
{
    renyi_templates *t = NULL;
    renyi_error err = {0};
    uint32_t n;

    if (renyi_templates_open(&t, word, NULL, &err) != RENYI_OK) {
        if (strchr(word, '{')) err.code = RENYI_ERR_ARG; /* not a file at fault: the command line */
        return eval_error(verb, &err);
    }
    const char *const *texts = renyi_templates_texts(t, &n);
    for (uint32_t i = 0; i < n; i++) cli_strings_add(sentences, cli_copy(texts[i]));
    renyi_templates_free(t);
    return CLI_OK;
}

static int has_collection(const zeroshot_arguments *z)
{
    return z->collection && strcmp(z->collection, "none") != 0;
}

int zeroshot_check(const char *verb, const zeroshot_arguments *z)
{
    cli_strings sentences = {0};
    renyi_collection c;
    renyi_error err = {0};
    int code = CLI_OK;

    for (size_t i = 0; code == CLI_OK && i < z->templates.count; i++)
        code = add_templates(&sentences, verb, z->templates.items[i]);
    if (code == CLI_OK && has_collection(z) && strcmp(z->collection, "auto") != 0 &&
        renyi_collection_find(z->collection, &c, &err) != RENYI_OK)
        code = eval_error(verb, &err);
    cli_strings_free(&sentences);
    return code;
}

void zeroshot_data_options(const zeroshot_arguments *z, renyi_dataset_options *o)
{
    o->own_classes = 1;
    o->class_names = z->class_names;
    o->collection = has_collection(z) ? z->collection : z->collection ? NULL : "auto";
}

/* All that answers depend on beside tower and photos. */
static char *make_condition(const zeroshot_words *w)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f) return cli_copy("");
    for (size_t i = 0; i < w->sentences.count; i++) fprintf(f, "%s\n", w->sentences.items[i]);
    for (uint32_t i = 0; i < w->n_classes; i++) fprintf(f, "%s\n", w->names[i]);
    fclose(f);
    return text;
}

static char *make_title(const zeroshot_arguments *z, const char *fallback)
{
    if (!z->templates.count) return cli_copy(fallback);
    if (z->templates.count == 1) return cli_copy(z->templates.items[0]);
    return cli_format("%s and %zu more", z->templates.items[0], z->templates.count - 1);
}

int zeroshot_words_make(zeroshot_words *out, const char *verb, const zeroshot_arguments *z,
                        const renyi_dataset *data)
{
    renyi_collection c = {.templates = "simple"};
    int code = CLI_OK;

    *out = (zeroshot_words){0};
    renyi_dataset_get_info(data, &out->data);
    out->names = renyi_dataset_names(data, &out->n_classes);
    if (out->data.collection) (void)!renyi_collection_find(out->data.collection, &c, NULL);
    out->title = make_title(z, c.templates);
    if (!z->templates.count) code = add_templates(&out->sentences, verb, c.templates);
    for (size_t i = 0; code == CLI_OK && i < z->templates.count; i++)
        code = add_templates(&out->sentences, verb, z->templates.items[i]);
    out->condition = make_condition(out);
    if (out->data.n_empty && !ranks_number())
        cli_warn("%u of %u classes have no photos here: they can be answered, but never rightly",
                 out->data.n_empty, out->n_classes);
    return code;
}

void zeroshot_words_free(zeroshot_words *w)
{
    cli_strings_free(&w->sentences);
    free(w->title);
    free(w->condition);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void note_cache(const renyi_classifier_info *info)
{
    if (info->cache == RENYI_CACHE_READ)
        cli_note("classes: their rows come from %s", info->cache_path);
    else if (info->cache == RENYI_CACHE_FAILED)
        cli_warn("rows of the classes are not kept: %s", info->cache_message);
    else if (info->cache_message[0])
        cli_detail("computed again: %s", info->cache_message);
}

static renyi_classifier *compute(const text_tower *side, const zeroshot_arguments *z,
                                 const zeroshot_words *w, const char *cache, uint64_t threads)
{
    work_progress progress = {.title = "classes"};
    const renyi_classifier_options o = {.struct_size = sizeof o,
                                        .templates = (const char *const *)w->sentences.items,
                                        .n_templates = (uint32_t)w->sentences.count,
                                        .truncate = z->text.truncate != 0,
                                        .n_threads = ranks_threads(threads),
                                        .cache = cache,
                                        .progress = work_on_progress,
                                        .progress_user = &progress};
    renyi_classifier *c = NULL;
    renyi_classifier_info info;
    renyi_error err = {0};

    if (renyi_classifier_new(&c, side->text, side->tokenizer, w->names, w->n_classes, &o, &err) !=
        RENYI_OK)
        c = NULL;
    work_progress_free(&progress);
    if (!c) {
        cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
        return NULL;
    }
    renyi_classifier_get_info(c, &info);
    note_cache(&info);
    return c;
}

renyi_classifier *zeroshot_classifier(const char *model, const zeroshot_arguments *z,
                                      const zeroshot_words *w, const renyi_options *opt,
                                      uint64_t threads)
{
    const int is_wanted = !z->cache || strcmp(z->cache, "none") != 0;
    char *folder = is_wanted && !z->cache ? user_cache_folder("classifiers") : NULL;
    renyi_classifier *c = NULL;
    text_tower side;

    if (text_tower_open(&side, model, &z->text, opt, 0) == 0)
        c = compute(&side, z, w, is_wanted ? (z->cache ? z->cache : folder) : NULL, threads);
    text_tower_free(&side);
    free(folder);
    return c;
}

int zeroshot_model(renyi_model **out, const renyi_model *tower, const renyi_classifier *c,
                   const zeroshot_words *w)
{
    renyi_classifier_info info;
    renyi_model_info image;
    renyi_error err = {0};

    renyi_classifier_get_info(c, &info);
    renyi_model_get_info(tower, &image);
    if (image.embed_dim != info.embed_dim) {
        cli_error("the image tower's embeddings have %u numbers, the text tower's %u",
                  image.embed_dim, info.embed_dim);
        return CLI_FAILED;
    }
    if (renyi_model_zeroshot(out, tower, renyi_classifier_rows(c), w->names, w->n_classes,
                             info.scale, &err) == RENYI_OK)
        return CLI_OK;
    cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
    return CLI_FAILED;
}
