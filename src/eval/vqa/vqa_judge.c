/* vqa_judge.c - what one answer is worth, as LLaVA's scripts and the benchmarks' own read it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <math.h>
#include <string.h>

/* ---- yes or no ----------------------------------------------------------------------------- */

static int is_word(const char *word, size_t n, const char *wanted)
{
    return strlen(wanted) == n && memcmp(word, wanted, n) == 0;
}

/* The text up to the first point, commas aside; blanks alone part words. */
int ry_vqa_says_no(const char *text)
{
    char word[4];
    size_t n = 0;
    for (const char *at = text;; at++) {
        const int is_end = !*at || *at == '.';
        if (is_end || *at == ' ') {
            if (is_word(word, n, "No") || is_word(word, n, "no") || is_word(word, n, "not"))
                return 1;
            n = 0;
        } else if (*at != ',') {
            if (n < sizeof word) word[n] = *at;
            if (n <= sizeof word) n++; /* one more than fits is no word of ours */
        }
        if (is_end) return 0;
    }
}

int ry_vqa_is_no(const char *label) { return (label[0] | 32) == 'n'; }

/* MME: "yes" or "no" in the first four characters. 1, 0, or -1 = neither. */
static int mme_says(const char *text)
{
    char head[5] = "";
    for (int i = 0; i < 4 && text[i]; i++)
        head[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
    if (strstr(head, "yes")) return 1;
    return strstr(head, "no") ? 0 : -1;
}

/* ---- letters ------------------------------------------------------------------------------- */

char ry_vqa_letter(const char *text, uint32_t n_choices)
{
    static const char words[] = "The answer is ";
    const ry_text t = ry_text_trim(ry_text_of(text));
    const int is_upper = t.n && t.at[0] >= 'A' && t.at[0] <= 'Z';
    char letter = 0;
    size_t n = 0;
    if (is_upper && (t.n == 1 || (t.n >= 3 && t.at[1] == '.' && t.at[2] == ' ')))
        letter = t.at[0];
    else
        for (const char *at = t.at; (at = strstr(at, words)); at += sizeof words - 1) {
            const char c = at[sizeof words - 1];
            if (c < 'A' || c > 'Z' || !at[sizeof words] || at[sizeof words] == '\n') continue;
            letter = c;
            n++;
        }
    return n <= 1 && letter && (uint32_t)(letter - 'A') < n_choices ? letter : 0;
}

/* ---- texts --------------------------------------------------------------------------------- */

/* GQA: lower case, points at the end aside. */
static renyi_status is_equal(const renyi_vqa *v, const char *right, const char *text, double *worth,
                             renyi_error *err)
{
    ry_text t = ry_text_trim(ry_text_of(text));
    while (t.n && t.at[t.n - 1] == '.') t.n--;
    char *said = ry_vqa_lower(t.at, t.n, &v->al),
         *wanted = ry_vqa_lower(right, strlen(right), &v->al);
    const int is_fine = said && wanted;
    if (is_fine) *worth = strcmp(said, wanted) == 0;
    ry_free(&v->al, said);
    ry_free(&v->al, wanted);
    return is_fine ? RENYI_OK : ry_fail_nomem(err, 8 * t.n);
}

/* VQA accuracy: a third for each of the n people who said the same, one at most; the mean over
 * leaving out each of them. */
static renyi_status vqa_accuracy(const renyi_vqa *v, const ry_vqa_question *q, const char *text,
                                 double *worth, renyi_error *err)
{
    char *said;
    double m = 0, n = q->n_right;
    RY_TRY(renyi_vqa_normalise(&said, text, &v->al, err));
    for (uint32_t i = 0; i < q->n_right; i++) m += strcmp(q->compared[i], said) == 0;
    ry_free(&v->al, said);
    *worth = m == 0 ? 0 : ((n - m) * fmin(1, m / 3) + m * fmin(1, (m - 1) / 3)) / n;
    return RENYI_OK;
}

renyi_status ry_vqa_judge(const renyi_vqa *v, const ry_vqa_question *q, const char *text,
                          double *worth, renyi_error *err)
{
    *worth = NAN;
    if (!q->n_right) return RENYI_OK;
    switch (v->info.task) {
    case RENYI_VQA_POPE: *worth = ry_vqa_says_no(text) == ry_vqa_is_no(q->right[0]); break;
    case RENYI_VQA_MME: *worth = mme_says(text) == !ry_vqa_is_no(q->right[0]); break;
    case RENYI_VQA_SQA:
    case RENYI_VQA_MMBENCH:
    case RENYI_VQA_MMBENCH_CN: *worth = ry_vqa_letter(text, q->n_choices) == q->right[0][0]; break;
    case RENYI_VQA_GQA: return is_equal(v, q->right[0], text, worth, err);
    case RENYI_VQA_MMVET: break;
    default: return vqa_accuracy(v, q, text, worth, err);
    }
    return RENYI_OK;
}
