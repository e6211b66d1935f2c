/* zeroshot_classes.c - the classes of a zero-shot run: names, sentences, classifier.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_job.h"
#include "cli/eval/zeroshot.h"
#include "cli/kit/cli_ranks.h"
#include "cli/kit/files.h"
#include "cli/kit/progress.h"

#include <stdlib.h>
#include <string.h>

/* ---- names and sentences ------------------------------------------------------------------- */

void zeroshot_arguments_free(zeroshot_arguments *z) { cli_strings_free(&z->templates); }

/* Appends the sentences that one --templates means. */
static int add_templates(cli_strings *sentences, const char *verb, const char *name)
{
    renyi_templates *t = NULL;
    renyi_error err = {0};
    uint32_t n;

    if (renyi_templates_open(&t, name, NULL, &err) != RENYI_OK) {
        if (strchr(name, '{')) err.code = RENYI_ERR_ARG; /* a sentence, not a file */
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

/* What results depend on besides the tower and the images. */
static char *make_condition(const zeroshot_classes *classes)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f) return cli_copy("");
    for (size_t i = 0; i < classes->sentences.count; i++)
        fprintf(f, "%s\n", classes->sentences.items[i]);
    for (uint32_t i = 0; i < classes->n_classes; i++) fprintf(f, "%s\n", classes->names[i]);
    fclose(f);
    return text;
}

static char *make_title(const zeroshot_arguments *z, const char *fallback)
{
    if (!z->templates.count) return cli_copy(fallback);
    if (z->templates.count == 1) return cli_copy(z->templates.items[0]);
    return cli_format("%s and %zu more", z->templates.items[0], z->templates.count - 1);
}

/* The sentences of the options, or those that `usual` names; *out has its names. */
static int take_templates(zeroshot_classes *out, const char *verb, const zeroshot_arguments *z,
                          const char *usual)
{
    int code = CLI_OK;

    out->title = make_title(z, usual);
    if (!z->templates.count) code = add_templates(&out->sentences, verb, usual);
    for (size_t i = 0; code == CLI_OK && i < z->templates.count; i++)
        code = add_templates(&out->sentences, verb, z->templates.items[i]);
    out->condition = make_condition(out);
    return code;
}

int zeroshot_classes_take(zeroshot_classes *out, const char *verb, const zeroshot_arguments *z,
                          const cli_strings *names)
{
    *out = (zeroshot_classes){.names = (const char *const *)names->items,
                              .n_classes = (uint32_t)names->count};
    return take_templates(out, verb, z, "simple");
}

int zeroshot_classes_make(zeroshot_classes *out, const char *verb, const zeroshot_arguments *z,
                          const renyi_dataset *data)
{
    renyi_collection c = {.templates = "simple"};

    *out = (zeroshot_classes){0};
    renyi_dataset_get_info(data, &out->data);
    out->names = renyi_dataset_names(data, &out->n_classes);
    if (out->data.collection) (void)!renyi_collection_find(out->data.collection, &c, NULL);
    const int code = take_templates(out, verb, z, c.templates);
    if (out->data.n_empty && !ranks_number())
        cli_warn("%u of %u classes have no images here: predicting them is always wrong",
                 out->data.n_empty, out->n_classes);
    return code;
}

void zeroshot_classes_free(zeroshot_classes *classes)
{
    cli_strings_free(&classes->sentences);
    free(classes->title);
    free(classes->condition);
}

/* ---- embeddings ---------------------------------------------------------------------------- */

static void note_cache(const renyi_classifier_info *info)
{
    if (info->cache == RENYI_CACHE_READ)
        cli_note("classes: embeddings read from %s", info->cache_path);
    else if (info->cache == RENYI_CACHE_FAILED)
        cli_warn("embeddings of the classes are not cached: %s", info->cache_message);
    else if (info->cache_message[0])
        cli_detail("embeddings of the classes are computed again: %s", info->cache_message);
}

static renyi_classifier *compute_classifier(const text_tower *text, const zeroshot_arguments *z,
                                            const zeroshot_classes *classes, const char *cache,
                                            uint64_t threads)
{
    work_progress progress = {.title = "classes"};
    const renyi_classifier_options o = {.struct_size = sizeof o,
                                        .templates = (const char *const *)classes->sentences.items,
                                        .n_templates = (uint32_t)classes->sentences.count,
                                        .truncate = z->text.truncate != 0,
                                        .n_threads = ranks_threads(threads),
                                        .cache = cache,
                                        .progress = work_on_progress,
                                        .progress_user = &progress};
    renyi_classifier *c = NULL;
    renyi_classifier_info info;
    renyi_error err = {0};

    if (renyi_classifier_new(&c, text->text, text->tokenizer, classes->names, classes->n_classes,
                             &o, &err) != RENYI_OK)
        c = NULL;
    work_progress_free(&progress);
    if (!c) {
        cli_fail(&err);
        return NULL;
    }
    renyi_classifier_get_info(c, &info);
    note_cache(&info);
    return c;
}

renyi_classifier *zeroshot_classifier(const char *model, const zeroshot_arguments *z,
                                      const zeroshot_classes *classes, const renyi_options *opt,
                                      uint64_t threads)
{
    const int is_wanted = !z->cache || strcmp(z->cache, "none") != 0;
    char *folder = is_wanted && !z->cache ? user_cache_folder("classifiers") : NULL;
    renyi_classifier *c = NULL;
    text_tower text;

    if (text_tower_open(&text, model, &z->text, opt, 0) == 0)
        c = compute_classifier(&text, z, classes, is_wanted ? (z->cache ? z->cache : folder) : NULL,
                               threads);
    text_tower_free(&text);
    free(folder);
    return c;
}

renyi_status zeroshot_head(renyi_model **out, const renyi_model *tower, const renyi_classifier *c,
                           const char *const *names, renyi_error *err)
{
    const float *rows = renyi_classifier_rows(c);
    renyi_classifier_info i;

    renyi_classifier_get_info(c, &i);
    if (!i.is_sigmoid)
        return renyi_model_zeroshot(out, tower, rows, names, i.n_classes, i.scale, err);
    return renyi_model_zeroshot_sigmoid(out, tower, rows, names, i.n_classes, i.scale, i.bias, err);
}

int zeroshot_model(renyi_model **out, const renyi_model *tower, const renyi_classifier *c,
                   zeroshot_classes *classes)
{
    renyi_classifier_info info;
    renyi_model_info image;
    renyi_error err = {0};

    renyi_classifier_get_info(c, &info);
    renyi_model_get_info(tower, &image);
    if (image.embed_dim != info.embed_dim) {
        cli_error("embeddings of the image tower have %u values, those of the text tower %u",
                  image.embed_dim, info.embed_dim);
        return CLI_FAILED;
    }
    classes->is_sigmoid = info.is_sigmoid != 0;
    const renyi_status st = zeroshot_head(out, tower, c, classes->names, &err);
    return st == RENYI_OK ? CLI_OK : cli_fail(&err);
}
