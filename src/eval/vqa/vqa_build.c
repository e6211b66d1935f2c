/* vqa_build.c - see vqa.h: what the readers of question files share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

enum { MAX_RIGHT = 1000, MAX_CATEGORIES = 10000, MAX_ID = 255 };

renyi_status ry_vqa_keep(renyi_vqa *v, const char **out, ry_text text, renyi_error *err)
{
    *out = ry_pool_copy(&v->pool, text);
    return *out ? RENYI_OK : ry_fail_nomem(err, text.n);
}

renyi_status ry_vqa_join(renyi_vqa *v, const char **out, const char *a, const char *b,
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

/* LLaVA's files say "default" where there is none. */
renyi_status ry_vqa_category(renyi_vqa *v, uint32_t *out, const char *name, renyi_error *err)
{
    *out = RY_VQA_NONE;
    if (!name || !*name || strcmp(name, "default") == 0) return RENYI_OK;
    for (size_t i = 0; i < v->n_categories; i++)
        if (strcmp(v->categories[i], name) == 0) {
            *out = (uint32_t)i;
            return RENYI_OK;
        }
    if (v->n_categories == MAX_CATEGORIES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %d categories", MAX_CATEGORIES);
    if (!ry_grow(&v->al, (void **)&v->categories, &v->category_capacity, v->n_categories,
                 sizeof *v->categories))
        return ry_fail_nomem(err, v->category_capacity * sizeof *v->categories);
    RY_TRY(ry_vqa_keep(v, &v->categories[v->n_categories], ry_text_of(name), err));
    *out = (uint32_t)v->n_categories++;
    return RENYI_OK;
}

int ry_vqa_id(const json_t *value, char out[256], uint8_t *is_number)
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
    for (uint32_t i = 0; i < n; i++) RY_TRY(ry_vqa_keep(v, &right[i], ry_text_of(texts[i]), err));
    q->right = right;
    q->n_right = n;
    return RENYI_OK;
}

/* A text, or that of {"answer": text}. */
static const char *right_text(const json_t *value)
{
    return json_string_value(json_is_object(value) ? json_object_get(value, "answer") : value);
}

renyi_status ry_vqa_take_right(renyi_vqa *v, ry_vqa_question *q, const json_t *value, int *is_fine,
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

renyi_status ry_vqa_add(renyi_vqa *v, const ry_vqa_question *q, renyi_error *err)
{
    if (v->count >= v->max_questions)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more than %llu questions",
                       (unsigned long long)v->max_questions);
    if (!ry_grow(&v->al, (void **)&v->questions, &v->capacity, v->count, sizeof *v->questions))
        return ry_fail_nomem(err, v->capacity * sizeof *v->questions);
    v->questions[v->count++] = *q;
    return RENYI_OK;
}

renyi_status ry_vqa_fault(renyi_vqa *v, renyi_status st, const renyi_error *why, renyi_error *err)
{
    if (st == RENYI_OK) return RENYI_OK;
    if (st != RENYI_ERR_FORMAT) return ry_fail(err, st, -1, "%s", why->message);
    if (!ry_grow(&v->al, (void **)&v->faults, &v->fault_capacity, v->n_faults, sizeof *v->faults))
        return ry_fail_nomem(err, v->fault_capacity * sizeof *v->faults);
    RY_TRY(ry_vqa_keep(v, &v->faults[v->n_faults], ry_text_of(why->message), err));
    v->n_faults++;
    return RENYI_OK;
}
