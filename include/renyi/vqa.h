/* vqa.h - benchmarks of questions about photos: LLaVA's question files, answers, scores.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Life of a program:
 *   renyi_vqa_open -> renyi_vqa_run (or renyi_vqa_read_answers) -> renyi_vqa_get_score -> free.
 *
 * Who answers is the caller's business: renyi_vqa_run hands photo and question to a function. Files
 * are those of LLaVA's own scripts, so answers may come from here or from there.
 * Scores depend on the files alone. The rest is as in renyi.h.
 */
#ifndef RENYI_VQA_H
#define RENYI_VQA_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- benchmarks ---------------------------------------------------------------------------- */

typedef enum renyi_vqa_task {
    RENYI_VQA_POPE = 0,
    RENYI_VQA_GQA = 1,
    RENYI_VQA_VQAV2 = 2,
    RENYI_VQA_VIZWIZ = 3,
    RENYI_VQA_TEXTVQA = 4,
    RENYI_VQA_SQA = 5,
    RENYI_VQA_MME = 6,
    RENYI_VQA_MMBENCH = 7,
    RENYI_VQA_MMBENCH_CN = 8,
    RENYI_VQA_MMVET = 9
} renyi_vqa_task;
#define RENYI_VQA_TASKS 10

typedef struct renyi_vqa_task_info {
    const char *name, *title; /* "sqa", "SQA-IMG" */
    const char *score;        /* what its figure is: "mean F1, %" */
    double full_marks;        /* 100; of MME 2000 */
    uint32_t max_new_tokens;  /* that LLaVA's script allows an answer */
    const char *questions;    /* which file that is, for people */
    const char *annotations;  /* likewise, where the truth is; NULL = with the questions */
    const char *submission;   /* what renyi_vqa_write_submission writes; NULL = nothing */
    const char *suffix;       /* put behind a question that lacks it; NULL = none */
} renyi_vqa_task_info;        /* strings are static */

RENYI_API void renyi_vqa_get_task(renyi_vqa_task task, renyi_vqa_task_info *out);
/* RENYI_ERR_ARG: no such name, and which there are. */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_find_task(const char *name, renyi_vqa_task *out,
                                                       renyi_error *err);

/* ---- questions ----------------------------------------------------------------------------- */

typedef struct renyi_vqa renyi_vqa; /* questions, and the right answers where known; immutable */

typedef struct renyi_vqa_options {
    uint32_t struct_size;
    uint32_t shard, n_shards; /* questions shard, shard + n_shards, ...; n_shards 0 = all */
    uint32_t contiguous;      /* 1 = shards are runs of neighbours, LLaVA's --num-chunks */
    uint64_t limit; /* at most so many questions, before they are cut into shards; 0 = all */
    const char *annotations; /* file or folder with the right answers; NULL = those that stand with
                                the questions, or none. Borrowed for the call */
    uint64_t max_questions;  /* more is an error; 0 = 16,777,216 */
    uint64_t max_file_bytes; /* of a file of questions, annotations or answers; 0 = 1 GiB */
    renyi_allocator allocator;
} renyi_vqa_options;

/* `questions` is LLaVA's file of the benchmark: lines of JSON, of sqa a JSON list, of mmbench a
 * table with tabs and the photos inside; of pope also the folder of the three coco_pope_*.json. A
 * line that is broken is left out and told by renyi_vqa_get_fault; no good line is
 * RENYI_ERR_FORMAT. On success *out is owned by the caller (renyi_vqa_free). */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_open(renyi_vqa **out, renyi_vqa_task task,
                                                  const char *questions,
                                                  const renyi_vqa_options *opt, renyi_error *err);
RENYI_API void renyi_vqa_free(renyi_vqa *v);

typedef struct renyi_vqa_info {
    renyi_vqa_task task;
    uint64_t n_questions; /* of this shard */
    uint64_t n_found;     /* in the files, before limit and shards */
    uint64_t n_known;     /* of n_questions, with the right answer */
    uint64_t n_faults;    /* lines that were left out */
    uint64_t fingerprint; /* stands for all questions and prompts */
} renyi_vqa_info;
RENYI_API void renyi_vqa_get_info(const renyi_vqa *v, renyi_vqa_info *out);

