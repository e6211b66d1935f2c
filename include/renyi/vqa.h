/* vqa.h - benchmarks of questions about images: LLaVA's question files, answers and scores.
 *
 * Call order: renyi_vqa_open -> renyi_vqa_run or renyi_vqa_read_answers -> renyi_vqa_get_score ->
 * free in reverse order.
 *
 * Any model can answer: renyi_vqa_run passes image and question to a function of the caller. Files
 * have the format of LLaVA's scripts, so answers may come from either program. Scores depend only
 * on the files. The rules of renyi.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_VQA_H
#define RENYI_VQA_H

#include "renyi/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- benchmarks ------------------------------------------------------------------------------ */

/* The ten benchmarks of LLaVA-1.5's tables, then two more. Call order: renyi_vqa_find_task ->
 * renyi_vqa_get_task. */

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
    RENYI_VQA_MMVET = 9,
    RENYI_VQA_SEED = 10,
    RENYI_VQA_OCRBENCH = 11
} renyi_vqa_task;
#define RENYI_VQA_TASKS 12

typedef struct renyi_vqa_task_info {
    const char *name, *title; /* "sqa", "SQA-IMG" */
    const char *score;        /* meaning of its score: "mean F1, %" */
    double full_marks;        /* highest score: 100; 2000 for MME, 1000 for OCRBench */
    uint32_t max_new_tokens;  /* limit per answer in LLaVA's script */
    const char *questions;    /* for display: which question file */
    const char *annotations;  /* for display: where the correct answers are; NULL = with the
                                 questions */
    const char *submission;   /* file that renyi_vqa_write_submission writes; NULL = none */
    const char *suffix;       /* appended to a question that lacks it; NULL = none */
} renyi_vqa_task_info;        /* strings are static */

RENYI_API void renyi_vqa_get_task(renyi_vqa_task task, renyi_vqa_task_info *out);
/* RENYI_ERR_ARG: unknown name; the message lists all names. */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_find_task(const char *name, renyi_vqa_task *out,
                                                       renyi_error *err);

/* ---- questions ------------------------------------------------------------------------------- */

/* Call order: renyi_vqa_open -> renyi_vqa_get_info, renyi_vqa_get_question -> renyi_vqa_free. */

typedef struct renyi_vqa renyi_vqa; /* questions and, if known, correct answers; immutable */

/* How answers of vqav2, vizwiz and textvqa are normalized before they are compared. */
typedef enum renyi_vqa_scorer {
    RENYI_VQA_SCORER_TEXTVQA = 0, /* EvalAI's answer processor, as in LLaVA's TextVQA script */
    RENYI_VQA_SCORER_OFFICIAL =
        1 /* VQA's evaluation code (vqaEval), always applied to both sides */
} renyi_vqa_scorer;

typedef struct renyi_vqa_options {
    uint32_t struct_size;
    uint32_t shard, n_shards; /* questions shard, shard + n_shards, ...; n_shards 0 = all */
    uint32_t contiguous;      /* 1 = shards are contiguous, as LLaVA's --num-chunks */
    uint64_t limit;           /* at most this many questions, before sharding; 0 = all */
    const char *annotations;  /* file or folder with the correct answers; NULL = those in the
                                 question file, or none. Borrowed for the call */
    uint64_t max_questions;   /* more questions are an error; 0 = 16,777,216 */
    uint64_t max_file_bytes;  /* size of a file of questions, annotations or answers; 0 = 1 GiB */
    renyi_allocator allocator;
    renyi_vqa_scorer scorer; /* other benchmarks ignore it */
} renyi_vqa_options;

/* `questions` is LLaVA's file of the benchmark: JSON lines; for sqa a JSON list; for mmbench a
 * tab-separated table that contains the images; for pope also the folder with the three
 * coco_pope_*.json; for seed also SEED-Bench.json itself (a name that ends in .json), whose videos
 * are left out; for ocrbench OCRBench.json. A bad line is skipped and reported by
 * renyi_vqa_get_fault; no good line is RENYI_ERR_FORMAT. On success *out is owned by the caller
 * (renyi_vqa_free). */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_open(renyi_vqa **out, renyi_vqa_task task,
                                                  const char *questions,
                                                  const renyi_vqa_options *opt, renyi_error *err);
