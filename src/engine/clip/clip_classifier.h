/* clip_classifier.h - a classifier made of words, and the file that keeps its rows.
 *
 * The file is safetensors: `rows` F32 [classes, embed_dim], and in the metadata "renyi.classifier"
 * (the version), "key" (16 hexadecimal digits), "names" and "templates" (JSON lists), "scale".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CLIP_CLASSIFIER_H
#define RY_CLIP_CLASSIFIER_H

#include "engine/clip/clip_prompts.h"

struct renyi_classifier {
    renyi_allocator al;
    renyi_classifier_info info; /* its strings are the two below */
    float *rows;                /* [n_classes, embed_dim] */
    char *cache_path;           /* NULL = no cache */
    char cache_message[sizeof((renyi_error *)0)->message];
};

/* Sets c->cache_path: `cache` itself, or a file in it that is named by the key. */
renyi_status ry_classifier_cache_path(renyi_classifier *c, const char *cache,
                                      renyi_error *err) RENYI_CHECK;

/* 1 and c->rows, if the file is there and was made of just this; else 0, and c->cache_message says
 * what is wrong with it. */
int ry_classifier_cache_read(renyi_classifier *c, const ry_prompts *p);

/* The same for the bytes of a file; c->rows [n_classes, embed_dim] is there. */
renyi_status ry_classifier_cache_parse(renyi_classifier *c, const ry_prompts *p, const void *bytes,
                                       size_t size, renyi_error *err) RENYI_CHECK;

renyi_status ry_classifier_cache_write(const renyi_classifier *c, const ry_prompts *p,
                                       renyi_error *err) RENYI_CHECK;

#endif
