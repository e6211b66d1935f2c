/* vqa_questions.h - the structs behind renyi_vqa and renyi_vqa_answers and the functions on them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_VQA_QUESTIONS_H
#define RY_VQA_QUESTIONS_H

#include "base/folder.h"
#include "base/json.h"
#include "eval/data/text_lines.h"
#include "eval/run/stats.h"
#include "renyi/vqa.h"

#define RY_VQA_NONE UINT32_MAX
enum { RY_VQA_MAX_CATEGORIES = 1000 }; /* they are searched one by one; SEED has 12, MME 14 */

/* One question. Texts are in the pool of its renyi_vqa. */
typedef struct ry_vqa_question {
    const char *id, *image, *text, *prompt; /* image NULL = none, or inside the table */
    const char *const *right;               /* [n_right] as written */
    const char *const *compared;            /* [n_right] normalized, for VQA accuracy; else NULL */
    const char *const *options;             /* [n_options] of mmbench */
    ry_text image_base64;                   /* image inside the table; .at NULL = none */
    uint32_t n_right, n_options;
    uint32_t n_choices; /* number of letters that are an option; sqa and mmbench only */
    uint32_t category;  /* index into the categories; RY_VQA_NONE = none */
    uint32_t next;      /* next question of its group (mme: same image; mmbench: same question with
                           rotated options); RY_VQA_NONE = the last */
    uint8_t id_is_number, is_first; /* is_first: the first of its group */
    uint8_t is_formula;             /* ocrbench: blanks do not count, case does */
} ry_vqa_question;

/* Question numbers sorted by the hash of a text, then by number. */
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
    renyi_vqa_scorer scorer;
    unsigned char *table; /* bytes of a file that contains images; C heap */
    size_t table_size;
    uint8_t is_several;        /* several files that all count from 1: ids get the kind as prefix */
    ry_vqa_index index, by_id; /* by id and prompt; by id alone */
};

typedef struct ry_vqa_answer {
    const char *line, *text; /* JSON without its newline; NULL = unanswered */
    double worth;            /* NaN = unknown */
    uint64_t input;          /* hash of question and image; 0 = unknown */
} ry_vqa_answer;

enum { RY_VQA_COSTS = sizeof(renyi_vqa_cost) / sizeof(double) };

struct renyi_vqa_answers {
    const renyi_vqa *v;
    renyi_allocator al;
    ry_pool pool;
    ry_vqa_answer *items; /* [v->count] */
    renyi_vqa_answers_info info;
    uint64_t n_measured;           /* answers with tokens and time in their metadata */
    uint64_t n_cost[RY_VQA_COSTS]; /* those with each number of renyi_vqa_cost */
    char run[17];                  /* run id in the metadata; "" = none */
};

/* ---- vqa_tasks.c ---------------------------------------------------------------------------- */

int ry_vqa_is_soft(renyi_vqa_task task); /* VQA accuracy: several right answers */
int ry_vqa_is_mmbench(renyi_vqa_task task);
/* Whether questions of a category count in the score: not mme's cognition, questions of sqa without
 * an image, videos of seed. */
int ry_vqa_is_counted(renyi_vqa_task task, const char *category);
/* The subtask of mme that a question id names: "OCR/0001.png" -> "OCR"; NULL = none. Static. */
const char *ry_vqa_mme_subtask(const char *id);

/* POPE's files: "a/coco_pope_random.json" -> "random"; 0 = not one of them. */
int ry_vqa_pope_kind(const char *path, char kind[64]);
int ry_vqa_is_pope_file(const char *name);
/* Entries of a folder for which `is_wanted` holds, in byte order, as paths in the pool. */
renyi_status ry_vqa_list_folder(ry_pool *pool, const char *folder,
                                int (*is_wanted)(const char *name), const char ***paths, size_t *n,
                                renyi_error *err) RENYI_CHECK;
/* All bytes of a file, in the C heap (ry_free with NULL); an error names the file. */
renyi_status ry_vqa_read_file(unsigned char **bytes, size_t *size, const char *path,
                              uint64_t max_bytes, renyi_error *err) RENYI_CHECK;

/* ---- vqa_questions.c ------------------------------------------------------------------------ */