RENYI_API void renyi_vqa_free(renyi_vqa *v);

typedef struct renyi_vqa_info {
    renyi_vqa_task task;
    uint64_t n_questions; /* questions of this shard */
    uint64_t n_found;     /* questions in the files, before limit and shards */
    uint64_t n_known;     /* questions of this shard with a known correct answer */
    uint64_t n_faults;    /* lines that were skipped */
    uint64_t fingerprint; /* hash of all questions and prompts */
} renyi_vqa_info;
RENYI_API void renyi_vqa_get_info(const renyi_vqa *v, renyi_vqa_info *out);

typedef struct renyi_vqa_question {
    const char *id;       /* LLaVA's question_id; not unique in textvqa and mme */
    const char *image;    /* file name; NULL = no image (some of sqa), or stored in the table */
    const char *text;     /* text for the model, after the image */
    const char *prompt;   /* prompt in answer files; together with id it identifies the question */
    const char *category; /* kind of POPE, subtask of MME, ...; NULL = none */
    uint32_t n_right;
    const char *const *right; /* [n_right] correct answers as written; 0 = unknown */
} renyi_vqa_question;         /* borrowed until renyi_vqa_free */
RENYI_API void renyi_vqa_get_question(const renyi_vqa *v, size_t i, renyi_vqa_question *out);

/* "file:line: reason" of skipped line i < n_faults. Borrowed until renyi_vqa_free. */
RENYI_API const char *renyi_vqa_get_fault(const renyi_vqa *v, size_t i);

/* ---- answers --------------------------------------------------------------------------------- */

/* Call order: renyi_vqa_read_answers or renyi_vqa_run -> renyi_vqa_get_answer, renyi_vqa_get_score,
 * renyi_vqa_write_submission -> renyi_vqa_answers_free. */

typedef struct renyi_vqa_answers renyi_vqa_answers; /* answers to one renyi_vqa */

/* Reads LLaVA's answer files: one, or several parts of one run (a folder: all .jsonl files in it).
 * Lines about questions that v does not have are counted and skipped. Two different answers to a
 * question, or answers of two models or policies, are RENYI_ERR_FORMAT. Borrows v until
 * renyi_vqa_answers_free. On success *out is owned by the caller (renyi_vqa_answers_free). */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_read_answers(renyi_vqa_answers **out,
                                                          const renyi_vqa *v,
                                                          const char *const *paths, size_t n_paths,
                                                          renyi_error *err);
RENYI_API void renyi_vqa_answers_free(renyi_vqa_answers *a);

/* What answers cost. Every number may be NaN: unknown, or not comparable. */
typedef struct renyi_vqa_cost {
    double layer_tokens; /* visual tokens, mean over the layers of the language model */
    double tower_tflops, projector_tflops, lm_tflops; /* image and prompt as if nothing of them had
                                                         been computed before: 1e12 FLOPs, two to a
                                                         multiply-accumulate */
    double cache_bytes;                               /* keys and values of the prompt */
    double first_token_ms; /* from image to first token, if the image was new; otherwise NaN */
    double choice_ms;      /* of it, for the choice behind the tower; likewise */
} renyi_vqa_cost;

typedef struct renyi_vqa_answers_info {
    const char *model;                /* model_id; NULL without answers */
    const char *policy;               /* from the metadata; NULL = unknown */
    uint64_t n_answered;              /* answered questions of v */
    uint64_t n_foreign;               /* lines about other questions */
    uint64_t n_repeated;              /* duplicate lines */
    double visual_tokens, tokens, ms; /* means from the metadata; NaN = unknown */
    renyi_vqa_cost cost;              /* likewise; each number over the answers that have it */
} renyi_vqa_answers_info;
RENYI_API void renyi_vqa_answers_get_info(const renyi_vqa_answers *a, renyi_vqa_answers_info *out);
/* Answer to question i; NULL = none. Borrowed until renyi_vqa_answers_free. */
RENYI_API const char *renyi_vqa_get_answer(const renyi_vqa_answers *a, size_t i);
/* Hash of question i and the bytes of its image, from the metadata; 0 = unknown. */
RENYI_API uint64_t renyi_vqa_get_input_hash(const renyi_vqa_answers *a, size_t i);

