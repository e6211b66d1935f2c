/* search_report.c - see search_report.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/search/search_report.h"

#include "cli/kit/output.h"

#include <stdlib.h>
#include <string.h>

/* As other programs can open it: below the folder as it was given now. Owned. */
static char *path_of(const search_report *r, const char *file)
{
    const char *folder = r->a->folder;
    const size_t n = strlen(folder);

    return cli_format("%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", file);
}

/* ---- for people ---------------------------------------------------------------------------- */

static void put_hits(const search_report *r, const search_answer *answer)
{
    for (size_t i = 0; i < answer->n; i++) {
        renyi_gallery_photo photo;
        renyi_gallery_get_photo(r->gallery, answer->hits[i].photo, &photo);
        char *path = path_of(r, photo.file);
        if (r->a->paths) {
            fputs(path, stdout); /* as it is: it goes to a program */
        } else {
            printf("  %7.4f  ", answer->hits[i].score);
            cli_put_clean(stdout, path);
        }
        putchar('\n');
        free(path);
    }
}

void search_report_text(const search_report *r)
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

static json_t *answer_json(const search_report *r, const search_answer *answer)
{
    json_t *hits = json_array();

    for (size_t i = 0; i < answer->n; i++) {
        renyi_gallery_photo photo;
        renyi_gallery_get_photo(r->gallery, answer->hits[i].photo, &photo);
        char *path = path_of(r, photo.file);
        json_array_append_new(hits,
                              json_pack("{s:o, s:o, s:f}", "file", json_text(photo.file), "path",
                                        json_text(path), "score", answer->hits[i].score));
        free(path);
    }
    return json_pack("{s:o, s:o, s:o}", "text", json_text(answer->text), "image",
                     json_text(answer->image), "hits", hits);
}

static void add_failures(json_t *list, const cli_strings *files, const cli_strings *reasons)
{
    for (size_t i = 0; i < files->count; i++)
        json_array_append_new(list, json_pack("{s:o, s:o}", "file", json_text(files->items[i]),
                                              "error", json_text(reasons->items[i])));
}

void search_report_json(const search_report *r)
{
    const renyi_gallery_changes *c = &r->changes;
    json_t *queries = json_array(), *failed = json_array();
    renyi_gallery_info info;

    renyi_gallery_get_info(r->gallery, &info);
    for (size_t i = 0; i < r->n_answers; i++)
        json_array_append_new(queries, answer_json(r, &r->answers[i]));
    add_failures(failed, &r->progress->failed, &r->progress->reasons);
    add_failures(failed, &r->bad_images, &r->bad_reasons);
    json_print(json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:i, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "model",
        json_text(r->a->e.model), "architecture", json_text(r->model->architecture), "dtype",
        renyi_dtype_name(r->model->dtype), "policy", json_text(info.policy), "folder",
        json_text(r->a->folder), "index", json_text(r->index), "photos", (json_int_t)info.n_photos,
        "dim", (int)info.dim, "kept", (json_int_t)c->kept, "added", (json_int_t)c->added, "changed",
        (json_int_t)c->changed, "removed", (json_int_t)c->removed, "anew", c->is_anew, "queries",
        queries, "failed", failed));
}
