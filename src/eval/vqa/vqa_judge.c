/* vqa_judge.c - decides how much one answer is worth, as LLaVA's scripts and the benchmarks' own
 * do.
 *
 * VQAv2, VizWiz and TextVQA compare normalized answers: the steps of EvalAI's answer processor, or
 * those of VQA's evaluation code, in their order and with their quirks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "eval/vqa/vqa_questions.h"
#include "text/unicode.h"

#include <math.h>
#include <string.h>

/* ---- contractions --------------------------------------------------------------------------- */

/* Contractions that the VQA servers fix. ^ is a missing apostrophe that is inserted, ' one that is
 * present already, - one that is present and removed. Contractions that cannot occur after lower
 * case are left out. */
/* clang-format off */
static const char *const contractions[] = {
    "ain^t", "aren^t", "can^t", "could^ve", "couldn^t", "couldn't^ve", "couldn^t've", "didn^t",
    "doesn^t", "don^t", "hadn^t", "hadn^t've", "hadn't^ve", "hasn^t", "haven^t", "he^d",
    "he^d've", "he'd^ve", "he^s", "how^d", "how^ll", "how^s", "isn^t", "it^d", "it^d've",
    "it'd^ve", "it^ll", "ma^am", "mightn^t", "mightn^t've", "mightn't^ve", "might^ve", "mustn^t",
    "must^ve", "needn^t", "not^ve", "o^clock", "oughtn^t", "^ow's'at", "'ow^s'at",
    "'ow's^at", "shan^t", "she^d've",
    "she'd^ve", "should^ve", "shouldn^t", "shouldn^t've", "shouldn't^ve", "somebody-d",
    "somebody^d've", "somebody'd^ve", "somebody^ll", "somebody^s", "someone^d", "someone^d've",
    "someone'd^ve", "someone^ll", "someone^s", "something^d", "something^d've", "something'd^ve",
    "something^ll", "that^s", "there^d", "there^d've", "there'd^ve", "there^re", "there^s",
    "they^d", "they^d've", "they'd^ve", "they^ll", "they^re", "they^ve", "^twas", "wasn^t",
    "we^d've", "we'd^ve", "we^ve", "weren^t", "what^ll", "what^re", "what^s", "what^ve",
    "when^s", "where^d", "where^s", "where^ve", "who^d", "who^d've", "who'd^ve", "who^ll",
    "who^s", "who^ve", "why^ll", "why^re", "why^s", "won^t", "would^ve", "wouldn^t",
    "wouldn^t've", "wouldn't^ve", "y^all", "y^all'll", "y'all^ll", "y^all'd've", "y'all^d've",
    "y'all'd^ve", "you^d", "you^d've", "you'd^ve", "you^ll", "you^re", "you^ve",
};
/* clang-format on */

static int matches_contraction(const char *row, const char *word)
{
    for (; *row; row++) {
        if (*row == '^') continue;
        if (*word++ != (*row == '-' ? '\'' : *row)) return 0;
    }
    return !*word;
}

/* If `word` is a contraction with a wrong apostrophe, writes the right one to `out`; else 0. */
static int fix_contraction(const char *word, char out[24])
{
    for (size_t i = 0; i < sizeof contractions / sizeof *contractions; i++) {
        if (!matches_contraction(contractions[i], word)) continue;
        for (const char *row = contractions[i]; *row; row++)
            if (*row != '-') *out++ = *row == '^' ? '\'' : *row;
        *out = 0;
        return 1;
    }
    return 0;
}

/* ---- lower case ----------------------------------------------------------------------------- */

/* Text with non-ASCII characters; out: [8 n + 1]. Invalid bytes become U+FFFD. */
static int lower_unicode(const char *text, size_t n, char *out, const renyi_allocator *al)
{
    uint32_t *from = ry_alloc(al, n, sizeof *from), *to = ry_alloc(al, n, 2 * sizeof *to);
    size_t count = 0, used = 0;
    if (from && to) {
        for (size_t at = 0; at < n; count++) {
            at += ry_utf8_get(text + at, n - at, &from[count]);
            if (from[count] == RY_UTF8_BAD) from[count] = RY_REPLACEMENT;
        }
        count = ry_unicode_lower(from, count, to, 1);
        for (size_t i = 0; i < count; i++) used += ry_utf8_put(out + used, to[i]);
        out[used] = 0;
    }
    const int is_fine = from && to;
    ry_free(al, from);
    ry_free(al, to);
    return is_fine;
}

