/* vqa_fixture.h - questions and answers in the test's folder, opened and scored. Define
 * _POSIX_C_SOURCE 200809L before the first include. SPDX-License-Identifier: Apache-2.0 */
#ifndef VQA_FIXTURE_H
#define VQA_FIXTURE_H

#include "dataset_fixture.h"
#include "renyi/vqa.h"

#include <math.h>

#define VQA(...) (&(renyi_vqa_options){.struct_size = sizeof(renyi_vqa_options), __VA_ARGS__})

static inline renyi_vqa *ask(renyi_vqa_task task, const char *path, const renyi_vqa_options *o)
{
    renyi_error err = {0};
    renyi_vqa *v;
    if (renyi_vqa_open(&v, task, path, o, &err)) fail_msg("%s", err.message);
    return v;
}

static inline void ask_bad(renyi_vqa_task task, const char *path, const renyi_vqa_options *o,
                           const char *part)
{
    renyi_error err = {0};
    renyi_vqa *v;
    if (renyi_vqa_open(&v, task, path, o, &err) == RENYI_OK) fail_msg("opened: %s", path);
    assert_null(v);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static inline renyi_vqa_answers *answers_of(const renyi_vqa *v, const char *path)
{
    renyi_error err = {0};
    renyi_vqa_answers *a;
    if (renyi_vqa_read_answers(&a, v, &path, 1, &err)) fail_msg("%s", err.message);
    return a;
}

static inline void answers_bad(const renyi_vqa *v, const char *path, const char *part)
{
    renyi_error err = {0};
    renyi_vqa_answers *a;
    if (renyi_vqa_read_answers(&a, v, &path, 1, &err) == RENYI_OK) fail_msg("read: %s", path);
    assert_null(a);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

/* A file of answers to the questions in their order, as LLaVA would write it; NULL = unanswered. No
 * text here needs escapes but the prompts' line ends. */
static inline const char *put_answers(const char *name, const renyi_vqa *v,
                                      const char *const *texts, size_t n)
{
    const char *path = put(name, "");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        renyi_vqa_question q;
        if (!texts[i]) continue;
        renyi_vqa_get_question(v, i, &q);
        fprintf(f, "{\"question_id\": \"%s\", \"prompt\": \"", q.id);
        for (const char *c = q.prompt; *c; c++)
            if (*c == '\n')
                fputs("\\n", f);
            else
                putc(*c, f);
        fprintf(f,
                "\", \"text\": \"%s\", \"answer_id\": \"x\", \"model_id\": \"m\", "
                "\"metadata\": {}}\n",
                texts[i]);
    }
    fclose(f);
    return path;
}

static inline void near(double got, double want)
{
    if (!(fabs(got - want) < 1e-9)) fail_msg("%.12g, expected %.12g", got, want);
}

/* The figure of these answers. */
static inline renyi_vqa_score score_of(const renyi_vqa *v, const char *const *texts, size_t n)
{
    renyi_vqa_score s;
    renyi_vqa_answers *a = answers_of(v, put_answers("scored.jsonl", v, texts, n));
    renyi_vqa_get_score(a, &s);
    renyi_vqa_answers_free(a);
    return s;
}

static inline void assert_score(const renyi_vqa *v, const char *const *texts, size_t n, double want)
{
    near(score_of(v, texts, n).score, want);
}

/* All bytes of a small file; good until the next call. */
static inline const char *text_of(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

#endif