typedef struct renyi_vqa_question {
    const char *id;       /* LLaVA's question_id; not unique in textvqa and mme */
    const char *image;    /* name of the photo; NULL = none (some of sqa), or inside the file */
    const char *text;     /* what a model is asked, behind the photo */
    const char *prompt;   /* as answers have it: with id it tells which question is meant */
    const char *category; /* POPE's kind, MME's subtask, ...; NULL = none */
    uint32_t n_right;
    const char *const *right; /* [n_right] the right answers as they are written; 0 = unknown */
} renyi_vqa_question;         /* borrowed until renyi_vqa_free */
RENYI_API void renyi_vqa_get_question(const renyi_vqa *v, size_t i, renyi_vqa_question *out);

/* "file:line: what is wrong with it"; borrowed until renyi_vqa_free. */
RENYI_API const char *renyi_vqa_get_fault(const renyi_vqa *v, size_t i);

/* ---- answers ------------------------------------------------------------------------------- */

typedef struct renyi_vqa_answers renyi_vqa_answers; /* to the questions of one renyi_vqa */

/* LLaVA's answer files, one or several that are parts of one run (a folder: all .jsonl in it).
 * Lines about questions that v does not have are counted and passed over; two different answers to
 * a question, or answers of two models or policies, are RENYI_ERR_FORMAT. v must outlive *out,
 * which is owned by the caller (renyi_vqa_answers_free). */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_read_answers(renyi_vqa_answers **out,
                                                          const renyi_vqa *v,
                                                          const char *const *paths, size_t n_paths,
                                                          renyi_error *err);
RENYI_API void renyi_vqa_answers_free(renyi_vqa_answers *a);

typedef struct renyi_vqa_answers_info {
    const char *model;                /* model_id; NULL without answers */
    const char *policy;               /* as the metadata say; NULL = they do not */
    uint64_t n_answered;              /* questions of v */
    uint64_t n_foreign;               /* lines about other questions */
    uint64_t n_repeated;              /* lines that were there before */
    double visual_tokens, tokens, ms; /* means of what the metadata say; NaN = nothing */
} renyi_vqa_answers_info;
RENYI_API void renyi_vqa_answers_get_info(const renyi_vqa_answers *a, renyi_vqa_answers_info *out);
/* NULL = not answered. Borrowed until renyi_vqa_answers_free. */
RENYI_API const char *renyi_vqa_get_answer(const renyi_vqa_answers *a, size_t i);

/* For the server or the grader that scores what cannot be scored here; also for those that can be
 * where LLaVA's scripts write one. Written whole or not at all. RENYI_ERR_ARG: the benchmark takes
 * no such file, or questions are unanswered that it must have. */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_write_submission(const renyi_vqa_answers *a,
                                                              const char *path, renyi_error *err);

/* ---- scores -------------------------------------------------------------------------------- */

/* Questions of one category. */
typedef struct renyi_vqa_part {
    const char *name; /* borrowed until renyi_vqa_free */
    uint64_t n;       /* answered, with a known right answer */
    double score;     /* as the benchmark counts: F1 (pope), accuracy + accuracy_plus (mme), ... */
    double accuracy;  /* mean over its questions, per cent */
    double precision, recall, yes; /* pope: per cent; else NaN */
    double accuracy_plus;          /* mme: photos with all questions right, per cent; else NaN */
    int is_counted; /* in the benchmark's figure; 0 for mme's cognition, sqa without photo */
} renyi_vqa_part;

typedef struct renyi_vqa_score {
    double score;         /* the benchmark's figure; NaN = cannot be told here */
    renyi_interval range; /* 95 %; NaN where there is no formula */
    double accuracy;      /* mean over all scored questions, per cent */
    uint64_t n_scored;    /* answered, with a known right answer; others do not count */
    uint64_t n_right;     /* of them, fully right */
    uint32_t n_parts;     /* categories, see renyi_vqa_get_part */
} renyi_vqa_score;
RENYI_API void renyi_vqa_get_score(const renyi_vqa_answers *a, renyi_vqa_score *out);
/* Part i < n_parts, in the order in which categories appear among the questions. */
RENYI_API void renyi_vqa_get_part(const renyi_vqa_answers *a, uint32_t i, renyi_vqa_part *out);

/* What the answer to question i is worth, 0 to 1; NaN = unanswered, or the right one is unknown. */
RENYI_API double renyi_vqa_get_worth(const renyi_vqa_answers *a, size_t i);

