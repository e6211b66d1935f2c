/* attention_grad.c - the backward pass of attention in plain C: the specification of the other
 * levels. With P = softmax(s Q K^T + bias), s = 1/sqrt(d), and O = P V:
 *
 *   dV = P^T dO    dP = dO V^T + shares of dclass_row and dmean    dS = P (dP - rowsum(P dP))
 *   dQ = s dS K    dK = s dS^T Q
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grad/grad.h"

#include <math.h>
#include <string.h>

/* Padded rows of k, v, dk, dv; probabilities and their gradients of a block of queries; four views
 * of the block's q and dout. 64 lanes and rows of d + 31 cover every level. */
size_t ry_attention_grad_scratch(size_t n_tokens, size_t head)
{
    const size_t row = head + 32, padded = n_tokens + 16;
    return 4 * padded * row + 2 * padded * 64 + 4 * 64 * row + 256;
}

static const float *row_of(const ry_attention_grad *g, size_t token, size_t part, size_t h)
{
    return g->qkv + token * g->qkv_row + (part * g->n_heads + h) * g->head;
}

static float *drow_of(const ry_attention_grad *g, size_t token, size_t part, size_t h)
{
    return g->dqkv + token * g->dqkv_row + (part * g->n_heads + h) * g->head;
}

static float dot(const float *a, const float *b, size_t n)
{
    float sum = 0.0f;
    for (size_t c = 0; c < n; c++) sum += a[c] * b[c];
    return sum;
}

static void add(float *to, const float *x, float w, size_t n)
{
    for (size_t c = 0; c < n; c++) to[c] += w * x[c];
}

/* p[N] of query i in head h */
static void probabilities(const ry_attention_grad *g, size_t h, size_t i, float *p)
{
    const size_t N = g->n_tokens;
    const float scale = 1.0f / sqrtf((float)g->head);
    float top = -INFINITY, sum = 0.0f;
    for (size_t j = 0; j < N; j++) {
        p[j] = dot(row_of(g, i, 0, h), row_of(g, j, 1, h), g->head) * scale;
        if (g->key_bias) p[j] += g->key_bias[j];
        if (p[j] > top) top = p[j];
    }
    for (size_t j = 0; j < N; j++) sum += p[j] = expf(p[j] - top);
    for (size_t j = 0; j < N; j++) p[j] /= sum;
}

/* ds[N]: the gradient of the logits of query i, from p */
static void logit_gradients(const ry_attention_grad *g, size_t h, size_t i, const float *p,
                            float *ds)
{
    const size_t N = g->n_tokens;
    const float share = 1.0f / (float)g->n_heads;
    const float *dout = g->dout + i * g->dout_row + h * g->head;
    float sum = 0.0f;
    for (size_t j = 0; j < N; j++) {
        ds[j] = dot(dout, row_of(g, j, 2, h), g->head);
        if (g->dmean) ds[j] += share * g->dmean[i * N + j];
        if (g->dclass_row && i == 0) ds[j] += share * g->dclass_row[j];
        sum += p[j] * ds[j];
    }
    for (size_t j = 0; j < N; j++) ds[j] = p[j] * (ds[j] - sum);
}

static RY_DECL_ATTENTION_GRAD(attention_grad)
{
    const size_t N = g->n_tokens, d = g->head;
    const float scale = 1.0f / sqrtf((float)d);
    float *p = scratch, *ds = scratch + N;

    for (size_t j = 0; j < N; j++)
        for (size_t part = 0; part < 3; part++)
            memset(drow_of(g, j, part, h), 0, d * sizeof(float));
    for (size_t i = 0; i < g->n_rows; i++) {
        probabilities(g, h, i, p);
        logit_gradients(g, h, i, p, ds);
        for (size_t j = 0; j < N; j++) {
            add(drow_of(g, i, 0, h), row_of(g, j, 1, h), scale * ds[j], d);
            add(drow_of(g, j, 1, h), row_of(g, i, 0, h), scale * ds[j], d);
            add(drow_of(g, j, 2, h), g->dout + i * g->dout_row + h * d, p[j], d);
        }
    }
}

static RY_DECL_ATTENTION_MEAN(attention_mean)
{
    const size_t N = g->n_tokens;
    memset(mean, 0, g->n_rows * N * sizeof(float));
    for (size_t h = 0; h < g->n_heads; h++)
        for (size_t i = 0; i < g->n_rows; i++) {
            probabilities(g, h, i, scratch);
            add(mean + i * N, scratch, 1.0f / (float)g->n_heads, N);
        }
}

void ry_attention_grad_init(ry_grad_kernels *k)
{
    k->attention_grad = attention_grad;
    k->attention_mean = attention_mean;
}
