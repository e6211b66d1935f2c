/* vit_pool.c - attention pooling in a run of a ViT: the head after the last block, and the row of
 * attention of its probe over the tokens that enter a block, which rules may read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows/rows.h"
#include "model/vit/vit_run.h"

#include <math.h>
#include <string.h>

/* ---- weights of the tokens ----------------------------------------------------------------- */

/* Column `head` of logits [N, row] becomes the probe's attention to each patch token; 0 for prefix
 * tokens, which it does not see. A merged token counts as often as the patches it stands for: its
 * logit is larger by the logarithm of their number, as in the blocks. */
static void softmax_column(float *logits, size_t row, size_t n_prefix, size_t n_tokens,
                           const float *log_sizes)
{
    float most = -INFINITY;
    double sum = 0.0;
    for (size_t j = n_prefix; j < n_tokens; j++) {
        if (log_sizes) logits[j * row] += log_sizes[j];
        if (logits[j * row] > most) most = logits[j * row];
    }
    for (size_t j = n_prefix; j < n_tokens; j++) {
        logits[j * row] = expf(logits[j * row] - most);
        sum += (double)logits[j * row];
    }
    for (size_t j = n_prefix; j < n_tokens; j++)
        logits[j * row] = (float)((double)logits[j * row] / sum);
    for (size_t j = 0; j < n_prefix; j++) logits[j * row] = 0.0f;
}

/* h = LayerNorm of the tokens, logits = their products with the query of each head */
static void compute_logits(ry_worker *w, const ry_linear_op *keys, size_t n_tokens)
{
    ry_vit_plan *p = w->r->p;
    ry_run_norm_linear(w, keys, n_tokens, ry_tokens(w), p->vit->norm_w, p->vit->norm_b, p->h,
                       p->pooling.logits);
}

/* Logarithms of the sizes of an image's tokens; NULL = all stand for one patch. */
static const float *log_sizes_of(const ry_worker *w, int sized, size_t image, size_t n_tokens)
{
    return sized ? w->r->p->cuts.log_sizes + image * n_tokens : NULL;
}

/* ---- for rules ----------------------------------------------------------------------------- */

void ry_pool_row(ry_worker *w, uint32_t block)
{
    const ry_vit_plan *p = w->r->p;
    const ry_block_rows *b = &w->now;
    const size_t N = b->in, H = p->vit->config.n_heads, row = ry_vit_row(p, H);

    compute_logits(w, p->ops[block].pool_keys, N);
    ry_step step = ry_runner_step(w->run, w->r->in->n);
    for (size_t i; ry_step_next(&step, &i);) {
        float *logits = p->pooling.logits + i * N * row, *to = p->cuts.class_row + i * N;
        for (size_t h = 0; h < H; h++)
            softmax_column(logits + h, row, p->vit->config.n_prefix, N,
                           log_sizes_of(w, b->sized, i, N));
        for (size_t j = 0; j < N; j++) {
            float sum = 0.0f;
            for (size_t h = 0; h < H; h++) sum += logits[j * row + h];
            to[j] = sum / (float)H;
        }
    }
    ry_step_end(&step);
}

/* ---- the head ------------------------------------------------------------------------------ */

/* Attention of one head: to [d] = V (sum_j a_j x_j) + bias; a: [N] a column of the logits */
static void pool_head(const ry_worker *w, float *to, float *mean, size_t head, const float *a,
                      const float *x, size_t n_tokens)
{
    const ry_vit_plan *p = w->r->p;
    const ry_pool_head *pool = &p->vit->pool;
    const size_t C = p->vit->config.dim, H = p->vit->config.n_heads, d = C / H;
    const size_t a_row = ry_vit_row(p, H), x_row = ry_vit_row(p, C);

    memset(mean, 0, C * sizeof *mean);
    for (size_t j = p->vit->config.n_prefix; j < n_tokens; j++)
        ry_row_add(mean, x + j * x_row, a[j * a_row], C);
    memcpy(to, pool->values_bias + head * d, d * sizeof *to);
    for (size_t c = 0; c < C; c++) ry_row_add(to, pool->values + c * C + head * d, mean[c], d);
}

/* pool.heads [B, C] = attention of the probe, all heads */
static void attend_all(ry_worker *w, size_t n_tokens)
{
    ry_vit_plan *p = w->r->p;
    const ry_vit_config *c = &p->vit->config;
    const ry_block_rows *last = &p->rows[c->n_blocks - 1];
    const int sized = last->sized || last->needs.sizes;
    const size_t C = c->dim, H = c->n_heads, x_row = ry_vit_row(p, C);

    ry_step step = ry_runner_step(w->run, w->r->in->n * H);
    for (size_t t; ry_step_next(&step, &t);) {
        const size_t image = t / H, head = t % H;
        float *a = p->pooling.logits + image * n_tokens * ry_vit_row(p, H) + head;
        softmax_column(a, ry_vit_row(p, H), c->n_prefix, n_tokens,
                       log_sizes_of(w, sized, image, n_tokens));
        pool_head(w, p->pooling.heads + image * x_row + head * (C / H), p->pooling.means + t * C,
                  head, a, p->h + image * n_tokens * x_row, n_tokens);
    }
    ry_step_end(&step);
}

void ry_pool_attention(ry_worker *w, size_t n_tokens)
{
    ry_vit_plan *p = w->r->p;
    const ry_pool_head *pool = &p->vit->pool;
    const size_t C = p->vit->config.dim, h_row = ry_vit_row(p, C);

    compute_logits(w, p->pooling.keys, n_tokens);
    attend_all(w, n_tokens);
    ry_run_linear(w, p->pooling.proj, 1, p->pooling.heads, p->pooled_x);
    ry_run_norm_linear(w, p->pooling.fc1, 1, p->pooled_x, pool->norm_w, pool->norm_b, p->pooled_h,
                       p->wide);
    ry_run_linear(w, p->pooling.fc2, 1, p->wide, p->pooled_x);
    ry_step step = ry_runner_step(w->run, w->r->in->n); /* what reads it expects padded rows */
    for (size_t i; ry_step_next(&step, &i);)
        memcpy(p->pooled_h + i * h_row, p->pooled_x + i * C, C * sizeof(float));
    ry_step_end(&step);
}
