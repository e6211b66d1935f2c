/* search_execute.c - renyi search: index, questions, answers.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/files.h"
#include "cli/kit/progress.h"
#include "cli/search/search_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const renyi_error *err)
{
    cli_error("%s", err->message[0] ? err->message : renyi_status_name(err->code));
    return CLI_FAILED;
}

/* ---- the index ----------------------------------------------------------------------------- */

/* FNV-1a, for names of files: one index for each folder and name of a model. */
static unsigned long long name_hash(const char *folder, const char *model)
{
    unsigned long long hash = 0xcbf29ce484222325u;
    const char *const texts[] = {folder, model};

    for (size_t i = 0; i < 2; i++)
        for (const char *at = texts[i];; at++) {
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
            if (!*at) break;
        }
    return hash;
}

/* Where the index is; owned, NULL = it is not kept. */
static char *index_path(const search_arguments *a, const char *folder)
{
    if (a->index) return strcmp(a->index, "none") == 0 ? NULL : cli_copy(a->index);
    char *cache = user_cache_folder("galleries");
    if (!cache) return NULL;
    char *title = model_path_title(a->e.model);
    char *path = cli_format("%s/%016llx.safetensors", cache, name_hash(folder, title));
    free(title);
    free(cache);
    return path;
}

static int open_index(renyi_gallery **out, const char *path)
{
    renyi_error err = {0};
    const int is_there = path && access(path, F_OK) == 0;

    if ((is_there ? renyi_gallery_open(out, path, NULL, &err)
                  : renyi_gallery_new(out, NULL, &err)) == RENYI_OK)
        return CLI_OK;
    cli_error("%s; remove it, or name another file with --index",
              err.message[0] ? err.message : renyi_status_name(err.code));
    return CLI_FAILED;
}

static void note_changes(const renyi_gallery_changes *c, const char *index)
{
    if (c->is_anew) cli_note("index: made anew, for this model, policy and folder");
    cli_note("index: %zu photos were there, %zu added, %zu changed, %zu removed; %s", c->kept,
             c->added, c->changed, c->removed, index ? index : "not kept");
}

/* The gallery as the folder is now, saved if that changed anything. */
static int update(search_report *r, renyi_gallery *g, const embed_job *job, const char *folder,
                  work_progress *progress)
{
    const renyi_embed_options o = embed_job_options(job, progress);
    renyi_gallery_changes *c = &r->changes;
    renyi_gallery_info info;
    renyi_error err = {0}, late = {0};
    char *title = model_path_title(r->a->e.model);

    catch_interrupt();
    const renyi_status st = renyi_gallery_update(g, folder, job->model, title, &o, c, &err);
    work_progress_end(progress);
    free(title);
    renyi_gallery_get_info(g, &info);
    if (st != RENYI_OK && st != RENYI_ERR_ABORTED) return fail(&err);
    if (!info.n_photos) {
        cli_error("%s: no photo of it could be embedded", r->a->folder);
        return CLI_FAILED;
    }
    note_changes(c, r->index);
    const int is_new = c->added || c->changed || c->removed || c->is_anew;
    if (r->index && is_new && renyi_gallery_save(g, r->index, &late) != RENYI_OK)
        return fail(&late);
    if (st == RENYI_OK) return CLI_OK;
    cli_error("interrupted; %s", r->index ? "the same command goes on from here"
                                          : "with an index it could go on from here");
    return CLI_FAILED;
}

/* Without an update the index must be this model's. */
static int check_index(const search_report *r, const embed_job *job)
{
    work_progress unused = {0};
    const renyi_embed_options o = embed_job_options(job, &unused);
    renyi_error err = {0};

    if (renyi_gallery_check(r->gallery, job->model, &o, &err) == RENYI_OK) return CLI_OK;
    cli_error("%s: %s; without --no-update it is made anew", r->index ? r->index : "no index",
              err.message);
    return CLI_FAILED;
}

/* ---- questions ----------------------------------------------------------------------------- */

static int ask(search_report *r, const char *text, const char *image, const float *row)
{
    const size_t most = (size_t)r->a->top_k;
    renyi_gallery_info info;
    renyi_error err = {0};

    renyi_gallery_get_info(r->gallery, &info);
    r->answers = cli_grow(r->answers, r->n_answers + 1, sizeof *r->answers);
    search_answer *answer = &r->answers[r->n_answers++];
    *answer = (search_answer){.text = text, .image = image};
    const size_t room = most < info.n_photos ? most : info.n_photos;
    answer->hits = cli_alloc(room + 1, sizeof *answer->hits);
    if (renyi_gallery_search(r->gallery, row, room, answer->hits, &answer->n, &err) == RENYI_OK)
        return CLI_OK;
    return fail(&err);
}

