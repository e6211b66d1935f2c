/* model_path.h - from the word after -m to an open model.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLI_MODEL_PATH_H
#define RENYI_CLI_MODEL_PATH_H

#include "options.h"

#include <renyi/renyi.h>

/* An existing file or directory, else a Hugging Face repository that is in the cache (its "main").
 * Owned; NULL after saying what to do. */
char *model_path_resolve(const char *word);

/* Short name for tables: the last part of the path that says something. Owned. */
char *model_path_title(const char *word);

/* Resolve and open; NULL after reporting the error. */
renyi_model *model_open_reported(const char *word, const renyi_options *opt);

/* "scalar", "avx2", "avx512"; NULL or "auto" = the best. */
renyi_cpu cpu_from_name(const char *name);
#define CPU_CHOICES "auto|scalar|avx2|avx512"

#endif
