/* vqa_open.c - renyi_vqa_open: reads the questions and right answers of a benchmark, takes one
 * shard of them and builds the index.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <string.h>

/* ---- files ---------------------------------------------------------------------------------- */

static int is_json(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".json") == 0;
}

static renyi_status read_file(renyi_vqa *v, const char *path, renyi_error *err)
{
    const renyi_vqa_task task = v->info.task;
    unsigned char *bytes;
    size_t size;
    char kind[64];
    renyi_status st;
    RY_TRY(ry_vqa_read_file(&bytes, &size, path, v->max_file_bytes, err));
    if (ry_vqa_is_mmbench(task)) {
        v->table = bytes; /* questions point to the images in it */
        v->table_size = size;
        return ry_vqa_read_mmbench(v, path, (const char *)bytes, size, err);
    }
    if (task == RENYI_VQA_SQA) {
        st = ry_vqa_read_sqa(v, path, (const char *)bytes, size, err);
    } else if (task == RENYI_VQA_OCRBENCH) {
        st = ry_vqa_read_ocrbench(v, path, (const char *)bytes, size, err);
    } else if (task == RENYI_VQA_SEED && is_json(path)) {
        st = ry_vqa_read_seed(v, path, (const char *)bytes, size, err);
    } else {
        const int is_pope = task == RENYI_VQA_POPE && ry_vqa_pope_kind(path, kind);
        st = ry_vqa_read_lines(v, path, is_pope ? kind : NULL, (const char *)bytes, size, err);
    }
    ry_free(NULL, bytes);
    return st;
}

static renyi_status read_questions(renyi_vqa *v, const char *path, renyi_error *err)
{
    const char **paths;
    size_t n;
    if (v->info.task != RENYI_VQA_POPE || !ry_is_folder(path)) return read_file(v, path, err);
    RY_TRY(ry_vqa_list_folder(&v->pool, path, ry_vqa_is_pope_file, &paths, &n, err));
    if (!n)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: no coco_pope_*.json in this folder", path);
    v->is_several = n > 1;
    for (size_t i = 0; i < n; i++) RY_TRY(read_file(v, paths[i], err));
    return RENYI_OK;
}

/* ---- selection ------------------------------------------------------------------------------ */

/* Some questions of MME occur twice; its own script counts them once. */
static renyi_status drop_repeated(renyi_vqa *v, renyi_error *err)
{
    ry_vqa_index seen = {0};
    size_t kept = 0;
    renyi_status st = RENYI_OK;
    for (size_t i = 0; !st && i < v->count; i++) {
        const ry_vqa_question *q = &v->questions[i];
        st = ry_vqa_index_add(&seen, ry_vqa_hash(q->id, q->prompt), (uint32_t)i, &v->al, err);
    }
    ry_vqa_index_sort(&seen);
    for (size_t i = 0; !st && i < v->count; i++) {
        const ry_vqa_question *q = &v->questions[i];
        const ry_vqa_slot *first = ry_vqa_index_find(&seen, ry_vqa_hash(q->id, q->prompt));
        if (first->place == i) v->questions[kept++] = *q;
    }
    ry_vqa_index_free(&seen, &v->al);
    if (!st) v->count = kept;
    return st;
}

static renyi_status select_shard(renyi_vqa *v, const renyi_vqa_options *o, renyi_error *err)
{
    size_t kept = 0;
    if (o->limit && o->limit < v->count) v->count = (size_t)o->limit;
    if (!o->n_shards) return RENYI_OK;
    if (o->shard >= o->n_shards)
        return ry_fail(err, RENYI_ERR_ARG, -1, "shard %u of %u; shards count from 0", o->shard,
                       o->n_shards);
    const size_t run = (v->count + o->n_shards - 1) / o->n_shards;
    for (size_t i = 0; i < v->count; i++) {
        const size_t shard = o->contiguous ? i / (run ? run : 1) : i % o->n_shards;
        if (shard == o->shard) v->questions[kept++] = v->questions[i];
    }
    v->count = kept;
    return RENYI_OK;
}

/* Questions with the same number are one group: mme's image; mmbench's question, whose copies with
 * rotated options have an index that is a multiple of a million higher. */
static uint64_t group_of(const renyi_vqa *v, const ry_vqa_question *q)
{
    enum { ROTATION = 1000000 };
    uint32_t number = 0;
    if (!ry_vqa_is_mmbench(v->info.task)) return ry_vqa_hash(q->id, "");
    (void)ry_text_number(ry_text_of(q->id), &number);
    return number % ROTATION;
}

static renyi_status link_groups(renyi_vqa *v, renyi_error *err)
{
    ry_vqa_index x = {0};
    renyi_status st = RENYI_OK;
    for (size_t i = 0; !st && i < v->count; i++)
        st = ry_vqa_index_add(&x, group_of(v, &v->questions[i]), (uint32_t)i, &v->al, err);
    ry_vqa_index_sort(&x);
    for (size_t i = 0; !st && i < x.count; i++) {
        ry_vqa_question *q = &v->questions[x.slots[i].place];
        q->is_first = i == 0 || x.slots[i - 1].hash != x.slots[i].hash;
        const int is_last = i + 1 == x.count || x.slots[i + 1].hash != x.slots[i].hash;
        q->next = is_last ? RY_VQA_NONE : x.slots[i + 1].place;
    }
    ry_vqa_index_free(&x, &v->al);
    return st;
}