char *ry_vqa_lower_text(const char *text, size_t n, const renyi_allocator *al)
{
    size_t n_ascii = 0;
    while (n_ascii < n && (unsigned char)text[n_ascii] < 0x80) n_ascii++;
    if (n > SIZE_MAX / 8 - 1) return NULL;
    char *out = ry_alloc(al, n_ascii == n ? n + 1 : 8 * n + 1, 1);
    if (!out) return NULL;
    if (n_ascii == n) {
        for (size_t i = 0; i < n; i++)
            out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
        out[n] = 0;
    } else if (!lower_unicode(text, n, out, al)) {
        ry_free(al, out);
        return NULL;
    }
    return out;
}

/* ---- normalization -------------------------------------------------------------------------- */

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* EvalAI only: removes commas and question marks, adds a blank before 's. Both: turns newlines and
 * tabs into blanks and trims. to: space for twice the text. */
static void strip_marks(const char *at, char *to, renyi_vqa_scorer scorer)
{
    char *const start = to;
    for (; *at; at++) {
        if (scorer == RENYI_VQA_SCORER_OFFICIAL) {
            *to++ = *at;
            continue;
        }
        if (*at == ',' || *at == '?') continue;
        /* The original removes commas first, so ',s counts as 's. */
        const char *next = at + 1;
        while (*next == ',' || *next == '?') next++;
        if (*at == '\'' && *next == 's') *to++ = ' ';
        *to++ = *at;
    }
    while (to > start && is_blank(to[-1])) to--;
    *to = 0;
    size_t lead = 0;
    while (is_blank(start[lead])) lead++;
    memmove(start, start + lead, (size_t)(to - start) - lead + 1);
    for (char *c = start; *c; c++)
        if (*c == '\n' || *c == '\t') *c = ' ';
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* A mark with a blank beside it anywhere in the text is removed everywhere; others become blanks.
 * In a text with a comma between digits all marks are removed. */
static void drop_punctuation(const char *at, char *to)
{
    static const char marks[] = ";/[]\"{}()=+\\_-><@`,?!";
    unsigned char goes[256] = {0};
    int all_go = 0;
    for (const char *c = at; *c; c++) {
        const int beside = c[1] == ' ' || (c > at && c[-1] == ' ');
        if (beside) goes[(unsigned char)*c] = 1;
        if (*c == ',' && c > at && is_digit(c[-1]) && is_digit(c[1])) all_go = 1;
    }
    for (; *at; at++) {
        if (!strchr(marks, *at))
            *to++ = *at;
        else if (!all_go && !goes[(unsigned char)*at])
            *to++ = ' ';
    }
    *to = 0;
}

/* Removes points that no digit follows, but only the first 32: the original passes the flag
 * re.UNICODE (32) as the count. */
static void drop_points(char *text)
{
    enum { AT_MOST = 32 };
    char *to = text;
    int n = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '.' && !is_digit(at[1]) && n < AT_MOST)
            n++;
        else
            *to++ = *at;
    }
    *to = 0;
}

static const char *digits_of(const char *word)
{
    static const char *const words[][2] = {{"none", "0"},  {"zero", "0"},  {"one", "1"},
                                           {"two", "2"},   {"three", "3"}, {"four", "4"},
                                           {"five", "5"},  {"six", "6"},   {"seven", "7"},
                                           {"eight", "8"}, {"nine", "9"},  {"ten", "10"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], word) == 0) return words[i][1];
    return NULL;
}

/* Writes the words with one blank between them: numbers as digits, no articles, contractions fixed.
 * No word grows by more than two bytes. */