uint64_t ry_vqa_hash(const char *a, const char *b); /* of two texts */
renyi_status ry_vqa_index_add(ry_vqa_index *x, uint64_t hash, uint32_t place,
                              const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_vqa_index_sort(ry_vqa_index *x);
/* First slot of this hash, or NULL; _next returns further slots of the same hash. Two texts may
 * have the same hash, so the caller compares the texts. */
const ry_vqa_slot *ry_vqa_index_find(const ry_vqa_index *x, uint64_t hash);
const ry_vqa_slot *ry_vqa_index_next(const ry_vqa_index *x, const ry_vqa_slot *slot);
void ry_vqa_index_free(ry_vqa_index *x, const renyi_allocator *al);

/* Copies a text to the pool. */
renyi_status ry_vqa_copy_text(renyi_vqa *v, const char **out, ry_text text,
                              renyi_error *err) RENYI_CHECK;
/* Concatenates two texts in the pool. */
renyi_status ry_vqa_join_texts(renyi_vqa *v, const char **out, const char *a, const char *b,
                               renyi_error *err) RENYI_CHECK;
/* Index of a category, which is added if it is new; RY_VQA_NONE for NULL, "" and "default". */
renyi_status ry_vqa_find_category(renyi_vqa *v, uint32_t *out, const char *name,
                                  renyi_error *err) RENYI_CHECK;
/* question_id: a text or a whole number. Returns 0 for anything else. */
int ry_vqa_read_id(const json_t *value, char out[256], uint8_t *is_number);
json_t *ry_vqa_id_json(const ry_vqa_question *q); /* as in the file; NULL = no memory */
/* Copies the right answers of a question. */
renyi_status ry_vqa_set_right(renyi_vqa *v, ry_vqa_question *q, const char *const *texts,
                              uint32_t n, renyi_error *err) RENYI_CHECK;
/* A hash as 16 hexadecimal digits; 0 = it is something else. */
uint64_t ry_vqa_read_hash(const json_t *value);
/* ry_vqa_set_right from a text, or a list of texts or of {"answer": text}; *is_fine = 0: anything
 * else. */
renyi_status ry_vqa_read_right(renyi_vqa *v, ry_vqa_question *q, const json_t *value, int *is_fine,
                               renyi_error *err) RENYI_CHECK;
/* Adds a copy of *q, whose texts must be in the pool. */
renyi_status ry_vqa_add_question(renyi_vqa *v, const ry_vqa_question *q,
                                 renyi_error *err) RENYI_CHECK;
/* Turns the error of one line into a fault (the line is skipped); returns errors that are not of
 * the format, such as RENYI_ERR_NOMEM. */
renyi_status ry_vqa_add_fault(renyi_vqa *v, renyi_status st, const renyi_error *why,
                              renyi_error *err) RENYI_CHECK;

/* vqa_open.c: after all questions are added: groups, indices, normalized right answers. */
renyi_status ry_vqa_index_questions(renyi_vqa *v, renyi_error *err) RENYI_CHECK;

/* ---- vqa_readers.c: bytes of a file called `name` into questions ---------------------------- */

renyi_status ry_vqa_read_lines(renyi_vqa *v, const char *name, const char *kind, const char *bytes,
                               size_t size, renyi_error *err) RENYI_CHECK;
renyi_status ry_vqa_read_sqa(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                             renyi_error *err) RENYI_CHECK;
/* SEED-Bench.json without its videos; OCRBench.json (vqa_documents.c). */
renyi_status ry_vqa_read_seed(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                              renyi_error *err) RENYI_CHECK;
renyi_status ry_vqa_read_ocrbench(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                                  renyi_error *err) RENYI_CHECK;
/* The category of an entry of SEED-Bench.json: the name of its type, or "video"; NULL = unknown.
 * Borrowed from the document. */
const char *ry_vqa_seed_category(const json_t *document, const json_t *entry);
renyi_status ry_vqa_check_seed(const json_t *document, const char *name,
                               renyi_error *err) RENYI_CHECK;
/* v keeps pointers into bytes. */
renyi_status ry_vqa_read_mmbench(renyi_vqa *v, const char *name, const char *bytes, size_t size,
                                 renyi_error *err) RENYI_CHECK;

/* ---- vqa_truth.c: annotations into the questions -------------------------------------------- */

renyi_status ry_vqa_read_truth(renyi_vqa *v, const char *path, renyi_error *err) RENYI_CHECK;

/* Questions by a text that annotations have too. */
typedef struct ry_vqa_join_table {
    renyi_vqa *v;
    char **keys; /* [v->count] in the pool of v */
    ry_vqa_index index;
    uint64_t n_found;
} ry_vqa_join_table;

/* The table of all questions of v. A zeroed one may be closed. */
renyi_status ry_vqa_join_open(ry_vqa_join_table *j, renyi_vqa *v, renyi_error *err) RENYI_CHECK;
void ry_vqa_join_close(ry_vqa_join_table *j);
/* One annotation file of gqa, vqav2, vizwiz, textvqa, sqa or seed. */
renyi_status ry_vqa_read_truth_json(ry_vqa_join_table *j, const char *name, const char *bytes,
                                    size_t size, renyi_error *err) RENYI_CHECK;
/* One of pope's files; `kind` is the category. */
renyi_status ry_vqa_read_truth_pope(ry_vqa_join_table *j, const char *name, const char *kind,
                                    const char *bytes, size_t size, renyi_error *err) RENYI_CHECK;
/* "yes" or "no" from the line of an mme file that asks `prompt`; NULL = no such line. */
const char *ry_vqa_mme_answer(const char *bytes, size_t size, const char *prompt);

/* ---- vqa_judge.c ---------------------------------------------------------------------------- */

/* Normalized answer in the pool. */
renyi_status ry_vqa_normalize(ry_pool *pool, const char **out, const char *answer,
                              renyi_vqa_scorer scorer, renyi_error *err) RENYI_CHECK;
/* Lower case, any script; owned (ry_free). NULL = no memory. */
char *ry_vqa_lower_text(const char *text, size_t n, const renyi_allocator *al);
/* As POPE reads an answer: "No", "no" or "not" in its first sentence. */
int ry_vqa_says_no(const char *text);
int ry_vqa_is_no(const char *label); /* label: "yes" or "no" */
/* The option's letter as LLaVA reads it: 'A' to 'Z', or 0. */
char ry_vqa_letter(const char *text, uint32_t n_choices);
/* *worth: 0 to 1, NaN = the right answer is unknown. */
renyi_status ry_vqa_judge(const renyi_vqa *v, const ry_vqa_question *q, const char *text,
                          double *worth, renyi_error *err) RENYI_CHECK;

/* ---- vqa_score.c ---------------------------------------------------------------------------- */

/* Fills the numbers that follow from the counts and from the differences of worth. */
void ry_vqa_pair_finish(renyi_vqa_pair *out, const ry_moments *differences);

/* ---- vqa_answers.c -------------------------------------------------------------------------- */

renyi_status ry_vqa_answers_new(renyi_vqa_answers **out, const renyi_vqa *v,
                                renyi_error *err) RENYI_CHECK;
/* Reads lines up to the last newline; *whole = bytes read. An incomplete last line is skipped. */
renyi_status ry_vqa_answers_read(renyi_vqa_answers *a, const char *name, const char *bytes,
                                 size_t size, size_t *whole, renyi_error *err) RENYI_CHECK;
/* Reads and copies one line. `place` is its question; RY_VQA_NONE = find it by id and prompt. */
renyi_status ry_vqa_answers_read_line(renyi_vqa_answers *a, const char *where, ry_text line,
                                      uint32_t place, renyi_error *err) RENYI_CHECK;

/* What every line of a run contains. */
typedef struct ry_vqa_run_label {
    const char *model, *policy; /* policy NULL = unknown */
    char id[17];                /* hash of everything but the question that answers depend on */
    uint64_t image;             /* hash of the bytes of the image; 0 = no image */
} ry_vqa_run_label;
/* LLaVA's line, without a newline; owned by the caller (ry_free). */
renyi_status ry_vqa_answer_line(char **out, const renyi_vqa *v, size_t i,
                                const ry_vqa_run_label *label, const renyi_vqa_reply *reply,
                                renyi_error *err) RENYI_CHECK;

#endif
