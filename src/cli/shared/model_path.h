/* model_path.h - from the word after -m to an open model.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_MODEL_PATH_H
#define RENYI_MODEL_PATH_H

#include "cli/kit/options.h"

#include "renyi/renyi.h"

/* "builtin", an existing file or directory, else a Hugging Face repository that is in the cache
 * (its "main"). Owned; NULL after saying what to do. */
char *model_path_resolve(const char *word);

/* The word after -m, or "builtin" where there was none, which is then said. */
const char *model_or_builtin(const char *word);

/* Short name for tables: the last part of the path that says something. Owned. */
char *model_path_title(const char *word);

/* Resolve and open; NULL after reporting the error. Says so if it does not compute in f32. */
renyi_model *model_open_reported(const char *word, const renyi_options *opt);

/* 1 for a model of embeddings alone, after saying what to use instead. */
int model_no_classifier(const renyi_model_info *info);

/* "scalar", "avx2", "avx512"; NULL or "auto" = the best. */
renyi_cpu cpu_from_name(const char *name);
#define CPU_CHOICES "auto|scalar|avx2|avx512"

/* "f32", "bf16", "int8", "int4", "auto"; NULL = what the file was made for. */
renyi_dtype dtype_from_name(const char *name);
#define DTYPE_CHOICES "f32|bf16|int8|auto"
#define LM_DTYPE_CHOICES "f32|bf16|int8|int4|auto" /* of a language model */

/* "f32, int8": the formats that this machine has at its best level. */
void dtypes_here(char out[32]);

/* Rows of an option table: how a model computes. `a` has `cpu` and `dtype`, const char *. */
/* clang-format off */
#define DTYPE_OPTION_ROW(a) \
    {"dtype", 0, OPTION_CHOICE, &(a)->dtype, DTYPE_CHOICES, "numbers that the blocks multiply (the file's)", 0, 0}

#define ENGINE_OPTION_ROWS(a) \
    {"cpu", 0, OPTION_CHOICE, &(a)->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0}, \
    DTYPE_OPTION_ROW(a)
/* clang-format on */

#endif
