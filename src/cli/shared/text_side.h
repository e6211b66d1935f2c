/* text_side.h - what turns words into rows: the text tower of a CLIP and its tokenizer.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_TEXT_SIDE_H
#define RENYI_TEXT_SIDE_H

#include "cli/kit/options.h"

#include "renyi/clip.h"

typedef struct text_arguments {
    const char *tokenizer; /* NULL = what lies with the model */
    int truncate;
} text_arguments;

/* Rows of an option table that fill `t`, a text_arguments *. */
/* clang-format off */
#define TEXT_OPTION_ROWS(t) \
    {"tokenizer", 0, OPTION_STRING, &(t)->tokenizer, "PATH", "tokenizer.json, vocab.json or merges file, or its folder (the model's)", 0, 0}, \
    {"truncate", 0, OPTION_FLAG, &(t)->truncate, "", "cut off texts that are too long for the model (an error)", 0, 0}
/* clang-format on */

typedef struct text_side {
    renyi_text *text;
    renyi_tokenizer *tokenizer;
    renyi_text_info info;
} text_side;

/* Of the model that -m named. 0, or -1 after reporting; text_side_free either way. */
int text_side_open(text_side *out, const char *model, const text_arguments *t,
                   const renyi_options *opt);
void text_side_free(text_side *t);

/* Rows [texts->count, embed_dim] of length 1; 0, or -1 after reporting. */
int text_side_embed(const text_side *t, const cli_strings *texts, int truncate, uint32_t n_threads,
                    float *rows);

#endif