/* Writes the file for the server or grader of a benchmark that cannot be scored here, and for those
 * that can if LLaVA's scripts write one. The file appears only when complete. RENYI_ERR_ARG: the
 * benchmark has no such file, or required questions are unanswered. */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_write_submission(const renyi_vqa_answers *a,
                                                              const char *path, renyi_error *err);

/* ---- scores ---------------------------------------------------------------------------------- */

/* Functions of answers; call them after renyi_vqa_read_answers or renyi_vqa_run. */

/* Score of one category. */
typedef struct renyi_vqa_part {
    const char *name; /* borrowed until renyi_vqa_free */
    uint64_t n;       /* questions that are answered and have a known correct answer */
    double score;     /* score of the benchmark: F1 (pope), accuracy + accuracy_plus (mme), ... */
    double accuracy;  /* mean over its questions, percent */
    double precision, recall, yes; /* pope: percent; otherwise NaN */
    double accuracy_plus;          /* mme: images with all questions correct, percent; otherwise
                                      NaN */
    int is_counted; /* 1 = counts in the total score; 0 for mme's cognition, sqa without image and
                       seed's videos */
} renyi_vqa_part;

typedef struct renyi_vqa_score {
    double score;         /* score of the benchmark; NaN = cannot be computed here */
    renyi_interval range; /* 95 % interval; NaN if there is no formula */
    double accuracy;      /* mean over all scored questions, percent */
    uint64_t n_scored;    /* questions that are answered and have a known correct answer */
    uint64_t n_right;     /* of them, fully correct */
    uint32_t n_parts;     /* number of categories (renyi_vqa_get_part) */
    double cognition;     /* mme: accuracy + accuracy_plus of the four cognition tasks, 800 at most;
                             otherwise NaN. `score` is that of the ten perception tasks */
    double total;         /* mme: perception + cognition, 2800 at most; otherwise NaN */
} renyi_vqa_score;
RENYI_API void renyi_vqa_get_score(const renyi_vqa_answers *a, renyi_vqa_score *out);
/* Category i < n_parts, in order of first appearance among the questions. */
RENYI_API void renyi_vqa_get_part(const renyi_vqa_answers *a, uint32_t i, renyi_vqa_part *out);

/* Value of the answer to question i, 0 to 1; NaN = not answered, or the correct answer is
 * unknown. */
RENYI_API double renyi_vqa_get_worth(const renyi_vqa_answers *a, size_t i);

/* Two runs compared on the questions that both answered and that can be scored. */
typedef struct renyi_vqa_pair {
    uint64_t n;
    uint64_t better_a, better_b, equal; /* which answer has the higher value */
    uint64_t same;                      /* answers with the same text */
    double difference;                  /* accuracy of b minus accuracy of a, percentage points */
    renyi_interval range;               /* its 95 % interval */
    double p_value;          /* exact two-sided sign test; McNemar's test if values are 0 or 1 */
    int is_noise;            /* p_value >= 0.05: these questions cannot separate the two */
    double score_a, score_b; /* score of each on these questions */
} renyi_vqa_pair;
/* a and b must belong to the same renyi_vqa. */
RENYI_API void renyi_vqa_compare(const renyi_vqa_answers *a, const renyi_vqa_answers *b,
                                 renyi_vqa_pair *out);

/* Normalizes an answer as RENYI_VQA_SCORER_TEXTVQA does: lower case, no articles and punctuation,
 * numbers up to ten as digits, contractions with apostrophe. allocator may be NULL. On success
 * *out is owned by the caller (renyi_vqa_text_free with the same allocator). */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_normalise(char **out, const char *answer,
                                                       const renyi_allocator *allocator,
                                                       renyi_error *err);
RENYI_API void renyi_vqa_text_free(char *text, const renyi_allocator *allocator);

