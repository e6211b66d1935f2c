/* llava_options.h - options that verbs with a LLaVA share, and opening it with a word about how far
 * it is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_LLAVA_OPTIONS_H
#define RENYI_LLAVA_OPTIONS_H

#include "cli/kit/options.h"
#include "cli/shared/models.h"
#include "cli/shared/prune_options.h"

#include "renyi/llava.h"

typedef struct lvlm_arguments {
    const char *model, *tower, *tokenizer;
    const char *cpu, *dtype, *tower_dtype;
    uint64_t threads;
    prune_options prune;
    char *policy; /* what the options above mean; owned, lvlm_arguments_check makes it */
} lvlm_arguments;

/* Rows of an option table that fill `a`, a lvlm_arguments *. */
/* clang-format off */
#define LVLM_MODEL_ROWS(a) \
    {"model", 'm', OPTION_STRING, &(a)->model, "LLAVA", "directory, quantised file, or Hugging Face name in the cache", 0, 0}, \
    {"tower", 0, OPTION_STRING, &(a)->tower, "DIR", "the image tower, if it is not with the model", 0, 0}, \
    {"tower-dtype", 0, OPTION_CHOICE, &(a)->tower_dtype, DTYPE_CHOICES, "numbers that the tower multiplies (the file's)", 0, 0}, \
    {"cpu", 0, OPTION_CHOICE, &(a)->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0}, \
    {"threads", 't', OPTION_COUNT, &(a)->threads, "N", "threads (physical cores)", 1, 1024}, \
    PRUNE_OPTION_ROWS(&(a)->prune)

#define LVLM_LANGUAGE_ROWS(a) \
    {"tokenizer", 0, OPTION_STRING, &(a)->tokenizer, "PATH", "tokenizer.model or tokenizer.json, or its folder (the model's)", 0, 0}, \
    {"dtype", 0, OPTION_CHOICE, &(a)->dtype, LM_DTYPE_CHOICES, "the language model's weights (the file's; 7B in bf16: 13 GB, int8 7, int4 4)", 0, 0}
/* clang-format on */

/* CLI_OK, or CLI_USAGE after reporting. */
int lvlm_arguments_check(const char *verb, lvlm_arguments *a);
void lvlm_arguments_free(lvlm_arguments *a);

/* NULL after reporting. */
renyi_lvlm *lvlm_open_reported(const lvlm_arguments *a);
renyi_visual *visual_open_reported(const lvlm_arguments *a);

/* Bytes of a photo that `image_inputs` named, "-" among them. 0, or -1 with *why owned. */
int lvlm_read_photo(const char *path, unsigned char **bytes, size_t *size, char **why);

/* 1: the photo is to blame, others may do better. */
int lvlm_is_photo_error(renyi_status status);

#endif
