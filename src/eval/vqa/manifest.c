/* manifest.c - makes and writes result manifests, and compares two.
 *
 *   {"format": "renyi.result", "version": 1, "program": {...}, "model": {...}, "data": {...},
 *    "policy": {...}, "settings": {...}, "machine": {...}, "result": {...}, "cost": {...},
 *    "files": [{"name": "model.safetensors", "size": 1, "sha256": "..."}],
 *    "answers": {"data_hash": "...", "hash": "...", "samples": [["1", "input", "answer", 1], ...]}}
 *
 * Hashes are 16 hexadecimal digits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/output_file.h"
#include "base/status.h"
#include "eval/run/stats.h"
#include "eval/vqa/manifest_fields.h"
#include "eval/vqa/vqa_questions.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the members ----------------------------------------------------------------------------- */

#define AT(member) offsetof(renyi_manifest_info, member)
#define TEXT(group, key, needed, member)                 \
    {                                                    \
        group, key, RY_MANIFEST_TEXT, needed, AT(member) \
    }
#define COUNT(group, key, member)                    \
    {                                                \
        group, key, RY_MANIFEST_COUNT, 0, AT(member) \
    }
#define REAL(group, key, member)                    \
    {                                               \
        group, key, RY_MANIFEST_REAL, 0, AT(member) \
    }

static const ry_manifest_field fields[] = {
    TEXT("program", "version", 1, version),
    TEXT("model", "name", 1, model),
    TEXT("model", "path", 0, path),
    TEXT("model", "tower", 0, tower),
    TEXT("model", "tokenizer", 0, tokenizer),
    TEXT("model", "mmproj", 0, mmproj),
    TEXT("model", "text_tower", 0, text_tower),
    TEXT("model", "dtype", 0, dtype),
    TEXT("model", "tower_dtype", 0, tower_dtype),
    TEXT("data", "task", 1, task),
    TEXT("data", "scorer", 0, scorer),
    TEXT("data", "questions", 0, questions),
    TEXT("data", "annotations", 0, annotations),
    TEXT("data", "images", 0, images),
    COUNT("data", "limit", limit),
    TEXT("policy", "full", 1, policy),
    COUNT("settings", "max_new_tokens", max_new_tokens),
    REAL("settings", "temperature", temperature),
    REAL("settings", "top_p", top_p),
    TEXT("settings", "seed", 0, seed),
    TEXT("machine", "cpu", 0, cpu),
    TEXT("machine", "cpu_level", 0, cpu_level),
    TEXT("machine", "system", 0, system),
    COUNT("machine", "threads", threads),
    REAL("result", "score", score),
    REAL("result", "low", low),
    REAL("result", "high", high),
    REAL("result", "cognition", cognition),
    REAL("result", "total", total),
    REAL("result", "accuracy", accuracy),
    REAL("cost", "visual_tokens", visual_tokens),
    REAL("cost", "layer_tokens", cost.layer_tokens),
    REAL("cost", "tower_tflops", cost.tower_tflops),
    REAL("cost", "projector_tflops", cost.projector_tflops),
    REAL("cost", "lm_tflops", cost.lm_tflops),
    REAL("cost", "cache_bytes", cost.cache_bytes),
    REAL("cost", "first_token_ms", cost.first_token_ms),
    REAL("cost", "choice_ms", cost.choice_ms),
};

const ry_manifest_field *ry_manifest_fields(size_t *count)
{
    *count = sizeof fields / sizeof *fields;
    return fields;
}

void ry_manifest_hashes(const renyi_manifest_info *info, uint64_t *data, uint64_t *answers)
{
    *data = *answers = RY_HASH_START;
    for (size_t i = 0; i < info->n_samples; i++) {
        const renyi_manifest_sample *s = &info->samples[i];
        *data = ry_hash_add(ry_hash_add_text(*data, s->id), &s->input, sizeof s->input);
        *answers = ry_hash_add(ry_hash_add_text(*answers, s->id), &s->answer, sizeof s->answer);
    }
}

int renyi_manifest_sample_of(const renyi_vqa_answers *a, size_t i, renyi_manifest_sample *out)
{
    const char *text = renyi_vqa_get_answer(a, i);
    renyi_vqa_question q;
    if (!text) return 0;
    renyi_vqa_get_question(a->v, i, &q);
    *out = (renyi_manifest_sample){.id = q.id,
                                   .input = renyi_vqa_get_input_hash(a, i),
                                   .answer = ry_hash_add_text(RY_HASH_START, text),
                                   .worth = renyi_vqa_get_worth(a, i)};
    return 1;
}

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_string(text);
}

static json_t *real_json(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *field_json(const renyi_manifest_info *info, const ry_manifest_field *f)
{
    const char *at = (const char *)info + f->offset, *text;
    uint64_t count;
    double real;
    switch (f->kind) {
    case RY_MANIFEST_TEXT:
        memcpy(&text, at, sizeof text);
        return text ? ry_json_clean(text) : json_null();
    case RY_MANIFEST_COUNT:
        memcpy(&count, at, sizeof count);
        return json_integer((json_int_t)count);
    default: memcpy(&real, at, sizeof real); return real_json(real);
    }
}

/* 0 = no memory. */
static int put_fields(json_t *document, const renyi_manifest_info *info)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const ry_manifest_field *f = &fields[i];
        json_t *group = json_object_get(document, f->group);
        if (!group && (json_object_set_new(document, f->group, json_object()) ||
                       !(group = json_object_get(document, f->group))))
            return 0;
        if (json_object_set_new(group, f->key, field_json(info, f))) return 0;
    }
    return 1;
}