/* ---- asking ---------------------------------------------------------------------------------- */

/* Runs a benchmark with any model. The caller's function `ask` gets each question and returns an
 * answer. Call order: renyi_vqa_open -> renyi_vqa_run -> renyi_vqa_answers_free. An answer file
 * makes it possible to resume. */

/* A question for the model. Borrowed for the call. */
typedef struct renyi_vqa_request {
    const renyi_vqa_question *question;
    const char *name;  /* image name for messages; NULL = no image */
    const void *bytes; /* encoded image; NULL = no image */
    size_t size;
    int is_same_photo; /* 1 = the same image as in the call before: its results may be reused */
} renyi_vqa_request;

/* Answer of the model. */
typedef struct renyi_vqa_reply {
    const char *text; /* valid until the next call or the end of renyi_vqa_run; leading and trailing
                         blanks are removed */
    uint32_t n_visual, n_tokens; /* visual tokens in the prompt; tokens generated */
    double ms;                   /* total time */
    const renyi_vqa_cost *cost;  /* NULL = unknown */
} renyi_vqa_reply;

/* RENYI_ERR_IO, _FORMAT, _LIMIT and _UNSUPPORTED fail only this question; any other error stops the
 * run. */
typedef renyi_status (*renyi_vqa_ask)(void *user, const renyi_vqa_request *request,
                                      renyi_vqa_reply *reply, renyi_error *err);

typedef struct renyi_vqa_run_options {
    uint32_t struct_size;
    uint32_t resume;       /* 1 = answers in the file are not asked again. 0 = a file that is not
                              empty is an error */
    const char *images;    /* folder of the images; NULL = names are paths. A name that leads out
                              of it ("/...", "../...") is an error, see allow_outside */
    const char *answers;   /* answer file, written during the run; NULL = none */
    const char *model;     /* model_id */
    const char *policy;    /* with all defaults, for the metadata; NULL = none */
    const char *condition; /* what else the answers depend on (length, temperature, dtype): a file
                              with another condition, model or policy cannot be resumed. NULL:
                              nothing */
    renyi_limits limits;   /* limits for images */
    const renyi_ranks *ranks; /* several processes; NULL = one. Borrowed for the call */
    renyi_vqa_ask ask;
    void *ask_user;
    void *user; /* first argument of the callbacks below; each may be NULL */
    void (*on_answer)(void *user, const renyi_vqa_question *question, const char *text);
    /* Question skipped. */
    void (*on_failure)(void *user, const char *question, const char *message);
    renyi_progress progress; /* called after every question; non-zero stops: RENYI_ERR_ABORTED */
    uint32_t allow_outside;  /* 1 = questions may name any image of this machine */
    const uint8_t *wanted;   /* [n_questions] 1 = ask this question; NULL = all. Borrowed for the
                                call */
} renyi_vqa_run_options;

/* Asks everything that is not answered yet. An image that cannot be read is reported and skipped:
 * it has no line, and a resumed run tries again. When complete, the file is in the order of the
 * questions, as LLaVA's scorers require. On success *out has all answers and is owned by the caller
 * (renyi_vqa_answers_free). After RENYI_ERR_ABORTED *out may have the answers so far; free it if it
 * is not NULL.
 *
 * With ranks, all ranks call it with the same questions and options. Each asks a share; at the end
 * all have all answers. Rank 0 writes FILE, rank r writes FILE.rank<r>; at the end FILE has
 * everything and the others are removed. `resume` reads FILE and every FILE.rank<r>. */
RENYI_API RENYI_CHECK renyi_status renyi_vqa_run(renyi_vqa_answers **out, const renyi_vqa *v,
                                                 const renyi_vqa_run_options *opt,
                                                 renyi_error *err);

/* ---- result manifests ------------------------------------------------------------------------ */

/* What one run of a benchmark was and what it gave, in a JSON file that others can compare and
 * check (docs/LVLM.md). Call order: renyi_manifest_sample_of for each question, fill a
 * renyi_manifest_info -> renyi_manifest_write. Or: renyi_manifest_read -> renyi_manifest_get_info,
 * renyi_manifest_compare -> renyi_manifest_free. */

