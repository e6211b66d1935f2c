/* vqa_questions.c - the list of questions that the readers of question files fill, and its index.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/vqa/vqa_questions.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- index ---------------------------------------------------------------------------------- */

uint64_t ry_vqa_hash(const char *a, const char *b)
{
    return ry_hash_add_text(ry_hash_add_text(RY_HASH_START, a), b);
}

renyi_status ry_vqa_index_add(ry_vqa_index *x, uint64_t hash, uint32_t place,
                              const renyi_allocator *al, renyi_error *err)
{
    if (!ry_grow(al, (void **)&x->slots, &x->capacity, x->count, sizeof *x->slots))
        return ry_fail_nomem(err, x->capacity * sizeof *x->slots);
    x->slots[x->count++] = (ry_vqa_slot){hash, place};
    return RENYI_OK;
}

static int by_hash(const void *a, const void *b)
{
    const ry_vqa_slot *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void ry_vqa_index_sort(ry_vqa_index *x)
{
    if (x->count) qsort(x->slots, x->count, sizeof *x->slots, by_hash);
}

const ry_vqa_slot *ry_vqa_index_find(const ry_vqa_index *x, uint64_t hash)
{
    size_t low = 0, high = x->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x->slots[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->count && x->slots[low].hash == hash ? &x->slots[low] : NULL;
}

const ry_vqa_slot *ry_vqa_index_next(const ry_vqa_index *x, const ry_vqa_slot *slot)
{
    const ry_vqa_slot *next = slot + 1;
    return next < x->slots + x->count && next->hash == slot->hash ? next : NULL;
}

void ry_vqa_index_free(ry_vqa_index *x, const renyi_allocator *al)
{
    ry_free(al, x->slots);
    *x = (ry_vqa_index){0};
}

/* ---- questions ------------------------------------------------------------------------------ */

enum { MAX_RIGHT = 1000, MAX_ID = 255, MAX_FAULTS = 10000 };

renyi_status ry_vqa_copy_text(renyi_vqa *v, const char **out, ry_text text, renyi_error *err)
{
    *out = ry_pool_copy(&v->pool, text);
    return *out ? RENYI_OK : ry_fail_nomem(err, text.n);
}

renyi_status ry_vqa_join_texts(renyi_vqa *v, const char **out, const char *a, const char *b,
                               renyi_error *err)
{
    const size_t n = strlen(a), m = strlen(b);
    char *joined = ry_pool_take(&v->pool, n + m + 1, 1);
    if (!joined) return ry_fail_nomem(err, n + m + 1);
    memcpy(joined, a, n);
    memcpy(joined + n, b, m + 1);
    *out = joined;
    return RENYI_OK;
}

/* LLaVA's files have "default" for no category. */
renyi_status ry_vqa_find_category(renyi_vqa *v, uint32_t *out, const char *name, renyi_error *err)
{
    *out = RY_VQA_NONE;
    if (!name || !*name || strcmp(name, "default") == 0) return RENYI_OK;
    for (size_t i = 0; i < v->n_categories; i++)
        if (strcmp(v->categories[i], name) == 0) {
            *out = (uint32_t)i;
            return RENYI_OK;
        }
    if (v->n_categories == RY_VQA_MAX_CATEGORIES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %d categories", RY_VQA_MAX_CATEGORIES);
    if (!ry_grow(&v->al, (void **)&v->categories, &v->category_capacity, v->n_categories,
                 sizeof *v->categories))
        return ry_fail_nomem(err, v->category_capacity * sizeof *v->categories);
    RY_TRY(ry_vqa_copy_text(v, &v->categories[v->n_categories], ry_text_of(name), err));
    *out = (uint32_t)v->n_categories++;
    return RENYI_OK;
}

int ry_vqa_read_id(const json_t *value, char out[256], uint8_t *is_number)
{
    *is_number = json_is_integer(value);
    if (*is_number) {
        snprintf(out, 256, "%lld", (long long)json_integer_value(value));
        return 1;
    }
    if (!json_is_string(value) || json_string_length(value) > MAX_ID) return 0;
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return 1;
}

json_t *ry_vqa_id_json(const ry_vqa_question *q)
{
    long long number;
    if (q->id_is_number && sscanf(q->id, "%lld", &number) == 1) return json_integer(number);
    return json_string(q->id);
}

renyi_status ry_vqa_set_right(renyi_vqa *v, ry_vqa_question *q, const char *const *texts,
                              uint32_t n, renyi_error *err)
{
    const char **right = ry_pool_take(&v->pool, n, sizeof *right);
    if (!right) return ry_fail_nomem(err, n * sizeof *right);
    for (uint32_t i = 0; i < n; i++)
        RY_TRY(ry_vqa_copy_text(v, &right[i], ry_text_of(texts[i]), err));
    q->right = right;
    q->n_right = n;
    return RENYI_OK;
}

/* A text, or the text of {"answer": text}. */
static const char *right_text(const json_t *value)
{
    return json_string_value(json_is_object(value) ? json_object_get(value, "answer") : value);
}

renyi_status ry_vqa_read_right(renyi_vqa *v, ry_vqa_question *q, const json_t *value, int *is_fine,
                               renyi_error *err)
{
    const char *texts[MAX_RIGHT];
    const int is_list = json_is_array(value);
    const size_t n = is_list ? json_array_size(value) : 1;
    *is_fine = 0;
    if (n < 1 || n > MAX_RIGHT) return RENYI_OK;
    for (size_t i = 0; i < n; i++) {
        texts[i] = right_text(is_list ? json_array_get(value, i) : value);
        if (!texts[i]) return RENYI_OK;
    }
    *is_fine = 1;
    return ry_vqa_set_right(v, q, texts, (uint32_t)n, err);
}

renyi_status ry_vqa_add_question(renyi_vqa *v, const ry_vqa_question *q, renyi_error *err)
{
    if (v->count >= v->max_questions)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %llu questions",
                       (unsigned long long)v->max_questions);
    if (!ry_grow(&v->al, (void **)&v->questions, &v->capacity, v->count, sizeof *v->questions))
        return ry_fail_nomem(err, v->capacity * sizeof *v->questions);
    v->questions[v->count++] = *q;
    return RENYI_OK;
}

renyi_status ry_vqa_add_fault(renyi_vqa *v, renyi_status st, const renyi_error *why,
                              renyi_error *err)
{
    if (st == RENYI_OK) return RENYI_OK;
    if (st != RENYI_ERR_FORMAT) return ry_fail(err, st, -1, "%s", why->message);
    if (v->n_faults == MAX_FAULTS)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s; %d more are bad: is it the file of another benchmark?", why->message,
                       MAX_FAULTS);
    if (!ry_grow(&v->al, (void **)&v->faults, &v->fault_capacity, v->n_faults, sizeof *v->faults))
        return ry_fail_nomem(err, v->fault_capacity * sizeof *v->faults);
    RY_TRY(ry_vqa_copy_text(v, &v->faults[v->n_faults], ry_text_of(why->message), err));
    v->n_faults++;
    return RENYI_OK;
}
