/* models.h - opens what -m names: a model, its text tower, its class names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_MODELS_H
#define RENYI_MODELS_H

#include "cli/kit/options.h"

#include "renyi/clip.h"

/* ---- the model ----------------------------------------------------------------------------- */

/* "builtin", an existing file or directory, else a Hugging Face repository in the cache (its
 * "main"). Owned; NULL after reporting. */
char *model_path_resolve(const char *name);
char *model_path_find(const char *name); /* the same without a report */
/* The same for a part that is optional: without a name *out is NULL. 0, or -1 after reporting. */
int model_part_resolve(char **out, const char *name);

/* What -m takes, for the help pages; then with the default of model_or_builtin. */
#define MODEL_HELP "file, directory, Hugging Face name in the cache, builtin"
#define MODEL_HELP_BUILTIN MODEL_HELP " (builtin)"

/* The name given with -m; without one "builtin", after a note. */
const char *model_or_builtin(const char *name);

/* Short name for tables: the last part of the path that identifies the model. Owned. */
char *model_path_title(const char *name);

/* cpu and dtype as given with --cpu and --dtype (NULL = not given); image_size 0 = the model's. */
renyi_options model_options(const char *cpu, const char *dtype, uint64_t image_size);

/* Notes what was assumed of a model that no config describes. */
void model_note_assumed(const renyi_model *model, const char *name);

/* Resolves and opens; NULL after reporting. Fills *info unless it is NULL. Notes a dtype other than
 * f32, and what was assumed. */
renyi_model *model_open_reported(const char *name, const renyi_options *opt,
                                 renyi_model_info *info);

/* 1 for a model that only embeds, after reporting which verbs take it. */
int model_no_classifier(const renyi_model_info *info);

/* A name of CPU_CHOICES; NULL or "auto" = the best. */
renyi_cpu cpu_from_name(const char *name);
#if defined(__aarch64__)
#define CPU_CHOICES "auto|scalar|neon"
#else
#define CPU_CHOICES "auto|scalar|avx2|avx512"
#endif

/* "f32", "bf16", "int8", "int4", "auto"; NULL = the file's. */
renyi_dtype dtype_from_name(const char *name);
#define DTYPE_CHOICES "f32|bf16|int8|auto"
#define LM_DTYPE_CHOICES "f32|bf16|int8|int4|auto" /* of a language model */

/* "f32,int8" of a verb that compares dtypes; NULL = only the file's. CLI_OK, or CLI_USAGE after
 * reporting. */
enum { MAX_DTYPES = 8 };
typedef struct dtype_list {
    renyi_dtype items[MAX_DTYPES];
    size_t n;
} dtype_list;
int dtype_list_parse(dtype_list *out, const char *verb, const char *text);

/* "f32, int8": the dtypes that this CPU supports at its best level. */
void dtypes_here(char out[32]);

/* Rows of an option table: how a model computes. `a` has `cpu` and `dtype`, const char *. */
/* clang-format off */
#define CPU_OPTION_ROW(a) \
    {"cpu", 0, OPTION_CHOICE, &(a)->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0}

#define DTYPES_OPTION_ROW(a) \
    {"dtype", 0, OPTION_STRING, &(a)->dtype, DTYPE_CHOICES ",...", "dtypes of the matrix products in the blocks (the file's)", 0, 0}

#define DTYPE_OPTION_ROW(a) \
    {"dtype", 0, OPTION_CHOICE, &(a)->dtype, DTYPE_CHOICES, "dtype of the matrix products in the blocks (the file's)", 0, 0}

/* `a` has `streams`, uint64_t. */
#define STREAMS_OPTION_ROW(a) \
    {"streams", 0, OPTION_COUNT, &(a)->streams, "N", "batches run at the same time, each on its share of the threads (1)", 1, 64}

#define ENGINE_OPTION_ROWS(a) \
    CPU_OPTION_ROW(a), \
    DTYPE_OPTION_ROW(a)
/* clang-format on */

/* ---- the text tower of a CLIP model and its tokenizer -------------------------------------- */

typedef struct text_arguments {
    const char *tokenizer; /* NULL = the one beside the model */
    int truncate;
} text_arguments;

/* Rows of an option table that fill `t`, a text_arguments *. */
/* clang-format off */
#define TEXT_OPTION_ROWS(t) \
    {"tokenizer", 0, OPTION_STRING, &(t)->tokenizer, "PATH", "tokenizer.json, vocab.json or merges file, or its folder (the model's)", 0, 0}, \
    {"truncate", 0, OPTION_FLAG, &(t)->truncate, "", "cut off texts that are too long for the model (else an error)", 0, 0}
/* clang-format on */

typedef struct text_tower {
    renyi_text *text;
    renyi_tokenizer *tokenizer;
    renyi_text_info info;
} text_tower;

/* Of the model that -m named. `image_dim` is the width of the image tower's embeddings, which must
 * be the same; 0 = any. 0, or -1 after reporting; text_tower_free either way. */
int text_tower_open(text_tower *out, const char *model, const text_arguments *t,
                    const renyi_options *opt, uint32_t image_dim);
void text_tower_free(text_tower *t);

/* Rows [texts->count, embed_dim] of length 1; 0, or -1 after reporting. */
int text_tower_embed(const text_tower *t, const cli_strings *texts, int truncate,
                     uint32_t n_threads, float *rows);

/* ---- class names --------------------------------------------------------------------------- */

/* From --labels FILE, else renyi_model_label, else "class N". */
typedef struct class_names {
    const renyi_model *model;
    uint32_t n_classes;
    cli_strings lines; /* of the file; empty without one */
    char fallback[32];
} class_names;

/* 0, or -1 after reporting what is wrong with the file; path may be NULL. */
int class_names_open(class_names *out, const renyi_model *model, const renyi_model_info *info,
                     const char *path);
const char *class_name(class_names *l, uint32_t index); /* valid until the next call */
void class_names_free(class_names *l);

#endif
