/* clip_prompts.h - class names in templates: the texts that a classifier is made of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CLIP_PROMPTS_H
#define RY_CLIP_PROMPTS_H

#include "renyi/clip.h"

/* Every name in every template; all borrowed but the buffer. */
typedef struct ry_prompts {
    const char *const *names;     /* [n_classes] */
    const char *const *templates; /* [n_templates] */
    uint32_t n_classes, n_templates;
    const renyi_tokenizer *tokenizer;
    uint32_t context;
    int truncate;
    char *text; /* room for the longest text */
} ry_prompts;

/* Checks names and templates and takes the buffer; free with ry_prompts_free even on failure. */
renyi_status ry_prompts_init(ry_prompts *p, const renyi_allocator *al,
                             renyi_error *err) RENYI_CHECK;
void ry_prompts_free(ry_prompts *p, const renyi_allocator *al);

/* Ids [context] of a name in a template; a text that is too long is an error that names both. */
renyi_status ry_prompts_encode(const ry_prompts *p, uint32_t template_index, uint32_t class_index,
                               int32_t *ids, uint32_t *length, renyi_error *err) RENYI_CHECK;

/* Hash of names, templates, and of what the tokenizer makes of each of them. ids: [context] */
renyi_status ry_prompts_hash(const ry_prompts *p, int32_t *ids, uint64_t *hash,
                             renyi_error *err) RENYI_CHECK;

#endif
