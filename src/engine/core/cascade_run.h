/* cascade_run.h - between the two passes of a cascade: keeps the tokens that both have in common,
 * finds the images that the first pass is not sure of, and combines the logits.
 *
 * Both plans run the blocks before the first cut in the same way, so the second pass begins with
 * the tokens that the first one had there: the same bits as if it began with the image.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CASCADE_RUN_H
#define RY_CASCADE_RUN_H

#include "model/vit/vit_plan.h"
#include "prune/policy/cascade.h"

typedef struct ry_cascade_run {
    double margin;
    ry_combine combine;
    uint32_t shared;    /* blocks that the second pass does not repeat */
    uint32_t embedding; /* the number that a tap of the embedding has: L */
    uint32_t n_outputs; /* logits of an image */
    size_t each;        /* floats of the tokens of an image */
    uint32_t together;  /* images of one tap: all of a run, or 1 */
    size_t n_tapped;    /* images of this run whose tokens were kept */
    float *tokens;      /* [B, N, C] that enter block `shared` */
    float *logits;      /* [B, n_outputs] of the second pass */
    uint32_t *unsure;   /* [n_unsure] images that need it, in order */
    uint32_t n_unsure;
    size_t bytes; /* of the three lists */
} ry_cascade_run;

renyi_status ry_cascade_run_new(ry_cascade_run **out, const ry_cascade *cascade,
                                const ry_vit_plan *first, const ry_vit_plan *second,
                                const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_cascade_run_free(ry_cascade_run *c, const renyi_allocator *al);

/* Makes the first pass keep its tokens. plan: of the first pass. */
void ry_cascade_tap(ry_cascade_run *c, const ry_vit_plan *plan, ry_vit_input *in);

/* Lists the images whose margin is below the threshold or not a number. logits: [n, n_outputs]. */
void ry_cascade_decide(ry_cascade_run *c, const float *logits, uint32_t n);

/* The input of the second pass, whose output is c->logits; then writes its logits, or the means of
 * both, to the images of `out` [n, n_outputs] that it ran. */
ry_vit_input ry_cascade_input(const ry_cascade_run *c);
void ry_cascade_combine(const ry_cascade_run *c, float *out);

/* The difference of the two largest of n numbers: NaN if any is NaN, infinity if n is 1. */
double ry_logit_margin(const float *logits, size_t n);

#endif
