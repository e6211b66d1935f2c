/* fuzz_vqa.c - any bytes as questions, annotations or answers of a benchmark: the first byte tells
 * the benchmark, the second which of the three. Refused with a message, or every question has what
 * a question has and every answer a worth from 0 to 1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "eval/vqa/vqa_questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char line[] = "{\"question_id\": 1, \"image\": \"a\", \"text\": \"q\", \"answers\": "
                           "[\"x\", \"no\"]}\n";

static renyi_status read_questions(renyi_vqa *v, const char *bytes, size_t n, renyi_error *e)
{
    if (ry_vqa_is_mmbench(v->info.task)) return ry_vqa_read_mmbench(v, "q.tsv", bytes, n, e);
    if (v->info.task == RENYI_VQA_SQA) return ry_vqa_read_sqa(v, "q.json", bytes, n, e);
    return ry_vqa_read_lines(v, "q.jsonl", NULL, bytes, n, e);
}

static renyi_status read_truth(renyi_vqa *v, const char *bytes, size_t n, renyi_error *e)
{
    ry_vqa_join_table j = {0};
    if (v->info.task == RENYI_VQA_MME) {
        const char *said = ry_vqa_mme_answer(bytes, n, "q");
        if (said && strcmp(said, "yes") != 0 && strcmp(said, "no") != 0) abort();
        return RENYI_OK;
    }
    renyi_status st = ry_vqa_join_open(&j, v, e);
    if (!st && v->info.task == RENYI_VQA_POPE)
        st = ry_vqa_truth_pope(&j, "t.json", "", bytes, n, e);
    else if (!st)
        st = ry_vqa_truth_json(&j, "t.json", bytes, n, e);
    ry_vqa_join_close(&j);
    return st;
}

static renyi_status read_answers(renyi_vqa *v, const char *bytes, size_t n, renyi_error *e)
{
    renyi_vqa_answers *a;
    renyi_vqa_score s;
    size_t whole;
    if (ry_vqa_finish(v, e) || ry_vqa_answers_new(&a, v, e)) abort();
    const renyi_status st = ry_vqa_answers_take(a, "a.jsonl", bytes, n, &whole, e);
    for (size_t i = 0; !st && i < v->count; i++)
        if (!isnan(a->items[i].worth) && !(a->items[i].worth >= 0 && a->items[i].worth <= 1))
            abort();
    if (!st) renyi_vqa_get_score(a, &s);
    renyi_vqa_answers_free(a);
    return st;
}

static void must_be_whole(const renyi_vqa *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const ry_vqa_question *q = &v->questions[i];
        if (!q->id || !q->text || !q->prompt || (q->n_right && !q->right)) abort();
        if (q->category != RY_VQA_NONE && q->category >= v->n_categories) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    renyi_error err = {0};
    if (size < 2) return 0;
    renyi_vqa *v = ry_calloc(NULL, 1, sizeof *v);
    char *bytes = malloc(size); /* exact size: the sanitizer sees overreads */
    if (!v || !bytes) abort();
    memcpy(bytes, data + 2, size - 2);
    v->pool.al = &v->al;
    v->max_questions = 1000;
    v->max_file_bytes = 1 << 20;
    v->info.task = (renyi_vqa_task)(data[0] % RENYI_VQA_TASKS);
    renyi_status st = RENYI_OK;
    if (data[1] % 3 && ry_vqa_read_lines(v, "q.jsonl", NULL, line, sizeof line - 1, &err)) abort();
    if (data[1] % 3 == 0)
        st = read_questions(v, bytes, size - 2, &err);
    else if (data[1] % 3 == 1)
        st = read_truth(v, bytes, size - 2, &err);
    else
        st = read_answers(v, bytes, size - 2, &err);
    if (st && !err.message[0]) abort();
    if (!st) must_be_whole(v);
    free(bytes);
    renyi_vqa_free(v);
    return 0;
}