/* An answered question. */
typedef struct renyi_manifest_sample {
    const char *id;  /* of the question; not unique in textvqa and mme */
    uint64_t input;  /* hash of what the model was given: text and image; 0 = unknown */
    uint64_t answer; /* hash of the text of the answer */
    double worth;    /* 0 to 1; NaN = the right answer is unknown */
} renyi_manifest_sample;

/* A file of the model. */
typedef struct renyi_manifest_file {
    const char *name; /* without its folder */
    uint64_t size;
    const char *sha256; /* 64 hexadecimal digits */
} renyi_manifest_file;

/* Texts that are NULL and numbers that are NaN are unknown; only version, model, task and policy
 * are needed. */
typedef struct renyi_manifest_info {
    const char *version;                          /* of the program */
    const char *model;                            /* name */
    const char *path, *tower, *tokenizer;         /* as typed */
    const char *mmproj, *text_tower;              /* as typed */
    const char *dtype, *tower_dtype;              /* renyi_dtype_name of what ran */
    const char *task, *scorer;                    /* "pope"; see renyi_vqa_scorer */
    const char *questions, *annotations, *images; /* as typed */
    uint64_t limit;                               /* questions asked at most; 0 = all */
    const char *policy;                           /* with all defaults */
    uint64_t max_new_tokens;
    double temperature, top_p;
    const char *seed; /* of sampling, decimal */
    const char *cpu, *cpu_level, *system;
    uint64_t threads;
    double score, low, high; /* with its 95 % interval */
    double cognition, total; /* mme */
    double accuracy;
    double visual_tokens;
    renyi_vqa_cost cost;
    const renyi_manifest_file *files; /* [n_files] the model's */
    size_t n_files;
    const renyi_manifest_sample *samples; /* [n_samples] in the order of the questions */
    size_t n_samples;
} renyi_manifest_info; /* all pointers are borrowed for the call, or until renyi_manifest_free */

/* Question i as a sample; 0 = it has no answer. Borrows from a. */
RENYI_API int renyi_manifest_sample_of(const renyi_vqa_answers *a, size_t i,
                                       renyi_manifest_sample *out);

/* The file appears only when it is complete. */
RENYI_API RENYI_CHECK renyi_status renyi_manifest_write(const char *path,
                                                        const renyi_manifest_info *info,
                                                        renyi_error *err);

typedef struct renyi_manifest renyi_manifest; /* a manifest that was read; immutable */

/* At most 100 MB and 1,048,576 samples. RENYI_ERR_FORMAT: the message names the file and the
 * member; also if the hashes of the file do not fit its samples. allocator may be NULL. On success
 * *out is owned by the caller (renyi_manifest_free). */
RENYI_API RENYI_CHECK renyi_status renyi_manifest_read(renyi_manifest **out, const char *path,
                                                       const renyi_allocator *allocator,
                                                       renyi_error *err);
RENYI_API void renyi_manifest_free(renyi_manifest *m);
RENYI_API void renyi_manifest_get_info(const renyi_manifest *m, renyi_manifest_info *out);
/* Hashes of all ids and inputs, and of all ids and answers. Two manifests with the same data hash
 * are about the same questions and images. */
RENYI_API uint64_t renyi_manifest_data_hash(const renyi_manifest *m);
RENYI_API uint64_t renyi_manifest_answers_hash(const renyi_manifest *m);

/* Two runs, on the questions that both answered: same id and input. Scores are not computed (NaN).
 * RENYI_ERR_ARG: they are of two benchmarks. */
RENYI_API RENYI_CHECK renyi_status renyi_manifest_compare(const renyi_manifest *a,
                                                          const renyi_manifest *b,
                                                          renyi_vqa_pair *out, renyi_error *err);

/* The score that follows from the worth of the samples; place[i] is the question of sample i. It
 * differs from info.score if the file's figures were changed. */
RENYI_API RENYI_CHECK renyi_status renyi_manifest_score(const renyi_manifest *m, const renyi_vqa *v,
                                                        const size_t *place, renyi_vqa_score *out,
                                                        renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
