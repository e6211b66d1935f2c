/* relevance.h - how relevant the patches of an image are to a question, by the CLIP that the image
 * tower is from (the policy cdpruner).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_RELEVANCE_H
#define RY_RELEVANCE_H

#include "model/llava/visual_plan.h"
#include "renyi/clip.h"
#include "renyi/llava.h"

/* Never changes after it is opened, so sessions of several threads may share it. */
struct renyi_relevance {
    renyi_allocator al;
    renyi_text *text;
    renyi_tokenizer *tokenizer;
    float *norm_w, *norm_b;  /* [C] LayerNorm after the image tower */
    ry_linear *projection;   /* C -> E, the space that images and texts share */
    uint32_t dim, embed_dim; /* C, E */
    float eps;
};

/* One question about the images of a plan. */
typedef struct ry_relevance ry_relevance;

/* Checks that `of` is for this image tower. Borrows both. */
renyi_status ry_relevance_new(ry_relevance **out, const renyi_relevance *of, const ry_visual *side,
                              unsigned n_threads, renyi_cpu level, const renyi_allocator *al,
                              renyi_error *err) RENYI_CHECK;
void ry_relevance_free(ry_relevance *r, const renyi_allocator *al);
size_t ry_relevance_bytes(const ry_relevance *r);

/* The question of the next images. */
renyi_status ry_relevance_question(ry_relevance *r, const char *text, renyi_error *err) RENYI_CHECK;
int ry_relevance_has_question(const ry_relevance *r);

/* Of the patches of the last image of the plan: [P], the larger the more relevant. */
const float *ry_relevance_run(ry_relevance *r, ry_visual_plan *plan);

#endif