static renyi_status normalize_right(renyi_vqa *v, ry_vqa_question *q, renyi_error *err)
{
    const char **compared = ry_pool_take(&v->pool, q->n_right, sizeof *compared);
    if (!compared) return ry_fail_nomem(err, q->n_right * sizeof *compared);
    for (uint32_t i = 0; i < q->n_right; i++)
        RY_TRY(ry_vqa_normalize(&v->pool, &compared[i], q->right[i], v->scorer, err));
    q->compared = compared;
    return RENYI_OK;
}

renyi_status ry_vqa_index_questions(renyi_vqa *v, renyi_error *err)
{
    uint64_t hash = RY_HASH_START;
    for (size_t i = 0; i < v->count; i++) {
        ry_vqa_question *q = &v->questions[i];
        RY_TRY(
            ry_vqa_index_add(&v->index, ry_vqa_hash(q->id, q->prompt), (uint32_t)i, &v->al, err));
        RY_TRY(ry_vqa_index_add(&v->by_id, ry_vqa_hash(q->id, ""), (uint32_t)i, &v->al, err));
        hash = ry_hash_add_text(ry_hash_add_text(ry_hash_add_text(hash, q->id), q->text),
                                q->image ? q->image : "");
        v->info.n_known += q->n_right > 0;
        if (ry_vqa_is_soft(v->info.task) && q->n_right) RY_TRY(normalize_right(v, q, err));
    }
    ry_vqa_index_sort(&v->index);
    ry_vqa_index_sort(&v->by_id);
    v->info.fingerprint = hash;
    v->info.n_questions = v->count;
    v->info.n_faults = v->n_faults;
    return link_groups(v, err);
}

static renyi_status read_benchmark(renyi_vqa *v, const char *path, const renyi_vqa_options *o,
                                   renyi_error *err)
{
    RY_TRY(read_questions(v, path, err));
    if (!v->count && v->n_faults)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "no question could be read: %s", v->faults[0]);
    if (!v->count) return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: the file has no questions", path);
    if (v->info.task == RENYI_VQA_MME) RY_TRY(drop_repeated(v, err));
    v->info.n_found = v->count;
    RY_TRY(select_shard(v, o, err));
    if (o->annotations && v->count) RY_TRY(ry_vqa_read_truth(v, o->annotations, err));
    return ry_vqa_index_questions(v, err);
}

/* ---- public functions----------------------------------------------------------------------------
 */

renyi_status renyi_vqa_open(renyi_vqa **out, renyi_vqa_task task, const char *questions,
                            const renyi_vqa_options *opt, renyi_error *err)
{
    renyi_vqa_options o = {0};
    if (!out || !questions || (int)task < 0 || task >= RENYI_VQA_TASKS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_open: NULL argument or unknown task");
    *out = NULL;
    if (opt) {
        if (opt->struct_size < sizeof o.struct_size || opt->struct_size > sizeof o)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "renyi_vqa_options: struct_size %u, this library knows %zu",
                           opt->struct_size, sizeof o);
        memcpy(&o, opt, opt->struct_size);
    }
    if (o.scorer != RENYI_VQA_SCORER_TEXTVQA && o.scorer != RENYI_VQA_SCORER_OFFICIAL)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_options: unknown scorer %d",
                       (int)o.scorer);
    renyi_vqa *v = ry_calloc(&o.allocator, 1, sizeof *v);
    if (!v) return ry_fail_nomem(err, sizeof *v);
    v->al = o.allocator;
    v->pool.al = &v->al;
    v->info.task = task;
    v->scorer = o.scorer;
    v->max_questions = o.max_questions ? o.max_questions : 1u << 24;
    if (v->max_questions >= RY_VQA_NONE) v->max_questions = RY_VQA_NONE - 1;
    v->max_file_bytes = o.max_file_bytes ? o.max_file_bytes : 1u << 30;
    const renyi_status st = read_benchmark(v, questions, &o, err);
    if (st) {
        renyi_vqa_free(v);
        return st;
    }
    *out = v;
    return RENYI_OK;
}

void renyi_vqa_free(renyi_vqa *v)
{
    if (!v) return;
    const renyi_allocator al = v->al;
    ry_vqa_index_free(&v->index, &al);
    ry_vqa_index_free(&v->by_id, &al);
    ry_free(&al, v->questions);
    ry_free(&al, v->categories);
    ry_free(&al, v->faults);
    ry_free(NULL, v->table);
    ry_pool_free(&v->pool);
    ry_free(&al, v);
}

void renyi_vqa_get_info(const renyi_vqa *v, renyi_vqa_info *out) { *out = v->info; }

void renyi_vqa_get_question(const renyi_vqa *v, size_t i, renyi_vqa_question *out)
{
    const ry_vqa_question *q = &v->questions[i];
    *out = (renyi_vqa_question){.id = q->id,
                                .image = q->image,
                                .text = q->text,
                                .prompt = q->prompt,
                                .category =
                                    q->category == RY_VQA_NONE ? NULL : v->categories[q->category],
                                .n_right = q->n_right,
                                .right = q->right};
}

const char *renyi_vqa_get_fault(const renyi_vqa *v, size_t i) { return v->faults[i]; }
