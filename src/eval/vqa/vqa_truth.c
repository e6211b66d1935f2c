/* vqa_truth.c - the right answers from a benchmark's own files. Questions and annotations meet by a
 * text that both have: the id; of vizwiz the photo; of textvqa the photo and the question; of pope
 * category, photo and question.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <string.h>

ry_text ry_vqa_bare_question(const char *prompt)
{
    const ry_text all = ry_text_of(prompt);
    ry_lines l = ry_lines_of(all.at, all.n);
    ry_text first = {prompt, 0};
    static const char ocr[] = "Reference OCR token:";
    if (!ry_lines_next(&l, &first)) return first;
    if (first.n >= sizeof ocr - 1 && memcmp(first.at, ocr, sizeof ocr - 1) == 0)
        (void)ry_lines_next(&l, &first);
    return first;
}

/* ---- the table ----------------------------------------------------------------------------- */

/* "a\x1f" "b\x1f" "lower case of c", in the pool. */
static char *join(renyi_vqa *v, const char *a, const char *b, ry_text c)
{
    const size_t n = strlen(a), m = strlen(b);
    char *lower = ry_vqa_lower(c.at, c.n, &v->al);
    char *key = lower ? ry_pool_take(&v->pool, n + m + strlen(lower) + 3, 1) : NULL;
    if (key) {
        memcpy(key, a, n);
        key[n] = 0x1f;
        memcpy(key + n + 1, b, m);
        key[n + m + 1] = 0x1f;
        memcpy(key + n + m + 2, lower, strlen(lower) + 1);
    }
    ry_free(&v->al, lower);
    return key;
}

static char *key_of(renyi_vqa *v, const ry_vqa_question *q)
{
    const ry_text none = {"", 0};
    const char *category = q->category == RY_VQA_NONE ? "" : v->categories[q->category];
    switch (v->info.task) {
    case RENYI_VQA_VIZWIZ: return join(v, q->image, "", none);
    case RENYI_VQA_TEXTVQA: return join(v, q->id, "", ry_vqa_bare_question(q->prompt));
    case RENYI_VQA_POPE: return join(v, category, q->image, ry_vqa_bare_question(q->prompt));
    default: return join(v, q->id, "", none);
    }
}

renyi_status ry_vqa_join_open(ry_vqa_join_table *j, renyi_vqa *v, renyi_error *err)
{
    *j = (ry_vqa_join_table){.v = v, .keys = ry_calloc(&v->al, v->count, sizeof *j->keys)};
    if (!j->keys) return ry_fail_nomem(err, v->count * sizeof *j->keys);
    for (size_t i = 0; i < v->count; i++) {
        j->keys[i] = key_of(v, &v->questions[i]);
        if (!j->keys[i]) return ry_fail_nomem(err, 256);
        RY_TRY(ry_vqa_index_add(&j->index, ry_vqa_key(j->keys[i], ""), (uint32_t)i, &v->al, err));
    }
    ry_vqa_index_sort(&j->index);
    return RENYI_OK;
}

void ry_vqa_join_close(ry_vqa_join_table *j)
{
    if (!j->v) return;
    ry_free(&j->v->al, j->keys);
    ry_vqa_index_free(&j->index, &j->v->al);
    *j = (ry_vqa_join_table){0};
}

renyi_status ry_vqa_join_find(ry_vqa_join_table *j, const ry_vqa_join_key *k,
                              ry_vqa_question *found[RY_VQA_MAX_SAME], size_t *n, renyi_error *err)
{
    char *key = join(j->v, k->a, k->b, ry_text_of(k->question));
    *n = 0;
    if (!key) return ry_fail_nomem(err, 256);
    const ry_vqa_slot *s = ry_vqa_index_find(&j->index, ry_vqa_key(key, ""));
    for (; s && *n < RY_VQA_MAX_SAME; s = ry_vqa_index_next(&j->index, s))
        if (strcmp(j->keys[s->place], key) == 0) found[(*n)++] = &j->v->questions[s->place];
    j->n_found += *n;
    return RENYI_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

static renyi_status read_file(ry_vqa_join_table *j, const char *path, renyi_error *err)
{
    unsigned char *bytes;
    size_t size;
    char kind[64] = "";
    RY_TRY(ry_vqa_load(&bytes, &size, path, j->v->max_file_bytes, err));
    if (j->v->info.task == RENYI_VQA_POPE) (void)ry_vqa_pope_kind(path, kind);
    const renyi_status st = j->v->info.task == RENYI_VQA_POPE
                                ? ry_vqa_truth_pope(j, path, kind, (const char *)bytes, size, err)
                                : ry_vqa_truth_json(j, path, (const char *)bytes, size, err);
    ry_free(NULL, bytes);
    return st;
}

static int is_pope(const char *name)
{
    char kind[64];
    return ry_vqa_pope_kind(name, kind);
}

static int is_problems(const char *name) { return strcmp(name, "problems.json") == 0; }

static renyi_status read_all(ry_vqa_join_table *j, const char *path, renyi_error *err)
{
    const renyi_vqa_task task = j->v->info.task;
    const char **paths;
    size_t n;
    if (!ry_vqa_is_folder(path)) return read_file(j, path, err);
    if (task != RENYI_VQA_POPE && task != RENYI_VQA_SQA)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s: a folder; a file of annotations is meant",
                       path);
    const int of_pope = task == RENYI_VQA_POPE;
    RY_TRY(ry_vqa_list(&j->v->pool, path, of_pope ? is_pope : is_problems, &paths, &n, err));
    if (!n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no %s in this folder", path,
                       of_pope ? "coco_pope_*.json" : "problems.json");
    for (size_t i = 0; i < n; i++) RY_TRY(read_file(j, paths[i], err));
    return RENYI_OK;
}

renyi_status ry_vqa_read_truth(renyi_vqa *v, const char *path, renyi_error *err)
{
    ry_vqa_join_table j = {0};
    renyi_vqa_task_info task;
    renyi_vqa_get_task(v->info.task, &task);
    if (!task.annotations)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%s has no annotations beside its questions",
                       task.name);
    if (v->info.task == RENYI_VQA_MME) return ry_vqa_truth_mme(v, path, err);
    renyi_status st = ry_vqa_join_open(&j, v, err);
    if (!st) st = read_all(&j, path, err);
    if (!st && !j.n_found)
        st = ry_fail(err, RENYI_ERR_FORMAT, -1,
                     "%s: none of the %zu questions is in it; %s wants %s", path, v->count,
                     task.name, task.annotations);
    ry_vqa_join_close(&j);
    return st;
}
