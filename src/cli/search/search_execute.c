/* search_execute.c - the work of renyi search: updates the index of a folder and runs the queries.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/files.h"
#include "cli/search/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the index ----------------------------------------------------------------------------- */

/* FNV-1a: the file name of the index of a folder and a model. */
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

/* Path of the index; owned, NULL = it is not saved. */
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
    cli_error("%s; remove it, or name another file with --index", cli_reason(&err));
    return CLI_FAILED;
}

static void note_changes(const renyi_gallery_changes *c, const char *index)
{
    if (c->is_anew) cli_note("index: built again for this model, policy and folder");
    cli_note("index: %zu images kept, %zu added, %zu changed, %zu removed; %s", c->kept, c->added,
             c->changed, c->removed, index ? index : "not saved");
}

/* Makes the gallery match the folder and saves it if anything changed. */
static int update_index(search_result *r, renyi_gallery *g, const embed_job *job,
                        const char *folder, work_progress *progress)
{
    renyi_embed_options o = embed_job_options(job, progress);
    renyi_gallery_changes *c = &r->changes;
    renyi_gallery_info info;
    renyi_error err = {0}, late = {0};
    char *title = model_path_title(r->a->e.model);

    o.save_to = r->index;
    catch_interrupt();
    const renyi_status st = renyi_gallery_update(g, folder, job->model, title, &o, c, &err);
    work_progress_end(progress);
    free(title);
    renyi_gallery_get_info(g, &info);
    if (st != RENYI_OK && st != RENYI_ERR_ABORTED) return cli_fail(&err);
    if (!info.n_photos) {
        cli_error("%s: none of its images could be embedded", r->a->folder);
        return CLI_FAILED;
    }
    note_changes(c, r->index);
    const int is_new = c->added || c->changed || c->removed || c->is_anew;
    if (r->index && is_new && renyi_gallery_save(g, r->index, &late) != RENYI_OK)
        return cli_fail(&late);
    if (st == RENYI_OK) return CLI_OK;
    cli_error("interrupted; %s", r->index ? "run the same command again to continue"
                                          : "without an index it cannot be continued");
    return CLI_FAILED;
}

/* Without an update the index must have been built with this model. */
static int check_index(const search_result *r, const embed_job *job)
{
    work_progress unused = {0};
    const renyi_embed_options o = embed_job_options(job, &unused);
    renyi_error err = {0};

    if (renyi_gallery_check(r->gallery, job->model, &o, &err) == RENYI_OK) return CLI_OK;
    cli_error("%s: %s; without --no-update it is built again", r->index ? r->index : "no index",
              err.message);
    return CLI_FAILED;
}

/* ---- queries ------------------------------------------------------------------------------- */

static int run_query(search_result *r, const char *text, const char *image, const float *row)
{
    const size_t most = (size_t)r->a->top_k;
    renyi_gallery_info info;
    renyi_error err = {0};

    renyi_gallery_get_info(r->gallery, &info);
    r->answers = cli_grow(r->answers, r->n_answers + 1, sizeof *r->answers);
    search_answer *answer = &r->answers[r->n_answers++];
    *answer = (search_answer){.text = text, .image = image};
    const size_t n = most < info.n_photos ? most : info.n_photos;
    answer->hits = cli_alloc(n + 1, sizeof *answer->hits);
    if (renyi_gallery_search(r->gallery, row, n, answer->hits, &answer->n, &err) == RENYI_OK)
        return CLI_OK;
    return cli_fail(&err);
}

static int run_image_queries(search_result *r, const embed_job *job)
{
    float *row = cli_alloc(job->dim, sizeof *row);
    int code = CLI_OK;

    for (size_t i = 0; code == CLI_OK && i < r->a->images.count; i++) {
        const char *path = r->a->images.items[i];
        char *why = NULL;
        if (embed_job_image(job, path, row, &why) == 0) {
            code = run_query(r, NULL, path, row);
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

/* Texts are embedded before the folder is read, so that their errors show at once. */
static int embed_texts(search_result *r, const renyi_options *opt, uint32_t dim, float **rows)
{
    const search_arguments *a = r->a;
    text_tower tower;

    *rows = NULL;
    if (!a->texts.count) return CLI_OK;
    int code = text_tower_open(&tower, a->e.model, &a->text, opt, dim);
    if (!code) {
        *rows = cli_alloc(a->texts.count, dim * sizeof **rows);
        r->text = tower.info;
        code = text_tower_embed(&tower, &a->texts, a->text.truncate, (uint32_t)a->e.threads, *rows);
    }
    text_tower_free(&tower);
    return code ? CLI_FAILED : CLI_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int put_result(const search_result *r)
{
    const size_t n_failed = r->changes.failed + r->bad_images.count;
    const size_t n_asked = r->a->texts.count + r->a->images.count;

    if (r->a->json)
        search_put_json(r);
    else
        search_put_text(r);
    if (n_asked && !r->n_answers) return CLI_FAILED;
    return n_failed ? CLI_PARTIAL : CLI_OK;
}

static int search_in(search_result *r, renyi_gallery *g, const embed_job *job, const char *folder,
                     const renyi_options *opt)
{
    const search_arguments *a = r->a;
    work_progress progress = {.title = "index"};
    float *texts = NULL;
    int code = embed_texts(r, opt, job->dim, &texts);

    r->gallery = g;
    r->progress = &progress;
    if (code == CLI_OK)
        code = a->no_update ? check_index(r, job) : update_index(r, g, job, folder, &progress);
    for (size_t i = 0; code == CLI_OK && i < a->texts.count; i++)
        code = run_query(r, a->texts.items[i], NULL, texts + i * job->dim);
    if (code == CLI_OK) code = run_image_queries(r, job);
    if (code == CLI_OK) code = put_result(r);
    work_progress_free(&progress);
    free(texts);
    return code;
}

static int search_with(const search_arguments *a, const renyi_model *model,
                       const renyi_model_info *info, const char *folder, const renyi_options *opt)
{
    char *path = index_path(a, folder);
    search_result r = {.a = a, .model = info, .index = path};
    renyi_gallery *g = NULL;
    embed_job job;

    int code = embed_job_open(&job, "search", &a->e, model, info);
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
    const renyi_options opt = model_options(a->e.cpu, a->e.dtype, a->e.image_size);
    renyi_model_info info;
    char *folder = realpath(a->folder, NULL); /* the same index for every name of a folder */
    int code = CLI_FAILED;

    if (!folder) {
        cli_error("%s: %s", a->folder, strerror(errno));
        return CLI_FAILED;
    }
    renyi_model *model = model_open_reported(a->e.model, &opt, &info);
    if (model) code = search_with(a, model, &info, folder, &opt);
    renyi_model_free(model);
    free(folder);
    return code;
}
