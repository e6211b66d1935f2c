/* clip_handles.h - the structs behind a renyi_text (a text tower) and a renyi_classifier (one row
 * per class), and the file in which a classifier's rows are cached.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CLIP_HANDLES_H
#define RY_CLIP_HANDLES_H

#include "model/clip_text/text_tower.h"
#include "renyi/clip.h"

/* Nothing changes after it is opened, so sessions of several threads may share it. */
struct renyi_text {
    renyi_allocator al; /* of everything below, and of the sessions */
    renyi_cpu level;
    renyi_dtype dtype; /* never DEFAULT or AUTO */
    ry_text tower;
};

struct renyi_classifier {
    renyi_allocator al;
    renyi_classifier_info info; /* its strings are the two below */
    float *rows;                /* [n_classes, embed_dim] */
    char *cache_path;           /* NULL = no cache */
    char cache_message[sizeof((renyi_error *)0)->message];
};

/* The texts of a classifier: every class name in every template. All borrowed but the buffer. */
typedef struct ry_prompts {
    const char *const *names;     /* [n_classes] */
    const char *const *templates; /* [n_templates] */
    uint32_t n_classes, n_templates;
    const renyi_tokenizer *tokenizer;
    uint32_t context;
    int truncate;
    char *text; /* buffer for the longest text */
} ry_prompts;

/* ---- clip_classifier_cache.c
 *
 * The file is safetensors: `rows` F32 [classes, embed_dim], and in the metadata "renyi.classifier"
 * (the version), "key" (16 hexadecimal digits), "names" and "templates" (JSON lists), "scale",
 * "bias", "probabilities" ("softmax" or "sigmoid"). */

/* Sets c->cache_path: `cache` itself, or, if that is a folder, a file in it named by the key. */
renyi_status ry_classifier_cache_path(renyi_classifier *c, const char *cache,
                                      renyi_error *err) RENYI_CHECK;

/* Reads c->rows and returns 1 if the file exists and belongs to this classifier; else 0, and
 * c->cache_message says what is wrong with the file. */
int ry_classifier_cache_read(renyi_classifier *c, const ry_prompts *p);

/* The same from bytes; c->rows [n_classes, embed_dim] is allocated. */
renyi_status ry_classifier_cache_parse(renyi_classifier *c, const ry_prompts *p, const void *bytes,
                                       size_t size, renyi_error *err) RENYI_CHECK;

renyi_status ry_classifier_cache_write(const renyi_classifier *c, const ry_prompts *p,
                                       renyi_error *err) RENYI_CHECK;

#endif
