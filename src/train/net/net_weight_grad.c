/* net_weight_grad.c - from the weights of a fused token back to the attention matrix they are made
 * of, when they are Col-Ln scores (weights=score):
 *
 *   w_j = S_j / T,  T = sum_k S_k + 1e-6        dS_j = (dw_j - sum_k dw_k w_k) / T
 *   S_j = (sum_i A_ij^n)^(1/n)                  dA_ij = dS_j (A_ij / S_j)^(n-1)
 *
 * over the rows and entries that the policy counts. A is the head mean, or with heads=each one
 * head's own, S_j then the mean over heads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/net/net_run.h"

#include <math.h>
#include <string.h>

/* dS_j from the gradients of the weights. */
typedef struct shares {
    const float *dweight, *score; /* [N] */
    double total, mean;           /* T; sum_k dw_k w_k */
} shares;

static shares shares_of(const ry_net_worker *w, uint32_t i, size_t image)
{
    const ry_net *net = w->net;
    const size_t N = net->blocks[i].rows.in;
    shares s = {net->dweight + image * N, net->blocks[i].score + image * net->n_tokens, 1e-6, 0.0};
    for (size_t j = 0; j < N; j++) {
        s.total += (double)s.score[j];
        s.mean += (double)s.dweight[j] * (double)s.score[j];
    }
    s.mean /= s.total;
    return s;
}

/* Does entry (i, j) of the matrix count in its column? */
static int counts(const ry_column_spec *spec, size_t i, size_t j)
{
    return i >= spec->skip_rows && !(spec->skip_diagonal && i == j);
}

static double largest(const ry_column_spec *spec, const float *a, size_t N, size_t j, size_t *at)
{
    double top = 0.0;
    *at = 0;
    for (size_t i = 0; i < N; i++)
        if (counts(spec, i, j) && (double)a[i * N + j] > top) {
            top = (double)a[i * N + j];
            *at = i;
        }
    return top;
}

/* Column j of a [N, N] becomes that of its gradient. */
static void column_back(const ry_column_spec *spec, float *a, size_t N, size_t j, double ds)
{
    const double n = spec->order;
    size_t at;
    const double top = largest(spec, a, N, j, &at);
    double sum = 0.0;
    for (size_t i = 0; i < N && top > 0.0 && !isinf(n); i++)
        if (counts(spec, i, j)) sum += pow((double)a[i * N + j] / top, n);
    const double root = isinf(n) ? 1.0 : pow(sum, 1.0 / n); /* S_j / top */
    for (size_t i = 0; i < N; i++) {
        double g = 0.0;
        if (top > 0.0 && counts(spec, i, j))
            g = isinf(n) ? (i == at ? ds : 0.0)
                         : ds * pow((double)a[i * N + j] / (top * root), n - 1.0);
        a[i * N + j] = (float)g;
    }
}

static void matrix_back(const ry_net_worker *w, uint32_t i, size_t image, float *a)
{
    const ry_block_rows *b = &w->net->blocks[i].rows;
    const shares s = shares_of(w, i, image);
    for (size_t j = 0; j < b->in; j++)
        column_back(&b->needs.columns, a, b->in, j, ((double)s.dweight[j] - s.mean) / s.total);
}

void ry_net_weights_back(ry_net_worker *w, uint32_t i)
{
    const ry_net *net = w->net;
    const size_t N = net->blocks[i].rows.in;
    ry_step step = ry_net_begin(w, w->n);
    for (size_t image; ry_step_next(&step, &image);) {
        const ry_attention at = ry_net_attention_of(w, i, image);
        const ry_attention_grad g = {.n_tokens = N,
                                     .n_heads = at.n_heads,
                                     .head = at.head,
                                     .qkv = at.qkv,
                                     .qkv_row = at.qkv_row,
                                     .key_bias = at.key_bias,
                                     .n_rows = N};
        float *a = net->dmean + image * N * N;
        net->grad.attention_mean(&g, a, ry_net_scratch(w));
        matrix_back(w, i, image, a);
    }
    ry_step_end(&step);
}

/* The queries and keys of one head beside each other, as if the model had no other. The gradient
 * of the mean is passed on to a head divided by the number of heads, as dS of a head is that of
 * the mean. */
const float *ry_net_head_matrix(ry_net_worker *w, uint32_t i, const ry_attention_grad *g,
                                size_t image, size_t head)
{
    const ry_net *net = w->net;
    const size_t N = g->n_tokens, d = g->head, C = net->config.dim;
    float *own = ry_net_scratch(w) + net->matrix_scratch; /* [N, 3 d], values left out */
    float *a = net->dmean + w->thread * N * N;
    for (size_t j = 0; j < N; j++) {
        const float *row = g->qkv + j * g->qkv_row + head * d;
        memcpy(own + j * 3 * d, row, d * sizeof *own);
        memcpy(own + j * 3 * d + d, row + C, d * sizeof *own);
    }
    const ry_attention_grad alone = {.n_tokens = N,
                                     .n_heads = 1,
                                     .head = d,
                                     .qkv = own,
                                     .qkv_row = 3 * d,
                                     .key_bias = g->key_bias,
                                     .n_rows = N};
    net->grad.attention_mean(&alone, a, ry_net_scratch(w));
    matrix_back(w, i, image, a);
    return a;
}
