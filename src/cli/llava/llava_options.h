/* llava_options.h - what verbs with a LLaVA model share: options, opening it, reading images.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_LLAVA_OPTIONS_H
#define RENYI_LLAVA_OPTIONS_H

#include "cli/kit/options.h"
#include "cli/shared/images.h"
#include "cli/shared/models.h"
#include "cli/shared/prune_options.h"

#include "renyi/llava.h"

typedef struct llava_arguments {
    const char *model, *mmproj, *tower, *text_tower, *tokenizer;
    const char *cpu, *dtype, *tower_dtype;
    uint64_t threads;
    prune_options prune;
    char *policy; /* that the pruning options mean; owned, made by llava_check_arguments */
} llava_arguments;

/* How the tokens of an answer are chosen. */
typedef struct sampling_arguments {
    uint64_t max_new_tokens, seed;
    option_reals temperature, top_p;
} sampling_arguments;

/* Values before the options are parsed. */
#define SAMPLING_DEFAULTS                       \
    {                                           \
        .seed = 42, .top_p = {.values = {1.0} } \
    }

/* Rows of an option table that fill `a`, a llava_arguments *. */
/* clang-format off */
#define LLAVA_WEIGHT_ROWS(a) \
    {"model", 'm', OPTION_STRING, &(a)->model, "LLAVA", "directory, quantized file, or Hugging Face name in the cache", 0, 0}, \
    {"mmproj", 0, OPTION_STRING, &(a)->mmproj, "FILE", "GGUF with image tower and projector, if MODEL is a language model", 0, 0}, \
    {"tower", 0, OPTION_STRING, &(a)->tower, "DIR", "the image tower, if it is not in the model's folder", 0, 0}, \
    {"text-tower", 0, OPTION_STRING, &(a)->text_tower, "DIR", "the CLIP that compares patches with the question, for cdpruner", 0, 0}, \
    {"tower-dtype", 0, OPTION_CHOICE, &(a)->tower_dtype, DTYPE_CHOICES, "dtype of the tower's matrix products (the file's)", 0, 0}, \
    {"cpu", 0, OPTION_CHOICE, &(a)->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0}, \
    {"threads", 't', OPTION_COUNT, &(a)->threads, "N", "threads (physical cores)", 1, 1024}

#define LLAVA_MODEL_ROWS(a) \
    LLAVA_WEIGHT_ROWS(a), \
    PRUNE_OPTION_ROWS(&(a)->prune)

#define LLAVA_LANGUAGE_ROWS(a) \
    {"tokenizer", 0, OPTION_STRING, &(a)->tokenizer, "PATH", "tokenizer.model or tokenizer.json, or its folder (the model's)", 0, 0}, \
    {"dtype", 0, OPTION_CHOICE, &(a)->dtype, LM_DTYPE_CHOICES, "the language model's weights (the file's; 7B in bf16: 13 GB, int8 7, int4 4)", 0, 0}

/* Rows that fill `s`, a sampling_arguments *. */
#define SAMPLING_ROWS(s, most) \
    {"max-new-tokens", 0, OPTION_COUNT, &(s)->max_new_tokens, "N", "at most N tokens per answer (" most ")", 1, 1 << 20}, \
    {"temperature", 0, OPTION_REAL, &(s)->temperature, "T", "of the sampling; 0 = always the most probable token (0)", 0, 0}, \
    {"top-p", 0, OPTION_REAL, &(s)->top_p, "P", "sample from the fewest tokens with this total probability (1)", 0, 0}, \
    {"seed", 's', OPTION_COUNT, &(s)->seed, "N", "seed of the sampling (42)", 0, 0}
/* clang-format on */

/* CLI_OK, or CLI_USAGE after reporting. */
int llava_check_arguments(const char *verb, llava_arguments *a);
int llava_check_sampling(const char *verb, const sampling_arguments *s);
void llava_arguments_free(llava_arguments *a);

/* NULL after reporting. */
renyi_lvlm *llava_open_reported(const llava_arguments *a);
renyi_visual *visual_open_reported(const llava_arguments *a);
/* *out stays NULL without --text-tower. CLI_OK, or CLI_FAILED after reporting. */
int relevance_open_reported(renyi_relevance **out, const llava_arguments *a);
/* Has it a tokenizer for questions as text? CLI_OK, or CLI_FAILED after reporting. */
int llava_check_tokenizer(const renyi_lvlm *m, const llava_arguments *a);

/* The patches of visual tokens [n]: null for a token made of several, "newline" for one that ends a
 * line. */
json_t *llava_kept_json(const uint32_t *kept, uint32_t n);

/* A function that takes the bytes of an image file. */
typedef renyi_status image_bytes_function(void *user, const unsigned char *bytes, size_t size,
                                          renyi_error *err);

/* Reads an image file ("-" = stdin) and passes its bytes to `take`. 0; 1 after reporting that the
 * image is at fault, which is also recorded in `inputs`; -1 after reporting another error. */
int llava_take_image(image_inputs *inputs, const char *path, image_bytes_function *take,
                     void *user);

#endif
