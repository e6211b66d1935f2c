/* causal.c - causal attention in plain C: the specification of the other levels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention/causal.h"

#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 }; /* of the widest level: queries side by side */

/* Queries [d, lanes], probabilities [N, lanes], and a row. */
size_t ry_causal_scratch(size_t n_tokens, size_t head) { return (head + n_tokens + 1) * LANES; }

/* p[0 .. i] = softmax of query i against itself and the tokens before it */
static void probabilities(const ry_causal *at, size_t h, size_t i, float *p)
{
    const size_t C = at->n_heads * at->head;
    const float *q = at->qkv + at->rows[i] * at->qkv_row + h * at->head;
    float top = -INFINITY, sum = 0.0f;

    for (size_t j = 0; j <= i; j++) {
        const float *k = at->qkv + at->rows[j] * at->qkv_row + C + h * at->head;
        float dot = 0.0f;
        for (size_t c = 0; c < at->head; c++) dot += q[c] * k[c];
        p[j] = dot / sqrtf((float)at->head);
        if (p[j] > top) top = p[j];
    }
    for (size_t j = 0; j <= i; j++) sum += p[j] = expf(p[j] - top);
    for (size_t j = 0; j <= i; j++) p[j] /= sum;
}

static void weigh_values(const ry_causal *at, size_t h, size_t i, const float *p)
{
    const size_t C = at->n_heads * at->head;
    float *out = at->out + (i - at->first) * at->out_row + h * at->head;
    memset(out, 0, at->head * sizeof(float));
    for (size_t j = 0; j <= i; j++) {
        const float *v = at->qkv + at->rows[j] * at->qkv_row + 2 * C + h * at->head;
        for (size_t c = 0; c < at->head; c++) out[c] += p[j] * v[c];
    }
}

static RY_DECL_CAUSAL(causal_text)
{
    for (size_t h = 0; h < at->n_heads; h++)
        for (size_t i = at->first; i < at->n_tokens; i++) {
            probabilities(at, h, i, scratch);
            weigh_values(at, h, i, scratch);
        }
}

void ry_causal_init(ry_kernels *k) { k->causal = causal_text; }
