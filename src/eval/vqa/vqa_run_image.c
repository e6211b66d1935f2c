/* vqa_run_image.c - the encoded photo of a question: a file, or base64 in the table of questions.
 * Neighbours often ask about the same one; it is read once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/base64.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "eval/vqa/vqa_run.h"

#include <stdio.h>
#include <string.h>

static renyi_status nomem(ry_vqa_run *r, renyi_error *err)
{
    r->photo_of = NULL;
    return ry_fail_nomem(err, 4096);
}

/* MME keeps some photos one folder further down: a/b.jpg -> a/images/b.jpg. */
static char *other_place(ry_vqa_run *r, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const ry_text folder = {path, slash ? (size_t)(slash - path) : 0};
    char *below = ry_pool_join(&r->a->pool, folder, ry_text_of("images"));
    return below ? ry_pool_join(&r->a->pool, ry_text_of(below), ry_text_of(name)) : NULL;
}

static renyi_status read_file(ry_vqa_run *r, const char *image, renyi_error *err)
{
    const uint64_t max = ry_limits(&r->o.limits).max_image_bytes;
    const ry_text folder = ry_text_of(r->o.images && image[0] != '/' ? r->o.images : "");
    int is_missing = 0;
    r->photo_name = ry_pool_join(&r->a->pool, folder, ry_text_of(image));
    if (!r->photo_name) return nomem(r, err);
    renyi_status st = ry_file_read(&r->photo, &r->photo_size, r->photo_name, max, &is_missing, err);
    if (is_missing) {
        const char *other = other_place(r, r->photo_name);
        renyi_error second;
        if (!other) return nomem(r, err);
        const renyi_status again =
            ry_file_read(&r->photo, &r->photo_size, other, max, NULL, &second);
        if (!again) r->photo_name = other, st = again;
    }
    return st ? ry_fail_in(err, st, r->photo_name) : RENYI_OK;
}

static renyi_status read_table(ry_vqa_run *r, const ry_vqa_question *q, renyi_error *err)
{
    char name[320];
    snprintf(name, sizeof name, "photo of question %s", q->id);
    r->photo_name = ry_pool_copy(&r->a->pool, ry_text_of(name));
    r->photo = ry_alloc(NULL, q->photo.n / 4 * 3 + 3, 1);
    if (!r->photo_name || !r->photo) return nomem(r, err);
    if (ry_base64_decode(q->photo.at, q->photo.n, r->photo, &r->photo_size)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: not base64", name);
}

renyi_status ry_vqa_load_photo(ry_vqa_run *r, const ry_vqa_question *q, int *is_same,
                               renyi_error *err)
{
    const char *of = q->image ? q->image : q->photo.at;
    *is_same = of && r->photo_of && r->photo && q->image && strcmp(r->photo_of, of) == 0;
    if (*is_same) return RENYI_OK;
    ry_free(NULL, r->photo);
    r->photo = NULL;
    r->photo_name = NULL;
    r->photo_size = 0;
    r->photo_of = q->image; /* of tables every photo counts as new */
    if (q->image) return read_file(r, q->image, err);
    return of ? read_table(r, q, err) : RENYI_OK;
}
