/* cascade_run.c - the margin of logits, and what passes from the first pass of a cascade to the
 * second.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/cascade_run.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

renyi_status ry_cascade_run_new(ry_cascade_run **out, const ry_cascade *cascade,
                                const ry_vit_plan *first, const ry_vit_plan *second,
                                const renyi_allocator *al, renyi_error *err)
{
    const ry_vit *v = first->vit;
    const size_t B = first->max_batch;
    const uint32_t a = ry_plain_blocks(first->rows, v->config.n_blocks),
                   b = ry_plain_blocks(second->rows, v->config.n_blocks);
    *out = NULL;
    ry_cascade_run *c = ry_calloc(al, 1, sizeof *c);
    if (!c) return ry_fail_nomem(err, sizeof *c);
    c->margin = cascade->margin;
    c->combine = cascade->combine;
    c->shared = a < b ? a : b;
    c->embedding = v->config.n_blocks;
    c->n_outputs = first->n_outputs;
    c->each = (v->n_patches + v->config.n_prefix) * (size_t)v->config.dim; /* as in the plan */
    c->tokens = ry_alloc(al, B * c->each, sizeof *c->tokens);
    c->logits = ry_alloc(al, B * c->n_outputs, sizeof *c->logits);
    c->unsure = ry_alloc(al, B, sizeof *c->unsure);
    c->bytes = B * (c->each + c->n_outputs) * sizeof(float) + B * sizeof *c->unsure;
    if (!c->tokens || !c->logits || !c->unsure) {
        const size_t bytes = c->bytes;
        ry_cascade_run_free(c, al);
        return ry_fail_nomem(err, bytes);
    }
    *out = c;
    return RENYI_OK;
}

void ry_cascade_run_free(ry_cascade_run *c, const renyi_allocator *al)
{
    if (!c) return;
    ry_free(al, c->tokens);
    ry_free(al, c->logits);
    ry_free(al, c->unsure);
    ry_free(al, c);
}

/* Block L is the embedding. A plan that runs images one by one shows them in order. */
static void keep_tokens(void *user, uint32_t block, const float *x, uint32_t n_tokens)
{
    ry_cascade_run *c = user;
    (void)n_tokens; /* no cut was made yet */
    const uint32_t wanted = c->shared ? c->shared - 1 : c->embedding;
    if (block != wanted) return;
    memcpy(c->tokens + c->n_tapped * c->each, x, c->together * c->each * sizeof(float));
    c->n_tapped += c->together;
}

void ry_cascade_tap(ry_cascade_run *c, const ry_vit_plan *plan, ry_vit_input *in)
{
    c->together = plan->one_by_one ? 1 : in->n;
    c->n_tapped = 0;
    c->n_unsure = 0;
    in->tap = keep_tokens;
    in->tap_user = c;
}

double ry_logit_margin(const float *logits, size_t n)
{
    double best = -INFINITY, next = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)logits[i];
        if (isnan(x)) return NAN;
        if (x > best)
            next = best, best = x;
        else if (x > next)
            next = x;
    }
    return n == 1 ? INFINITY : best - next;
}

void ry_cascade_decide(ry_cascade_run *c, const float *logits, uint32_t n)
{
    c->n_unsure = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double margin = ry_logit_margin(logits + (size_t)i * c->n_outputs, c->n_outputs);
        if (!(margin >= c->margin)) c->unsure[c->n_unsure++] = i; /* NaN is not sure */
    }
}

ry_vit_input ry_cascade_input(const ry_cascade_run *c)
{
    return (ry_vit_input){
        .tokens = c->tokens, .pick = c->unsure, .first = c->shared, .n = c->n_unsure};
}

void ry_cascade_combine(const ry_cascade_run *c, float *out)
{
    for (uint32_t i = 0; i < c->n_unsure; i++) {
        const float *second = c->logits + (size_t)i * c->n_outputs;
        float *to = out + (size_t)c->unsure[i] * c->n_outputs;
        for (uint32_t k = 0; k < c->n_outputs; k++)
            to[k] = c->combine == RY_COMBINE_MEAN ? 0.5f * (to[k] + second[k]) : second[k];
    }
}