/* Two runs on the questions that both answered and that can be judged. */
typedef struct renyi_vqa_pair {
    uint64_t n;
    uint64_t better_a, better_b, equal; /* which answer is worth more */
    uint64_t same;                      /* answers of the same text */
    double difference;                  /* accuracy of b minus that of a, in points */
    renyi_interval range;               /* its 95 % interval */
    double p_value;          /* exact sign test, two-sided; of right and wrong it is McNemar's */
    int is_noise;            /* p_value >= 0.05: not told apart by these questions */
    double score_a, score_b; /* the benchmark's figure of each on these questions */
} renyi_vqa_pair;
/* Both of the same renyi_vqa. */
RENYI_API void renyi_vqa_compare(const renyi_vqa_answers *a, const renyi_vqa_answers *b,
                                 renyi_vqa_pair *out);

/* An answer as the servers of VQAv2, VizWiz and TextVQA compare it: lower case, without articles
 * and punctuation, numbers up to ten as digits, contractions with their apostrophe. Owned by the
 * caller (renyi_vqa_text_free with the same allocator, which may be NULL). */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_normalise(char **out, const char *answer,
                                                       const renyi_allocator *allocator,
                                                       renyi_error *err);
RENYI_API void renyi_vqa_text_free(char *text, const renyi_allocator *allocator);

/* ---- asking -------------------------------------------------------------------------------- */

/* What is asked. Borrowed for the call. */
typedef struct renyi_vqa_request {
    const renyi_vqa_question *question;
    const char *name;  /* of the photo, for messages; NULL = the question has none */
    const void *bytes; /* of the encoded photo; NULL without one */
    size_t size;
    int is_same_photo; /* as in the call before: what was computed from it may be used again */
} renyi_vqa_request;

/* What comes back. */
typedef struct renyi_vqa_reply {
    const char *text; /* valid until the next call or the end of renyi_vqa_run; blanks at its ends
                         are left out */
    uint32_t n_visual, n_tokens; /* visual tokens that the language model saw; tokens generated */
    double ms;                   /* in all */
} renyi_vqa_reply;

/* RENYI_ERR_IO, _FORMAT, _LIMIT and _UNSUPPORTED fail this question alone; any other error stops
 * the run. */
typedef renyi_status (*renyi_vqa_ask)(void *user, const renyi_vqa_request *request,
                                      renyi_vqa_reply *reply, renyi_error *err);

typedef struct renyi_vqa_run_options {
    uint32_t struct_size;
    uint32_t resume;       /* 1 = what the file holds already is not asked again; 0: a file that is
                              not empty is an error */
    const char *images;    /* folder of the photos; NULL = names are paths */
    const char *answers;   /* file that is written as it goes; NULL = none */
    const char *model;     /* model_id */
    const char *policy;    /* in full, for the metadata; NULL = none is said */
    const char *condition; /* what else answers depend on (length, temperature, dtype): a file of
                              other conditions, model or policy cannot be resumed. NULL = nothing */
    renyi_limits limits;   /* of photos */
    const renyi_ranks *ranks; /* borrowed for the call; NULL = alone */
    renyi_vqa_ask ask;
    void *ask_user;
    void *user; /* first argument of the callbacks below; each may be NULL */
    void (*on_answer)(void *user, const renyi_vqa_question *question, const char *text);
    void (*on_failure)(void *user, const char *question, const char *message); /* skipped */
    renyi_progress progress; /* after every question; non-zero stops: RENYI_ERR_ABORTED */
} renyi_vqa_run_options;

/* Ask what is not answered yet. *out has all answers, also after RENYI_ERR_ABORTED (then it is
 * what there is so far; free it in any case that is not NULL). A photo that cannot be read is
 * reported and skipped: it has no line, and a resumed run tries it again. The file has the order of
 * the questions when the run is complete, as LLaVA's scorers want it.
 *
 * With ranks, all call it with the same questions and options. Each asks its share, and in the end
 * all have all answers. Rank 0 writes FILE, rank r FILE.rank<r>; in the end FILE has everything and
 * the others are removed. `resume` reads FILE and every FILE.rank<r>. */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_run(renyi_vqa_answers **out, const renyi_vqa *v,
                                                 const renyi_vqa_run_options *opt,
                                                 renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
