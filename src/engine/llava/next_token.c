/* next_token.c - chooses the next token from logits: the largest, or at random by temperature and
 * top-p.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/next_token.h"

#include "base/rng.h"
#include "base/status.h"

#include <math.h>

/* ---- the largest --------------------------------------------------------------------------- */

static renyi_status find_largest(uint32_t *out, const float *logits, uint32_t vocab,
                                 renyi_error *err)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "the language model gives %s for token %u: are the weights damaged?",
                           isnan(logits[i]) ? "NaN" : "infinity", i);
        if (logits[i] > logits[best]) best = i;
    }
    *out = best;
    return RENYI_OK;
}

/* ---- by rank, as far as it is needed ------------------------------------------------------- */

/* A heap of ids at the front of `order`, the most probable on top. Ids that were taken from it are
 * at the end, the first of them last. Usually few are taken, so a heap is cheaper than sorting. */
typedef struct ranking {
    const float *logits;
    uint32_t *order; /* [vocab] */
    uint32_t vocab, n_heap;
    double largest, temperature;
} ranking;

static int ranks_before(const ranking *r, uint32_t a, uint32_t b)
{
    return r->logits[a] > r->logits[b] || (r->logits[a] == r->logits[b] && a < b);
}

static void sift_down(ranking *r, uint32_t at)
{
    const uint32_t id = r->order[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= r->n_heap) break;
        if (child + 1 < r->n_heap && ranks_before(r, r->order[child + 1], r->order[child])) child++;
        if (!ranks_before(r, r->order[child], id)) break;
        r->order[at] = r->order[child];
        at = child;
    }
    r->order[at] = id;
}

static void build_heap(ranking *r)
{
    for (uint32_t i = 0; i < r->vocab; i++) r->order[i] = i;
    r->n_heap = r->vocab;
    for (uint32_t i = r->vocab / 2; i-- > 0;) sift_down(r, i);
}

static double token_weight(const ranking *r, uint32_t id)
{
    return exp(((double)r->logits[id] - r->largest) / r->temperature);
}

/* The id of a rank, from 0. Ranks are asked for in order; earlier ones may come again. */
static uint32_t at_rank(ranking *r, uint32_t rank)
{
    const uint32_t place = r->vocab - 1 - rank;
    if (place < r->n_heap) {
        const uint32_t top = r->order[0];
        r->order[0] = r->order[--r->n_heap];
        sift_down(r, 0);
        r->order[place] = top;
    }
    return r->order[place];
}

static uint32_t draw_token(ranking *r, double top_p, double u)
{
    double all = 0.0, mass = 0.0, sum = 0.0;
    uint32_t n = 0, last = 0;
    for (uint32_t i = 0; i < r->vocab; i++) all += token_weight(r, i);
    while (top_p < 1.0 && n < r->vocab && mass < top_p * all)
        mass += token_weight(r, at_rank(r, n++));
    if (!n) { /* top_p 1: every token may be drawn */
        n = r->vocab;
        mass = all;
    }
    for (uint32_t k = 0; k < n && sum <= u * mass; k++) {
        const uint32_t id = at_rank(r, k);
        const double w = token_weight(r, id);
        if (w == 0.0) break; /* rounding: the sum by rank is a little less than the sum by id */
        sum += w;
        last = id;
    }
    return last;
}

/* ---- both ---------------------------------------------------------------------------------- */

renyi_status ry_next_token(int32_t *out, const float *logits, uint32_t vocab, const ry_choice *how,
                           uint32_t *order, renyi_error *err)
{
    uint32_t best = 0;
    RY_TRY(find_largest(&best, logits, vocab, err));
    *out = (int32_t)best;
    if (how->temperature == 0.0 || logits[best] == -INFINITY) return RENYI_OK;
    ranking r = {.logits = logits,
                 .order = order,
                 .vocab = vocab,
                 .largest = (double)logits[best],
                 .temperature = how->temperature};
    ry_rng rng = ry_rng_at(how->seed, how->k);
    build_heap(&r);
    *out = (int32_t)draw_token(&r, how->top_p, ry_rng_uniform(&rng));
    return RENYI_OK;
}