static void fix_words(char *at, char *to)
{
    char *const start = to;
    while (*at) {
        char fixed[24];
        while (is_blank(*at)) at++;
        char *end = at;
        while (*end && !is_blank(*end)) end++;
        const int is_last = !*end;
        *end = 0;
        const char *word = digits_of(at);
        if (!word) word = fix_contraction(at, fixed) ? fixed : at;
        const int is_article =
            strcmp(at, "a") == 0 || strcmp(at, "an") == 0 || strcmp(at, "the") == 0;
        if (*at && !is_article) {
            if (to > start) *to++ = ' ';
            memcpy(to, word, strlen(word));
            to += strlen(word);
        }
        at = is_last ? end : end + 1;
    }
    *to = 0;
}

/* Owned (ry_free); NULL = no memory. */
static char *normalize_answer(const char *answer, renyi_vqa_scorer scorer,
                              const renyi_allocator *al)
{
    char *lower = ry_vqa_lower_text(answer, strlen(answer), al);
    const size_t n = lower ? strlen(lower) : 0;
    char *a = lower && n < SIZE_MAX / 4 ? ry_alloc(al, 2 * n + 1, 1) : NULL;
    char *b = a ? ry_alloc(al, 4 * n + 1, 1) : NULL;
    if (b) {
        strip_marks(lower, a, scorer);
        drop_punctuation(a, b);
        drop_points(b);
        memcpy(a, b, strlen(b) + 1); /* b is not longer than a was */
        fix_words(a, b);
    }
    ry_free(al, lower);
    ry_free(al, a);
    return b;
}

renyi_status ry_vqa_normalize(ry_pool *pool, const char **out, const char *answer,
                              renyi_vqa_scorer scorer, renyi_error *err)
{
    char *text = normalize_answer(answer, scorer, pool->al);
    *out = text ? ry_pool_copy(pool, ry_text_of(text)) : NULL;
    ry_free(pool->al, text);
    return *out ? RENYI_OK : ry_fail_nomem(err, strlen(answer));
}

renyi_status renyi_vqa_normalise(char **out, const char *answer, const renyi_allocator *allocator,
                                 renyi_error *err)
{
    if (!out || !answer)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_normalise: NULL argument");
    *out = normalize_answer(answer, RENYI_VQA_SCORER_TEXTVQA, allocator);
    return *out ? RENYI_OK : ry_fail_nomem(err, strlen(answer));
}

void renyi_vqa_text_free(char *text, const renyi_allocator *allocator) { ry_free(allocator, text); }

/* ---- yes or no ------------------------------------------------------------------------------ */

static int is_word(const char *word, size_t n, const char *wanted)
{
    return strlen(wanted) == n && memcmp(word, wanted, n) == 0;
}

/* Reads the text up to the first point, without commas; only blanks separate words. */
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
            if (n <= sizeof word) n++; /* longer words cannot match */
        }
        if (is_end) return 0;
    }
}

int ry_vqa_is_no(const char *label) { return (label[0] | 32) == 'n'; }

