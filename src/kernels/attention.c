/* attention.c - attention with scores in plain C, and the small parts all levels share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention.h"

#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { ROWS = 16 }; /* query rows of a block at the scalar level */

size_t ry_attention_blocks(size_t n_tokens, size_t rows) { return (n_tokens + rows - 1) / rows; }

/* Packed queries [d, rows], probabilities [N padded, rows], their head mean [N, rows], two rows. */
size_t ry_attention_scratch(size_t n_tokens, size_t head, size_t rows)
{
    return (head + 2 * (n_tokens + 16) + 2) * rows;
}

double ry_column_power(const float *mean, size_t width, double scale, double order)
{
    double sum = 0.0;
    for (size_t i = 0; i < width; i++) {
        const double m = (double)mean[i] * scale;
        if (isinf(order))
            sum = m > sum ? m : sum;
        else
            sum += order == 1.0 ? m : pow(m, order);
    }
    return sum;
}

size_t ry_column_sets(const ry_column_spec *spec, size_t n_heads)
{
    return (spec->each_head ? n_heads : 1) * (spec->kind == RY_COLUMN_ENTROPY ? 2 : 1);
}

void ry_attention_scores(float *scores, const ry_attention *at, size_t n_blocks)
{
    const size_t N = at->n_tokens;
    const double order = at->columns.order;
    for (size_t j = 0; j < N; j++) {
        double sum = 0.0;
        for (size_t b = 0; b < n_blocks; b++) {
            const double part = at->column_parts[b * N + j];
            sum = isinf(order) ? (part > sum ? part : sum) : sum + part;
        }
        const double root = isinf(order) || order == 1.0 ? sum : pow(sum, 1.0 / order);
        scores[j] = (float)(root / (double)N);
    }
}

/* p[N] = softmax of query row i of head h against all keys. */
static void probabilities(const ry_attention *at, size_t h, size_t i, float *p)
{
    const size_t C = at->n_heads * at->head, row = at->qkv_row;
    const float *q = at->qkv + i * row + h * at->head;
    float top = -INFINITY, sum = 0.0f;

    for (size_t j = 0; j < at->n_tokens; j++) {
        const float *k = at->qkv + j * row + C + h * at->head;
        float dot = 0.0f;
        for (size_t c = 0; c < at->head; c++) dot += q[c] * k[c];
        p[j] = dot / sqrtf((float)at->head) + (at->key_bias ? at->key_bias[j] : 0.0f);
        if (p[j] > top) top = p[j];
    }
    for (size_t j = 0; j < at->n_tokens; j++) sum += p[j] = expf(p[j] - top);
    for (size_t j = 0; j < at->n_tokens; j++) p[j] /= sum;
}

static void weigh_values(const ry_attention *at, size_t h, size_t i, const float *p)
{
    const size_t C = at->n_heads * at->head, row = at->qkv_row;
    float *out = at->out + i * at->out_row + h * at->head;
    memset(out, 0, at->head * sizeof(float));
    for (size_t j = 0; j < at->n_tokens; j++) {
        const float *v = at->qkv + j * row + 2 * C + h * at->head;
        for (size_t c = 0; c < at->head; c++) out[c] += p[j] * v[c];
    }
}

static RY_DECL_ATTENTION(attention_block)
{
    const size_t N = at->n_tokens, first = block * ROWS;
    const size_t last = first + ROWS < N ? first + ROWS : N;
    float *p = scratch, *mean = scratch + N;
    double *part = at->column_parts ? at->column_parts + block * N : NULL;

    if (part) memset(part, 0, N * sizeof *part);
    for (size_t i = first; i < last; i++) {
        memset(mean, 0, N * sizeof(float));
        for (size_t h = 0; h < at->n_heads; h++) {
            probabilities(at, h, i, p);
            weigh_values(at, h, i, p);
            for (size_t j = 0; j < N; j++) mean[j] += p[j] / (float)at->n_heads;
        }
        if (at->class_row && i == 0) memcpy(at->class_row, mean, N * sizeof(float));
        if (!part) continue;
        for (size_t j = 0; j < N; j++) {
            const double v = ry_column_power(mean + j, 1, (double)N, at->columns.order);
            part[j] = isinf(at->columns.order) ? (v > part[j] ? v : part[j]) : part[j] + v;
        }
    }
}

void ry_attention_init(ry_kernels *k)
{
    k->attention = attention_block;
    k->attention_rows = ROWS;
}