static int ask_images(search_report *r, const embed_job *job)
{
    float *row = cli_alloc(job->dim, sizeof *row);
    int code = CLI_OK;

    for (size_t i = 0; code == CLI_OK && i < r->a->images.count; i++) {
        const char *path = r->a->images.items[i];
        char *why = NULL;
        if (embed_job_photo(job, path, row, &why) == 0) {
            code = ask(r, NULL, path, row);
        } else {
            cli_error("%s: %s", path, why);
            cli_strings_add(&r->bad_images, cli_copy(path));
            cli_strings_add(&r->bad_reasons, cli_copy(why));
        }
        free(why);
    }
    free(row);
    return code;
}

/* Texts are embedded before the folder is looked at: what is wrong with them shows at once. */
static int embed_texts(const search_arguments *a, const renyi_options *opt, uint32_t dim,
                       float **rows)
{
    text_side side;

    *rows = NULL;
    if (!a->texts.count) return CLI_OK;
    int code = text_side_open(&side, a->e.model, &a->text, opt);
    if (!code && side.info.embed_dim != dim) {
        cli_error("the image tower's embeddings have %u numbers, the text tower's %u", dim,
                  side.info.embed_dim);
        code = -1;
    }
    if (!code) {
        *rows = cli_alloc(a->texts.count, dim * sizeof **rows);
        code = text_side_embed(&side, &a->texts, a->text.truncate, (uint32_t)a->e.threads, *rows);
    }
    text_side_free(&side);
    return code ? CLI_FAILED : CLI_OK;
}

/* ---- all ----------------------------------------------------------------------------------- */

static int report(const search_report *r)
{
    const size_t n_failed = r->changes.failed + r->bad_images.count;
    const size_t n_asked = r->a->texts.count + r->a->images.count;

    if (r->a->json)
        search_report_json(r);
    else
        search_report_text(r);
    if (n_asked && !r->n_answers) return CLI_FAILED;
    return n_failed ? CLI_PARTIAL : CLI_OK;
}

static int search_in(search_report *r, renyi_gallery *g, const embed_job *job, const char *folder,
                     const renyi_options *opt)
{
    const search_arguments *a = r->a;
    work_progress progress = {.title = "index"};
    float *texts = NULL;
    int code = embed_texts(a, opt, job->dim, &texts);

    r->gallery = g;
    r->progress = &progress;
    if (code == CLI_OK)
        code = a->no_update ? check_index(r, job) : update(r, g, job, folder, &progress);
    for (size_t i = 0; code == CLI_OK && i < a->texts.count; i++)
        code = ask(r, a->texts.items[i], NULL, texts + i * job->dim);
    if (code == CLI_OK) code = ask_images(r, job);
    if (code == CLI_OK) code = report(r);
    work_progress_free(&progress);
    free(texts);
    return code;
}

static int search_with(const search_arguments *a, const renyi_model *model, const char *folder,
                       const renyi_options *opt)
{
    search_report r = {.a = a};
    renyi_gallery *g = NULL;
    renyi_model_info info;
    embed_job job;
    char *path = index_path(a, folder);

    renyi_model_get_info(model, &info);
    r.model = &info;
    r.index = path;
    int code = embed_job_open(&job, "search", &a->e, model);
    if (code == CLI_OK) code = open_index(&g, path);
    if (code == CLI_OK) code = search_in(&r, g, &job, folder, opt);
    for (size_t i = 0; i < r.n_answers; i++) free(r.answers[i].hits);
    free(r.answers);
    cli_strings_free(&r.bad_images);
    cli_strings_free(&r.bad_reasons);
    renyi_gallery_free(g);
    free(path);
    return code;
}

int search_execute(const search_arguments *a)
{
    const renyi_options opt = embed_model_options(&a->e);
    char *folder = realpath(a->folder, NULL); /* one folder, one index, whatever it is called */
    int code = CLI_FAILED;

    if (!folder) {
        cli_error("%s: %s", a->folder, strerror(errno));
        return CLI_FAILED;
    }
    renyi_model *model = model_open_reported(a->e.model, &opt);
    if (model) code = search_with(a, model, folder, &opt);
    renyi_model_free(model);
    free(folder);
    return code;
}
