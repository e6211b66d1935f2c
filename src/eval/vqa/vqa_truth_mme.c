/* vqa_truth_mme.c - MME's folder: a text file for each photo, a line for each of its two questions,
 * a tab, and "Yes" or "No".
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

static int ends_with(ry_text t, const char *tail)
{
    const size_t n = strlen(tail);
    return t.n >= n && memcmp(t.at + t.n - n, tail, n) == 0;
}

/* LLaVA adds one sentence to a question, and leaves out or doubles blanks before another. */
static ry_text bare(ry_text question)
{
    static const char *const tails[] = {"Answer the question using a single word or phrase.",
                                        "Please answer yes or no."};
    for (size_t i = 0; i < 2; i++) {
        question = ry_text_trim(question);
        if (ends_with(question, tails[i])) question.n -= strlen(tails[i]);
    }
    return ry_text_trim(question);
}

const char *ry_vqa_mme_answer(const char *bytes, size_t size, const char *prompt)
{
    const ry_text wanted = bare(ry_text_of(prompt));
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        const char *tab = line.n ? memchr(line.at, '\t', line.n) : NULL;
        if (!tab) continue;
        const size_t n = (size_t)(tab - line.at);
        if (ry_text_compare(bare((ry_text){line.at, n}), wanted) != 0) continue;
        const ry_text said = ry_text_trim((ry_text){tab + 1, line.n - n - 1});
        if (said.n == 3 && (said.at[0] | 32) == 'y') return "yes";
        if (said.n == 2 && (said.at[0] | 32) == 'n') return "no";
    }
    return NULL;
}

/* FOLDER/subtask/questions_answers_YN/0020.txt, or FOLDER/subtask/0020.txt. */
static renyi_status read_photo(ry_vqa_question *q, renyi_vqa *v, const char *folder, int is_inside,
                               int *is_missing, renyi_error *err)
{
    const char *slash = strrchr(q->id, '/'), *name = slash ? slash + 1 : q->id;
    const char *dot = strrchr(name, '.'), *answer;
    const size_t n = dot ? (size_t)(dot - name) : strlen(name);
    char path[4096];
    uint8_t *bytes;
    size_t size;
    const int length =
        snprintf(path, sizeof path, "%s/%s/%s%.*s.txt", folder, v->categories[q->category],
                 is_inside ? "questions_answers_YN/" : "", (int)n, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%.80s...: a path of %d bytes", folder, length);
    const renyi_status st = ry_file_read(&bytes, &size, path, 1 << 20, NULL, is_missing, err);
    if (st) return *is_missing ? RENYI_OK : ry_fail_in(err, st, path);
    answer = ry_vqa_mme_answer((const char *)bytes, size, q->prompt);
    const renyi_status set = answer ? ry_vqa_set_right(v, q, &answer, 1, err) : RENYI_OK;
    ry_free(NULL, bytes);
    return set;
}

renyi_status ry_vqa_truth_mme(renyi_vqa *v, const char *folder, renyi_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < v->count; i++) {
        ry_vqa_question *q = &v->questions[i];
        int is_missing = 0;
        if (q->category == RY_VQA_NONE) continue;
        RY_TRY(read_photo(q, v, folder, 1, &is_missing, err));
        if (is_missing) RY_TRY(read_photo(q, v, folder, 0, &is_missing, err));
        n += q->n_right > 0;
    }
    if (n) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: none of the %zu questions is in it; mme wants the folder "
                   "MME_Benchmark_release_version",
                   folder, v->count);
}
