/* vqa_questions.h - the inside of renyi_vqa and renyi_vqa_answers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VQA_QUESTIONS_H
#define RY_VQA_QUESTIONS_H

#include "base/json.h"
#include "eval/data/text_lines.h"
#include "renyi/vqa.h"

#define RY_VQA_NONE UINT32_MAX

/* One question. Texts are in the pool of its renyi_vqa. */
typedef struct ry_vqa_question {
    const char *id, *image, *text, *prompt; /* image NULL = none, or inside the file */
    const char *const *right;               /* [n_right] as written */
    const char *const *compared;            /* [n_right] normalised, of VQA accuracy; else NULL */
    const char *const *options;             /* [n_options] of mmbench */
    ry_text photo;                          /* base64 inside the file; .at NULL = none */
    uint32_t n_right, n_options;
    uint32_t n_choices; /* letters that are an option; of sqa and mmbench */
    uint32_t category;  /* place in the list; RY_VQA_NONE = none */
    uint32_t next;      /* the next question of its group: the same photo of mme, the same question
                           with turned options of mmbench; RY_VQA_NONE = the last */
    uint8_t id_is_number, is_first; /* of its group */
} ry_vqa_question;

/* Places of texts by their hash, ascending; equal texts stay in order. */
typedef struct ry_vqa_slot {
    uint64_t hash;
    uint32_t place;
} ry_vqa_slot;

typedef struct ry_vqa_index {
    ry_vqa_slot *slots;
    size_t count, capacity;
} ry_vqa_index;

struct renyi_vqa {
    renyi_allocator al;
    ry_pool pool;
    renyi_vqa_info info;
    ry_vqa_question *questions;
    size_t count, capacity;
    const char **categories; /* names, in the order in which they appeared */
    size_t n_categories, category_capacity;
    const char **faults;
    size_t n_faults, fault_capacity;
    uint64_t max_questions, max_file_bytes;
    unsigned char *table; /* bytes of a file with photos inside; C heap */
    size_t table_size;
    uint8_t is_several;        /* files that count from 1 each: ids get the kind in front */
    ry_vqa_index index, by_id; /* of id and prompt; of id alone */
};

typedef struct ry_vqa_answer {
    const char *line, *text; /* JSON without its newline; NULL = unanswered */
    double worth;            /* NaN = unknown */
} ry_vqa_answer;

struct renyi_vqa_answers {
    const renyi_vqa *v;
    renyi_allocator al;
    ry_pool pool;
    ry_vqa_answer *items; /* [v->count] */
    renyi_vqa_answers_info info;
    uint64_t n_measured; /* answers whose metadata say what they took */
    char run[17];        /* of the metadata; "" = they do not say */
};

/* ---- vqa_tasks.c --------------------------------------------------------------------------- */

int ry_vqa_is_soft(renyi_vqa_task task);     /* VQA accuracy: several right answers */
int ry_vqa_is_yes_no(renyi_vqa_task task);   /* pope, mme */
int ry_vqa_is_lettered(renyi_vqa_task task); /* sqa, mmbench */
int ry_vqa_is_mmbench(renyi_vqa_task task);
/* Is the subtask of mme one of perception? */
int ry_vqa_is_perception(const char *category);

/* ---- vqa_index.c --------------------------------------------------------------------------- */