static json_t *files_json(const renyi_manifest_info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < info->n_files; i++) {
        const renyi_manifest_file *f = &info->files[i];
        json_t *entry = json_pack("{s:o, s:I, s:s}", "name", ry_json_clean(f->name), "size",
                                  (json_int_t)f->size, "sha256", f->sha256);
        if (json_array_append_new(list, entry)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *answers_json(const renyi_manifest_info *info)
{
    uint64_t data, answers;
    json_t *list = json_array();
    ry_manifest_hashes(info, &data, &answers);
    for (size_t i = 0; list && i < info->n_samples; i++) {
        const renyi_manifest_sample *s = &info->samples[i];
        json_t *entry = json_pack("[o, o, o, o]", ry_json_clean(s->id), hash_json(s->input),
                                  hash_json(s->answer), real_json(s->worth));
        if (json_array_append_new(list, entry)) {
            json_decref(list);
            return NULL;
        }
    }
    return list ? json_pack("{s:o, s:o, s:o}", "data_hash", hash_json(data), "hash",
                            hash_json(answers), "samples", list)
                : NULL;
}

static renyi_status manifest_text(char **out, const renyi_manifest_info *info, renyi_error *err)
{
    json_t *document =
        json_pack("{s:s, s:i}", "format", RY_MANIFEST_FORMAT, "version", RY_MANIFEST_VERSION);
    if (document && put_fields(document, info) &&
        !json_object_set_new(document, "files", files_json(info)) &&
        !json_object_set_new(document, "answers", answers_json(info)))
        return ry_json_text(out, document, NULL, err);
    json_decref(document);
    return ry_fail_nomem(err, 128 * (info->n_samples + 1));
}

renyi_status renyi_manifest_write(const char *path, const renyi_manifest_info *info,
                                  renyi_error *err)
{
    ry_output_file f;
    char *text;
    if (!path || !info || !info->version || !info->model || !info->task || !info->policy)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_manifest_write: path, version, model, task or policy is NULL");
    if (info->n_samples > RY_MANIFEST_MAX_SAMPLES) /* renyi_manifest_read would refuse it */
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: %zu answers; a manifest has at most %d", path,
                       info->n_samples, RY_MANIFEST_MAX_SAMPLES);
    RY_TRY(manifest_text(&text, info, err));
    renyi_status st = ry_output_file_open(&f, path, NULL, err);
    if (!st) {
        st = ry_output_file_write(&f, text, strlen(text), err);
        if (!st) st = ry_output_file_write(&f, "\n", 1, err);
        st = ry_output_file_close(&f, st, NULL, err);
    }
    ry_free(NULL, text);
    return st;
}

/* ---- two manifests --------------------------------------------------------------------------- */

static uint64_t sample_hash(const renyi_manifest_sample *s)
{
    return ry_hash_add(ry_hash_add_text(RY_HASH_START, s->id), &s->input, sizeof s->input);
}

static int is_same_question(const renyi_manifest_sample *a, const renyi_manifest_sample *b)
{
    return a->input == b->input && a->input && strcmp(a->id, b->id) == 0;
}

static renyi_status index_samples(ry_vqa_index *x, const renyi_manifest *m, renyi_error *err)
{
    for (size_t i = 0; i < m->info.n_samples; i++)
        RY_TRY(ry_vqa_index_add(x, sample_hash(&m->info.samples[i]), (uint32_t)i, &m->al, err));
    ry_vqa_index_sort(x);
    return RENYI_OK;
}

static void add_pair(renyi_vqa_pair *out, ry_moments *m, const renyi_manifest_sample *a,
                     const renyi_manifest_sample *b)
{
    const double d = b->worth - a->worth;
    if (isnan(d)) return;
    ry_moments_add(m, d);
    out->better_a += d < 0;
    out->better_b += d > 0;
    out->equal += d == 0;
    out->same += a->answer == b->answer;
}

renyi_status renyi_manifest_compare(const renyi_manifest *a, const renyi_manifest *b,
                                    renyi_vqa_pair *out, renyi_error *err)
{
    ry_vqa_index x = {0};
    ry_moments m = {0};
    if (!a || !b || !out)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_manifest_compare: NULL argument");
    if (strcmp(a->info.task, b->info.task) != 0)
        return ry_fail(err, RENYI_ERR_ARG, -1, "results of '%s' and of '%s' cannot be compared",
                       a->info.task, b->info.task);
    *out = (renyi_vqa_pair){.score_a = NAN, .score_b = NAN};
    const renyi_status st = index_samples(&x, a, err);
    for (size_t i = 0; !st && i < b->info.n_samples; i++) {
        const renyi_manifest_sample *s = &b->info.samples[i];
        const ry_vqa_slot *slot = ry_vqa_index_find(&x, sample_hash(s));
        if (slot && is_same_question(&a->info.samples[slot->place], s))
            add_pair(out, &m, &a->info.samples[slot->place], s);
    }
    ry_vqa_index_free(&x, &a->al);
    if (st) return st;
    ry_vqa_pair_finish(out, &m);
    return RENYI_OK;
}
