/* tca_session.c - a session that adapts: anchors for its cuts, class tokens from its blocks, and
 * what becomes of its answers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/tca/tca_adapt.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- the hook: the policy's, with anchors -------------------------------------------------- */

/* The anchors of a block are class tokens as they enter it, after the block before: block 0, where
 * every picture's class token is the same, has none. */
static void needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const ry_tca_run *r = self;
    r->inner.needs(r->inner.self, block, n_tokens, out);
    out->anchor = out->place != RY_CUT_NONE && block > 0 && !r->tca->opt.no_anchors;
}

static uint32_t tiles(const void *self, uint32_t block, uint32_t phase)
{
    const ry_tca_run *r = self;
    return r->inner.tiles(r->inner.self, block, phase);
}

static void work(void *self, const ry_block_view *view, ry_cut *cut, uint32_t phase, uint32_t tile)
{
    const ry_tca_run *r = self;
    r->inner.work(r->inner.self, view, cut, phase, tile);
}

static void watch(void *self, const ry_block_view *view, const ry_cut *cut)
{
    const ry_tca_run *r = self;
    r->inner.watch(r->inner.self, view, cut);
}

static const float *anchor(void *self, uint32_t block, const float *x)
{
    const ry_tca_run *r = self;
    const float *row = ry_tca_anchor(r->tca, block - 1, x);
    r->tca->is_anchored |= row != NULL;
    return row;
}

const ry_token_hook *ry_tca_hook(ry_tca_run *r, const ry_token_hook *inner)
{
    r->inner = *inner;
    r->hook = (ry_token_hook){needs, tiles, work, inner->watch ? watch : NULL, r, anchor};
    return &r->hook;
}

/* ---- a picture ----------------------------------------------------------------------------- */

void ry_tca_begin(ry_tca_run *r)
{
    r->tca->n_last = 0;
    r->tca->is_anchored = 0;
}

void ry_tca_tap(void *user, uint32_t block, const float *x, uint32_t n_tokens)
{
    const renyi_tca *t = ((const ry_tca_run *)user)->tca;
    const size_t C = t->shape.dim;
    (void)n_tokens;
    if (block == t->shape.n_blocks) return; /* before the first */
    memcpy(ry_tca_tokens(t, t->free) + block * C, x, C * sizeof *x);
}

/* Ties to the lower class, as everywhere. */
static uint32_t likeliest(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < n; c++)
        if (logits[c] > logits[best]) best = c;
    return best;
}

/* -sum p log p of p = softmax(logits); NaN if they are no numbers. */
static double entropy_of(const float *logits, uint32_t n, float top)
{
    double sum = 0.0, weighted = 0.0;
    for (uint32_t c = 0; c < n; c++) {
        const double x = (double)logits[c] - (double)top, e = exp(x);
        sum += e;
        weighted += e > 0.0 ? e * x : 0.0;
    }
    return log(sum) - weighted / sum;
}

static void count(renyi_tca *t, const renyi_tca_answer *a)
{
    if (a->anchored && t->first_anchored == UINT64_MAX) t->first_anchored = t->n_images;
    t->n_anchored += a->anchored;
    t->n_changed += a->label != a->corrected;
    t->n_images++;
}

void ry_tca_answered(void *user, uint32_t image, float *logits)
{
    const ry_tca_run *r = user;
    renyi_tca *t = r->tca;
    const uint32_t G = t->shape.n_classes;
    renyi_tca_answer *a = &t->answers[image];

    assert(image < t->max_batch);
    *a = (renyi_tca_answer){.logits = t->logits + (size_t)image * G,
                            .label = likeliest(logits, G),
                            .anchored = t->is_anchored != 0};
    memcpy(t->logits + (size_t)image * G, logits, G * sizeof *logits);
    a->entropy = entropy_of(logits, G, logits[a->label]);
    if (isfinite(a->entropy)) { /* else nothing is to be learnt from it */
        ry_tca_fill_slot(t, t->free);
        ry_tca_remember(t, a->label, (float)a->entropy);
        if (!t->opt.no_correction) ry_tca_correct(t, logits, r->n_threads);
    }
    a->corrected = likeliest(logits, G);
    count(t, a);
    t->is_anchored = 0;
    t->n_last = image + 1;
}