uint64_t ry_vqa_key(const char *a, const char *b); /* hash of two texts */
renyi_status ry_vqa_index_add(ry_vqa_index *x, uint64_t hash, uint32_t place,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_vqa_index_sort(ry_vqa_index *x);
/* First slot of this hash, or NULL; those behind it may have the same. */
const ry_vqa_slot *ry_vqa_index_find(const ry_vqa_index *x, uint64_t hash);
const ry_vqa_slot *ry_vqa_index_next(const ry_vqa_index *x, const ry_vqa_slot *slot);
void ry_vqa_index_free(ry_vqa_index *x, const renyi_allocator *al);

/* ---- vqa_build.c: a renyi_vqa as its readers fill it --------------------------------------- */

/* A copy in the pool, in *out. */
renyi_status ry_vqa_keep(renyi_vqa *v, const char **out, ry_text text,
                         renyi_error *err) RENYI_CHECK;
/* "a" "b" in one. */
renyi_status ry_vqa_join(renyi_vqa *v, const char **out, const char *a, const char *b,
                         renyi_error *err) RENYI_CHECK;
/* `name` NULL or "": none. */
renyi_status ry_vqa_category(renyi_vqa *v, uint32_t *out, const char *name,
                             renyi_error *err) RENYI_CHECK;
/* question_id: a text or a whole number. Returns 0 for anything else. */
int ry_vqa_id(const json_t *value, char out[256], uint8_t *is_number);
json_t *ry_vqa_id_json(const ry_vqa_question *q); /* as it stood there; NULL = no memory */
/* The right answers of a question, copied. */
renyi_status ry_vqa_set_right(renyi_vqa *v, ry_vqa_question *q, const char *const *texts,
                              uint32_t n, renyi_error *err) RENYI_CHECK;
/* The same from a text, or a list of texts or of {"answer": text}; *is_fine = 0: anything else. */
renyi_status ry_vqa_take_right(renyi_vqa *v, ry_vqa_question *q, const json_t *value, int *is_fine,
                               renyi_error *err) RENYI_CHECK;
/* Adds a copy of *q, whose texts must be in the pool. */
renyi_status ry_vqa_add(renyi_vqa *v, const ry_vqa_question *q, renyi_error *err) RENYI_CHECK;
/* A line that is left out; *why is what was wrong, RENYI_ERR_NOMEM comes back as it is. */
renyi_status ry_vqa_fault(renyi_vqa *v, renyi_status st, const renyi_error *why,
                          renyi_error *err) RENYI_CHECK;

/* vqa_open.c: all questions are there; groups, indices, what is compared. */
renyi_status ry_vqa_finish(renyi_vqa *v, renyi_error *err) RENYI_CHECK;

/* ---- readers: bytes of a file called `name` into questions --------------------------------- */

renyi_status ry_vqa_read_lines(renyi_vqa *v, const char *name, const char *kind, const char *bytes,
                               size_t size, renyi_error *err) RENYI_CHECK; /* vqa_lines.c */
renyi_status ry_vqa_read_sqa(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                             renyi_error *err) RENYI_CHECK; /* vqa_sqa.c */
/* vqa_mmbench.c; bytes must live as long as v. */
renyi_status ry_vqa_read_mmbench(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                                 renyi_error *err) RENYI_CHECK;

/* ---- vqa_truth.c: annotations into the questions ------------------------------------------- */

renyi_status ry_vqa_read_truth(renyi_vqa *v, const char *path, renyi_error *err) RENYI_CHECK;

/* Questions by a text that annotations have too. */
typedef struct ry_vqa_join_table {
    renyi_vqa *v;
    char **keys; /* [v->count] in the pool of v */
    ry_vqa_index index;
    uint64_t n_found;
} ry_vqa_join_table;

/* vqa_truth_json.c: one file of annotations of gqa, vqav2, vizwiz, textvqa or sqa; of pope's lines
 * `kind` is the category. Finds questions through the table. */
renyi_status ry_vqa_truth_json(ry_vqa_join_table *j, const char *name, const char *bytes,
                               size_t size, renyi_error *err) RENYI_CHECK;
renyi_status ry_vqa_truth_pope(ry_vqa_join_table *j, const char *name, const char *kind,
                               const char *bytes, size_t size, renyi_error *err) RENYI_CHECK;
/* The table of all questions of v. A zeroed one may be closed. */
renyi_status ry_vqa_join_open(ry_vqa_join_table *j, renyi_vqa *v, renyi_error *err) RENYI_CHECK;
void ry_vqa_join_close(ry_vqa_join_table *j);

/* What a question is found by; unused parts are "". */
typedef struct ry_vqa_join_key {
    const char *a, *b, *question; /* of the question letters' case does not matter */
} ry_vqa_join_key;
enum { RY_VQA_MAX_SAME = 64 };
/* Questions with this key, *n of them; more than RY_VQA_MAX_SAME are passed over. */
renyi_status ry_vqa_join_find(ry_vqa_join_table *j, const ry_vqa_join_key *key,
                              ry_vqa_question *found[RY_VQA_MAX_SAME], size_t *n,
                              renyi_error *err) RENYI_CHECK;
/* vqa_truth_mme.c: the truth of mme lies in a file a photo below this folder. */
renyi_status ry_vqa_truth_mme(renyi_vqa *v, const char *folder, renyi_error *err) RENYI_CHECK;
/* "yes" or "no" of the line that asks `prompt` in such a file; NULL = it has no such line. */
const char *ry_vqa_mme_answer(const char *bytes, size_t size, const char *prompt);
/* The question without what prompts put around it: its first line, or behind an OCR line the
 * second. */
ry_text ry_vqa_bare_question(const char *prompt);

/* ---- vqa_files.c --------------------------------------------------------------------------- */

/* POPE's files: "a/coco_pope_random.json" -> "random"; 0 = not one of them. */
int ry_vqa_pope_kind(const char *path, char kind[64]);
int ry_vqa_is_folder(const char *path);
/* Entries of a folder that `is_wanted`, in byte order, as paths in the pool. */
renyi_status ry_vqa_list(ry_pool *pool, const char *folder, int (*is_wanted)(const char *name),
                         const char ***paths, size_t *n, renyi_error *err) RENYI_CHECK;
/* All bytes of a file, in the C heap (ry_free with NULL); the message names it. */
renyi_status ry_vqa_load(unsigned char **bytes, size_t *size, const char *path, uint64_t max_bytes,
                         renyi_error *err) RENYI_CHECK;

/* ---- vqa_normalize.c, vqa_judge.c --------------------------------------------------------------
 */

/* renyi_vqa_normalise into the pool. */
renyi_status ry_vqa_normalise(ry_pool *pool, const char **out, const char *answer,
                              renyi_error *err) RENYI_CHECK;
/* Lower case, any script; owned (ry_free). NULL = no memory. */
char *ry_vqa_lower(const char *text, size_t n, const renyi_allocator *al);
/* If `word` is a contraction without its apostrophe, the right one in `out`; else 0. */
int ry_vqa_contraction(const char *word, char out[24]);

int ry_vqa_says_no(
    const char *text);               /* POPE's reading: "No", "no" or "not" in its first sentence */
int ry_vqa_is_no(const char *label); /* of "yes" and "no" */
/* 'A' to 'Z', or 0: how LLaVA reads an option's letter. */
char ry_vqa_letter(const char *text, uint32_t n_choices);
/* What an answer is worth. */
renyi_status ry_vqa_judge(const renyi_vqa *v, const ry_vqa_question *q, const char *text,
                          double *worth, renyi_error *err) RENYI_CHECK;

/* ---- vqa_answers.c, vqa_answer_line.c ------------------------------------------------------ */

renyi_status ry_vqa_answers_new(renyi_vqa_answers **out, const renyi_vqa *v,
                                renyi_error *err) RENYI_CHECK;
/* Lines up to the last newline, whose place is *whole; a torn one behind it is passed over. */
renyi_status ry_vqa_answers_take(renyi_vqa_answers *a, const char *name, const char *bytes,
                                 size_t size, size_t *whole, renyi_error *err) RENYI_CHECK;
/* One line. Takes a copy. `place` is the question that is meant; RY_VQA_NONE = the line tells. */
renyi_status ry_vqa_answers_take_line(renyi_vqa_answers *a, const char *where, ry_text line,
                                      uint32_t place, renyi_error *err) RENYI_CHECK;

/* What stands in every line of a run. */
typedef struct ry_vqa_run_words {
    const char *model, *policy; /* policy NULL = not said */
    char id[17];                /* stands for all that answers depend on but the question */
} ry_vqa_run_words;
/* LLaVA's line, without a newline; owned by the caller (ry_free). */
renyi_status ry_vqa_answer_line(char **out, const renyi_vqa *v, size_t i,
                                const ry_vqa_run_words *words, const renyi_vqa_reply *reply,
                                renyi_error *err) RENYI_CHECK;

/* ---- vqa_score.c --------------------------------------------------------------------------- */

/* The benchmark's figure over the questions that `other` (NULL = not asked) can be judged by too.
 */
void ry_vqa_score(const renyi_vqa_answers *a, const renyi_vqa_answers *other, renyi_vqa_score *out);

#endif