/* MME: "yes" or "no" in the first four characters. 1, 0, or -1 = neither. */
static int read_mme_answer(const char *text)
{
    char head[5] = "";
    for (int i = 0; i < 4 && text[i]; i++)
        head[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
    if (strstr(head, "yes")) return 1;
    return strstr(head, "no") ? 0 : -1;
}

/* ---- letters -------------------------------------------------------------------------------- */

char ry_vqa_letter(const char *text, uint32_t n_choices)
{
    static const char phrase[] = "The answer is ";
    const ry_text t = ry_text_trim(ry_text_of(text));
    const int is_upper = t.n && t.at[0] >= 'A' && t.at[0] <= 'Z';
    char letter = 0;
    size_t n = 0;
    if (is_upper && (t.n == 1 || (t.n >= 3 && t.at[1] == '.' && t.at[2] == ' ')))
        letter = t.at[0];
    else
        for (const char *at = t.at; (at = strstr(at, phrase)); at += sizeof phrase - 1) {
            const char c = at[sizeof phrase - 1];
            if (c < 'A' || c > 'Z' || !at[sizeof phrase] || at[sizeof phrase] == '\n') continue;
            letter = c;
            n++;
        }
    return n <= 1 && letter && (uint32_t)(letter - 'A') < n_choices ? letter : 0;
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* GQA: ignores case and points at the end. */
static renyi_status compare_gqa(const renyi_vqa *v, const char *right, const char *text,
                                double *worth, renyi_error *err)
{
    ry_text t = ry_text_trim(ry_text_of(text));
    while (t.n && t.at[t.n - 1] == '.') t.n--;
    char *said = ry_vqa_lower_text(t.at, t.n, &v->al),
         *wanted = ry_vqa_lower_text(right, strlen(right), &v->al);
    const int is_fine = said && wanted;
    if (is_fine) *worth = strcmp(said, wanted) == 0;
    ry_free(&v->al, said);
    ry_free(&v->al, wanted);
    return is_fine ? RENYI_OK : ry_fail_nomem(err, 8 * t.n);
}

/* SEED-Bench in LLaVA's script: nothing but the letter. */
static int is_same_text(const char *text, const char *right)
{
    return ry_text_compare(ry_text_trim(ry_text_of(text)), ry_text_of(right)) == 0;
}

/* OCRBench: without blanks at the ends, line ends as blanks, in lower case. A formula keeps its
 * case and loses all blanks. Owned (ry_free); NULL = no memory. */
static char *ocr_text(const char *text, int is_formula, const renyi_allocator *al)
{
    const ry_text t = ry_text_trim(ry_text_of(text));
    char *out = is_formula ? ry_alloc(al, t.n + 1, 1) : ry_vqa_lower_text(t.at, t.n, al), *to = out;
    if (!out) return NULL;
    if (is_formula) {
        memcpy(out, t.at, t.n);
        out[t.n] = 0;
    }
    for (const char *at = out; *at; at++) {
        const char c = *at == '\n' ? ' ' : *at;
        if (!is_formula || c != ' ') *to++ = c;
    }
    *to = 0;
    return out;
}

/* One of the right answers is part of the text. */
static renyi_status find_right_text(const renyi_vqa *v, const ry_vqa_question *q, const char *text,
                                    double *worth, renyi_error *err)
{
    char *said = ocr_text(text, q->is_formula, &v->al);
    int is_fine = said != NULL, is_right = 0;
    for (uint32_t i = 0; is_fine && i < q->n_right; i++) {
        char *wanted = ocr_text(q->right[i], q->is_formula, &v->al);
        is_fine = wanted != NULL;
        is_right = is_right || (is_fine && strstr(said, wanted));
        ry_free(&v->al, wanted);
    }
    ry_free(&v->al, said);
    *worth = is_right;
    return is_fine ? RENYI_OK : ry_fail_nomem(err, strlen(text));
}

/* VQA accuracy: min(1, matches / 3), averaged over leaving out each of the n right answers. */
static renyi_status vqa_accuracy(const renyi_vqa *v, const ry_vqa_question *q, const char *text,
                                 double *worth, renyi_error *err)
{
    char *said = normalize_answer(text, v->scorer, &v->al);
    double m = 0, n = q->n_right;
    if (!said) return ry_fail_nomem(err, strlen(text));
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
    case RENYI_VQA_MME: *worth = read_mme_answer(text) == !ry_vqa_is_no(q->right[0]); break;
    case RENYI_VQA_SQA:
    case RENYI_VQA_MMBENCH:
    case RENYI_VQA_MMBENCH_CN: *worth = ry_vqa_letter(text, q->n_choices) == q->right[0][0]; break;
    case RENYI_VQA_SEED: *worth = is_same_text(text, q->right[0]); break;
    case RENYI_VQA_OCRBENCH: return find_right_text(v, q, text, worth, err);
    case RENYI_VQA_GQA: return compare_gqa(v, q->right[0], text, worth, err);
    case RENYI_VQA_MMVET: break;
    default: return vqa_accuracy(v, q, text, worth, err);
    }
    return RENYI_OK;
}
